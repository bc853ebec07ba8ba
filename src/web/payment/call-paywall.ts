// The paywall of pay-per-call: sends challenges for a price, accepts credentials, and limits both
// by address. Knows no method, rail or channel.

import { AddressLimit } from "../../core/billing/address-limit.ts";
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
import type { Paywall } from "./purchase-paywall.ts";

/** The price of a request: the sum over its calls. */
export type CallPrice = Omit<PricedCall, "fingerprint">;

/** What a credential is bound to. */
export interface CallMark {
  /** Hash of URL and body: equal for repetitions of one request. */
  readonly fingerprint: string;
  /** The channel that the caller names; null = none. */
  readonly channelHint: string | null;
}

/** The result of an accepted credential. */
export type PaidCall = Exclude<SessionTaken, SessionRefusal>;

/**
 * Sells calls. A price of null = the request contains no call, and its credential manages a channel
 * only.
 */
export type CallPaywall = Paywall<CallMark, CallPrice | null, PaidCall, SessionRefusal>;

export interface CallPaywallParts {
  readonly sessions: Pick<Sessions, "challenge" | "take">;
  readonly runtime: Pick<Runtime, "now">;
}

/** Challenges per address; a paid call returns one token. */
const CHALLENGES = { perSecond: 10, burst: 200 };
/**
 * Invalid credentials per address. A credential counts as invalid until it has been verified, so
 * that concurrent ones are counted before they are checked.
 */
const INVALID = { perSecond: 0.5, burst: 64 };
/** Credentials per address whose signatures are verified; a charged call returns one token. */
const CREDENTIALS = { perSecond: 20, burst: 400 };

interface Limits {
  readonly challenges: AddressLimit;
  readonly invalid: AddressLimit;
  readonly credentials: AddressLimit;
}

/** Creates the paywall with unused limits. */
export function createCallPaywall({ sessions, runtime }: CallPaywallParts): CallPaywall {
  const limits: Limits = {
    challenges: new AddressLimit(CHALLENGES),
    invalid: new AddressLimit(INVALID),
    credentials: new AddressLimit(CREDENTIALS),
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

/** Counts a request of an address; returns the refusal if its address has sent too many. */
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

/** The hold, extended by a callback that runs when it is charged. */
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
