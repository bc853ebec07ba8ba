// What MPP's `tempo`/`session` defines: the fields of a challenge's `request`, whether a returned
// challenge has these terms, and the receipt. Knows no call, and of a channel only what its payer
// is told. A receipt is secret: never log it.

import { Session } from "mppx/tempo";
import { NANO_PER_UNIT } from "../../core/billing/payment.ts";
import { isRecord } from "../../core/fields.ts";
import type { Runtime } from "../../runtime.ts";
import type { SessionChannelTable } from "../../shared/store/tables-payments.ts";
import type { RailOffer } from "../rails/rail.ts";
import type { SessionRailSettings } from "../rails/rail-kind.ts";
import { type Descriptor, type Hex, parseHex, ZERO_ADDRESS } from "./descriptor.ts";

/** The terms of channels. Addresses in lower case. */
export interface SessionTerms {
  readonly chainId: number;
  readonly escrow: Hex;
  readonly token: Hex;
  readonly recipient: Hex;
  /** The wallet that settles, if it is not the recipient's own; zero = it is. */
  readonly operator: Hex;
  /** Base units of the suggested deposit. */
  readonly depositUnits: bigint;
}

/** The state of a channel for its payer. It tells no voucher: anybody who has one could pay. */
export interface Snapshot {
  readonly record: Pick<
    SessionChannelTable,
    "id" | "chain_id" | "deposit_units" | "settled_units" | "spent_units" | "calls"
  > & { readonly descriptor: Descriptor };
  readonly acceptedUnits: bigint;
  /** What the next voucher has to promise. */
  readonly requiredUnits: bigint;
}

const METHOD = "tempo";
const INTENT = "session";
const PROTOCOL = "v2";

/** The terms of a rail; `wallet` = address of the wallet that settles. */
export function termsOf(
  { chainId, escrow, token, recipient, depositN }: SessionRailSettings,
  wallet: string,
): SessionTerms {
  const payee = parseHex(recipient);
  const settler = parseHex(wallet);
  return {
    chainId,
    escrow: parseHex(escrow ?? Session.Precompile.Constants.tip20ChannelEscrow),
    token: parseHex(token.address),
    recipient: payee,
    operator: settler === payee ? ZERO_ADDRESS : settler,
    depositUnits: depositN / NANO_PER_UNIT,
  };
}

/** The offer for a call of `units`; `snapshot` = the caller's channel, null = none is known. */
export function offerOf(terms: SessionTerms, units: bigint, snapshot: Snapshot | null): RailOffer {
  const { chainId, escrow, token, recipient, operator, depositUnits } = terms;
  return {
    method: METHOD,
    intent: INTENT,
    request: {
      amount: String(units),
      currency: token,
      recipient,
      suggestedDeposit: String(depositUnits > units ? depositUnits : units),
      unitType: "request",
      methodDetails: {
        chainId,
        escrowContract: escrow,
        sessionProtocol: PROTOCOL,
        ...(operator === ZERO_ADDRESS ? {} : { operator }),
        ...(snapshot === null ? {} : { sessionSnapshot: snapshotOf(terms, snapshot) }),
      },
    },
  };
}

/** Whether a challenge of ours has these terms: the configuration may have changed since. */
export function isOffered(terms: SessionTerms, { method, intent, request }: RailOffer): boolean {
  const now = offerOf(terms, 1n, null).request;
  const same = ["currency", "recipient"].every((name) => request[name] === now[name]);
  const details = request["methodDetails"];
  return (
    method === METHOD &&
    intent === INTENT &&
    same &&
    isRecord(details) &&
    chainOf(details) === chainOf(now["methodDetails"])
  );
}

/** Whether a channel pays us, in our token, and our wallet can settle it. */
export function isOurs(
  { recipient, token, operator }: SessionTerms,
  descriptor: Descriptor,
): boolean {
  return (
    descriptor.payee === recipient && descriptor.token === token && descriptor.operator === operator
  );
}

function snapshotOf(
  { chainId, escrow }: SessionTerms,
  { record, acceptedUnits, requiredUnits }: Snapshot,
): Readonly<Record<string, unknown>> {
  return {
    chainId,
    escrow,
    channelId: record.id,
    descriptor: record.descriptor,
    acceptedCumulative: String(acceptedUnits),
    requiredCumulative: String(requiredUnits),
    deposit: String(record.deposit_units),
    settled: String(record.settled_units),
    spent: String(record.spent_units),
    units: Number(record.calls),
  };
}

function chainOf(details: unknown): string {
  if (!isRecord(details)) return "";
  return JSON.stringify([
    details["chainId"],
    details["escrowContract"],
    details["operator"] ?? ZERO_ADDRESS,
  ]);
}

/** The contents of a receipt. */
export interface SessionReceipt {
  readonly challengeId: string;
  readonly channelId: Hex;
  readonly acceptedUnits: bigint;
  readonly spentUnits: bigint;
  readonly calls: bigint;
  /** The transaction of an opening, addition or close. */
  readonly txHash?: Hex;
}

/** Names and values in turn. */
export function receiptHeaders(
  runtime: Pick<Runtime, "wallMs">,
  receipt: SessionReceipt,
): readonly string[] {
  const payload = {
    method: "tempo",
    intent: "session",
    status: "success",
    timestamp: new Date(runtime.wallMs()).toISOString(),
    reference: receipt.channelId,
    challengeId: receipt.challengeId,
    channelId: receipt.channelId,
    acceptedCumulative: String(receipt.acceptedUnits),
    spent: String(receipt.spentUnits),
    units: Number(receipt.calls),
    txHash: receipt.txHash,
  };
  return ["Payment-Receipt", Buffer.from(JSON.stringify(payload)).toString("base64url")];
}
