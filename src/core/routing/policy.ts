// What the engine does with a call beyond asking one provider after the other, as a value: read
// from the columns of the method table, the block that the call names, and the settings. Decides
// once, before anything is asked.

import type { HedgeSettings } from "../provider/profile.ts";
import type { BlockRef } from "../rpc/call.ts";
import type { Method, TransactionAnswer } from "../rpc/method.ts";
import { isRange } from "../rpc/range-call.ts";

/** Which layers of the engine a call passes, and their bounds. */
export interface Policy {
  /** What the call is answered with if it hands in a raw transaction; null = it does not. */
  readonly transaction: TransactionAnswer | null;
  /** Its answer may come from the cache, and be kept there. */
  readonly cache: boolean;
  /** Equal calls that are under way share one answer. */
  readonly coalesce: boolean;
  /** When a second provider is asked as well; null = it never is. */
  readonly hedge: HedgeSettings | null;
  /** After `null` a provider with a higher head is asked as well. */
  readonly recheckNull: boolean;
  /** A range of blocks that no provider accepts whole is asked for in parts. */
  readonly split: boolean;
  /**
   * The call is a part of a split range: if a provider refuses it as too large it is cut again, and
   * the next provider is not asked.
   */
  readonly isPart: boolean;
  /** The call asks for a block by number: `null` while the block does not exist. */
  readonly blockByNumber: boolean;
  /** It is answered at the one view of the chain that callers share. */
  readonly view: boolean;
  /** This service knows of transactions that the call hands in or asks for. */
  readonly own: boolean;
  /** Attempts that may be out at the same time. */
  readonly maxOpen: number;
  /** Attempts that may be sent in all; infinite = as many as there are providers. */
  readonly maxAttempts: number;
}

/** What a configuration and a caller's directives say of policies, as far as a method allows it. */
export type PolicySettings = Pick<
  Policy,
  "maxAttempts" | "cache" | "coalesce" | "hedge" | "split" | "view" | "own"
>;

/** One awaited attempt, and two slow ones beside it. */
const OPEN_FOR_READS = 3;

/** The policy of a call. */
export function policyOf(method: Method, block: BlockRef, settings: PolicySettings): Policy {
  const hedge = method.hedge && method.replaySafe ? settings.hedge : null;
  const { kind } = block;
  // What is pending differs from node to node, and from one moment to the next.
  const isPending = kind === "tag" && block.tag === "pending";
  // It names one thing by hash or number, so that `null` means that the node lacks it.
  const namesOneThing = method.block === null || kind === "number" || kind === "hash";
  // What is known of a caller's own transactions is told to that caller alone.
  const isForAll = method.replaySafe && !settings.own;
  return {
    transaction: method.transaction,
    cache: settings.cache && method.cache !== null && method.replaySafe,
    coalesce: isForAll && settings.coalesce && method.coalesce && !isPending,
    hedge,
    blockByNumber: method.mayBeMissing && kind === "number",
    recheckNull: isForAll && method.mayBeMissing && namesOneThing,
    split: settings.split && isRange({ method, block }),
    isPart: false,
    view: settings.view,
    own: settings.own,
    maxOpen: method.replaySafe ? OPEN_FOR_READS : 1,
    maxAttempts: settings.maxAttempts,
  };
}
