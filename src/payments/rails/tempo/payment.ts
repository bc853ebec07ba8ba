// Payments by MPP `tempo`/`charge`: the request of a challenge, the payment as a signed transaction
// (pull) or as the hash of a sent one (push), and what the store keeps of either. Calls no chain.
import { z } from "zod";
import { isRequestOf } from "../evm/offer.ts";
import {
  type BadPayment,
  bad,
  type Payment,
  type PaymentCredential,
  type RailOffer,
} from "../rail.ts";
import { hashOf, parseTransaction, type TempoTransaction } from "./transaction.ts";
import { type ExpectedTransfer, memoOfCalls } from "./transfer.ts";

/** The terms that are the same for every amount. Addresses in lower case. */
export interface TempoTerms {
  readonly chainId: number;
  readonly token: string;
  readonly recipient: string;
  readonly modes: readonly ("pull" | "push")[];
  /** The realm of its challenges. */
  readonly realm: string;
}

/** The offer for an amount, in the form of mppx's `tempo`/`charge`. */
export function tempoOffer(
  { chainId, token, recipient, modes }: TempoTerms,
  units: bigint,
): RailOffer {
  return {
    method: "tempo",
    intent: "charge",
    request: {
      amount: units.toString(),
      currency: token,
      recipient,
      methodDetails: { chainId, supportedModes: [...modes] },
    },
  };
}

/** The key of a payment, unchecked; null = it has none. */
export function keyOf({ chainId }: TempoTerms, credential: PaymentCredential): string | null {
  const shown = credential.protocol === "mpp" ? payloadShape.safeParse(credential.payload) : null;
  if (credential.protocol !== "mpp" || shown?.data === undefined) return null;
  const hash =
    shown.data.type === "hash" ? shown.data.hash.toLowerCase() : hashOf(shown.data.signature);
  return hash === null ? null : keyFor(chainId, hash, credential.challenge.id);
}

/** Reads a payment and checks it against the offer that it answers. */
export function readPayment(
  terms: TempoTerms,
  credential: PaymentCredential,
  { units, nowMs }: { readonly units: bigint; readonly nowMs: number },
): Payment | BadPayment {
  if (credential.protocol !== "mpp")
    return bad("method-unsupported", "This token is paid by MPP `tempo`/`charge`, not by x402.");
  const { challenge, payload, source } = credential;
  if (!isRequestOf(challenge.request, terms, units))
    return bad(
      "invalid-challenge",
      "The challenge offers something else than is asked for by now: answer a challenge of " +
        "this response.",
    );
  const due: ExpectedTransfer = {
    token: terms.token,
    recipient: terms.recipient,
    units,
    challengeId: challenge.id,
    realm: terms.realm,
  };
  const expiresAtMs = challenge.expires === null ? Number.NaN : Date.parse(challenge.expires);
  if (!Number.isFinite(expiresAtMs))
    return bad(
      "invalid-challenge",
      "The challenge has no end: answer a challenge of this response.",
    );
  const shown = payloadShape.safeParse(payload);
  if (!shown.success)
    return bad(
      "invalid-payload",
      "The payload has to be of type `transaction` with a `signature`, or of type `hash` with " +
        "a `hash`.",
    );
  const mode = shown.data.type === "hash" ? "push" : "pull";
  if (!terms.modes.includes(mode))
    return bad(
      "invalid-payload",
      `Payments of type \`${shown.data.type}\` are not taken here: see \`supportedModes\` in ` +
        "the challenge.",
    );
  if (shown.data.type === "hash")
    return pushed(terms, { due, expiresAtMs, hash: shown.data.hash.toLowerCase(), source });
  return pulled(terms, { due, expiresAtMs, given: shown.data.signature, nowMs });
}

/** Reads text that this file wrote; throws on any other. */
export function parseMaterial(text: string): TempoMaterial {
  return materialShape.parse(JSON.parse(text));
}

/** How long after the end of its challenge a transaction may be valid. */
const GRACE_AFTER_OFFER_MS = 60_000;

const NO_PAYER = "0x0000000000000000000000000000000000000000";
const MS_PER_S = 1_000;

const hash = z.string().regex(/^0x[0-9a-fA-F]{64}$/);
const payloadShape = z.discriminatedUnion("type", [
  z.object({ type: z.literal("hash"), hash }),
  z.object({ type: z.literal("transaction"), signature: z.string() }),
]);
const amount = z
  .string()
  .regex(/^\d+$/)
  .transform((text) => BigInt(text));
