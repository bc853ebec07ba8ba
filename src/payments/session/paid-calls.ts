// The calls of channels, under the lock of the channel's row: whether the call of a credential may
// be made and its price is held, and what a delivered call is charged.

import type { RateLimit } from "../../core/billing/access.ts";
import type { RateLimitSize } from "../../core/billing/gcra.ts";
import { greaterOf, lesserOf } from "../../core/billing/payment.ts";
import { takeToken } from "../../core/billing/rate-limit.ts";
import { fault } from "../../core/faults/rpc-fault.ts";
import type { CallKey, RecordedCall } from "./call-record.ts";
import { FRESH_DEPOSIT_MS, FRESH_MS } from "./chain-sync.ts";
import {
  acceptedOf,
  requiredFor,
  type Voucher,
  wholeMs,
  withCharge,
  withVoucher,
} from "./channel.ts";
import type { SessionChannel } from "./channel-record.ts";
import type { LockedChannel } from "./channel-writer.ts";
import type { Hex, SessionPayload } from "./descriptor.ts";
import type { CallHold } from "./holds.ts";
import type { LiveChannel } from "./live-channels.ts";
import { beingClosed, busy, invalid, type Refused, refused, snapshotOf } from "./refusals.ts";
import type { SessionRail, SettlePolicy } from "./session-rail.ts";
import type { PricedCall } from "./sessions.ts";

/** A credential whose challenge is ours; its payload is as the client sent it, or read. */
export interface SessionCredential<Payload = unknown> {
  readonly payload: Payload;
  readonly challengeId: string;
  /** True = its challenge has expired. */
  readonly expired: boolean;
  /** Null = there is no call, only the credential's own action. */
  readonly call: PricedCall | null;
}

/** A voucher with the rest of its credential. */
export type VoucherCredential = SessionCredential<
  Extract<SessionPayload, { readonly signature: Hex }>
>;

/**
 * What the row of a channel says of a credential: `held` = its call may be made; `noted` = the
 * voucher is kept, and there is no call; `repeated` = its call was charged before; `unread` = the
 * chain has to be read first; `wait` = another process has the same call under way, or the price of
 * a call that may have ended.
 */
export type Entry =
  | { readonly kind: "held"; readonly hold: CallHold }
  | { readonly kind: "repeated"; readonly found: RecordedCall }
  | { readonly kind: "noted" | "unread" | "wait" }
  | Refused;

/** What is remembered of a credential between its tries. */
export interface EnteringCall extends VoucherCredential {
  readonly live: LiveChannel;
  /** True = the chain was read for it. */
  isChainRead: boolean;
  /** Whether the rate limit lets the request pass; undefined = it was not asked yet. */
  limit: Refused | null | undefined;
}

/** A delivered call, and the voucher that pays for it. */
export interface VoucherCharge {
  /** What the call held until now. */
  readonly hold: CallHold;
  /** At most what was held. */
  readonly units: bigint;
  /** The voucher that the call came with. */
  readonly promised: Voucher;
  readonly cu: number;
  readonly status: number;
  readonly body: string | null;
}

/** The rate limit of each channel, by the name that callers are told. */
export const RATE_LIMIT: RateLimit = { name: "managed", size: "managed" };

/** The calls of the channels of one rail. */
export class PaidCalls {
  readonly #session: SessionRail;
  readonly #size: RateLimitSize;

  constructor(session: SessionRail, size: RateLimitSize) {
    this.#session = session;
    this.#size = size;
  }

