// The fields that make up a channel's id, and the payload of session credentials, parsed from
// unchecked JSON. Knows no store and calls no chain.
import { Session } from "mppx/tempo";
import { z } from "zod";

/** 0x and hex digits. */
export type Hex = `0x${string}`;

/** The fields of a channel's id, in lower case. */
export type Descriptor = Readonly<Session.Precompile.Channel.ChannelDescriptor>;

/** The payload of a session credential, by action. */
export type SessionPayload =
  | {
      readonly action: "voucher" | "close";
      readonly channelId: Hex;
      readonly descriptor: Descriptor;
      readonly units: bigint;
      readonly signature: Hex;
    }
  | {
      readonly action: "open";
      readonly channelId: Hex;
      readonly descriptor: Descriptor;
      readonly units: bigint;
      readonly signature: Hex;
      readonly transaction: Hex;
    }
  | {
      readonly action: "top_up";
      readonly channelId: Hex;
      readonly descriptor: Descriptor;
      readonly units: bigint;
      readonly transaction: Hex;
    };

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
const signed = { ...common, cumulativeAmount: units, signature: bytes(MAX_SIGNATURE_CHARS) };
const sent = { type: z.literal("transaction"), transaction: bytes(MAX_TRANSACTION_CHARS) };

const payloadShape = z.discriminatedUnion("action", [
  z.object({ action: z.literal("voucher"), ...signed }),
  z.object({ action: z.literal("close"), ...signed }),
  z.object({ action: z.literal("open"), ...signed, ...sent, authorizedSigner: address.optional() }),
  z.object({ action: z.literal("topUp"), ...common, ...sent, additionalDeposit: units }),
]);

/** Parses the payload of a session credential; null = it is invalid. */
export function parsePayload(payload: unknown): SessionPayload | null {
  const read = payloadShape.safeParse(payload);
  if (!read.success) return null;
  const { data } = read;
  const { channelId, descriptor } = data;
  switch (data.action) {
    case "voucher":
    case "close":
      return {
        action: data.action,
        channelId,
        descriptor,
        units: data.cumulativeAmount,
        signature: data.signature,
      };
    case "open":
      if (
        data.authorizedSigner !== undefined &&
        data.authorizedSigner !== descriptor.authorizedSigner
      )
        return null;
      return {
        action: "open",
        channelId,
        descriptor,
        units: data.cumulativeAmount,
        signature: data.signature,
        transaction: data.transaction,
      };
    case "topUp":
      return {
        action: "top_up",
        channelId,
        descriptor,
        units: data.additionalDeposit,
        transaction: data.transaction,
      };
  }
}

/** Parses a descriptor that this service wrote; null = it is invalid. */
export function parseDescriptor(text: string): Descriptor | null {
  const read = descriptorShape.safeParse(JSON.parse(text));
  return read.success ? read.data : null;
}

/** A descriptor as JSON; equal descriptors have equal texts. */
export function descriptorText({
  payer,
  payee,
  operator,
  token,
  salt,
  authorizedSigner,
  expiringNonceHash,
}: Descriptor): string {
  return JSON.stringify({
    payer,
    payee,
    operator,
    token,
    salt,
    authorizedSigner,
    expiringNonceHash,
  });
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
