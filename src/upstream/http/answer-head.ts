// What is read of the head of an answer, be it to one request or to a batch.

/** The fields of a head, by their names in lower case. */
export type AnswerHeaders = Readonly<Record<string, string | string[] | undefined>>;

/** The text of `Retry-After`; null = it is missing, or given twice. */
export function retryAfterIn({ "retry-after": text }: AnswerHeaders): string | null {
  return typeof text === "string" ? text : null;
}

/** Whether the body is compressed, or encoded otherwise. */
export function isEncoded({ "content-encoding": encoding }: AnswerHeaders): boolean {
  return encoding !== undefined && encoding !== "identity";
}
