// The fields that make up a channel's id, and the payload of session credentials, parsed from
// unchecked JSON. Knows no store and calls no chain.
import { Session } from "mppx/tempo";
import { z } from "zod";
import type { Hex } from "../../shared/store/tables-payments.ts";

export type { Hex };

/** The fields of a channel's id, in lower case. */
export type Descriptor = Readonly<Session.Precompile.Channel.ChannelDescriptor>;

/** The address zero: nobody. */
export const ZERO_ADDRESS: Hex = "0x0000000000000000000000000000000000000000";

const MAX_SIGNATURE_CHARS = 8_192;
const MAX_TRANSACTION_CHARS = 12_000;

const hex = (digits: number) =>
  z
    .string()
    .regex(new RegExp(`^0x[0-9a-fA-F]{${digits}}$`))
    .transform(parseHex);
const bytes = (maxChars: number) =>
  z
    .string()
    .max(maxChars)
    .regex(/^0x(?:[0-9a-fA-F]{2})+$/)
    .transform(parseHex);
const address = hex(40);
const word = hex(64);
/** Amounts of channels have 96 bits. */
const units = z
  .string()
  .regex(/^\d{1,29}$/)
  .transform(BigInt)
  .refine((value) => value < 1n << 96n);

const descriptorShape = z.object({
  payer: address,
  payee: address,
  operator: address,
  token: address,
  salt: word,
  authorizedSigner: address,
  expiringNonceHash: word,
});

const common = { channelId: word, descriptor: descriptorShape };
const promise = { ...common, cumulativeAmount: units, signature: bytes(MAX_SIGNATURE_CHARS) };
const sent = { type: z.literal("transaction"), transaction: bytes(MAX_TRANSACTION_CHARS) };
const promiseShape = z
  .object({ action: z.enum(["voucher", "close"]), ...promise })
  .transform(({ cumulativeAmount, ...rest }) => ({ ...rest, units: cumulativeAmount }));
const openShape = z
  .object({
    action: z.literal("open"),
    ...promise,
    ...sent,
    authorizedSigner: address.optional(),
  })
  .refine(
    ({ authorizedSigner: signer, descriptor }) =>
      signer === undefined || signer === descriptor.authorizedSigner,
  )
  .transform(({ cumulativeAmount, ...rest }) => ({ ...rest, units: cumulativeAmount }));
const topUpShape = z
  .object({ action: z.literal("topUp"), ...common, ...sent, additionalDeposit: units })
  .transform(({ additionalDeposit, ...rest }) => ({ ...rest, units: additionalDeposit }));
const payloadShape = z.union([promiseShape, openShape, topUpShape]);

/** The payload of an opening. */
export type OpenPayload = Readonly<z.output<typeof openShape>>;

/** The payload of an addition to the deposit. */
export type TopUpPayload = Readonly<z.output<typeof topUpShape>>;

/** The payload of a session credential, by action. */
export type SessionPayload = Readonly<z.output<typeof promiseShape>> | OpenPayload | TopUpPayload;

/** Parses the payload of a session credential; null = it is invalid. */
export function parsePayload(payload: unknown): SessionPayload | null {
  return payloadShape.safeParse(payload).data ?? null;
}

/** Parses a descriptor that this service wrote; null = it is invalid. */
export function parseDescriptor(text: string): Descriptor | null {
  const read = descriptorShape.safeParse(JSON.parse(text));
  return read.success ? read.data : null;
}

/** A parsed descriptor as JSON. Its fields have one order, so equal ones have equal texts. */
export function descriptorText(descriptor: Descriptor): string {
  return JSON.stringify(descriptor);
}

/** The address that signs the vouchers of a channel. */
export function signerOf(descriptor: Descriptor): Hex {
  return Session.Precompile.Channel.resolveAuthorizedSigner(descriptor);
}

/** The channel id of a descriptor at a contract of a chain. */
export function channelIdOf(descriptor: Descriptor, escrow: Hex, chainId: number): Hex {
  return Session.Precompile.Channel.computeId({ ...descriptor, escrow, chainId });
}

/** Lower case; the text was matched as hex digits before. */
export function parseHex(text: string): Hex {
  return text.toLowerCase() as Hex;
}
