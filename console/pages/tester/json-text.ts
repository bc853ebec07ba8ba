// A value as indented JSON, cut where it is long. Pure.

const MAX_CHARS = 100_000;

/** The text; a cut one says so. */
export function jsonText(value: unknown): string {
  const text = JSON.stringify(value, null, 2) ?? "";
  if (text.length <= MAX_CHARS) return text;
  return `${text.slice(0, MAX_CHARS)}\n… ${text.length - MAX_CHARS} more characters`;
}
