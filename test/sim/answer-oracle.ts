// Judges answers by what the nodes of a network could truthfully have said: wrong, shorter than
// somebody could have made it, `null` for what is there, kept although it must not be. Knows no
// service.
import type { CacheClass } from "../../src/core/routing/cache-terms.ts";
import { claimedNumber, lieOf, type NodeRequest, resolvedAt } from "./cache-nodes.ts";
import type { SimulatedNode } from "./simulated-node.ts";

/** How long what a node said may still be told. */
export interface Graces {
  /** Answers and pushes that are under way. */
  readonly usualMs: number;
  /** `null` is told so much later, since somebody was asked once more. */
  readonly nullMs: number;
  /** A node that has had a block for so long is known to have it. */
  readonly knownMs: number;
  /** So much longer of a kept answer, by its class; left out = no longer. */
  readonly kept?: Readonly<Partial<Record<CacheClass, number>>>;
}

/** An answer. */
export interface JudgedAnswer {
  readonly request: NodeRequest;
  /** The result as JSON. */
  readonly json: string;
  /** How it was kept; null = it was not. */
  readonly kept: CacheClass | null;
  /** Whether it was joined from parts. */
  readonly isMerged: boolean;
  /** Whether the newest block was one for the whole call, at whatever node. */
  readonly isResolved: boolean;
  readonly askedAtMs: number;
  readonly toldAtMs: number;
  /** The node that gave it; null = unknown, or several did. */
  readonly nodeIndex: number | null;
}

/** What is wrong with an answer. */
export type Finding = "wrong" | "short" | "null" | "told, then null";

/** What a caller was told. */
interface Told {
  readonly json: string;
  readonly node: SimulatedNode;
  readonly atMs: number;
}

const MAX_TOLD = 4_096;

/** The judge of the answers of one network. */
export class AnswerOracle {
  readonly #nodes: readonly SimulatedNode[];
  readonly #graces: Graces;
  /** Blocks and receipts that were told of. */
  readonly #told = new Map<string, Told>();
  /** The highest block that each node was heard to have by its number. */
  readonly #highest = new Map<SimulatedNode, number>();

  constructor(nodes: readonly SimulatedNode[], graces: Graces) {
    this.#nodes = nodes;
    this.#graces = graces;
  }

  /** What is wrong with an answer; empty = nothing. */
  judge(answer: JudgedAnswer): readonly Finding[] {
    const found: Finding[] = [];
    const isTruth = this.#isTruth(answer);
    if (!isTruth && this.#isJointLie(answer)) return found;
    if (!isTruth) found.push("wrong");
    if (this.#isShort(answer)) found.push("short");
    if (answer.json === "null" && (this.#isThere(answer) || this.#isKnown(answer)))
      found.push("null");
    if (answer.json === "null" && this.#wasTold(answer)) found.push("told, then null");
    this.#note(answer);
    return found;
  }

  /**
   * Whether a node would have said it lately. A kept answer about a number is compared with nodes
   * that have that block and are on no branch of their own: what one that lags behind leaves out,
   * and what another branch holds, must not be kept, unless a socket vouches for it.
   */
  #isTruth({ request, json, kept, isMerged, isResolved, ...times }: JudgedAnswer): boolean {
    const { usualMs, nullMs, kept: longer = {} } = this.#graces;
    const { askedAtMs, toldAtMs } = times;
    const claimed = kept === null || longer[kept] !== undefined ? null : claimedNumber(request);
    const graceMs = kept === null && json === "null" ? usualMs + nullMs : usualMs;
    const keptMs = kept === null ? 0 : (longer[kept] ?? 0);
    const sinceMs = (isMerged ? askedAtMs : toldAtMs) - graceMs - keptMs;
    // By a hash an answer is true on every branch.
    const isOfHash = kept === null || kept === "hash";
    const isSaid = (asked: NodeRequest, least: number): boolean =>
      this.#nodes.some(
        (node) =>
          (isOfHash || node.fault.forks === undefined) &&
          node
            .chainsSince(sinceMs)
            .some((chain) => least < chain.length && node.answer(asked, chain) === json),
      );
    if (isSaid(request, claimed ?? -1)) return true;
    return (
      isResolved &&
      this.#heightsSince(sinceMs).some((height) => {
        const resolved = resolvedAt(request, height);
        return resolved !== null && isSaid(resolved, height);
      })
    );
  }

  /** Numbers that were those of a newest block. */
  #heightsSince(sinceMs: number): readonly number[] {
    const chains = this.#nodes.flatMap((node) => node.chainsSince(sinceMs));
    return [...new Set(chains.map((chain) => chain.length - 1))];
  }

