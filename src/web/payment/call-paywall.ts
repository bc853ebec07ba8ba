// The paywall of calls that are paid one by one: challenges for a price, credentials taken, and the
// limits of both by address. Knows no method, no rail and no channel.

import { type AddressLimit, createAddressLimit } from "../../core/billing/address-limit.ts";
import { type Fault, fault } from "../../core/faults/rpc-fault.ts";
import type { PaymentHeaders } from "../../payments/payments.ts";
import type {
  Hold,
  PricedCall,
  SessionRefusal,
  Sessions,
  SessionTaken,
} from "../../payments/session/sessions.ts";
import type { Runtime } from "../../runtime.ts";
import type { Paywall } from "./paywall.ts";

/** What a request costs: all of its calls together. */
export type CallPrice = Omit<PricedCall, "fingerprint">;

/** What a credential for a request belongs to. */
export interface CallMark {
  /** Of URL and body: the same for the same request. */
  readonly fingerprint: string;
  /** The channel that the caller names; null = none. */
  readonly channelHint: string | null;
}

/** What a credential gives. */
export type PaidCall = Exclude<SessionTaken, SessionRefusal>;

/** Sells calls. A price of null = nothing is asked for but what the credential does. */
export type CallPaywall = Paywall<CallMark, CallPrice | null, PaidCall, SessionRefusal>;

/** What the paywall works with. */
export interface CallPaywallParts {
  readonly sessions: Pick<Sessions, "challenge" | "take">;
  readonly runtime: Pick<Runtime, "now">;
}

/** Challenges for one address; a call that is paid for gives one back. */
const CHALLENGES = { perSecond: 10, burst: 200 };
/**
 * Wrong credentials of one address. A credential counts as wrong until it was found to be right:
 * those that come together are counted before any is checked.
 */
const INVALID = { perSecond: 0.5, burst: 64 };
/**
 * Credentials of one address whose signatures are checked; a call that is charged gives one back.
 */
const CREDENTIALS = { perSecond: 20, burst: 400 };

interface Limits {
  readonly challenges: AddressLimit;
  readonly invalid: AddressLimit;
  readonly credentials: AddressLimit;
}

/** A paywall whose limits are all unused. */
export function createCallPaywall({ sessions, runtime }: CallPaywallParts): CallPaywall {
  const limits: Limits = {
    challenges: createAddressLimit(CHALLENGES),
    invalid: createAddressLimit(INVALID),
    credentials: createAddressLimit(CREDENTIALS),
  };
  return {
    async collect({ payment, address, mark }, price) {
      const priced = await price();
      if (priced !== null && "kind" in priced) return priced;
      const call = priced === null ? null : { ...priced, fingerprint: mark.fingerprint };
      const why = refusalByAddress(limits, address, {
        isPaying: payment !== null,
        nowMs: runtime.now(),
      });
      if (why !== null) return { kind: "refusal", fault: why, headers: [], isWrong: false };
      return payment === null
        ? sessions.challenge(call, mark.channelHint)
        : take({ sessions, limits, address }, payment, call);
    },
  };
}

/** Counts a request of an address; the fault = it has sent too many. */
function refusalByAddress(
  { challenges, invalid, credentials }: Limits,
  address: string,
  { isPaying, nowMs }: { readonly isPaying: boolean; readonly nowMs: number },
): Fault | null {
  if (!isPaying)
    return tooMany("this address has asked for too many challenges", challenges, address, nowMs);
  const why = tooMany(
    "too many payments from this address were not right",
    invalid,
    address,
    nowMs,
  );
  if (why !== null) return why;
  const idle = tooMany(
    "too many payments from this address paid for nothing",
    credentials,
    address,
    nowMs,
  );
  if (idle !== null) invalid.giveBack(address);
  return idle;
}

function tooMany(
  message: string,
  limit: AddressLimit,
  address: string,
  nowMs: number,
): Fault | null {
  const retryAfterMs = limit.take(address, nowMs);
  return retryAfterMs === 0 ? null : fault("rate_limit_exceeded", message, { retryAfterMs });
}

interface PayingAddress {
  readonly sessions: CallPaywallParts["sessions"];
  readonly limits: Limits;
  readonly address: string;
}

async function take(
  { sessions, limits, address }: PayingAddress,
  payment: PaymentHeaders,
  call: PricedCall | null,
): Promise<PaidCall | SessionRefusal> {
  let isWrong = false;
  try {
    const taken = await sessions.take(payment, call);
    isWrong = taken.kind === "refusal" && taken.isWrong;
    if (taken.kind !== "hold") return taken;
    limits.challenges.giveBack(address);
    return countedHold(taken, () => limits.credentials.giveBack(address));
  } finally {
    if (!isWrong) limits.invalid.giveBack(address);
  }
}

/** The same hold; calls back when it was charged. */
function countedHold(hold: Hold, charged: () => void): Hold {
  return {
    kind: "hold",
    release: () => hold.release(),
    async settle(end) {
      const ended = await hold.settle(end);
      if (ended.kind === "bill" && ended.chargedUnits > 0n) charged();
      return ended;
    },
  };
}
