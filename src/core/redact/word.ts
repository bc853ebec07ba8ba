// Tells random words (keys, tokens) from names, ids and slugs by how often they change between
// lower case, upper case and digits; and private keys and hex tokens from addresses, hashes and
// call data. A hash and a private key look the same: the text before them decides, and without such
// a text they count as a key.
import { methodOf } from "../rpc/method.ts";

const SHORT_PIECE_CHARS = 4;
/**
 * Changes per character. Random words have about 0.62 with both cases and digits, 0.4 with digits
 * and one case, 0.5 with letters of both cases.
 */
const LEAST_MIXED = 0.38;
const LEAST_ONE_CASE = 0.2;
const LEAST_LETTERS = 0.3;

/**
 * Whether a word of 20 characters or more looks random. UUIDs do not count, since most are ids; nor
 * does long hex, which `isSecretHex` judges.
 */
export function isSecretWord(word: string): boolean {
  if (isKnownId(word) || methodOf(word).name === word || HEX.test(word) || UUID.test(word))
    return false;
  if (!isSlug(word))
    return (
      changes(word) >= (/[A-Z]/.test(word) && /[a-z]/.test(word) ? LEAST_MIXED : LEAST_ONE_CASE)
    );
  return !/\d/.test(word) && !isCamelCase(word) && changes(word) > LEAST_LETTERS;
}

/** Whether a word is a public id of this service: of a resource or a request. */
export function isKnownId(word: string): boolean {
  return (
    /^[a-z]{3}_[0-9a-z]{20}$/.test(word) || /^req-[0-9a-z]{4,13}(?:-[0-9a-z]{1,8}){0,2}$/.test(word)
  );
}

/**
 * Whether every part between hyphens, underscores and dots is only letters, only digits, short like
 * `v2`, or like `base64`.
 */
export function isSlug(word: string): boolean {
  return word
    .split(/[-_.~]/)
    .every(
      (piece) =>
        piece.length <= SHORT_PIECE_CHARS || /^(?:[A-Za-z]*|\d*|[a-z]{2,12}\d{1,3})$/.test(piece),
    );
}

/** Whether every capital begins a word. */
function isCamelCase(word: string): boolean {
  return word.split(/[_-]/).every((piece) => /^[a-z]*(?:[A-Z][a-z]+)*$/.test(piece));
}

const HEX = /^(?:0x[0-9a-f]*|[0-9a-f]{32,})$/i;
const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** Changes between lower case, upper case and digits, per character. */
function changes(word: string): number {
  return (word.match(CHANGE)?.length ?? 0) / (word.length - 1);
}

const CHANGE = /[a-z](?=[A-Z\d])|[A-Z](?=[a-z\d])|\d(?=[a-zA-Z])/g;

const HASH_CHARS = 64;
const ADDRESS_CHARS = 40;
const CONTEXT_CHARS = 60;
/** How numbers and addresses begin that are padded to a 32-byte word. */
const PADDED = /^0{16}/;
const HASH_WORD = /\b(?:tx|txn|txs|txid)\b|hash|transaction|block|receipt|topic|root|commit/i;
const SECRET_WORD =
  /priv|secret|seed|\bpk\b|\bsign|mnemonic|key|(?:api|auth|access)[_ -]?token|password/i;

/**
 * Whether a run of hex digits (32 or more, optionally after `0x`) may be a secret; `before` is the
 * text in front of it.
 */
export function isSecretHex(hex: string, before: string): boolean {
  const prefixed = /^0x/i.test(hex);
  const digits = prefixed ? hex.slice(2) : hex;
  if (/^\d+$/.test(hex) || PADDED.test(digits)) return false;
  if (prefixed && (digits.length <= ADDRESS_CHARS || digits.length > HASH_CHARS)) return false;
  return !isCalledHash(before);
}

/** Whether the text announces a hash (other hashes may come between) and names no secret. */
function isCalledHash(before: string): boolean {
  const context = before
    .slice(-MAX_LIST_CHARS)
    .replace(/\b(?:0x)?[0-9a-f]{32,}/gi, "#")
    .slice(-CONTEXT_CHARS);
  return HASH_WORD.test(context) && !SECRET_WORD.test(context);
}

const MAX_LIST_CHARS = 1_000;
