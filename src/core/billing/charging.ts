// Which calls are charged: the one table, for callers with a key and for calls that are paid for
// one by one alike. Knows no price and no account.

import type { SourceKind } from "../routing/answer-source.ts";
import type { Failure } from "../rpc/failure.ts";
import type { Method } from "../rpc/method.ts";

/** Whether a call is charged that was answered to its end. */
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

/** What a call left behind when it was ended before its answer. */
export interface Abandoned {
  /** False = certainly nothing of it has left this machine. */
  readonly sent: boolean;
  /** The attempt that was under way counted as a timeout of its provider. */
  readonly countedAsTimeout: boolean;
}

/** What a call left behind whose caller left when every attempt that was begun had failed. */
export function abandonedAfter(
  failed: readonly { readonly failure: Pick<Failure, "kind"> }[],
): Abandoned {
  const last = failed.findLast(({ failure }) => failure.kind !== "unsent");
  return { sent: last !== undefined, countedAsTimeout: last?.failure.kind === "timeout" };
}

/** Why a call or an answer ended early: its caller left, or the service cut it off. */
export type Interruption = "left" | "cut";

/**
 * Whether a call is charged that was ended before its answer: never by ourselves, and where the
 * caller left whatever may have been carried out.
 */
export function isAbandonedCharged(
  { replaySafe }: Method,
  why: Interruption,
  { sent, countedAsTimeout }: Abandoned,
): boolean {
  if (why === "cut" || !sent) return false;
  return !(replaySafe && countedAsTimeout);
}
