// Tells private keys and hex tokens from addresses, hashes and call data. A hash and a private key
// look the same: the text before them decides, and without such a text they count as a key.

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
