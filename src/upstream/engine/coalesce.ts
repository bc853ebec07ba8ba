// Equal reads that are under way share one call: the first one begins it, and those that ask the
// same within a moment join it. Says which calls are equal, and bounds how many can be joined.
import type { RoutingState } from "../health/tracker.ts";
import type { Job } from "./job.ts";
import { type CoalesceParts, SharedCall } from "./shared-call.ts";
import type { PolicyLayer } from "./stage.ts";

/** Of the bytes of a request. */
const MAX_QUESTION_BYTES = 16_384;
/** Of calls that can be joined at one time, for one provider set. */
const MAX_CALLS = 1_024;

/** The layer of shared calls. */
export function coalesce({
  byAccount = () => false,
  ...parts
}: CoalesceParts & { readonly byAccount?: () => boolean }): PolicyLayer {
  const callsOf = new WeakMap<RoutingState, Map<string, SharedCall>>();
  return {
    appliesTo: (policy) => policy.coalesce,
    layer: (next) => (job, listener) => {
      const { tracker, call } = job.request;
      if (call.body.length > MAX_QUESTION_BYTES) return next(job, listener);
      const calls = callsOf.get(tracker) ?? new Map<string, SharedCall>();
      callsOf.set(tracker, calls);
      const asker = byAccount() ? `${job.request.caller.key}\n` : "";
      const key = asker + keyOf(job);
      const known = calls.get(key);
      if (known?.mayBeJoined === true) return known.join(job, listener);
      if (known === undefined && calls.size >= MAX_CALLS) return next(job, listener);
      // One that is too old or has enough followers goes on, and is joined no more.
      const begun = new SharedCall(parts, next, job);
      calls.set(key, begun);
      return begun.begin(job, listener, () => {
        if (calls.get(key) === begun) calls.delete(key);
      });
    },
  };
}

/** Equal keys are equal questions: all bytes but those of the id, and how the caller wants it. */
function keyOf({ request }: Job): string {
  const { call, strategy, transport, mayStream, room } = request;
  const { body, idStart, idEnd } = call;
  const bytesWithoutId = `${body.toString("latin1", 0, idStart)}\n${body.toString("latin1", idEnd)}`;
  return `${strategy} ${transport} ${mayStream} ${room !== undefined} ${bytesWithoutId}`;
}
