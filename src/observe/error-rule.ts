// Suggests an `error_rules` entry for an unknown error: its code, and the longest piece of text
// that is the same in every such error. The category is for the operator to choose. Pure.
import type { RedactedError } from "./error-book.ts";

/** What stands in a sample for what changes: secrets, hex and numbers. */
const CHANGING = /\[redacted\]|0x…|\d+|[\p{Cc}]/gu;
const LEAST_CHARS = 4;
const MAX_CHARS = 80;
/** Counts against nobody, and the next provider is asked: what becomes of an unknown error too. */
const CATEGORY = "unknown";
const HINT = "# choose what it means: rate_limit, server, method_unsupported, …";

/** The entry, as YAML and as a value; null = the error has neither a code nor a text that stays. */
export function errorRuleFor({ code, sample }: Pick<RedactedError, "code" | "sample">) {
  const [piece = ""] = (sample ?? "")
    .toLowerCase()
    .split(CHANGING)
    .map((text) => text.slice(0, MAX_CHARS).trim())
    .filter((text) => text.length >= LEAST_CHARS)
    .sort((left, right) => right.length - left.length);
  if (code === null && piece === "") return null;
  const entry = {
    ...(code === null ? {} : { code }),
    ...(piece === "" ? {} : { message_contains: [piece] }),
    category: CATEGORY,
  };
  const lines = Object.entries(entry).map(([name, value], at) => {
    const text = name === "category" ? `${CATEGORY} ${HINT}` : JSON.stringify(value);
    return `${at === 0 ? "  - " : "    "}${name}: ${text}`;
  });
  return { yaml: ["error_rules:", ...lines].join("\n"), entry };
}
