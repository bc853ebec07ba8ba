// What is told of a request over HTTP that was not answered well: words and bounds that single
// requests and batches share. Names no address.

/** The reason of a connection's end whose request was cancelled. */
export const CANCELLED = new Error("cancelled");
/** Longest answer that is not a result, such as an error. */
export const MAX_ERROR_BYTES = 1_048_576;
export const EMPTY_BODY = "the body is empty";
export const OTHER_ID = "the answer carries another id";
export const COMPRESSED = "the answer is compressed, which was not asked for";
const EXCERPT_CHARS = 512;

/** The beginning of a body that is no answer. */
export function excerpt(body: Buffer): string {
  return body.toString("utf8", 0, EXCERPT_CHARS).trim();
}

/** Whether a request failed because no connection was free. */
export function isCrowded(error: Error & { readonly code?: unknown }): boolean {
  return error.code === "EPOOL";
}

/** The kind of a network error, without any part of the address. */
export function describe(
  error: Error & { readonly code?: unknown; readonly cause?: unknown },
): string {
  const cause = error.cause instanceof Error ? describe(error.cause) : "";
  const calm = /ENHANCE_YOUR_CALM|(?:GOAWAY.*|closed with error )code 11\b/.test(error.message)
    ? "ENHANCE_YOUR_CALM"
    : "";
  return [typeof error.code === "string" ? error.code : error.name, calm, cause]
    .filter(Boolean)
    .join(" ");
}
