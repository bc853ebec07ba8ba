// Values of unknown shape that have fields: messages of other processes, JSON of anybody.

/** A value with fields of unknown types. */
export type Fields = Readonly<Record<string, unknown>>;

/** Whether a value is an object with fields; a list is none. */
export function isRecord(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
