// Reads a request body as one bounded, uncompressed JSON object without repeated members. Knows no
// schema.
import { isUtf8 } from "node:buffer";
import type { IncomingMessage } from "node:http";
import { type ApiFault, apiFault } from "../../core/faults/api-fault.ts";
import {
  CLOSE_OBJECT,
  COMMA,
  isJson,
  MAX_DEPTH,
  OPEN_OBJECT,
  skipSpace,
  skipString,
  skipValue,
} from "../../core/rpc/json.ts";

/** Largest body, unless an operation defines another limit. */
export const MAX_BODY_BYTES = 65_536;
/**
 * The body of a refused request is still read, up to this many bytes, so that the client receives
 * the refusal.
 */
const DISCARD_BYTES = 16_000_000;

/** Reads a body; null = the client left. After a refusal, the rest is discarded. */
export function readBody(
  request: IncomingMessage,
  maxBytes: number = MAX_BODY_BYTES,
): Promise<Buffer | ApiFault<"body_too_large"> | null> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    let size = 0;
    const tooLarge = (): void => {
      chunks.length = 0;
      resolve(apiFault("body_too_large", `the body is larger than ${maxBytes} bytes`));
    };
    if (Number(request.headers["content-length"] ?? 0) > maxBytes) tooLarge();
    request.on("data", (chunk: Buffer) => {
      size += chunk.length;
      if (size <= maxBytes) chunks.push(chunk);
      else if (size > DISCARD_BYTES) request.destroy();
      else tooLarge();
    });
    request.on("end", () => resolve(Buffer.concat(chunks)));
    request.on("close", () => resolve(null));
  });
}

/** The JSON object in a body. */
export interface BodyObject {
  readonly kind: "object";
  readonly value: object;
}

/** Parses the JSON object in a body; ignores `Content-Type`. An empty body is an empty object. */
export function parseBody(
  bytes: Buffer,
  request: IncomingMessage,
): BodyObject | ApiFault<"invalid_request" | "unsupported_media_type"> {
  if (bytes.length === 0) return { kind: "object", value: {} };
  const coding = request.headers["content-encoding"] ?? "identity";
  if (coding.toLowerCase() !== "identity")
    return apiFault("unsupported_media_type", "the body is declared as encoded");
  if (!isUtf8(bytes) || !isJson(bytes))
    return apiFault("invalid_request", "the body is not valid JSON in UTF-8");
  const start = skipSpace(bytes, 0, bytes.length);
  if (bytes[start] !== OPEN_OBJECT)
    return apiFault("invalid_request", "the body is not a JSON object");
  if (hasRepeatedName(bytes, start))
    return apiFault("invalid_request", "a field stands twice in the body");
  const value: unknown = JSON.parse(bytes.toString("utf8"));
  return { kind: "object", value: typeof value === "object" && value !== null ? value : {} };
}

/** Whether valid JSON repeats a member of the object; parsers differ in which one they keep. */
function hasRepeatedName(bytes: Buffer, start: number): boolean {
  const names = new Set<unknown>();
  let at = skipSpace(bytes, start + 1, bytes.length);
  while (at < bytes.length && bytes[at] !== CLOSE_OBJECT) {
    const nameEnd = skipString(bytes, at, bytes.length);
    const name: unknown = JSON.parse(bytes.toString("utf8", at, nameEnd));
    if (names.has(name)) return true;
    names.add(name);
    const value = skipSpace(bytes, skipSpace(bytes, nameEnd, bytes.length) + 1, bytes.length);
    at = skipSpace(bytes, skipValue(bytes, value, bytes.length, MAX_DEPTH), bytes.length);
    if (bytes[at] === COMMA) at = skipSpace(bytes, at + 1, bytes.length);
  }
  return false;
}
