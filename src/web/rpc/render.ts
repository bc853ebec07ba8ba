// Replies as JSON bytes. A provider's answer is passed on as it came but for the id, in whose place the caller's is put; only envelopes of our own are
// written here.
import type { Evidence } from "../../core/evidence.ts";
import { type Fault, faultError } from "../../core/fault.ts";
import { withErrorType } from "../../core/old-form.ts";
import { WIRE_ID_BYTES } from "../../core/wire-request.ts";
import type { AnswerStream, ResultSpan } from "../../upstream/transport.ts";
import type { Reply } from "./exchange.ts";

/** The bytes of a reply that is here in one piece, as a chain of pieces; `meta` is added as `svc_meta`. */
export function renderReply(reply: Reply, meta: Evidence | null): readonly Buffer[] {
  const { outcome } = reply;
  const id = reply.id ?? "null";
  switch (outcome.kind) {
    case "result": {
      if (meta === null) return renderResult(outcome.body, outcome, id);
      const { body, start, end } = outcome;
      return [Buffer.from(`{"jsonrpc":"2.0","id":${id},"result":`), body.subarray(start, end), closing(meta)];
    }
    case "error":
      return [Buffer.from(`{"jsonrpc":"2.0","id":${id},"error":`), outcome.raw, closing(meta)];
    case "fault":
      return [renderFault(reply.address.old === null ? outcome.fault : withErrorType(outcome.fault), id, meta)];
    case "stream":
      return [];
  }
}

/** A result under the caller's id: the provider's own bytes but for the id, or an envelope of ours around a value that has none. */
export function renderResult(body: Buffer, { start, end, idAt }: ResultSpan, id: string): readonly Buffer[] {
  if (idAt === null) return [Buffer.from(`{"jsonrpc":"2.0","id":${id},"result":`), body.subarray(start, end), CLOSE];
  const rest = body.subarray(idAt + WIRE_ID_BYTES);
  // A short answer in one piece costs its writer less than three.
  if (body.length <= ONE_PIECE_BYTES && idAt <= NEAR_BYTES && id.length <= NEAR_BYTES && isAscii(id)) return [inOnePiece(body, idAt, id, rest)];
  return [body.subarray(0, idAt), Buffer.from(id), rest];
}

const ONE_PIECE_BYTES = 1_024;
/** Up to here bytes are set one by one: a call of the platform costs more. */
const NEAR_BYTES = 48;

function inOnePiece(body: Buffer, idAt: number, id: string, rest: Buffer): Buffer {
  const bytes = Buffer.allocUnsafe(idAt + id.length + rest.length);
  for (let at = 0; at < idAt; at++) bytes[at] = body[at] ?? 0;
  for (let at = 0; at < id.length; at++) bytes[idAt + at] = id.charCodeAt(at);
  bytes.set(rest, idAt + id.length);
  return bytes;
}

function isAscii(text: string): boolean {
  for (let at = 0; at < text.length; at++) if (text.charCodeAt(at) > 0x7f) return false;
  return true;
}

/** A refusal as a JSON-RPC error object. */
export function renderFault(it: Fault, id: string, meta: Evidence | null = null): Buffer {
  return Buffer.from(`{"jsonrpc":"2.0","id":${id},"error":${faultError(it)}${closing(meta).toString()}`);
}

/** What stands before the result value of an answer that is passed on while it arrives: the provider's own bytes but for the id; null = written anew. */
export function renderStreamHead(id: Buffer, source: Pick<AnswerStream, "head" | "idAt"> | null): Buffer {
  if (source === null) return Buffer.concat([BEFORE_ID, id, BEFORE_RESULT]);
  const { head, idAt } = source;
  return Buffer.concat([head.subarray(0, idAt), id, head.subarray(idAt + WIRE_ID_BYTES)]);
}

/** What closes an envelope. */
export function closing(meta: Evidence | null): Buffer {
  return meta === null ? CLOSE : Buffer.from(`,"svc_meta":${JSON.stringify(meta)}}`);
}

const BEFORE_ID = Buffer.from('{"jsonrpc":"2.0","id":');
const BEFORE_RESULT = Buffer.from(',"result":');
const CLOSE = Buffer.from("}");
