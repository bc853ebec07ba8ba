// How many calls a call over a range of blocks counts as, and into how many parts it may be cut: by
// who pays for it. Decides nothing about the parts themselves.
import { type Call, readBlockRef } from "../../../core/rpc/call.ts";
import type { Envelope } from "../../../core/rpc/envelope.ts";
import type { Span } from "../../../core/rpc/json.ts";
import type { Method } from "../../../core/rpc/method.ts";
import { isRange } from "../../../core/rpc/range-call.ts";
import { plannedParts } from "../../../upstream/engine/ranges/split-range.ts";
import type { CallGrant } from "../../payment/call-payment.ts";
import type { PipelineParts, PipelineRequest } from "./pipeline-request.ts";

/** The calls that a request counts as before it is admitted. */
export function callsOf(
  parts: PipelineParts,
  incoming: PipelineRequest,
  envelope: Envelope,
  method: Method,
): number {
  const { payment } = incoming;
  return payment.partsOf(envelope.start, () => plannedCalls(parts, incoming, envelope, method));
}

/** The calls that a request over a range of blocks comes to, as far as is known now. */
export function plannedCalls(
  parts: Pick<PipelineParts, "logs">,
  { bytes, target }: Pick<PipelineRequest, "bytes" | "target">,
  envelope: Envelope,
  method: Method,
): number {
  if (method.block?.kind !== "filter") return 1;
  const params: Span = { start: envelope.paramsStart, end: envelope.paramsEnd };
  const block = readBlockRef(bytes, params, method);
  return target.pin === null ? countOf(parts, target.tracker, { ...UNSENT, method, block }) : 1;
}

/** The calls that a call counts as. */
export function countOf(
  parts: Pick<PipelineParts, "logs">,
  tracker: PipelineRequest["target"]["tracker"],
  call: Call,
): number {
  const bounds = parts.logs();
  return bounds.split && isRange(call) ? plannedParts(tracker, call, bounds) : 1;
}

/** Whether a call is admitted anew for its parts: with the credit of a key. */
export function isCounted({ admission }: PipelineParts, { payment }: PipelineRequest): boolean {
  return admission !== null && payment.countsParts;
}

/** Most parts of a call; undefined = as the router allows. */
export function maxPartsOf(
  { admission, logs }: PipelineParts,
  grant: CallGrant,
): number | undefined {
  switch (grant.kind) {
    case "grant":
      return undefined;
    case "keyless":
      return admission === null ? undefined : logs().maxKeylessParts;
    case "voucher":
      return grant.maxParts;
  }
}

const UNSENT = { methodName: "", body: Buffer.alloc(0), idStart: 0, idEnd: 0 };
