// Equal reads that are under way share one call: the first one begins it, and those that ask the
// same within a moment join it. Bounds how long a request may be to be shared.

import type { PolicyLayer } from "../stage.ts";
import { OpenCalls } from "./open-calls.ts";
import { type CoalesceParts, SharedCall } from "./shared-call.ts";

/** Of the bytes of a request. */
const MAX_QUESTION_BYTES = 16_384;

/** The layer of shared calls. */
export function coalesce({
  byAccount = () => false,
  ...parts
}: CoalesceParts & { readonly byAccount?: () => boolean }): PolicyLayer {
  const calls = new OpenCalls(byAccount);
  return {
    appliesTo: (policy) => policy.coalesce,
    layer: (next) => (job, listener) => {
      if (job.request.call.body.length > MAX_QUESTION_BYTES) return next(job, listener);
      const slot = calls.slotOf(job);
      if (slot === null) return next(job, listener);
      const known = calls.at(slot);
      if (known?.mayBeJoined === true) return known.join(job, listener);
      // One that is too old or has enough followers goes on, and is joined no more.
      const begun = new SharedCall(parts, next, job);
      calls.put(slot, begun);
      return begun.begin(job, listener, () => calls.remove(slot, begun));
    },
  };
}
