// Secrets and ids: how keys and tokens are made, how a mistyped one is recognised, and what is
// stored of them. Knows no table.
import { hash, randomBytes, timingSafeEqual } from "node:crypto";
import { crc32 } from "node:zlib";

/**
 * How secrets begin, by what they open: `key` = RPC calls, `token` = the management of an account,
 * `claim` = a claim link, `connection` = the poll of a connection, `approval` = its page, `session`
 * = the console, `sign_in` = a session in the console, once.
 */
const PREFIXES = {
  key: "svc_ak_",
  token: "svc_mt_",
  claim: "svc_cl_",
  connection: "svc_ct_",
  approval: "svc_ca_",
  session: "svc_cs_",
  sign_in: "svc_si_",
} as const;

/** What a secret opens. */
export type SecretKind = keyof typeof PREFIXES;

const KINDS = ["key", "token", "claim", "connection", "approval", "session", "sign_in"] as const;
const PREFIX_CHARS = 7;
/** 226 bits; at least 192 stay unknown when the shown prefix is known. */
const RANDOM_CHARS = 38;
const CHECK_CHARS = 6;
const SECRET_CHARS = PREFIX_CHARS + RANDOM_CHARS + CHECK_CHARS;
const SHOWN_CHARS = 12;

/** A new secret. Show it once, keep its hash. */
export function newSecret(kind: SecretKind): string {
  const text = PREFIXES[kind] + randomText(BASE62, RANDOM_CHARS);
  return text + checksum(text);
}

/**
 * What a text opens by its shape and checksum, without looking it up; null = it is no secret of
 * ours.
 */
export function readSecret(text: string): SecretKind | null {
  if (text.length !== SECRET_CHARS) return null;
  const kind = KINDS.find((candidate) => text.startsWith(PREFIXES[candidate]));
  if (kind === undefined || !/^[0-9A-Za-z]+$/.test(text.slice(PREFIX_CHARS))) return null;
  const body = text.slice(0, -CHECK_CHARS);
  return checksum(body) === text.slice(-CHECK_CHARS) ? kind : null;
}

/** What is kept of a secret: its SHA-256 as base64url. */
export function hashOf(secret: string): string {
  return hash("sha256", secret, "base64url");
}

/** SHA-256 of a secret as 32 characters of one byte each: the shortest key of a map. */
export function digestOf(secret: string): string {
  return hash("sha256", secret, "binary");
}

/** What is kept in the store of a secret with this digest. */
export function hashOfDigest(digest: string): string {
  return Buffer.from(digest, "latin1").toString("base64url");
}

/** How a secret begins, to tell secrets apart. */
export function prefixOf(secret: string): string {
  return secret.slice(0, SHOWN_CHARS);
}

/** Whether a text is the expected one; takes as long for every text. */
export function isSameSecret(given: string, expected: string): boolean {
  return timingSafeEqual(hash("sha256", given, "buffer"), hash("sha256", expected, "buffer"));
}

/** A new id, for example `key_…`: later ones come later in order, and none can be guessed. */
export function newId(
  mark: "acc" | "key" | "agt" | "con" | "prf" | "fbk" | "pur" | "act" | "rld",
  wallMs: number,
): string {
  const time = Math.max(0, Math.floor(wallMs))
    .toString(36)
    .padStart(TIME_CHARS, "0")
    .slice(-TIME_CHARS);
  return `${mark}_${time}${randomText(BASE36, ID_RANDOM_CHARS)}`;
}

const BASE36 = "0123456789abcdefghijklmnopqrstuvwxyz";
const BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const TIME_CHARS = 9;
const ID_RANDOM_CHARS = 11;

/** Every character as likely as every other: bytes that would favour some are thrown away. */
function randomText(alphabet: string, chars: number): string {
  const limit = 256 - (256 % alphabet.length);
  let text = "";
  while (text.length < chars) {
    for (const byte of randomBytes(chars))
      if (byte < limit && text.length < chars) text += alphabet[byte % alphabet.length];
  }
  return text;
}

function checksum(text: string): string {
  let rest = crc32(text);
  let digits = "";
  for (let i = 0; i < CHECK_CHARS; i++) {
    digits = BASE62.charAt(rest % BASE62.length) + digits;
    rest = Math.floor(rest / BASE62.length);
  }
  return digits;
}