  /** Decides whether the call of a credential may be made, and holds its price. */
  async enter(channel: LockedChannel, entering: EnteringCall): Promise<Entry> {
    return (
      (await this.#again(channel, entering)) ??
      this.#refusal(channel, entering) ??
      this.#accept(channel, entering)
    );
  }

  /**
   * Charges a delivered call instead of what it held; null = nothing was charged, since the voucher
   * no longer covers it, or another process has charged the same request.
   */
  async charge(channel: LockedChannel, charge: VoucherCharge): Promise<RecordedCall | null> {
    const { runtime, policy } = this.#session;
    const { hold, units, promised } = charge;
    const { record } = channel;
    channel.removeHold(hold);
    const money = record.state === "open" ? withCharge(record, units, promised) : null;
    if (money === null) return null;
    // This process may have been taken for ended, and another one has made the same call. The row
    // knows the vouchers of charged calls, or higher ones.
    if (promised.units <= acceptedOf(record) && (await channel.isCharged(hold))) return null;
    const atMs = runtime.wallMs();
    const { spent_units, vouchers } = money;
    const look_at = lookAtOf({ ...record, spent_units }, policy, atMs);
    const owed_since = record.owed_since ?? wholeMs(atMs);
    channel.change({ spent_units, vouchers, calls: record.calls + 1n, owed_since, look_at });
    const call = callOf(charge, channel.record);
    channel.addCall(call);
    return call;
  }

  /** What is told of a request that was made before; null = it is a new one. */
  async #again(channel: LockedChannel, entering: EnteringCall): Promise<Entry | null> {
    const { record } = channel;
    const { payload, call, challengeId } = entering;
    if (call === null) return null;
    const key = callKeyOf(entering, call);
    if (channel.holds.some((other) => requestText(other) === requestText(key)))
      return { kind: "wait" };
    // No call was charged to a voucher higher than all that the row knows.
    const found = payload.units > acceptedOf(record) ? null : await channel.findCall(key);
    if (found === null) return null;
    // A payer with a high voucher may make the same call again and again: under another challenge,
    // and as long as the voucher covers it, it is a new call.
    const isCovered = payload.units >= requiredFor(record, channel.heldUnits, call.units);
    if (found.challenge_id !== challengeId && isCovered) return null;
    if (found.body !== null) return { kind: "repeated", found };
    const empty = this.#limit(entering, call);
    if (empty !== null) return empty;
    const entry = this.#hold(channel, { ...key, units: 0n });
    if (entry.kind !== "held" || (await channel.takeRerun(found))) return entry;
    channel.removeHold(entry.hold);
    return refused(
      fault("payment_conflict", TOO_OFTEN, { nextAction: "sign a new voucher for another call" }),
    );
  }

  /** Why a new request is not accepted now; null = it may be. */
  #refusal(channel: LockedChannel, entering: EnteringCall): Entry | null {
    const { record, heldUnits } = channel;
    const { live, payload, call, expired, isChainRead } = entering;
    const state = { ...live, record };
    const units = call?.units ?? 0n;
    if (expired)
      return invalid(
        "payment-expired",
        "The challenge is over: answer a challenge of this response.",
        snapshotOf(state, units, heldUnits),
      );
    const ageMs = this.#session.runtime.now() - live.checkedMs;
    if (!isChainRead && ageMs >= maxAgeMs(record, payload)) return { kind: "unread" };
    return this.#tooLarge(call) ?? uncovered(state, payload, { units, channel });
  }

  #tooLarge(call: PricedCall | null): Refused | null {
    const { burst } = this.#size;
    if (call === null || call.calls === 1 || tokensOf(call) <= burst) return null;
    return refused(
      fault(
        "invalid_request",
        `a batch of a channel may hold ${burst} calls, each part of a range counted as one ` +
          "(hosted.buckets.managed.burst)",
        { nextAction: "send several smaller batches" },
      ),
    );
  }

  /** Holds the price of a request that is covered, or keeps a voucher that came without one. */
  #accept(channel: LockedChannel, entering: EnteringCall): Entry {
    const { live, payload, call } = entering;
    const { units, signature } = payload;
    if (units > live.accepted) live.accepted = units;
    if (call === null) {
      const { vouchers } = withVoucher(channel.record, { units, signature });
      channel.change({ vouchers });
      return { kind: "noted" };
    }
    const empty = this.#limit(entering, call);
    if (empty !== null) return empty;
    return this.#hold(channel, { ...callKeyOf(entering, call), units: call.units });
  }

  #hold(channel: LockedChannel, call: CallKey & Pick<CallHold, "units">): Entry {
    const hold = channel.addHold(call);
    if (hold === null) return busy("this process is not among those of the store right now");
    return { kind: "held", hold };
  }

  /**
   * Takes the tokens of a request or none, once, however often the store runs its transaction. A
   * call in more parts than there can be tokens takes all of them.
   */
  #limit(entering: EnteringCall, call: PricedCall): Refused | null {
    if (entering.limit === undefined) {
      const now = { size: this.#size, nowMs: this.#session.runtime.now(), tokens: tokensOf(call) };
      const empty = takeToken(entering.live, RATE_LIMIT, now);
      // Without its advice, which is for accounts: their batches wait for tokens.
      entering.limit =
        empty === null
          ? null
          : refused(
              fault("rate_limit_exceeded", empty.message, {
                retryAfterMs: empty.retryAfterMs ?? 1,
              }),
            );
    }
    return entering.limit;
  }
}

