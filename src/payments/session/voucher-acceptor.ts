// Accepts vouchers of one rail for calls: holds the price of a call, charges what was delivered,
// and answers a repeated request with its first answer. A voucher covers a call if its amount is at
// least what the channel has spent, plus what other calls hold, plus the price. That is decided
// under the lock of the channel's row. After the call, the caller of `settle` says how much is
// charged.

import type { RateLimitSize } from "../../core/billing/gcra.ts";
import { lesserOf } from "../../core/billing/payment.ts";
import { rateLimitStatusOf } from "../../core/billing/rate-limit.ts";
import { errorText } from "../../core/fields.ts";
import { pause } from "../../runtime.ts";
import { findCall, MAX_KEPT_BYTES, type RecordedCall } from "./call-record.ts";
import { refresh } from "./chain-sync.ts";
import type { Voucher } from "./channel.ts";
import { descriptorText, signerOf } from "./descriptor.ts";
import type { CallHold } from "./holds.ts";
import type { LiveChannel } from "./live-channels.ts";
import {
  callKeyOf,
  type EnteringCall,
  type Entry,
  maxAgeMs,
  PaidCalls,
  RATE_LIMIT,
  requestText,
  type VoucherCredential,
} from "./paid-calls.ts";
import { busy, chainDown, invalid, type Refused, snapshotOf } from "./refusals.ts";
import type { SessionRail } from "./session-rail.ts";
import type { CallBill, Hold, Managed, PaidCallEnd, RecordedAnswer } from "./sessions.ts";
import { receiptHeaders } from "./terms.ts";

/** Permission to make a request: its price is held in the channel. */
export type VoucherHold = Hold<Refused>;

/** Most requests of one channel that may wait in this process. */
const MAX_ENTERING = 256;
/** Pauses between tries to enter a call double from the first to the last. */
const FIRST_PAUSE_MS = 10;
const LAST_PAUSE_MS = 250;

/**
 * Why a voucher does not belong to the channel or is not signed by its signer; null = it is valid.
 * Checked before an answer tells anything about the channel.
 */
export async function checkVoucher(
  session: SessionRail,
  live: LiveChannel,
  payload: VoucherCredential["payload"],
): Promise<Refused | null> {
  const { descriptor, units, signature } = payload;
  if (descriptorText(descriptor) !== live.descriptor)
    return invalid("session/channel-not-found", "The descriptor is not the one of this channel.");
  const known = live.record.vouchers.find((voucher) => voucher.units === units);
  if (known?.signature === signature) return null;
  return wrongSignature(session, payload);
}

/** Why a voucher is refused for its signature; null = it is signed by the channel's signer. */
export async function wrongSignature(
  { vouchers, terms }: SessionRail,
  { descriptor, channelId, units, signature }: VoucherCredential["payload"],
): Promise<Refused | null> {
  const { chainId, escrow } = terms;
  const signer = signerOf(descriptor);
  const signed = await vouchers.isSigned({ chainId, escrow, channelId, units, signature, signer });
  if (signed === null) return busy("too many vouchers are being checked");
  return signed
    ? null
    : invalid("session/invalid-signature", "The voucher is not signed by the channel's signer.");
}

/** Accepts the vouchers of a rail. */
export class VoucherAcceptor {
  readonly #session: SessionRail;
  readonly #size: RateLimitSize;
  readonly #calls: PaidCalls;

  /** `size` = the rate limit of each channel. */
  constructor(session: SessionRail, size: RateLimitSize) {
    this.#session = session;
    this.#size = size;
    this.#calls = new PaidCalls(session, size);
  }

