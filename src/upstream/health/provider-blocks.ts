// What a tracker keeps of what one provider has told of the blocks of its chain.
import type { BranchView } from "../../core/provider/blocks/branch-view.ts";
import type { FinalitySample } from "../../core/provider/blocks/finality.ts";
import type { HeadSample } from "../../core/provider/blocks/head.ts";
import type { Provider } from "../../core/provider/profile.ts";

/** A block in a request: by tag as its caller wrote it, by number, or by hash (EIP-1898). */
export type BlockForm = "tag" | "number" | "hash";

/** What is kept of one provider; changed in place. */
export interface ProviderBlocks {
  readonly provider: Provider;
  sample: HeadSample | null;
  /** The highest block that it was ever known to have; -1 = none. */
  highest: number;
  /** When its height last grew. */
  roseAtMs: number;
  /** What it last reported as final. */
  finalized: FinalitySample | null;
  /** What it last reported as safe. */
  safe: FinalitySample | null;
  /** A block that it said it does not have; null = its height says what it has. */
  missing: number | null;
  /** A number not above its own head that it refused; null = none since it answered at one. */
  refused: number | null;
  /** When it refused the number of its own head; -Infinity = never. */
  neededTagAtMs: number;
  /** It answers reads of state by the hash of a block. */
  takesHash: boolean;
  /** When it was last found whether it does; -Infinity = never. */
  hashReadsAtMs: number;
  /** The blocks that it has pushed. */
  readonly branch: BranchView;
  /** When it last pushed a head (ms). */
  pushedAtMs: number;
  /** The number of that head; -1 = none. */
  pushedNumber: number;
  /** Polls running that found it further than that, as if another machine pushed. */
  pollsAhead: number;
}
