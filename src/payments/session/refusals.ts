// Refusals of session credentials, by the error catalogue, with the state of the channel for its
// payer.
import { greaterOf } from "../../core/billing/payment.ts";
import { type Fault, fault } from "../../core/faults/rpc-fault.ts";
import type { BadPayment } from "../rails/rail.ts";
import { acceptedOf, requiredFor } from "./channel.ts";
import type { LiveChannel } from "./live-channels.ts";
import type { Snapshot } from "./terms.ts";

/** A refusal; with a 402 a new challenge is added. */
export interface Refused {
  readonly kind: "refused";
  readonly fault: Fault;
  /** The state of the channel for its payer; null = none is told. */
  readonly snapshot: Snapshot | null;
}

const PROBLEMS = "https://paymentauth.org/problems/";
const AGAIN_MS = 2_000;
const UNAVAILABLE_RETRY_MS = 5_000;

/** The payment is invalid; `problem` = last part of MPP's problem type. */
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

/** The refusal that a rail gave. */
export function invalidAs({ problem, reason }: BadPayment): Refused {
  return invalid(problem, reason);
}

/** A transaction is pending. */
export function pending(what: string): Refused {
  const nextAction = "repeat the same request after Retry-After; do not sign another transaction";
  return refused(
    fault("payment_pending", `${what} was sent, and the chain has not taken it yet`, {
      retryAfterMs: AGAIN_MS,
      nextAction,
    }),
  );
}

/** A transaction failed. */
export function failed(what: string, reason: string): Refused {
  return refused(fault("payment_failed", `${what} failed: ${reason}; nothing was taken`));
}

/** The chain is not reached: nothing was done. */
export function chainDown(): Refused {
  return refused(
    fault("unavailable", "the payment chain cannot be asked right now; nothing was charged", {
      retryAfterMs: UNAVAILABLE_RETRY_MS,
    }),
  );
}

/** A channel waits for its last calls before it is closed: it accepts no new ones. */
export function beingClosed(): Refused {
  return refused(
    fault(
      "unavailable",
      "the channel is being closed and takes no calls meanwhile; nothing was charged",
      { retryAfterMs: AGAIN_MS },
    ),
  );
}

/** This process is too busy: nothing was done. */
export function busy(message: string): Refused {
  return refused(fault("unavailable", message));
}

/** A refusal by a fault of its own. */
export function refused(why: Fault): Refused {
  return { kind: "refused", fault: why, snapshot: null };
}

/**
 * The state of a channel for its payer, for a call of `units` while others hold `heldUnits`; null =
 * it can pay for nothing.
 */
export function snapshotOf(
  { record, accepted, ending }: Pick<LiveChannel, "record" | "accepted" | "ending">,
  units: bigint,
  heldUnits = 0n,
): Snapshot | null {
  if (record.state !== "open" || record.close_requested_at !== null || ending) return null;
  return {
    record,
    acceptedUnits: greaterOf(accepted, acceptedOf(record)),
    requiredUnits: requiredFor(record, heldUnits, units),
  };
}
