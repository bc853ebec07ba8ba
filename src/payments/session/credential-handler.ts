// Handles the credentials of one session rail: parses the payload, finds its channel, and passes it
// to the code for its action.

import type { RateLimitSize } from "../../core/billing/gcra.ts";
import type { ClientReader } from "./chain/client-transaction.ts";
import { type ChannelChanged, ChannelFunding } from "./channel-funding.ts";
import {
  channelIdOf,
  descriptorText,
  type Hex,
  parsePayload,
  type SessionPayload,
} from "./descriptor.ts";
import type { LiveChannel } from "./live-channels.ts";
import type { SessionCredential } from "./paid-calls.ts";
import { busy, invalid, type Refused, snapshotOf } from "./refusals.ts";
import type { SessionRail } from "./session-rail.ts";
import type { Managed, RecordedAnswer } from "./sessions.ts";
import { closeForPayer } from "./settlement.ts";
import { isOurs, receiptHeaders, type SessionReceipt, type Snapshot } from "./terms.ts";
import { VoucherAcceptor, type VoucherHold } from "./voucher-acceptor.ts";

/** Handles credentials of one rail. */
export class CredentialHandler {
  readonly #session: SessionRail;
  readonly #voucherAcceptor: VoucherAcceptor;
  readonly #funding: ChannelFunding;

  /** `size` = the rate limit of each channel. */
  constructor(
    session: SessionRail,
    reader: Pick<ClientReader, keyof ClientReader>,
    size: RateLimitSize,
  ) {
    this.#session = session;
    this.#voucherAcceptor = new VoucherAcceptor(session, size);
    this.#funding = new ChannelFunding(session, reader);
  }

  async take({
    payload: given,
    ...credential
  }: SessionCredential): Promise<VoucherHold | RecordedAnswer | Managed | Refused> {
    const session = this.#session;
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
      payload.action === "open"
        ? await this.#funding.open(payload, credential.call?.units ?? 0n)
        : null;
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
        return this.#voucherAcceptor.take(live, {
          ...credential,
          payload,
          expired: credential.expired && payload.action === "voucher",
        });
      case "close":
        return this.#managed(
          live,
          await closeForPayer(session, live, { payload, expired: credential.expired }),
          { challengeId: credential.challengeId, acceptedUnits: payload.units },
        );
      case "topUp":
        return this.#managed(live, await this.#funding.topUp(live, payload), {
          challengeId: credential.challengeId,
          acceptedUnits: live.accepted,
        });
    }
  }

  /** The state of a channel for its payer; null = there is none that can be used. */
  async remind(channelId: Hex, units: bigint): Promise<Snapshot | null> {
    const session = this.#session;
    const known = await session.channels.readHeld(session.store, channelId);
    if (known === null) return null;
    const { record, heldUnits } = known;
    // A channel of another rail must not be loaded here: it would count as one of this rail.
    if (wrongChannel(session, { channelId, descriptor: record.descriptor }) !== null) return null;
    session.live.note(record);
    const live = await session.live.find(channelId);
    return live === null || live === "full" ? null : snapshotOf(live, units, heldUnits);
  }

  #managed(
    { record }: LiveChannel,
    done: ChannelChanged | Refused,
    receipt: Pick<SessionReceipt, "challengeId" | "acceptedUnits">,
  ): Managed | Refused {
    if (done.kind === "refused") return done;
    const headers = receiptHeaders(this.#session.runtime, {
      ...receipt,
      channelId: record.id,
      spentUnits: done.spentUnits ?? record.spent_units,
      calls: record.calls,
      txHash: done.hash,
    });
    return { kind: "managed", headers };
  }
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
