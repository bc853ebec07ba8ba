// Replies as JSON bytes. A provider's answer is passed on as it came but for the id, in whose place
// the caller's is put; only envelopes of our own are written here.

import { withErrorType } from "../../core/faults/legacy-form.ts";
import type { Evidence } from "../../core/routing/evidence.ts";
import { WIRE_ID_BYTES } from "../../core/rpc/wire-request.ts";
import type { AnswerStream, ResultSpan } from "../../upstream/transport.ts";
import { CLOSE, closing, renderFault } from "../http/render-fault.ts";
import type { Reply } from "./reply.ts";

/**
 * The bytes of a reply that is here in one piece, as a chain of pieces; `meta` is added as
 * `svc_meta`. `borrowed`: a result is in memory that nobody else reads, and may be rewritten where
 * it lies.
 */
export function renderReply(
  reply: Reply,
  meta: Evidence | null,
  borrowed = false,
): readonly Buffer[] {
  const { outcome } = reply;
  const id = reply.id ?? "null";
  switch (outcome.kind) {
    case "result": {
      if (meta === null)
        return borrowed
          ? rewriteResult(outcome.body, outcome, id)
          : renderResult(outcome.body, outcome, id);
      const { body, start, end } = outcome;
      return [
        Buffer.from(`{"jsonrpc":"2.0","id":${id},"result":`),
        body.subarray(start, end),
        closing(meta),
      ];
    }
    case "error":
      return [Buffer.from(`{"jsonrpc":"2.0","id":${id},"error":`), outcome.raw, closing(meta)];
    case "fault":
      return [
        renderFault(
          reply.target.old === null ? outcome.fault : withErrorType(outcome.fault),
          id,
          meta,
        ),
      ];
    case "stream":
      return [];
  }
}

/**
 * A result under the caller's id: the provider's own bytes but for the id, or an envelope of ours
 * around a value that has none.
 */
export function renderResult(
  body: Buffer,
  { start, end, idAt }: ResultSpan,
  id: string,
): readonly Buffer[] {
  if (idAt === null)
    return [Buffer.from(`{"jsonrpc":"2.0","id":${id},"result":`), body.subarray(start, end), CLOSE];
  return [body.subarray(0, idAt), Buffer.from(id), body.subarray(idAt + WIRE_ID_BYTES)];
}

/**
 * The same, in the memory of the provider's answer where the id allows it: what stands before it
 * moves up to the end of its place.
 */
export function rewriteResult(body: Buffer, span: ResultSpan, id: string): readonly Buffer[] {
  const { idAt } = span;
  if (idAt === null || idAt > NEAR_BYTES || id.length > WIRE_ID_BYTES || !isAscii(id))
    return renderResult(body, span, id);
  const start = WIRE_ID_BYTES - id.length;
  for (let at = idAt - 1; at >= 0; at--) body[at + start] = body[at] ?? 0;
  for (let at = 0; at < id.length; at++) body[idAt + start + at] = id.charCodeAt(at);
  return [start === 0 ? body : body.subarray(start)];
}

/** Up to here bytes are moved one by one: a call of the platform costs more. */
const NEAR_BYTES = 48;

function isAscii(text: string): boolean {
  for (let at = 0; at < text.length; at++) if (text.charCodeAt(at) > 0x7f) return false;
  return true;
}

/**
 * What stands before the result value of an answer that is passed on while it arrives: the
 * provider's own bytes but for the id; null = written anew.
 */
export function renderStreamHead(
  id: Buffer,
  source: Pick<AnswerStream, "head" | "idAt"> | null,
): Buffer {
  if (source === null) return Buffer.concat([BEFORE_ID, id, BEFORE_RESULT]);
  const { head, idAt } = source;
  return Buffer.concat([head.subarray(0, idAt), id, head.subarray(idAt + WIRE_ID_BYTES)]);
}

const BEFORE_ID = Buffer.from('{"jsonrpc":"2.0","id":');
const BEFORE_RESULT = Buffer.from(',"result":');
