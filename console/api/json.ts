// Reads values whose form nobody vouches for: what is not there, or is of another type, is empty.

/** The member of an object. */
export function memberOf(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null ? Reflect.get(value, name) : undefined;
}

/** A value as text; "" = it is none. */
export function textIn(value: unknown): string {
  return typeof value === "string" ? value : "";
}

/** A value as list. */
export function listIn(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** A text as JSON; undefined = it is none. */
export function parseJson(text: string): unknown {
  try {
    const value: unknown = JSON.parse(text);
    return value;
  } catch {
    return undefined;
  }
}

const MAX_CHARS = 100_000;

/** A value as indented JSON; a text that is cut says so. */
export function jsonText(value: unknown): string {
  const text = JSON.stringify(value, null, 2) ?? "";
  if (text.length <= MAX_CHARS) return text;
  return `${text.slice(0, MAX_CHARS)}\n… ${text.length - MAX_CHARS} more characters`;
}