  /** Two operators that say the same are believed, and nothing of it is kept. */
  #isJointLie({ request, json, kept, isResolved, toldAtMs }: JudgedAnswer): boolean {
    if (kept !== null) return false;
    const liars = this.#nodes.filter(({ fault }) => (fault.liesShare ?? 0) > 0);
    if (liars.length < 2) return false;
    const sinceMs = toldAtMs - this.#graces.usualMs;
    const heights = isResolved ? this.#heightsSince(sinceMs) : [];
    const asked = [request, ...heights.map((height) => resolvedAt(request, height))];
    return liars.some((node) =>
      node.chainsSince(sinceMs).some((chain) => {
        const view = { chain, left: node.left };
        return asked.some((one) => one !== null && lieOf(view, one) === json);
      }),
    );
  }

  /** Logs of a node that lacks their end, though another one that serves them has it. */
  #isShort({ request, json, isMerged, askedAtMs, toldAtMs }: JudgedAnswer): boolean {
    const { usualMs, knownMs } = this.#graces;
    const claimed = claimedNumber(request);
    if (request.method !== "eth_getLogs" || claimed === null) return false;
    const able = this.#nodes.filter(({ fault }) => !isRefused(fault.refuses, request));
    // A call in parts ends where its end was pinned.
    const knownSinceMs = (isMerged ? askedAtMs : toldAtMs) - knownMs;
    const isKnown = able.some((node) =>
      node.chainsSince(knownSinceMs).every((chain) => claimed < chain.length),
    );
    if (!isKnown) return false;
    const sinceMs = (isMerged ? askedAtMs : toldAtMs) - usualMs;
    return !able.some((node) =>
      node
        .chainsSince(sinceMs)
        .some((chain) => claimed < chain.length && node.answer(request, chain) === json),
    );
  }

  /**
   * Whether all nodes that are neither behind nor alone have had what is asked for, for long, and
   * those that are behind are on their way to it.
   */
  #isThere({ request, toldAtMs }: JudgedAnswer): boolean {
    const sinceMs = toldAtMs - this.#graces.knownMs;
    return this.#nodes.every((node) =>
      isBehind(node)
        ? this.#follows(node)
        : node.chainsSince(sinceMs).every((chain) => node.answer(request, chain) !== "null"),
    );
  }

  /** Whether the newest block of a node that lags is on the chain of one that does not. */
  #follows({ chain, fault }: SimulatedNode): boolean {
    if (fault.lagBlocks === undefined) return true;
    const at = chain.length - 1;
    return this.#nodes.some((other) => !isBehind(other) && other.chain[at] === chain[at]);
  }

  /** Whether a node that has told of a block as high still has it. */
  #isKnown({ request, toldAtMs }: JudgedAnswer): boolean {
    const claimed = claimedNumber(request);
    if (claimed === null) return false;
    const sinceMs = toldAtMs - this.#graces.usualMs;
    return this.#nodes.some(
      (node) =>
        (this.#highest.get(node) ?? -1) >= claimed &&
        node.chainsSince(sinceMs).every((chain) => node.answer(request, chain) !== "null"),
    );
  }

  /** Whether the node that told of it still does. */
  #wasTold({ request, askedAtMs, toldAtMs }: JudgedAnswer): boolean {
    const told = this.#told.get(keyOf(request));
    if (told === undefined || told.atMs > askedAtMs) return false;
    const { node, json } = told;
    return node
      .chainsSince(toldAtMs - this.#graces.usualMs)
      .every((chain) => node.answer(request, chain) === json);
  }

  #note({ request, json, kept, nodeIndex, toldAtMs: atMs }: JudgedAnswer): void {
    const node = nodeIndex === null ? undefined : this.#nodes[nodeIndex];
    if (node !== undefined && json.startsWith("{")) {
      const number = claimedNumber(request) ?? -1;
      this.#highest.set(node, Math.max(number, this.#highest.get(node) ?? -1));
    }
    if (!NAMES_ONE.has(request.method) || json === "null" || kept !== null) return;
    if (node === undefined || node.fault.stallShare !== undefined) return;
    this.#told.delete(keyOf(request));
    this.#told.set(keyOf(request), { json, node, atMs });
    for (const oldest of this.#told.keys()) {
      if (this.#told.size <= MAX_TOLD) break;
      this.#told.delete(oldest);
    }
  }
}

/** Of these a caller who was told goes on to expect them. */
const NAMES_ONE: ReadonlySet<string> = new Set(["eth_getBlockByHash", "eth_getTransactionReceipt"]);

function keyOf({ method, params }: NodeRequest): string {
  return `${method} ${JSON.stringify(params)}`;
}

function isRefused(refused: readonly string[] | undefined, { method }: NodeRequest): boolean {
  return refused?.includes(method) === true;
}

function isBehind({ fault }: SimulatedNode): boolean {
  const { lagBlocks, answersTrailMs, forks } = fault;
  return lagBlocks !== undefined || answersTrailMs !== undefined || forks !== undefined;
}
