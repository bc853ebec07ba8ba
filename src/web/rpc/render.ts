// Replies as JSON bytes. A provider's answer is passed on as it came but for the id, in whose place the caller's is put; only envelopes of our own are
// written here.
import type { Evidence } from "../../core/evidence.ts";
import { type Fault, faultError } from "../../core/fault.ts";
import { withErrorType } from "../../core/old-form.ts";
import { WIRE_ID_BYTES } from "../../core/wire-request.ts";
import type { AnswerStream } from "../../upstream/transport.ts";
import type { Reply } from "./exchange.ts";

/** The bytes of a reply that is here in one piece, as a chain of pieces; `meta` is added as `svc_meta`. */
export function renderReply(reply: Reply, meta: Evidence | null): readonly Buffer[] {
  const { outcome } = reply;
  const id = reply.id ?? "null";
  switch (outcome.kind) {
    case "result": {
      const { body, start, end, idAt } = outcome;
      if (meta === null && idAt !== null) return [body.subarray(0, idAt), Buffer.from(id), body.subarray(idAt + WIRE_ID_BYTES)];
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
