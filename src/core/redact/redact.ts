// Redacts keys, tokens, credentials in URLs, private keys and seed phrases in a text, by their
// shape. Where a secret and a harmless text look alike, both are redacted, except in the cases that
// the table of passes names.
import { withoutUrlSecrets } from "./url.ts";
import { isSecretHex, isSecretWord } from "./word.ts";

/** Replaces a redacted piece of text. */
export const REDACTED = "[redacted]";

/** Replaces everything that looks like a secret. Idempotent. */
export function redact(text: string): string {
  return PASSES.reduce((rest, pass) => pass(rest), text.replace(UNSEEN, ""));
}

type Pass = (text: string) => string;

/** Invisible characters, which would hide a secret from the patterns. */
const UNSEEN = /[\u00ad\u200b\u2060\ufeff]|(?<=[!-~])\p{Cf}+(?=[!-~])|(?![\t\n\r])\p{Cc}/gu;

/**
 * A pass that replaces what a pattern finds; if the pattern has groups, only the last group, which
 * must end the match.
 */
function redacting(pattern: RegExp | string): Pass {
  const found = new RegExp(pattern, typeof pattern === "string" ? "gi" : pattern.flags);
  return (text) => text.replace(found, (...match) => `${before(match)}${REDACTED}`);
}

/** The part of a match that is kept: everything before its last group. */
function before(found: readonly unknown[]): string {
  const [whole, ...rest] = found;
  const groups = rest.slice(0, -2);
  const secret = groups.at(-1);
  return typeof whole === "string" && typeof secret === "string"
    ? whole.slice(0, whole.length - secret.length)
    : "";
}

/** Excludes placeholders such as `<key>` and values that are already redacted. */
const NO_PLACEHOLDER = "(?=[^\\s\"'\\\\])(?!(?:(?:bearer|basic|payment)\\s+)?[<[{$])";
const SECRET_NAME =
  "api[_ -]?key|access[_ " +
  "-]?(?:token|key)|(?:auth|refresh|id|bearer)[_-]?token|client[_-]?secret|priv(?:ate)?[_ " +
  "-]?key|secret(?:[_ -]?(?:key|access[_-]?key))?|" +
  "passw(?:or)?d|passphrase|pwd|mnemonic|seed(?:[_ -]?phrase)?|dkey|credentials?|jwt";
const QUOTED_SIGN = "\\\\?[\"']?\\s*[:=]\\s*\\\\?[\"']?";
const VALUE = "[^\\s\"',;}\\\\]";
/** Excludes ids and addresses, which are never secrets. */
const NO_ID = "(?!0x[0-9a-f]{1,40}\\b|[a-z]{3}_[0-9a-z]{20}\\b|req-|https?:)";

const PASSES: readonly Pass[] = [
  redacting(
    /-----BEGIN [A-Z ]*PRIVATE KEY(?: BLOCK)?-----(?:[\s\S]*?-----END [A-Z ]*-----|[\s\S]*)/g,
  ),
  (text) => withoutPhrases(text, REDACTED),
  (text) => withoutUrlSecrets(text, REDACTED),
  redacting(/svc_[a-z]{2}_[0-9a-z]+/gi),
  redacting(/\beyJ[\w-]{6,}(?:\.[\w-]*){0,2}/g),
  redacting(
    `\\b(?:(?:proxy-)?authorization|x-[\\w-]{0,40}(?:key|token|auth)|payment-signature|(?:set-)?cookie)${QUOTED_SIGN}(${NO_PLACEHOLDER}[^\\r\\n"'\\\\]+)`,
  ),
  redacting(
    `\\b[\\w-]{0,40}(?:${SECRET_NAME})${QUOTED_SIGN}(${NO_PLACEHOLDER}${NO_ID}${VALUE}{4,})`,
  ),
  redacting(
    `\\b(?:${SECRET_NAME})\\s+(?:is|was)\\s+(${NO_PLACEHOLDER}${NO_ID}(?=${VALUE}*\\d)${VALUE}{4,})`,
  ),
  redacting(
    `\\b(?:token|key|auth|session|signature)${QUOTED_SIGN}(${NO_PLACEHOLDER}${NO_ID}(?=${VALUE}*\\d)${VALUE}{12,})`,
  ),
  redacting(/\b(?:bearer|basic)\s+((?=[\w.~+/=-]*\d)[\w.~+/=-]{8,}|[\w.~+/=-]{20,})/gi),
  redacting(
    /\b(?:[spr]k[-_](?:live|test|proj|ant)?[-_]?|gh[oprsu]_|github_pat_|glpat-|xox[abeprs]-|AKIA|ASIA|AIza|npm_|hf_|SG\.|ya29\.|[txyz]prv)[\w-]{12,}(?:\.[\w-]+)*/g,
  ),
  (text) =>
    text.replace(/(?<![0-9a-z])(?:0x)?[0-9a-f]{32,}(?![0-9a-z])/gi, (hex, at: number) =>
      isSecretHex(hex, text.slice(0, at)) ? REDACTED : hex,
    ),
  redacting(/(?<![\w+/-])(?=[\w/-]*[+=])(?=\S*[A-Z])(?=\S*[a-z])(?=\S*\d)[\w+/-]{24,}={0,2}/g),
  (text) => text.replace(/[\w-]{20,}/g, (word) => (isSecretWord(word) ? REDACTED : word)),
];

const LEAST_WORDS = 12;
const PHRASE_WORD = /^[a-z]{3,8}$/i;
/** What may separate two words of a phrase: spaces, commas, quotes, and list numbers. */
const BETWEEN_WORDS = /^(?=.{1,12}$)[\s,;|"'`·]*(?:\d{1,2}\s*[.):-]?)?[\s,;|"'`·]*$/s;
/** Common words that are not in BIP-39. */
const STOP_WORDS: ReadonlySet<string> = new Set(
  (
    "the and for with from but was were are not has had his her its our your their them these " +
    "those been than which would could should did does done how who " +
    "why while being here get got gets send sent see seen says said calls called request " +
    "requests errors returned via per let works worked failed " +
    "fails after without through both every some many most provider gateway endpoint chain " +
    "server polygon arbitrum optimism linea zkevm mainnet testnet ethereum binance gnosis " +
    "mantle taiko"
  ).split(" "),
);

/**
 * Replaces seed phrases by `mark`: 12 or more consecutive words that could all be in the BIP-39
 * list. Uses no word list: BIP-39 words have 3 to 8 letters, and ordinary prose rarely has twelve
 * such words in a row without a common word that BIP-39 lacks.
 */
export function withoutPhrases(text: string, mark: string): string {
  const pieces = text.split(/([A-Za-z]+)/);
  let out = "";
  let copied = 0;
  for (let i = 1; i < pieces.length; ) {
    const end = phraseEnd(pieces, i);
    const words = (end - i) / 2 + 1;
    if (end >= i && words >= LEAST_WORDS) {
      out += `${pieces.slice(copied, i).join("")}${mark}`;
      copied = end + 1;
    }
    i = Math.max(i, end) + 2;
  }
  return out + pieces.slice(copied).join("");
}

/**
 * Index at which the run of possible words that begins at `start` ends; less than `start` = there
 * is none.
 */
function phraseEnd(pieces: readonly string[], start: number): number {
  let end = start - 2;
  for (let i = start; i < pieces.length; i += 2) {
    const word = pieces[i] ?? "";
    if (!PHRASE_WORD.test(word) || STOP_WORDS.has(word.toLowerCase())) break;
    if (i > start && !BETWEEN_WORDS.test(pieces[i - 1] ?? "")) break;
    end = i;
  }
  return end;
}
