// Parses the credential that a client sends to pay: bounded in size and depth, no repeated names,
// every field of its type. Knows the shapes of MPP and x402 (the latter from its own library) and
// verifies nothing that they say.
import { PaymentPayloadV2Schema } from "@x402/core/schemas";
import { z } from "zod";
import { type BadPayment, bad, type MppChallenge, type PaymentCredential } from "./rails/rail.ts";

/** Longest header value that is read. */
export const MAX_CREDENTIAL_CHARS = 16_384;

/** The request that a challenge is bound to; a null field = not bound in this respect. */
export interface ChallengeBinding {
  readonly digest: string | null;
  readonly fingerprint: string | null;
}

/**
 * A payment that answers one of this service's challenges (MPP), or answers no challenge (x402,
 * `bound` null).
 */
export type ReadPayment = PaymentCredential & { readonly bound: ChallengeBinding | null };

/** A challenge as it is signed: `opaque` is base64url, and a field that was not given is absent. */
export type SignedChallenge = Omit<MppChallenge, "expires"> &
  Readonly<Partial<Record<"expires" | "digest" | "header" | "opaque", string>>>;

/**
 * Reads a header value: `Payment <base64url>` or bare base64. `isOurs` tells whether a challenge
 * was signed here. Never throws.
 */
export function parseCredential(
  text: string,
  isOurs: (challenge: SignedChallenge) => boolean,
): ReadPayment | BadPayment {
  if (text.length > MAX_CREDENTIAL_CHARS)
    return unreadable(`is longer than ${MAX_CREDENTIAL_CHARS} characters`);
  const json = parseBase64Json(text.trim().replace(/^Payment[ \t]+/i, ""));
  if (json === UNREADABLE) return unreadable("is no base64 of JSON text without repeated names");
  const form = formShape.safeParse(json);
  if (!form.success)
    return unreadable(
      "is neither an MPP credential (`challenge`, `payload`) nor an x402 v2 payment " +
        "(`x402Version`, `accepted`, `payload`)",
    );
  return form.data.challenge === undefined
    ? x402Credential(form.data)
    : mppCredential(form.data, isOurs);
}

const NOT_OURS: BadPayment = {
  kind: "bad_payment",
  problem: "invalid-challenge",
  reason:
    "The challenge that this credential answers was not made here, or was changed. Answer a " +
    "challenge of this response.",
};

const SHORT = 256;
const label = z.string().regex(/^[a-z][a-z0-9:_-]{0,63}$/);
const base64url = z
  .string()
  .regex(/^[A-Za-z0-9_-]+$/)
  .max(MAX_CREDENTIAL_CHARS);

const formShape = z.union([
  z.object({
    challenge: z.record(z.string(), z.unknown()),
    payload: z.unknown(),
    source: z.unknown().optional(),
    x402Version: z.undefined().optional(),
  }),
  z.looseObject({ x402Version: z.literal(2), challenge: z.undefined().optional() }),
]);

const challengeShape = z.object({
  id: z.string().min(1).max(SHORT),
  realm: z.string().max(SHORT),
  method: label,
  intent: label,
  request: base64url,
  // Without separators of the signed text, so that no field can be moved into another one.
  expires: z
    .string()
    .regex(/^[0-9TZ:.+-]{1,40}$/)
    .nullish(),
  digest: z
    .string()
    .regex(/^sha-256=:?[A-Za-z0-9+/]{43}=:?$/)
    .nullish(),
  header: z
    .string()
    .regex(/^[A-Za-z-]{1,64}$/)
    .nullish(),
  opaque: base64url.nullish(),
});

const sourceShape = z.string().max(SHORT).nullish();
const requestShape = z.record(z.string(), z.unknown());
const correlationShape = z.object({ fingerprint: z.string().max(SHORT) });

