// Removes credentials from URLs: user and password, and keys in host names, paths and queries. The
// rest still shows which service it is.
import { isKnownId, isSecretHex, isSlug } from "./word.ts";

/** Replaces the secrets in all URLs of a text, with or without a scheme, by `mark`. */
export function withoutUrlSecrets(text: string, mark: string): string {
  return text
    .replace(WITH_SCHEME, (url) => cleaned(url, mark))
    .replace(USER_AT_HOST, (_, host: string) => `${mark}@${host}`)
    .replace(WITHOUT_SCHEME, (url) => cleaned(url, mark));
}

const WITH_SCHEME = /\b[a-z][a-z\d+.-]{0,20}:\/\/[^\s"'<>`|^]+/gi;
const WITHOUT_SCHEME =
  /(?<![\w/@.-])(?:[a-z\d-]{1,63}\.){1,8}[a-z]{2,24}(?::\d{1,5})?[/?][^\s"'<>`|^]+/gi;
/** `user:password@host` without a scheme. */
const USER_AT_HOST = /(?<![\w/:@.-])[\w.+-]{1,64}:[^\s@/:]{3,200}@([\w-]+(?:\.[\w-]+)*)/g;
const PARTS = /^([a-z][a-z\d+.-]*:\/\/)?(?:([^/?#@]*)@)?([^/?#]*)(.*)$/is;
/** A password that should have been encoded: it holds `/`, `?` or `#`. */
const ODD_PASSWORD = /^([a-z][a-z\d+.-]*:\/\/)[^/?#@:]+:(?!\d{1,5}(?:[/?#]|$))\S*@(.*)$/is;
const SECRET_NAME =
  /(?:key|token|secret|auth|pass(?:word|wd)?|pwd|sig|signature|credentials?|jwt|session|project_?id|client_?id)$/i;
const SHOWN_AFTER =
  /^(?:tx|txs|block|blocks|hash|transaction|receipt|commit|tree|blob|address|token|id)$/i;

function cleaned(url: string, mark: string): string {
  const odd = ODD_PASSWORD.exec(url);
  if (odd !== null) return `${odd[1]}${mark}@${cleaned(odd[2] ?? "", mark)}`;
  const [, scheme = "", user, host = "", rest = ""] = PARTS.exec(url) ?? [];
  const name = host
    .split(".")
    .map((label) => (isSecretPart(label, "") ? mark : label))
    .join(".");
  return `${scheme}${user === undefined ? "" : `${mark}@`}${name}${withoutKeys(rest, mark)}`;
}

/** Path, query and fragment, redacted part by part. */
function withoutKeys(rest: string, mark: string): string {
  const parts = rest.split(/([/?&#;=])/);
  return parts
    .map((part, i) => {
      if (i % 2 === 1) return part;
      const [body = "", tail = ""] = splitTail(part);
      const named = parts[i - 1] === "=" && SECRET_NAME.test(parts[i - 2] ?? "");
      return body !== "" &&
        ((named && !/^[<{$[]/.test(body)) || isSecretPart(body, parts[i - 2] ?? ""))
        ? mark + tail
        : part;
    })
    .join("");
}

/** Splits off punctuation that ends a sentence or bracket and is not part of the URL. */
function splitTail(part: string): readonly string[] {
  return /^(.*?)([).,:!\]}\\…]*)$/s.exec(part)?.slice(1) ?? [part];
}

const LEAST_CHARS = 12;
const LEAST_LETTERS = 20;

/** Whether a part of a URL looks like a key; `before` is the part in front of it. */
function isSecretPart(part: string, before: string): boolean {
  if (part.length < LEAST_CHARS || isKnownId(part) || /^\d+$/.test(part)) return false;
  if (/^0x[0-9a-f]*$/i.test(part))
    return isSecretHex(part, `${SHOWN_AFTER.test(before) ? "hash" : ""} `);
  if (SHOWN_AFTER.test(before) && /^[0-9a-f]+$/i.test(part)) return false;
  if (!/^[\w.~%+-]+$/.test(part)) return false;
  return isSlug(part)
    ? part.length >= LEAST_LETTERS && /[a-z][A-Z]{2,}[a-z].*[a-z][A-Z]/.test(part)
    : /[a-z]/i.test(part) && /\d/.test(part);
}
