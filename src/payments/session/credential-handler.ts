// Handles the credentials of one session rail: parses the payload, finds its channel, and passes it
// to the code for its action.

import type { ChannelFunding } from "./channel-funding.ts";
import {
  channelIdOf,
  descriptorText,
  type Hex,
  parsePayload,
  type SessionPayload,
  type TopUpPayload,
} from "./descriptor.ts";
import type { LiveChannel } from "./live-channels.ts";
import { busy, invalid, type Refused, snapshotOf } from "./refusals.ts";
import type { SessionRail } from "./session-rail.ts";
import type { Managed, PricedCall, RecordedAnswer } from "./sessions.ts";
import { closeForPayer } from "./settlement.ts";
import { isOurs, receiptHeaders, type Snapshot } from "./terms.ts";
import type { VoucherAcceptor, VoucherHold } from "./voucher-acceptor.ts";

/** A credential whose challenge is ours. */
export interface SessionCredential {
  /** As the client sent it. */
  readonly payload: unknown;
  readonly challengeId: string;
  /** True = its challenge has expired. */
  readonly expired: boolean;
  /** Null = there is no call, only the credential's own action. */
  readonly call: PricedCall | null;
}

export interface CredentialHandlerParts {
  readonly session: SessionRail;
  readonly voucherAcceptor: Pick<VoucherAcceptor, "take">;
  readonly openings: Pick<ChannelFunding, "open" | "topUp">;
}

/** Handles credentials of one rail. */
export class CredentialHandler {
  readonly #parts: CredentialHandlerParts;

  constructor(parts: CredentialHandlerParts) {
    this.#parts = parts;
  }

  async take({
    payload: given,
    ...credential
  }: SessionCredential): Promise<VoucherHold | RecordedAnswer | Managed | Refused> {
    const { session, voucherAcceptor, openings } = this.#parts;
    const payload = parsePayload(given);
    if (payload === null)
      return invalid(
        "invalid-payload",
        "The payload has no fields of a session's `open`, `voucher`, `topUp` or `close`.",
      );
    const wrong = wrongChannel(session, payload);
    if (wrong !== null) return wrong;
    const isOpening =
      payload.action === "open" &&
      (await session.channels.read(session.store.db, payload.channelId)) === null;
    // A repeated opening gets its first result, even after the challenge has expired.
    if (isOpening && credential.expired)
      return invalid(
        "payment-expired",
        "The challenge is over: answer a challenge of this response.",
      );
    const refusal =
      payload.action === "open" ? await openings.open(payload, credential.call?.units ?? 0n) : null;
    if (refusal !== null) return refusal;
    const live = await session.live.find(payload.channelId);
    if (live === "full") return busy("too many channels are in use");
    if (live === null)
      return invalid(
        "session/channel-not-found",
        "No channel with this id was opened here: open one.",
      );
    switch (payload.action) {
      case "open":
      case "voucher":
        // An opening that began in time may be confirmed after its challenge has expired.
        return voucherAcceptor.take(live, {
          ...credential,
          payload,
          expired: credential.expired && payload.action === "voucher",
        });
      case "close":
        return close(session, live, { ...credential, payload });
      case "topUp":
        return topUp(this.#parts, live, { ...credential, payload });
    }
  }

  /** The state of a channel for its payer; null = there is none that can be used. */
  async remind(channelId: Hex, units: bigint): Promise<Snapshot | null> {
    const { session } = this.#parts;
    const known = await session.channels.readHeld(session.store, channelId);
    if (known === null) return null;
    const { record, heldUnits } = known;
    // A channel of another rail must not be loaded here: it would count as one of this rail.
    if (wrongChannel(session, { channelId, descriptor: record.descriptor }) !== null) return null;
    session.live.note(record);
    const live = await session.live.find(channelId);
    return live === null || live === "full" ? null : snapshotOf(live, units, heldUnits);
  }
}

/** A credential with a payload of one kind. */
type CredentialWith<Payload> = Omit<SessionCredential, "payload"> & { readonly payload: Payload };

async function close(
  session: SessionRail,
  live: LiveChannel,
  {
    payload,
    expired,
    challengeId,
  }: CredentialWith<Extract<SessionPayload, { readonly action: "close" | "voucher" }>>,
): Promise<Managed | Refused> {
  const closed = await closeForPayer(session, live, { payload, expired });
  if (closed.kind === "refused") return closed;
  return managed(session, live, {
    challengeId,
    acceptedUnits: payload.units,
    spentUnits: closed.spentUnits,
    txHash: closed.hash,
  });
}

async function topUp(
  { session, openings }: CredentialHandlerParts,
  live: LiveChannel,
  { payload, challengeId }: CredentialWith<TopUpPayload>,
): Promise<Managed | Refused> {
  if (descriptorText(payload.descriptor) !== live.descriptor)
    return invalid("session/channel-not-found", "The descriptor is not the one of this channel.");
  const funded = await openings.topUp(live, payload);
  if (funded.kind === "refused") return funded;
  const { record, accepted } = live;
  return managed(session, live, {
    challengeId,
    acceptedUnits: accepted,
    spentUnits: record.spent_units,
    txHash: funded.hash,
  });
}

/**
 * Why a channel cannot be one of this rail; null = it can. Channels in memory were checked before.
 */
function wrongChannel(
  { terms, live }: SessionRail,
  { channelId, descriptor }: Pick<SessionPayload, "channelId" | "descriptor">,
): Refused | null {
  if (live.peek(channelId)?.descriptor === descriptorText(descriptor)) return null;
  if (!isOurs(terms, descriptor))
    return invalid(
      "verification-failed",
      "The channel is not to the recipient, token and operator of the challenge.",
    );
  if (channelIdOf(descriptor, terms.escrow, terms.chainId) !== channelId)
    return invalid(
      "session/channel-not-found",
      "The descriptor is not the one of this channel, chain and contract.",
    );
  return null;
}

interface Done {
  readonly challengeId: string;
  readonly acceptedUnits: bigint;
  readonly spentUnits: bigint;
  readonly txHash: Hex;
}

function managed({ runtime }: SessionRail, { record }: LiveChannel, done: Done): Managed {
  return {
    kind: "managed",
    headers: receiptHeaders(runtime, { ...done, channelId: record.id, calls: record.calls }),
  };
}
