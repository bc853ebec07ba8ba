// Accepts vouchers of one rail for calls: holds the price of a call, charges what was delivered,
// and answers a repeated request with its first answer. A voucher covers a call if it promises what
// was spent, what is held, and the price. The caller of `settle` says after the call what is
// charged.
import type { RateLimit } from "../../core/billing/access.ts";
import type { RateLimitSize } from "../../core/billing/gcra.ts";
import { rateLimitStatusOf, takeToken } from "../../core/billing/rate-limit.ts";
import { fault } from "../../core/faults/rpc-fault.ts";
import type { Runtime } from "../../runtime.ts";
import { findCall, MAX_KEPT_BYTES, type RecordedCall, takeRerun } from "./call-record.ts";
import { FRESH_DEPOSIT_MS, FRESH_MS, refresh } from "./chain-sync.ts";
import { greaterOf, lesserOf, requiredFor, type Voucher } from "./channel.ts";
import type { ChargeBatcher } from "./charge-batcher.ts";
import { descriptorText, type Hex, type SessionPayload, signerOf } from "./descriptor.ts";
import { type HeldCall, heldOf, type LiveChannel } from "./live-channels.ts";
import type { EnteringCall } from "./ownership.ts";
import { receiptHeaders } from "./receipt.ts";
import {
  beingClosed,
  busy,
  chainDown,
  invalid,
  type Refused,
  refused,
  snapshotOf,
} from "./refusals.ts";
import type { SessionRail } from "./session-rail.ts";
import type { CallBill, CallEnd, Managed, PricedCall, RecordedAnswer } from "./sessions.ts";

/** A voucher with the rest of its credential. */
export interface VoucherCredential {
  readonly payload: Extract<SessionPayload, { readonly signature: Hex }>;
  readonly challengeId: string;
  /** True = its challenge has expired. */
  readonly expired: boolean;
  /** Null = it pays for no call now. */
  readonly call: PricedCall | null;
}

/** Permission to make a request, whose price is held. */
export interface VoucherHold {
  readonly kind: "hold";
  settle(end: CallEnd): Promise<CallBill | RecordedAnswer | Refused>;
  release(): void;
}

/** Accepts vouchers. */
export interface VoucherAcceptor {
  take(
    live: LiveChannel,
    credential: VoucherCredential,
  ): Promise<VoucherHold | RecordedAnswer | Managed | Refused>;
}

export interface VoucherAcceptorParts {
  readonly session: SessionRail;
  readonly charges: ChargeBatcher;
  /** The rate limit of each channel. */
  readonly rateLimitSize: RateLimitSize;
}

const RATE_LIMIT: RateLimit = { name: "managed", size: "managed" };
/** Concurrent equal requests that are resolved one after the other. */
const MAX_TRIES = 16;

/** The acceptor of a rail. */
export function createVoucherAcceptor(parts: VoucherAcceptorParts): VoucherAcceptor {
  return { take: (live, credential) => take(parts, live, credential) };
}

/**
 * Why a voucher is not one of this channel, signed by its payer; null = it is. Checked before
 * anything is told of the channel.
 */
export async function checkVoucher(
  { vouchers, terms }: SessionRail,
  live: LiveChannel,
  payload: VoucherCredential["payload"],
): Promise<Refused | null> {
  const { descriptor, channelId, units, signature } = payload;
  if (descriptorText(descriptor) !== live.descriptor)
    return invalid("session/channel-not-found", "The descriptor is not the one of this channel.");
  const known =
    live.accepted?.units === units
      ? live.accepted
      : live.record.vouchers.find((voucher) => voucher.units === units);
  if (known?.signature === signature) return null;
  const { chainId, escrow } = terms;
  const signed = await vouchers.isSigned({
    chainId,
    escrow,
    channelId,
    units,
    signature,
    signer: signerOf(descriptor),
  });
  if (signed === null) return busy("too many vouchers are being checked");
  return signed
    ? null
    : invalid("session/invalid-signature", "The voucher is not signed by the channel's signer.");
}

