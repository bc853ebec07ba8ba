// Nodes of one simulated chain that see its blocks and reorganisations at different times, each
// with a fault of its own. Time is its user's: simulated or real. Knows no service.
import { type Chain, hashOf } from "./cache-nodes.ts";
import { forkOf, type NodeFault, SimulatedNode } from "./simulated-node.ts";

/** How a network is. */
export interface NetworkPlan {
  readonly nodes: number;
  /** What is wrong with nodes, by their index; those beyond its end are honest. */
  readonly faults: readonly NodeFault[];
  /** How far below its newest block a node calls blocks final. */
  readonly finality: number;
  readonly random: () => number;
  readonly clock: NetworkClock;
  /** A node's new branch reaches others within this time. */
  readonly nodeDelayMs: number;
  /** A node pushes a block within this time. */
  readonly pushDelayMs: number;
  /** For how long it is remembered what chains nodes had. */
  readonly keptMs: number;
  /** Hears of each block that a node pushes. */
  readonly pushed: (node: SimulatedNode, block: NodeBlock) => void;
}

/** A block as a node pushes it. */
export interface NodeBlock {
  readonly number: number;
  readonly hash: string;
  readonly parentHash: string;
}

/** Time. */
export interface NetworkClock {
  now(): number;
  after(ms: number, run: () => void): unknown;
}

const FIRST_BLOCKS = 200;

/** The nodes. */
export class NodeNetwork {
  readonly nodes: readonly SimulatedNode[];
  readonly #plan: NetworkPlan;
  /** When the pushes of each node that are under way have been sent. */
  readonly #pushedByMs: number[];
  /** The chain that every node comes to. */
  #canonical: Chain;
  #made = 0;
  #grown = 0;

  constructor(plan: NetworkPlan) {
    this.#plan = plan;
    this.#canonical = Array.from({ length: FIRST_BLOCKS }, () => hashOf(++this.#made));
    this.nodes = Array.from({ length: plan.nodes }, (_, index) => {
      const fault = plan.faults[index] ?? {};
      const chain = this.#canonical.slice(0, FIRST_BLOCKS - (fault.lagBlocks ?? 0));
      return new SimulatedNode({ index, fault, finality: plan.finality }, chain, plan.keptMs);
    });
    this.#pushedByMs = this.nodes.map(() => 0);
  }

  /** The number of the newest block. */
  get height(): number {
    return this.#canonical.length - 1;
  }

  /** Every node pushes the blocks that it has. */
  start(): void {
    for (const node of this.nodes) this.#push(node, 0);
  }

  /** Leaves some blocks, grows by as many and one, and tells the nodes, each in its time. */
  grow(depth: number): void {
    const { clock, random, nodeDelayMs } = this.#plan;
    const kept = this.#canonical.slice(0, this.#canonical.length - depth);
    const next = [...kept, ...Array.from({ length: depth + 1 }, () => hashOf(++this.#made))];
    this.#canonical = next;
    const grown = this.#grown++;
    for (const node of this.nodes)
      clock.after(random() * nodeDelayMs, () => this.#reach(node, next, grown));
  }

  #reach(node: SimulatedNode, next: Chain, grown: number): void {
    const { clock } = this.#plan;
    const { lagBlocks = 0, answersTrailMs = 0, pushesTrailMs = 0, forks } = node.fault;
    const turn = forks === undefined || grown < forks.every ? 0 : grown % forks.every;
    const isAlone = forks !== undefined && turn > 0 && turn <= forks.blocks;
    const returns = forks !== undefined && turn === forks.blocks + 1;
    const seen = isAlone
      ? [...node.told, hashOf(++this.#made)]
      : next.slice(0, next.length - lagBlocks);
    // A later chain may have overtaken this one.
    if (!isAlone && !returns && seen.length <= node.told.length) return;
    const from = forkOf(node.told, seen);
    node.told = seen;
    this.#later(answersTrailMs, () => node.adopt(seen, clock.now()));
    this.#later(pushesTrailMs, () => this.#push(node, from, seen));
  }

  #later(ms: number, run: () => void): void {
    if (ms === 0) run();
    else this.#plan.clock.after(ms, run);
  }

  #push(node: SimulatedNode, from: number, chain = node.told): void {
    const { clock, random, pushDelayMs, pushed } = this.#plan;
    if (node.fault.isPolled === true) return;
    for (const [at, hash] of chain.slice(from).entries()) {
      const number = from + at;
      const block = { number, hash, parentHash: chain[number - 1] ?? hash };
      const before = this.#pushedByMs[node.index] ?? 0;
      const byMs = Math.max(before, clock.now() + random() * pushDelayMs);
      this.#pushedByMs[node.index] = byMs;
      clock.after(byMs - clock.now(), () => pushed(node, block));
    }
  }
}
