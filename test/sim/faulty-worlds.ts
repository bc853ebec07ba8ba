// Worlds in which nodes are at fault: which rule of what may be kept and told each of them tries.
import type { ProviderSet } from "../../src/core/provider/profile.ts";
import type { CacheClass } from "../../src/core/routing/cache-terms.ts";
import type { Finding } from "./answer-oracle.ts";
import type { TraceFocus } from "./cache-trace.ts";
import type { NodeFault } from "./simulated-node.ts";

/** What is wrong in a world, and what may be told there all the same. */
export interface FaultyWorld {
  /** By the index of the node; those beyond its end are honest. */
  readonly faults?: readonly NodeFault[];
  /** How far below its newest block a node calls blocks final. */
  readonly finality?: number;
  /** Blocks that a reorganisation replaces at most. */
  readonly deepestReorg?: number;
  /** How much longer kept answers may be told than others, by their class (ms). */
  readonly kept?: Readonly<Partial<Record<CacheClass, number>>>;
  /** After how long a node is known to have a block (ms); left out = soon: it pushes it. */
  readonly knownMs?: number;
  /** What the service cannot know there, since a node tells of more than it has for its callers. */
  readonly excused?: readonly Finding[];
  /** How often nodes are probed; left out = never: their heads are pushed. */
  readonly pollEveryMs?: number;
  /** How many times more calls come in a block than usual; left out = once. */
  readonly density?: number;
  /** What alone is asked; left out = everything. */
  readonly asks?: TraceFocus;
  /** Settings of the provider set. */
  readonly set?: Partial<ProviderSet>;
}

const POLLED = { isPolled: true } as const;
const NO_LOGS = { refuses: ["eth_getLogs"] } as const;

/** The worlds by name. */
export const FAULTY_WORLDS = {
  /** Nodes lag, lie and stall. */
  usual: {
    faults: [{ lagBlocks: 1 }, { lagBlocks: 2 }, { liesShare: 0.2 }, { stallShare: 0.05 }],
  },
  /** Only a node that is 3 blocks behind serves logs, on a chain that is final after 2. */
  "3 behind": {
    faults: [NO_LOGS, NO_LOGS, NO_LOGS, NO_LOGS, { lagBlocks: 3 }],
    finality: 2,
    deepestReorg: 1,
  },
  /** Only a node that is 63 blocks behind serves logs. */
  "63 behind": {
    faults: [NO_LOGS, NO_LOGS, NO_LOGS, NO_LOGS, { lagBlocks: 63 }],
    set: { maxLagBlocks: 100 },
  },
  /** One node is on a branch of its own for longer than it takes to be final. */
  forks: {
    faults: [{ forks: { every: 30, blocks: 12 } }],
    finality: 4,
    deepestReorg: 2,
    excused: ["null", "told, then null"],
  },
  /** The machines that answer trail those that push heads by less than a block time. */
  "answers trail": {
    faults: [{ answersTrailMs: 1_000 }, { answersTrailMs: 1_500 }, { answersTrailMs: 700 }],
    kept: { head: 2_000 },
    excused: ["short", "null"],
  },
  /** They trail by several blocks: what they say may stay until it is final, and no longer. */
  "answers trail far": {
    faults: [{ answersTrailMs: 7_000 }, { answersTrailMs: 6_000 }, { answersTrailMs: 6_500 }],
    finality: 8,
    deepestReorg: 3,
    kept: { head: 9_000, block: 32_000 },
    excused: ["short", "null"],
  },
  /** Two nodes lie alike. */
  "lie alike": {
    faults: [{ liesShare: 0.8 }, { liesShare: 0.8 }, { lagBlocks: 1 }],
    asks: { kind: "logs" },
  },
  /** Ranges are asked for in parts, and some nodes lag. */
  parts: {
    faults: [
      { maxBlockRange: 4 },
      { maxBlockRange: 4, lagBlocks: 1 },
      { maxBlockRange: 4, lagBlocks: 2 },
      { maxBlockRange: 4 },
      { maxBlockRange: 4, stallShare: 0.02 },
    ],
  },
  /** Ranges are asked for in parts, of nodes of which it is not known how far they have come. */
  "late parts": {
    faults: [
      { maxBlockRange: 1, isPolled: true },
      { maxBlockRange: 1, isPolled: true },
      { maxBlockRange: 4, isPolled: true },
      { maxBlockRange: 4, isPolled: true },
      { maxBlockRange: 4, isPolled: true },
    ],
    pollEveryMs: 2_000,
    knownMs: 2_200,
    asks: { kind: "logs" },
  },
  /** The one socket trails what all nodes answer. */
  "pushes trail": {
    faults: [{ pushesTrailMs: 6_000 }, POLLED, POLLED, POLLED, POLLED],
    pollEveryMs: 1_000,
    knownMs: 1_200,
    // It takes two polls to find out.
    kept: { head: 2_000, block: 2_000 },
  },
  /** No node pushes heads, and one is a block behind. */
  polled: {
    faults: [{ isPolled: true, lagBlocks: 1 }, POLLED, POLLED, POLLED, POLLED],
    pollEveryMs: 2_000,
    knownMs: 2_200,
    asks: { kind: "old", oldBlocks: 4 },
    density: 10,
  },
  /** No node pushes heads, and two are far behind. */
  "polled far": {
    faults: [
      { isPolled: true, lagBlocks: 30 },
      { isPolled: true, lagBlocks: 20 },
      POLLED,
      POLLED,
      POLLED,
    ],
    pollEveryMs: 2_000,
    knownMs: 2_200,
    set: { maxLagBlocks: 100 },
    asks: { kind: "old" },
  },
} as const satisfies Readonly<Record<string, FaultyWorld>>;

/** Their names. */
export type WorldName = keyof typeof FAULTY_WORLDS;
