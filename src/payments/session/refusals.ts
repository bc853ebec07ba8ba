// Why a credential of a session does not pay, in the words of the catalogue, and what its payer is
// reminded of beside it.
import { type Fault, fault } from "../../core/faults/rpc-fault.ts";
import type { BadPayment } from "../rails/rail.ts";
import { requiredFor } from "./channel.ts";
import type { LiveChannel } from "./live-channels.ts";
import type { Snapshot } from "./terms.ts";

/** Not served; with a 402 a fresh challenge goes along. */
export interface Refused {
  readonly kind: "refused";
  readonly fault: Fault;
  /** The channel as its payer is reminded of it; null = of none. */
  readonly snapshot: Snapshot | null;
}

const PROBLEMS = "https://paymentauth.org/problems/";
const AGAIN_MS = 2_000;
const UNAVAILABLE_RETRY_MS = 5_000;

/** The payment is not right; `problem` = last part of MPP's problem type. */
export function invalid(
  problem: string,
  reason: string,
  snapshot: Snapshot | null = null,
): Refused {
  return {
    kind: "refused",
    fault: fault("payment_invalid", reason, { details: { problem: PROBLEMS + problem } }),
    snapshot,
  };
}

/** As the rails say it. */
export function invalidAs({ problem, reason }: BadPayment): Refused {
  return invalid(problem, reason);
}

/** A transaction is on its way. */
export function pending(what: string): Refused {
  const nextAction = "repeat the same request after Retry-After; do not sign another transaction";
  return refused(
    fault("payment_pending", `${what} was sent, and the chain has not taken it yet`, {
      retryAfterMs: AGAIN_MS,
      nextAction,
    }),
  );
}

/** A transaction came to nothing. */
export function failed(what: string, reason: string): Refused {
  return refused(fault("payment_failed", `${what} failed: ${reason}; nothing was taken`));
}

/** The chain cannot be asked: nothing was done. */
export function chainDown(): Refused {
  return refused(
    fault("unavailable", "the payment chain cannot be asked right now; nothing was charged", {
      retryAfterMs: UNAVAILABLE_RETRY_MS,
    }),
  );
}

/** A channel waits for its last calls, to be closed then: no new one is taken meanwhile. */
export function beingClosed(): Refused {
  return refused(
    fault(
      "unavailable",
      "the channel is being closed and takes no calls meanwhile; nothing was charged",
      { retryAfterMs: AGAIN_MS },
    ),
  );
}

/** This process cannot do it now: nothing was done. */
export function busy(message: string): Refused {
  return refused(fault("unavailable", message));
}

/** Not served for a reason of its own. */
export function refused(why: Fault): Refused {
  return { kind: "refused", fault: why, snapshot: null };
}

/**
 * A channel as its payer is reminded of it, for a call of `units`; null = nothing can be paid by
 * it.
 */
export function snapshotOf(
  { record, accepted, held, ending }: LiveChannel,
  units: bigint,
): Snapshot | null {
  if (record.state !== "open" || record.closeRequestedAtMs !== null || ending) return null;
  return {
    chainId: record.chainId,
    channelId: record.id,
    descriptor: record.descriptor,
    acceptedUnits: accepted?.units ?? 0n,
    requiredUnits: requiredFor(record, held, units),
    depositUnits: record.deposit,
    settledUnits: record.settled,
    spentUnits: record.spent,
    calls: record.calls,
  };
}