  /**
   * Takes a voucher. Holds the price of its call (`hold`), repeats a recorded answer (`recorded`),
   * keeps a voucher without a call (`managed`), or refuses.
   */
  async take(
    live: LiveChannel,
    credential: VoucherCredential,
  ): Promise<VoucherHold | RecordedAnswer | Managed | Refused> {
    const wrong = await checkVoucher(this.#session, live, credential.payload);
    if (wrong !== null) return wrong;
    if (live.entering >= MAX_ENTERING) return busy("the channel is too busy");
    live.entering++;
    try {
      return await this.#enter({ ...credential, live, isChainRead: false, limit: undefined });
    } finally {
      live.entering--;
    }
  }

  /** Tries to enter the call until the row decides, or until `waitMs` has passed. */
  async #enter(entering: EnteringCall): Promise<VoucherHold | RecordedAnswer | Managed | Refused> {
    const { runtime, waitMs } = this.#session;
    const { live, payload, call, challengeId } = entering;
    const untilMs = runtime.now() + waitMs;
    for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(2 * pauseMs, LAST_PAUSE_MS)) {
      if (call !== null) await live.underWay.get(requestText(callKeyOf(entering, call)));
      const entry = await this.#tryToEnter(entering);
      switch (entry.kind) {
        case "held":
          return this.#holdOf(entering, entry.hold);
        case "noted":
          return { kind: "managed", headers: this.#receiptOf(live, challengeId) };
        case "repeated":
          return this.#recorded(live, entry.found, challengeId);
        case "refused":
          return entry;
        case "unread":
          if (!(await refresh(this.#session, live, maxAgeMs(live.record, payload))))
            return chainDown();
          entering.isChainRead = true;
          break;
        case "wait":
          if (runtime.now() >= untilMs)
            return busy("the same call, or one that may have ended, is still under way");
          await pause(runtime, pauseMs);
      }
    }
  }

  /** Tries once to enter the call in the row of the channel. */
  async #tryToEnter(entering: EnteringCall): Promise<Entry> {
    const { writer } = this.#session;
    let made: CallHold | null = null;
    try {
      return await writer.run(entering.live.record.id, async (channel) => {
        const entry = await this.#calls.enter(channel, entering);
        made = entry.kind === "held" ? entry.hold : null;
        return entry;
      });
    } catch (error) {
      // The hold may have been written in spite of the error.
      if (made !== null) void writer.release(made);
      throw error;
    }
  }

  /** Permission to make a call whose price is held. */
  #holdOf(entering: EnteringCall, hold: CallHold): VoucherHold {
    const { live, challengeId } = entering;
    const text = requestText(hold);
    const { promise, resolve } = Promise.withResolvers<void>();
    live.underWay.set(text, promise);
    let isOver = false;
    const end = (): void => {
      if (isOver) return;
      isOver = true;
      live.underWay.delete(text);
      resolve();
    };
    return {
      kind: "hold",
      release: () => {
        if (!isOver) void this.#session.writer.release(hold).then(end);
      },
      settle: async (ended) => {
        const units = lesserOf(ended.units, hold.units);
        try {
          if (units > 0n) return await this.#charge(entering, { hold, end: { ...ended, units } });
          await this.#session.writer.release(hold);
          return this.#billOf(live, challengeId, { cu: ended.cu, chargedUnits: 0n });
        } finally {
          end();
        }
      },
    };
  }

  async #charge(
    { live, payload, challengeId }: EnteringCall,
    { hold, end }: { readonly hold: CallHold; readonly end: PaidCallEnd },
  ): Promise<CallBill | RecordedAnswer | Refused> {
    const session = this.#session;
    const { units, cu, status } = end;
    const promised: Voucher = { units: payload.units, signature: payload.signature };
    const charge = { hold, units, promised, cu, status, body: keptBody(end) };
    const written = await session.writer
      .run(hold.channel_id, (channel) => this.#calls.charge(channel, charge))
      .catch((error: unknown) => {
        session.log.warn(
          { channel: hold.channel_id, problem: errorText(error) },
          "a call could not be charged: it is not answered",
        );
        void session.writer.release(hold);
        return "failed" as const;
      });
    if (written === "failed") return busy("the call cannot be charged right now, and was not");
    if (written !== null) return this.#billOf(live, challengeId, { cu, chargedUnits: units });
    // Another process has used the voucher meanwhile, perhaps for the same request.
    const found = await findCall(session.store.db, hold);
    if (found?.body != null) return this.#recorded(live, found, challengeId);
    return invalid(
      "session/insufficient-balance",
      "The voucher has been used up meanwhile: sign a higher one.",
      snapshotOf(live, hold.units),
    );
  }

  #recorded(live: LiveChannel, found: RecordedCall, challengeId: string): RecordedAnswer {
    const headers = receiptHeaders(this.#session.runtime, {
      challengeId,
      channelId: found.channel_id,
      acceptedUnits: found.accepted_units,
      spentUnits: found.spent_units,
      calls: found.position,
    });
    const cost = { cu: Number(found.cu), chargedUnits: found.charged_units };
    const bill = this.#billOf(live, challengeId, cost);
    return {
      kind: "recorded",
      status: Number(found.status),
      body: found.body ?? "",
      bill: { ...bill, headers },
    };
  }

  #receiptOf({ record, accepted }: LiveChannel, challengeId: string): readonly string[] {
    return receiptHeaders(this.#session.runtime, {
      challengeId,
      channelId: record.id,
      acceptedUnits: accepted,
      spentUnits: record.spent_units,
      calls: record.calls,
    });
  }

  #billOf(
    live: LiveChannel,
    challengeId: string,
    cost: Pick<CallBill, "cu" | "chargedUnits">,
  ): CallBill {
    const { deposit_units, spent_units } = live.record;
    const rateLimitStatus = rateLimitStatusOf(live, RATE_LIMIT, {
      size: this.#size,
      nowMs: this.#session.runtime.now(),
    });
    const headers = this.#receiptOf(live, challengeId);
    const leftUnits = deposit_units - spent_units;
    return { kind: "bill", ...cost, leftUnits, rateLimitStatus, headers };
  }
}

/**
 * The answer as it is recorded; null = it cannot be repeated, since the caller has left or the
 * answer is too long.
 */
function keptBody({ body, abandoned }: PaidCallEnd): string | null {
  if (abandoned) return null;
  if (body === null) return "";
  return body.length > MAX_KEPT_BYTES ? null : body.toString("utf8");
}
