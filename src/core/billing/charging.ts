// Which calls are charged, and which of them at the price of answers from the cache: one table for
// calls with a key and for pay-per-call. Knows no price and no account.

import type { SourceKind } from "../routing/answer-source.ts";
import type { Failure } from "../rpc/failure.ts";
import type { Method } from "../rpc/method.ts";

/**
 * How a call that has ended is priced. `full`: a range costs the parts that were sent. `cached`:
 * the price of an answer from the cache.
 */
export type ChargeKind = "full" | "cached" | "none";

/** How a call that has ended is charged: answered, or refused for its range. */
export function chargeKindOf(source: SourceKind): ChargeKind {
  switch (source.kind) {
    case "provider":
    case "merged":
    case "shared":
    case "accepted":
    case "refused":
      return "full";
    case "cache":
    case "heads":
      return "cached";
    case "local":
    case "none":
      return "none";
  }
}

/** Whether a call that has ended is charged: by the table, even where its price is 0. */
export function isCharged(source: SourceKind): boolean {
  return chargeKindOf(source) !== "none";
}

/** The parts of a call that are charged, of those that were planned. `sent` null = undivided. */
export function chargedParts(planned: number, sent: number | null): number {
  return sent === null ? planned : Math.min(planned, sent);
}

/** Compute units since the start of a process, by the price of their calls. */
export type MeteredCu = Readonly<Record<Exclude<ChargeKind, "none">, number>>;

/** The state of a call that ended before its answer. */
export interface Abandoned {
  /** False = certainly nothing of it was sent. */
  readonly sent: boolean;
  /** The attempt in flight counted as a timeout of its provider. */
  readonly countedAsTimeout: boolean;
}

/** The state of a call whose caller left after every attempt so far had failed. */
export function abandonedAfter(
  failed: readonly { readonly failure: Pick<Failure, "kind"> }[],
): Abandoned {
  const last = failed.findLast(({ failure }) => failure.kind !== "unsent");
  return { sent: last !== undefined, countedAsTimeout: last?.failure.kind === "timeout" };
}

/** Why a call ended early. `left`: its caller left. `cut`: the service cut it off. */
export type Interruption = "left" | "cut";

/**
 * Whether a call that ended before its answer is charged: never if the service cut it off; if the
 * caller left, everything that a provider may have executed.
 */
export function isAbandonedCharged(
  { replaySafe }: Method,
  why: Interruption,
  { sent, countedAsTimeout }: Abandoned,
): boolean {
  if (why === "cut" || !sent) return false;
  return !(replaySafe && countedAsTimeout);
}
