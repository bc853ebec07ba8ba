// Replies as JSON bytes. Results and provider errors are passed on as they came; only the envelope around them is written here.
import type { Evidence } from "../../core/evidence.ts";
import { type Fault, faultError } from "../../core/fault.ts";
import { withErrorType } from "../../core/old-form.ts";
import type { Reply } from "./exchange.ts";

/** The bytes of a reply that is here in one piece, as a chain of pieces; `meta` is added as `svc_meta`. */
export function renderReply(reply: Reply, meta: Evidence | null): readonly Buffer[] {
  const { outcome } = reply;
  const id = reply.id ?? "null";
  switch (outcome.kind) {
    case "result": {
      const { body, start, end } = outcome;
      if (meta === null && reply.wireId === id) return [body];
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

/** What closes an envelope. */
export function closing(meta: Evidence | null): Buffer {
  return meta === null ? CLOSE : Buffer.from(`,"svc_meta":${JSON.stringify(meta)}}`);
}

const CLOSE = Buffer.from("}");
