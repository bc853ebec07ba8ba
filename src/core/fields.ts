// Values of unknown shape: messages of other processes, rows of other versions, JSON of anybody.

/** A value with fields of unknown types. */
export type Fields = Readonly<Record<string, unknown>>;

/** Whether a value is an object with fields; a list is none. */
export function isRecord(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Whether a value is a text of at most so many characters. */
export function isText(value: unknown, maxChars: number): value is string {
  return typeof value === "string" && value.length <= maxChars;
}

/** The text of an error, or of anything else that was thrown. */
export function errorText(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** The value of a JSON text; null also where the text is no JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
