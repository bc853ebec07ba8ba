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
import type { PayableRequest } from "./purchase-paywall.ts";

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

/** Challenges per address; a paid call returns one token. */
const CHALLENGES = { perSecond: 10, burst: 200 };
/**
 * Invalid credentials per address. A credential counts as invalid until it has been verified, so
 * that concurrent ones are counted before they are checked.
 */
const INVALID = { perSecond: 0.5, burst: 64 };
/** Credentials per address whose signatures are verified; a charged call returns one token. */
const CREDENTIALS = { perSecond: 20, burst: 400 };

/** Sells calls. Its limits are unused at first. */
export class CallPaywall {
  readonly #sessions: Pick<Sessions, "challenge" | "take">;
  readonly #runtime: Pick<Runtime, "now">;
  readonly #challenges = new AddressLimit(CHALLENGES);
  readonly #invalid = new AddressLimit(INVALID);
  readonly #credentials = new AddressLimit(CREDENTIALS);

  constructor(sessions: Pick<Sessions, "challenge" | "take">, runtime: Pick<Runtime, "now">) {
    this.#sessions = sessions;
    this.#runtime = runtime;
  }

  /**
   * Takes the payment of a request, or refuses a request without one and offers a channel. A price
   * of null = the request contains no call, and its credential manages a channel only.
   */
  async collect(
    { payment, address, mark }: PayableRequest<CallMark>,
    price: CallPrice | null,
  ): Promise<PaidCall | SessionRefusal> {
    const call = price === null ? null : { ...price, fingerprint: mark.fingerprint };
    const why = this.#refusal(address, payment !== null);
    if (why !== null) return { kind: "refusal", fault: why, headers: [], isWrong: false };
    return payment === null
      ? this.#sessions.challenge(call, mark.channelHint)
      : this.#take(payment, call, address);
  }

  /** Counts a request of an address; returns the refusal if its address has sent too many. */
  #refusal(address: string, isPaying: boolean): Fault | null {
    const nowMs = this.#runtime.now();
    const tooMany = (limit: AddressLimit, message: string): Fault | null => {
      const retryAfterMs = limit.take(address, nowMs);
      return retryAfterMs === 0 ? null : fault("rate_limit_exceeded", message, { retryAfterMs });
    };
    if (!isPaying)
      return tooMany(this.#challenges, "this address has asked for too many challenges");
    const wrong = tooMany(this.#invalid, "too many payments from this address were not right");
    if (wrong !== null) return wrong;
    const idle = tooMany(this.#credentials, "too many payments from this address paid for nothing");
    if (idle !== null) this.#invalid.giveBack(address);
    return idle;
  }

  async #take(
    payment: PaymentHeaders,
    call: PricedCall | null,
    address: string,
  ): Promise<PaidCall | SessionRefusal> {
    let isWrong = false;
    try {
      const taken = await this.#sessions.take(payment, call);
      isWrong = taken.kind === "refusal" && taken.isWrong;
      if (taken.kind !== "hold") return taken;
      this.#challenges.giveBack(address);
      return countedHold(taken, () => this.#credentials.giveBack(address));
    } finally {
      if (!isWrong) this.#invalid.giveBack(address);
    }
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