const TOO_OFTEN = "this call was paid for and made again once; its answer is too long to be kept";

/** Why a voucher does not cover a call of `units` now; null = it does. */
function uncovered(
  live: LiveChannel,
  { units: promised }: Pick<Voucher, "units">,
  { units, channel }: { readonly units: bigint; readonly channel: LockedChannel },
): Entry | null {
  const { record } = live;
  // Its payer is closing it, which may still fail: nobody should open another channel meanwhile.
  if (live.ending && record.state === "open") return beingClosed();
  const snapshot = snapshotOf(live, units, channel.heldUnits);
  if (snapshot === null)
    return invalid(
      "session/channel-finalized",
      "The channel is closed, or about to be: open another one.",
    );
  if (promised > record.deposit_units)
    return invalid(
      "session/amount-exceeds-deposit",
      `The voucher promises ${promised} base units, and the deposit is ${record.deposit_units}: ` +
        "top it up.",
      snapshot,
    );
  const required = requiredFor(record, channel.heldUnits, units);
  if (promised >= required) return null;
  // Nobody is asked to promise more for the sake of a call that may have ended with its process.
  if (required - promised <= channel.doubtfulUnits) return { kind: "wait" };
  const reason =
    `The voucher promises ${promised} base units, and has to promise ${required}: sign one for ` +
    "that.";
  return invalid("session/insufficient-balance", reason, {
    ...snapshot,
    acceptedUnits: greaterOf(snapshot.acceptedUnits, promised),
  });
}

/** How old the last state read from the chain may be. */
export function maxAgeMs(record: SessionChannel, { units }: Pick<Voucher, "units">): number {
  return units > record.deposit_units ? FRESH_DEPOSIT_MS : FRESH_MS;
}

function tokensOf({ calls, tokens = calls }: Pick<PricedCall, "calls" | "tokens">): number {
  return tokens;
}

/** What identifies the call of a credential. */
export function callKeyOf({ payload, challengeId }: VoucherCredential, call: PricedCall): CallKey {
  return {
    channel_id: payload.channelId,
    voucher_units: payload.units,
    fingerprint: call.fingerprint,
    challenge_id: challengeId,
  };
}

/** What identifies a request among those of a channel. */
export function requestText({ voucher_units, challenge_id, fingerprint }: CallKey): string {
  return `${voucher_units} ${challenge_id} ${fingerprint}`;
}

/**
 * When a channel that something was spent of is to be looked at: now if enough is owed, else in
 * time to see that its payer wants the deposit back.
 */
function lookAtOf(
  { look_at, spent_units, settled_units }: SessionChannel,
  { settleUnits, watchMs }: SettlePolicy,
  atMs: number,
): bigint {
  const isDue = spent_units - settled_units >= settleUnits;
  return lesserOf(look_at, wholeMs(isDue ? atMs : atMs + watchMs));
}

function callOf(
  { hold, units, promised, cu, status, body }: VoucherCharge,
  { spent_units, vouchers, calls }: SessionChannel,
): RecordedCall {
  const { channel_id, voucher_units, fingerprint, challenge_id } = hold;
  return {
    channel_id,
    position: calls,
    voucher_units,
    fingerprint,
    challenge_id,
    charged_units: units,
    accepted_units: vouchers.at(-1)?.units ?? promised.units,
    spent_units,
    cu: BigInt(cu),
    status: BigInt(status),
    body,
  };
}