async function take(
  parts: VoucherAcceptorParts,
  live: LiveChannel,
  credential: VoucherCredential,
): Promise<VoucherHold | RecordedAnswer | Managed | Refused> {
  const { session } = parts;
  const { ownership } = session;
  const { payload, call, challengeId, expired } = credential;
  const wrong = await checkVoucher(session, live, payload);
  if (wrong !== null) return wrong;
  const asked = call === null ? null : { payload, call, challengeId };
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    const { calls } = live.record;
    const isOwn = ownership.isOwn(live);
    const before = asked === null ? null : await again(parts, live, asked);
    if (before !== null) return before;
    if (expired)
      return invalid(
        "payment-expired",
        "The challenge is over: answer a challenge of this response.",
        snapshotOf(live, call?.units ?? 0n),
      );
    if (
      !(await refresh(
        session,
        live,
        payload.units > live.record.deposit ? FRESH_DEPOSIT_MS : FRESH_MS,
      ))
    )
      return chainDown();
    // The same request may have begun, or even ended, meanwhile.
    if (asked !== null && live.underWay.has(keyOf(asked))) continue;
    if (isOwn && ownership.isOwn(live)) {
      if (asked === null || live.record.calls === calls) return accept(parts, live, credential);
      continue;
    }
    const entered = await ownership.enter(live, enteringOf(parts, live, credential));
    if (entered.kind === "accepted") return entered.value;
    if (entered.kind === "busy")
      return busy("another process of the service takes the calls of this channel");
  }
  return busy("the channel is too busy");
}

/** A credential as a call that is accepted under the lock of its channel. */
function enteringOf(
  parts: VoucherAcceptorParts,
  live: LiveChannel,
  credential: VoucherCredential,
): EnteringCall<VoucherHold | Managed | Refused> {
  const { payload, call, challengeId } = credential;
  const asked = call === null ? null : { payload, call, challengeId };
  return {
    key: asked === null ? null : callKeyOf(asked),
    underWayKey: asked === null ? "" : keyOf(asked),
    units: call?.units ?? 0n,
    promised: payload.units,
    accept: () => accept(parts, live, credential),
  };
}

/** Records a voucher and holds the price of the call, in one synchronous step. */
function accept(
  parts: VoucherAcceptorParts,
  live: LiveChannel,
  { payload, call, challengeId }: VoucherCredential,
): VoucherHold | Managed | Refused {
  const { session } = parts;
  const { burst } = parts.rateLimitSize;
  if (call !== null && call.calls > 1 && tokensOf(call) > burst)
    return refused(
      fault(
        "invalid_request",
        `a batch of a channel may hold ${burst} calls, each part of a range counted as one ` +
          "(hosted.buckets.managed.burst)",
        { nextAction: SMALLER },
      ),
    );
  const refusal = note(live, payload, call?.units ?? 0n);
  if (refusal !== null) return refusal;
  if (call === null)
    return { kind: "managed", headers: receiptOf(session.runtime, live, challengeId) };
  return takeTokens(parts, live, call) ?? hold(parts, live, { payload, call, challengeId });
}

const SMALLER = "send several smaller batches";

function tokensOf({ calls, tokens = calls }: Pick<PricedCall, "calls" | "tokens">): number {
  return tokens;
}

/**
 * Takes the tokens of a request, or none at all. A call in more parts than there can be tokens
 * takes all of them.
 */
function takeTokens(
  { session, rateLimitSize: size }: VoucherAcceptorParts,
  live: LiveChannel,
  call: Pick<PricedCall, "calls" | "tokens">,
): Refused | null {
  const tokens = Math.min(tokensOf(call), size.burst);
  const nowMs = session.runtime.now();
  const before = new Map(live.fullAtMs ?? []);
  const missing = tokens - rateLimitStatusOf(live, RATE_LIMIT, { size, nowMs }).remaining;
  for (let taken = 0; taken < tokens; taken++) {
    const empty = takeToken(live, RATE_LIMIT, { size, nowMs });
    if (empty === null) continue;
    live.fullAtMs = before;
    const retryAfterMs = Math.max(
      empty.retryAfterMs ?? 1,
      Math.ceil(((missing - 1) * 1_000) / size.perSecond),
    );
    return refused(fault("rate_limit_exceeded", empty.message, { retryAfterMs }));
  }
  return null;
}

interface Asked {
  readonly payload: VoucherCredential["payload"];
  readonly call: PricedCall;
  readonly challengeId: string;
}

/**
 * The answer to a request that was paid for before, or permission to repeat it; null = it is a new
 * one.
 */