/** What we require of `accepted` beyond the schema of x402: our scheme, EVM chains, bounds. */
const acceptedShape = z.object({
  scheme: z.literal("exact"),
  network: z.string().regex(/^eip155:\d{1,16}$/),
  amount: z.string().regex(/^\d{1,78}$/),
  asset: z.string().max(SHORT),
  payTo: z.string().max(SHORT),
  maxTimeoutSeconds: z.number(),
  extra: z.record(z.string(), z.unknown()).default({}),
});

function mppCredential(
  form: { readonly challenge: unknown; readonly payload?: unknown; readonly source?: unknown },
  isOurs: (challenge: SignedChallenge) => boolean,
): ReadPayment | BadPayment {
  const challenge = challengeShape.safeParse(form.challenge);
  if (!challenge.success)
    return unreadable("has a `challenge` that is none: send it back as it came");
  const request = requestShape.safeParse(parseBase64Json(challenge.data.request));
  if (!request.success)
    return unreadable("has a `challenge.request` that is no base64url of a JSON object");
  const source = sourceShape.safeParse(form.source);
  if (!source.success) return unreadable("has a `source` that is no DID");
  const { expires, digest, header, opaque, ...rest } = challenge.data;
  const named = { ...rest, request: request.data };
  const signed = {
    ...named,
    ...(expires == null ? {} : { expires }),
    ...(digest == null ? {} : { digest }),
    ...(header == null ? {} : { header }),
    ...(opaque == null ? {} : { opaque }),
  };
  if (!isOurs(signed)) return { ...NOT_OURS, offerId: rest.id };
  // What we put into the challenge for ourselves.
  const own = opaque == null ? null : correlationShape.safeParse(parseBase64Json(opaque)).data;
  return {
    protocol: "mpp",
    challenge: { ...named, expires: expires ?? null },
    payload: form.payload ?? null,
    source: source.data ?? null,
    bound: { digest: digest ?? null, fingerprint: own?.fingerprint ?? null },
  };
}

function x402Credential(form: unknown): ReadPayment | BadPayment {
  const read = PaymentPayloadV2Schema.safeParse(form);
  const field = read.error?.issues[0]?.path[0];
  if (!read.success && field !== "accepted")
    return unreadable(`has a \`${field}\` that is none of an x402 v2 payment`);
  const accepted = acceptedShape.safeParse(read.data?.accepted);
  if (!read.success || !accepted.success)
    return unreadable(
      "has an `accepted` that is no entry of `accepts` in PAYMENT-REQUIRED with scheme `exact`",
    );
  return { protocol: "x402", accepted: accepted.data, payload: read.data.payload, bound: null };
}

function unreadable(what: string): BadPayment {
  return bad("malformed-credential", `The payment ${what}.`);
}

/** Tells "cannot be read" from JSON's null. */
const UNREADABLE: unique symbol = Symbol("unreadable");

const MAX_DEPTH = 12;

function parseBase64Json(text: string): unknown {
  if (!/^[A-Za-z0-9+/_-]+={0,2}$/.test(text)) return UNREADABLE;
  try {
    const json = new TextDecoder("utf-8", { fatal: true }).decode(Buffer.from(text, "base64"));
    const value: unknown = JSON.parse(json);
    const names = namesIn(json);
    // JSON.parse keeps a repeated name once.
    return names !== null && names === namesOf(value) ? value : UNREADABLE;
  } catch {
    return UNREADABLE;
  }
}

/** The number of names in a JSON text, repetitions included; null = it is nested too deep. */
function namesIn(json: string): number | null {
  let depth = 0;
  let names = 0;
  for (const [mark] of json.matchAll(/"(?:[^"\\]|\\.)*"|[[\]{}:]/g)) {
    if (mark === ":") names += 1;
    else if (mark === "{" || mark === "[") depth += 1;
    else if (mark === "}" || mark === "]") depth -= 1;
    if (depth > MAX_DEPTH) return null;
  }
  return names;
}

function namesOf(value: unknown): number {
  if (typeof value !== "object" || value === null) return 0;
  const held: readonly unknown[] = Object.values(value);
  return held.reduce<number>(
    (sum, item) => sum + namesOf(item),
    Array.isArray(value) ? 0 : held.length,
  );
}
