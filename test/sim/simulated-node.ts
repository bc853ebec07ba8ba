// A node of the simulated chain with its fault: which chains it has had, and what it answers. Knows
// no service and no clock.
import { answerOf, type Chain, lieOf, type NodeRequest, type NodeView } from "./cache-nodes.ts";

/** What is wrong with a node. */
export interface NodeFault {
  /** Blocks that it is behind. */
  readonly lagBlocks?: number;
  /** Share of its answers that are of another block, transaction or address. */
  readonly liesShare?: number;
  /** Share of calls that it never answers. */
  readonly stallShare?: number;
  /** Methods that it does not serve. */
  readonly refuses?: readonly string[];
  /** Its answers are of machines that are so far behind those that push its heads. */
  readonly answersTrailMs?: number;
  /** Its heads are pushed so long after it answers from them. */
  readonly pushesTrailMs?: number;
  /** It pushes no heads. */
  readonly isPolled?: boolean;
  /** Out of so many blocks it spends some on a branch of its own. */
  readonly forks?: { readonly every: number; readonly blocks: number };
  /** The most blocks (last minus first) of a range of logs. */
  readonly maxBlockRange?: number;
}

/** A chain that was left. */
interface PastChain {
  readonly chain: Chain;
  readonly leftMs: number;
}

/** What comes back of a request: nothing at all, JSON, or (null) that a block is not known. */
export type NodeReply =
  | { readonly kind: "silence" }
  | { readonly kind: "json"; json: string | null };

/** More blocks than a node ever has to take over at one time. */
const DEEPEST = 200;

/** A node. */
export class SimulatedNode implements NodeView {
  readonly index: number;
  readonly fault: NodeFault;
  readonly finality: number;
  chain: Chain;
  readonly left = new Map<string, number>();
  /** What it has told of its heads. */
  told: Chain;
  readonly #keptMs: number;
  #past: PastChain[] = [];

  /** `keptMs`: for how long it is remembered what chains it had. */
  constructor(
    { index, fault, finality }: Pick<SimulatedNode, "index" | "fault" | "finality">,
    chain: Chain,
    keptMs: number,
  ) {
    this.index = index;
    this.fault = fault;
    this.finality = finality;
    this.chain = chain;
    this.told = chain;
    this.#keptMs = keptMs;
  }

  /** Takes a chain over. */
  adopt(next: Chain, nowMs: number): void {
    const fork = forkOf(this.chain, next);
    for (const [at, hash] of this.chain.slice(fork).entries()) this.left.set(hash, fork + at);
    for (const hash of next.slice(fork)) this.left.delete(hash);
    this.#past = this.#past.filter(({ leftMs }) => leftMs >= nowMs - this.#keptMs);
    this.#past.push({ chain: this.chain, leftMs: nowMs });
    this.chain = next;
  }

  /** The chains that it had since a time, the present one first. */
  chainsSince(sinceMs: number): readonly Chain[] {
    const chains = [this.chain];
    for (let at = this.#past.length - 1; at >= 0; at--) {
      const past = this.#past[at];
      if (past === undefined || past.leftMs < sinceMs) break;
      chains.push(past.chain);
    }
    return chains;
  }

  /** What it answers, or answered with one of its chains. */
  answer(request: NodeRequest, chain: Chain = this.chain): string | null {
    return answerOf({ chain, left: this.left }, request, this.finality);
  }

  /** What comes back of a request, by its fault. */
  reply(request: NodeRequest, random: () => number): NodeReply {
    const { liesShare = 0, stallShare = 0 } = this.fault;
    if (stallShare > 0 && random() < stallShare) return { kind: "silence" };
    const isLie = liesShare > 0 && random() < liesShare;
    return { kind: "json", json: isLie ? lieOf(this, request) : this.answer(request) };
  }
}

/** The first number at which two chains differ; beyond `DEEPEST` they are not compared. */
export function forkOf(one: Chain, other: Chain): number {
  let fork = Math.max(0, Math.min(one.length, other.length) - DEEPEST);
  while (fork < one.length && one[fork] === other[fork]) fork++;
  return fork;
}