async function again(
  parts: VoucherAcceptorParts,
  live: LiveChannel,
  asked: Asked,
): Promise<VoucherHold | RecordedAnswer | Refused | null> {
  const { payload, call, challengeId } = asked;
  await live.underWay.get(keyOf(asked))?.over;
  const { store, ownership, channels } = parts.session;
  const isOwn = ownership.isOwn(live);
  if (isOwn && payload.units > (live.accepted?.units ?? 0n)) return null;
  const found = await findCall(store.db, {
    channelId: live.record.id,
    voucherUnits: payload.units,
    fingerprint: call.fingerprint,
  });
  if (found !== null && !isOwn) {
    const record = await channels.read(store.db, live.record.id);
    if (record !== null) parts.session.live.note(record);
  }
  // A payer with a high voucher may make the same call again and again: under another challenge,
  // and as long as the voucher covers it, it is a new call.
  const isNew =
    found !== null &&
    found.challengeId !== challengeId &&
    payload.units >= requiredFor(live.record, heldOf(live), call.units);
  return found === null || isNew ? null : repeated(parts, live, { found, asked });
}

async function repeated(
  parts: VoucherAcceptorParts,
  live: LiveChannel,
  { found, asked }: { readonly found: RecordedCall; readonly asked: Asked },
) {
  const answer = recorded(parts, live, { found, challengeId: asked.challengeId });
  if (answer !== null) return answer;
  const empty = takeTokens(parts, live, asked.call);
  if (empty !== null) return empty;
  if (await parts.session.store.transaction((tx) => takeRerun(tx, found)))
    return hold(parts, live, { ...asked, call: { ...asked.call, units: 0n } });
  return refused(
    fault("payment_conflict", TOO_OFTEN, { nextAction: "sign a new voucher for another call" }),
  );
}

const TOO_OFTEN = "this call was paid for and made again once; its answer is too long to be kept";

/** The recorded answer; null = it was too long to keep. */
function recorded(
  parts: VoucherAcceptorParts,
  live: LiveChannel,
  { found, challengeId }: { readonly found: RecordedCall; readonly challengeId: string },
): RecordedAnswer | null {
  if (found.body === null) return null;
  const { acceptedUnits, spentUnits, position, channelId, cu, chargedUnits } = found;
  const headers = receiptHeaders(parts.session.runtime, {
    challengeId,
    channelId,
    acceptedUnits,
    spentUnits,
    calls: position,
    txHash: null,
  });
  return {
    kind: "recorded",
    status: found.status,
    body: found.body,
    bill: { ...billOf(parts, live, { cu, chargedUnits }), headers },
  };
}

/** Records a valid voucher; returns a refusal if it does not cover a call of `units`. */
function note(
  live: LiveChannel,
  { units: promised, signature }: Voucher,
  units: bigint,
): Refused | null {
  const { record } = live;
  // Its payer is closing it, which may still fail: nobody should open another channel meanwhile.
  if (live.ending && record.state === "open") return beingClosed();
  const snapshot = snapshotOf(live, units);
  if (snapshot === null)
    return invalid(
      "session/channel-finalized",
      "The channel is closed, or about to be: open another one.",
    );
  if (promised > record.deposit)
    return invalid(
      "session/amount-exceeds-deposit",
      `The voucher promises ${promised} base units, and the deposit is ${record.deposit}: top ` +
        "it up.",
      snapshot,
    );
  if (promised > (live.accepted?.units ?? 0n)) live.accepted = { units: promised, signature };
  const required = requiredFor(record, heldOf(live), units);
  if (promised >= required) return null;
  const reason =
    `The voucher promises ${promised} base units, and has to promise ${required}: sign one for ` +
    "that.";
  return invalid("session/insufficient-balance", reason, snapshotOf(live, units));
}

