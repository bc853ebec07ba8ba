// A JSON-RPC request as sent to a provider: its bytes and the position of its id. Every dispatch
// has a new id, so that no answer can be taken for another one. Knows neither where ids come from
// nor how bytes are sent.

import { CLOSE_ARRAY, COMMA, OPEN_ARRAY, type Span } from "./json.ts";

/**
 * One request. `body` is a JSON object; the bytes from `idStart` to `idEnd` are replaced by a new
 * id each time it is sent.
 */
export interface WireRequest {
  readonly body: Buffer;
  readonly idStart: number;
  readonly idEnd: number;
}

/** A request that was written here. */
export interface WrittenRequest extends WireRequest {
  /** Where its parameters lie in `body`. */
  readonly params: Span;
}

/**
 * Length of every id on the wire: fixed, so that the caller's id can be put in its place without
 * parsing the answer again.
 */
export const WIRE_ID_BYTES = 16;

/** Builds a request in minimal form; `params` as the caller wrote them, null = `[]`. */
export function writeRequest(method: string, params: Buffer | null): WrittenRequest {
  const head = Buffer.from(`${BEFORE_ID}${NO_ID},"method":${JSON.stringify(method)},"params":`);
  const written = params ?? EMPTY_PARAMS;
  return {
    body: Buffer.concat([head, written, CLOSE]),
    params: { start: head.length, end: head.length + written.length },
    idStart: BEFORE_ID.length,
    idEnd: BEFORE_ID.length + NO_ID.length,
  };
}

/** The bytes to send under this id. */
export function withWireId({ body, idStart, idEnd }: WireRequest, wireId: string): Buffer {
  const bytes = Buffer.allocUnsafe(body.length - (idEnd - idStart) + wireId.length);
  body.copy(bytes, 0, 0, idStart);
  bytes.write(wireId, idStart, "latin1");
  body.copy(bytes, idStart + wireId.length, idEnd);
  return bytes;
}

/** The bytes of several requests as one batch, each under its id. */
export function writeBatch(requests: readonly WireRequest[], wireIds: readonly string[]): Buffer {
  let length = requests.length + 1;
  for (const { body, idStart, idEnd } of requests)
    length += body.length - (idEnd - idStart) + WIRE_ID_BYTES;
  const bytes = Buffer.allocUnsafe(length);
  let at = 0;
  for (const [index, { body, idStart, idEnd }] of requests.entries()) {
    bytes[at++] = index === 0 ? OPEN_ARRAY : COMMA;
    at += body.copy(bytes, at, 0, idStart);
    at += bytes.write(wireIds[index] ?? "", at, "latin1");
    at += body.copy(bytes, at, idEnd);
  }
  bytes[at] = CLOSE_ARRAY;
  return bytes;
}

const BEFORE_ID = '{"jsonrpc":"2.0","id":';
/** Placeholder for the id. */
const NO_ID = "0";
const EMPTY_PARAMS = Buffer.from("[]");
const CLOSE = Buffer.from("}");
