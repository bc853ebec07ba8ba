// Which calls are charged: one table for calls with a key and for pay-per-call. Knows no price and
// no account.

import type { SourceKind } from "../routing/answer-source.ts";
import type { Failure } from "../rpc/failure.ts";
import type { Method } from "../rpc/method.ts";

/** Whether a completely answered call is charged. */
export function isCharged(source: SourceKind): boolean {
  switch (source.kind) {
    case "provider":
    case "cache":
    case "merged":
    case "shared":
      return true;
    case "local":
    case "none":
      return false;
  }
}

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