/** Holds the price of a call until it has ended. */
function hold(parts: VoucherAcceptorParts, live: LiveChannel, asked: Asked): VoucherHold {
  const { call, challengeId } = asked;
  const key = keyOf(asked);
  const over = Promise.withResolvers<void>();
  let isOver = false;
  const held: HeldCall = {
    units: call.units,
    call: callKeyOf(asked),
    over: over.promise,
    written: null,
    isRemoved: false,
    release() {
      if (isOver) return;
      isOver = true;
      live.held -= call.units;
      live.underWay.delete(key);
      over.resolve();
      if (held.written !== null && !held.isRemoved) parts.session.ownership.ended(live, held);
      if (live.underWay.size === 0) for (const run of [...live.idle]) run();
    },
  };
  live.held += call.units;
  live.underWay.set(key, held);
  return {
    kind: "hold",
    release: held.release,
    async settle(end) {
      try {
        const units = lesserOf(end.units, call.units);
        if (units > 0n) return await charged(parts, live, { asked, end: { ...end, units }, held });
        const headers = receiptOf(parts.session.runtime, live, challengeId);
        return { ...billOf(parts, live, { cu: end.cu, chargedUnits: 0n }), headers };
      } finally {
        held.release();
      }
    },
  };
}

interface Ended {
  readonly asked: Asked;
  readonly end: CallEnd;
  readonly held: HeldCall;
}

async function charged(
  parts: VoucherAcceptorParts,
  live: LiveChannel,
  { asked, end, held }: Ended,
): Promise<CallBill | RecordedAnswer | Refused> {
  const { session, charges } = parts;
  const { payload, call, challengeId } = asked;
  const { units, cu, status } = end;
  const body = keptBody(end);
  const promised: Voucher = { units: payload.units, signature: payload.signature };
  const charge = {
    channelId: live.record.id,
    units,
    promised,
    accepted: live.accepted,
    fingerprint: call.fingerprint,
    challengeId,
    cu,
    status,
    body,
    held,
  };
  const written = await charges.write(charge).catch((error: unknown) => {
    session.log.warn(
      { channel: live.record.id, problem: error instanceof Error ? error.message : String(error) },
      "a call could not be charged: it is not answered",
    );
    return null;
  });
  if (written === null) return busy("the call cannot be charged right now, and was not");
  session.live.note(written.channel);
  if (written.call !== null) {
    const { acceptedUnits } = written.call;
    const accepted = live.accepted?.units ?? 0n;
    const receipt = {
      challengeId,
      channelId: live.record.id,
      acceptedUnits: greaterOf(accepted, acceptedUnits),
      txHash: null,
    };
    const headers = receiptHeaders(session.runtime, {
      ...receipt,
      spentUnits: written.channel.spent,
      calls: written.channel.calls,
    });
    return { ...billOf(parts, live, { cu, chargedUnits: units }), headers };
  }
  // Another instance has used the voucher meanwhile, perhaps for this very request.
  const found = await findCall(session.store.db, {
    channelId: live.record.id,
    voucherUnits: payload.units,
    fingerprint: call.fingerprint,
  });
  const answer = found === null ? null : recorded(parts, live, { found, challengeId });
  return (
    answer ??
    invalid(
      "session/insufficient-balance",
      "The voucher has been used up meanwhile: sign a higher one.",
      snapshotOf(live, call.units),
    )
  );
}

/** The answer as it is kept; null = there is none to repeat. */
function keptBody({ body, abandoned }: CallEnd): string | null {
  if (abandoned) return null;
  if (body === null) return "";
  return body.length > MAX_KEPT_BYTES ? null : body.toString("utf8");
}

function keyOf({ payload, call, challengeId }: Asked): string {
  return `${payload.units} ${challengeId} ${call.fingerprint}`;
}

function callKeyOf({ payload, call, challengeId }: Asked): HeldCall["call"] {
  return { voucherUnits: payload.units, fingerprint: call.fingerprint, challengeId };
}

function receiptOf(
  runtime: Runtime,
  { record, accepted }: LiveChannel,
  challengeId: string,
): readonly string[] {
  const { id, spent, calls } = record;
  return receiptHeaders(runtime, {
    challengeId,
    channelId: id,
    acceptedUnits: accepted?.units ?? 0n,
    spentUnits: spent,
    calls,
    txHash: null,
  });
}

function billOf(
  { session, rateLimitSize }: VoucherAcceptorParts,
  live: LiveChannel,
  { cu, chargedUnits }: Pick<CallBill, "cu" | "chargedUnits">,
): Omit<CallBill, "headers"> {
  const { deposit, spent } = live.record;
  const rateLimitStatus = rateLimitStatusOf(live, RATE_LIMIT, {
    size: rateLimitSize,
    nowMs: session.runtime.now(),
  });
  return { kind: "bill", cu, chargedUnits, leftUnits: deposit - spent, rateLimitStatus };
}
