// Renders replies as JSON bytes. Passes a provider's answer on unchanged except for the id, which
// is replaced by the caller's; writes envelopes only for answers of the service itself.

import { withErrorType } from "../../../core/faults/legacy-form.ts";
import { WIRE_ID_BYTES } from "../../../core/rpc/wire-request.ts";
import type { AnswerStream, ResultSpan } from "../../../upstream/transport.ts";
import { CLOSE, closing, renderFault } from "../../http/render-fault.ts";
import type { Evidence } from "./evidence.ts";
import type { Reply } from "./reply.ts";

/**
 * The bytes of a reply with a whole answer, as a list of pieces. `meta` is added as `svc_meta`.
 * `borrowed` = the result lies in a buffer that nobody else reads and that may be rewritten in
 * place.
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
          reply.target.legacyForms === null ? outcome.fault : withErrorType(outcome.fault),
          id,
          meta,
        ),
      ];
    case "stream":
      return [];
  }
}

/**
 * A result under the caller's id: the provider's own envelope with its id replaced, or a new
 * envelope around a bare value.
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
 * The same, rewritten within the provider's buffer if the new id fits: the bytes before the value
 * are moved up against it.
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

/** Up to this size a loop copies faster than a call to `Buffer.copy`. */
export const NEAR_BYTES = 48;

export function isAscii(text: string): boolean {
  for (let at = 0; at < text.length; at++) if (text.charCodeAt(at) > 0x7f) return false;
  return true;
}

/**
 * What precedes the result value in a streamed answer: the provider's own bytes with the id
 * replaced; null = the head must be written anew.
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
