// Values of unknown shape: messages of other processes, rows of other versions, JSON and texts of
// anybody.

/** A value with fields of unknown types. */
export type Fields = Readonly<Record<string, unknown>>;

/** Whether a value is an object with fields; a list is none. */
export function isRecord(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
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

/** At most so many characters, as a text of its own: a slice keeps the whole text in memory. */
export function beginningOf(text: string, chars: number): string {
  return text.length <= chars ? text : Buffer.from(text.slice(0, chars)).toString();
}

/**
 * Text without control characters (U+0000 to U+001F, U+007F to U+009F): a pattern without property
 * escapes and flags, so that every generator of clients of the API understands it.
 */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is refused
export const NO_CONTROLS: RegExp = /^[^\u0000-\u001f\u007f-\u009f]*$/;
