// A block that does not exist yet is `null` at once: no provider is asked for it.
import { SHARED_SOURCE } from "../../../core/routing/answer-source.ts";
import { resultOf } from "../answer.ts";
import { NOTHING_SENT, type PolicyLayer } from "../stage.ts";

/** The layer of blocks by number. */
export function futureBlock(): PolicyLayer {
  return {
    appliesTo: (policy) => policy.blockByNumber,
    layer: (next) => (job, listener) => {
      const { tracker, call, pin, avoid, upstreams } = job.request;
      const isUnrestricted = pin === null && avoid === null && upstreams === undefined;
      if (
        !isUnrestricted ||
        call.block.kind !== "number" ||
        !tracker.isFutureBlock(call.block.number)
      )
        return next(job, listener);
      listener.ended({ outcome: resultOf("null"), source: SHARED_SOURCE });
      return OVER;
    },
  };
}

const OVER = { cancel: () => NOTHING_SENT } as const;
