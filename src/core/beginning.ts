// The beginning of a text of any length.

/** At most so many characters, as a text of its own: a slice keeps the whole text in memory. */
export function beginningOf(text: string, chars: number): string {
  return text.length <= chars ? text : Buffer.from(text.slice(0, chars)).toString();
}
