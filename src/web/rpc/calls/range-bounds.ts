// How many calls a call over a range of blocks counts as: its planned parts. Decides nothing about
// the parts themselves.
import { type Call, readBlockRef } from "../../../core/rpc/call.ts";
import type { Envelope } from "../../../core/rpc/envelope.ts";
import type { Method } from "../../../core/rpc/method.ts";
import { isRange } from "../../../core/rpc/range-call.ts";
import { plannedParts } from "../../../upstream/engine/ranges/split-range.ts";
import type { CallerMessage, PipelineParts } from "./pipeline-request.ts";

/** The calls that a request over a range of blocks comes to, as far as is known now. */
export function plannedCalls(
  parts: Pick<PipelineParts, "logs">,
  { bytes, target }: Pick<CallerMessage, "bytes" | "target">,
  { paramsStart: start, paramsEnd: end }: Envelope,
  method: Method,
): number {
  if (method.block?.kind !== "filter" || target.pin !== null) return 1;
  const block = readBlockRef(bytes, { start, end }, method);
  return countOf(parts, target.tracker, { ...UNSENT, method, block });
}

/** The calls that a call counts as. */
export function countOf(
  { logs }: Pick<PipelineParts, "logs">,
  tracker: CallerMessage["target"]["tracker"],
  call: Call,
): number {
  const bounds = logs();
  return bounds.split && isRange(call) ? plannedParts(tracker, call, bounds) : 1;
}

const UNSENT = { methodName: "", body: Buffer.alloc(0), idStart: 0, idEnd: 0 };
