// What is told of a request over HTTP that was not answered well: words and bounds that single
// requests and batches share. Names no address.
import type { Failure } from "../../core/rpc/failure.ts";

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

/** The failure of a request whose connection failed, or that got none. */
export function connectionFailure(
  error: NetworkError,
  isSent: boolean,
): Pick<Failure, "kind" | "message" | "crowded" | "incident"> {
  const [kind, message] = [isSent ? "network" : "unsent", describe(error)] as const;
  return error.code === NO_FREE_CONNECTION
    ? { kind, message, crowded: true }
    : { kind, message, incident: error };
}

type NetworkError = Error & { readonly code?: unknown; readonly cause?: unknown };

const NO_FREE_CONNECTION = "EPOOL";

/** The kind of a network error, without any part of the address. */
function describe(error: NetworkError): string {
  const cause = error.cause instanceof Error ? describe(error.cause) : "";
  const calm = /ENHANCE_YOUR_CALM|(?:GOAWAY.*|closed with error )code 11\b/.test(error.message)
    ? "ENHANCE_YOUR_CALM"
    : "";
  return [typeof error.code === "string" ? error.code : error.name, calm, cause]
    .filter(Boolean)
    .join(" ");
}

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
