// What of the words of providers and callers may be shown to the operator: without secrets, and
// without hex, which may be what a caller sent or was told.
import type { Provider } from "../core/provider/profile.ts";
import { REDACTED, redact } from "../core/redact/redact.ts";
import { repeatsSecret } from "../upstream/engine/refusal.ts";

/** Characters of a message that are read: more than are shown, so that no secret is cut. */
const READ_CHARS = 1_000;
const SHOWN_CHARS = 300;
const METHOD_CHARS = 64;

/** What a provider said, as it may be shown; null = the service said it. */
export function redactedMessage(provider: Provider | null, message: string): string {
  const text = message.slice(0, READ_CHARS);
  if (provider !== null && repeatsSecret(provider, text)) return REDACTED;
  const unnamed = (provider === null ? [] : hostsOf(provider)).reduce(
    (rest, host) => without(host, rest),
    text,
  );
  return withoutHex(redact(unnamed)).slice(0, SHOWN_CHARS);
}

/** A text without a word, in capitals or not. */
function without(word: string, text: string): string {
  return text.replaceAll(new RegExp(word.replaceAll(/[^\w]/g, "\\$&"), "gi"), REDACTED);
}

/** Where a provider is, which is for nobody to read. */
function hostsOf({ url, wsUrl }: Provider): readonly string[] {
  const hosts = [url, wsUrl].flatMap((address) => {
    const parsed = address === null ? null : URL.parse(address);
    return parsed === null ? [] : [parsed.host, parsed.hostname];
  });
  return hosts.filter((host) => host !== "");
}

/** The name of a method as a caller wrote it, as it may be shown. No secret is cut. */
export function redactedMethod(name: string): string {
  return withoutHex(redact(name.slice(0, READ_CHARS))).slice(0, METHOD_CHARS);
}

/** A text without hex: addresses, hashes, data of calls. Unchanged where it was removed before. */
function withoutHex(text: string): string {
  return text.replace(/\b0x[0-9a-f]*…?|\b[0-9a-f]{16,}\b/gi, "0x…");
}