const dueShape: z.ZodType<ExpectedTransfer> = z.object({
  token: z.string(),
  recipient: z.string(),
  units: amount,
  challengeId: z.string(),
  realm: z.string(),
});
const base = {
  due: dueShape,
  /** In lower case. */
  hash: z.string(),
  /** When the challenge expires, milliseconds since the epoch. */
  expiresAtMs: z.number(),
};
const pullShape = z.object({
  kind: z.literal("pull"),
  ...base,
  /** Signed bytes. */
  raw: z.string(),
  payer: z.string(),
  memo: z.string(),
  /** One of the two ends the time in which a block can include it; the other one is null. */
  validBeforeS: z.number().nullable(),
  nonce: amount.nullable(),
  readAtMs: z.number(),
});
const pushShape = z.object({ kind: z.literal("push"), ...base });
const materialShape = z.discriminatedUnion("kind", [pullShape, pushShape]);

/** A transaction that we pass on. */
export type PullMaterial = z.output<typeof pullShape>;

/** A transaction that the payer has sent. */
export type PushMaterial = z.output<typeof pushShape>;

/** What the rail keeps of a payment. */
export type TempoMaterial = PullMaterial | PushMaterial;

interface Shown {
  readonly due: ExpectedTransfer;
  readonly expiresAtMs: number;
}

function pushed(
  terms: TempoTerms,
  {
    due,
    expiresAtMs,
    hash,
    source,
  }: Shown & { readonly hash: string; readonly source: string | null },
): Payment | BadPayment {
  const payer = source === null ? NO_PAYER : addressOf(source, terms.chainId);
  if (payer === null)
    return bad(
      "invalid-payload",
      `The source has to be \`did:pkh:eip155:${terms.chainId}:\` and the address of the payer.`,
    );
  return payment(terms, { kind: "push", due, hash, expiresAtMs }, { payer, validUntilMs: null });
}

function pulled(
  terms: TempoTerms,
  { due, expiresAtMs, given, nowMs }: Shown & { readonly given: string; readonly nowMs: number },
): Payment | BadPayment {
  const read = parseTransaction(given);
  if ("wrong" in read) return bad("invalid-payload", read.wrong);
  if (read.chainId !== terms.chainId)
    return bad(
      "verification-failed",
      `The transaction is for chain ${read.chainId}: sign one for chain ${terms.chainId}.`,
    );
  const calls = memoOfCalls(read.calls, due);
  if ("wrong" in calls) return bad("verification-failed", calls.wrong);
  const bound = boundOf(read, expiresAtMs);
  if ("wrong" in bound) return bad("verification-failed", bound.wrong);
  const { raw, hash, payer } = read;
  const material: PullMaterial = {
    kind: "pull",
    due,
    hash,
    expiresAtMs,
    raw,
    payer,
    memo: calls.memo,
    ...bound,
    readAtMs: nowMs,
  };
  return payment(terms, material, {
    payer,
    validUntilMs: bound.validBeforeS === null ? null : bound.validBeforeS * MS_PER_S,
  });
}

/**
 * What ends the time in which a block can include a transaction, so that no purchase stays open for
 * ever: its own bound, or the nonce of its account.
 */
function boundOf(
  { validBeforeS, nonceKey, nonce }: TempoTransaction,
  expiresAtMs: number,
): Pick<PullMaterial, "validBeforeS" | "nonce"> | { readonly wrong: string } {
  if (validBeforeS === null)
    return nonceKey === 0n
      ? { validBeforeS, nonce }
      : {
          wrong:
            "The transaction is valid for ever: set its `validBefore`, at most to the end of " +
            "the challenge.",
        };
  if (validBeforeS * MS_PER_S <= expiresAtMs + GRACE_AFTER_OFFER_MS)
    return { validBeforeS, nonce: null };
  return {
    wrong:
      "The transaction is valid for longer than its challenge: set its `validBefore` at most " +
      "to the challenge's end.",
  };
}

function payment(
  { chainId }: TempoTerms,
  material: TempoMaterial,
  { payer, validUntilMs }: Pick<Payment, "payer" | "validUntilMs">,
): Payment {
  const { due, hash, kind } = material;
  const text = JSON.stringify(material, (_, value) =>
    typeof value === "bigint" ? value.toString() : value,
  );
  return {
    key: keyFor(chainId, hash, due.challengeId),
    payer,
    units: due.units,
    validUntilMs,
    isSent: kind === "push",
    material: text,
  };
}

function keyFor(chainId: number, hash: string, challengeId: string): string {
  return `tempo:${chainId}:${hash}:${challengeId}`;
}

function addressOf(source: string, chainId: number): string | null {
  const [, chain, address] = /^did:pkh:eip155:(\d{1,16}):(0x[0-9a-fA-F]{40})$/.exec(source) ?? [];
  return address !== undefined && chain === chainId.toString() ? address.toLowerCase() : null;
}
