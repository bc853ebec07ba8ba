// Admission of a valid request: asks its payment for a grant, then serves it, refuses it, or
// postpones it within its batch. A grant may move the call to another profile or strategy.
import type { Fault } from "../../../core/faults/rpc-fault.ts";
import type { Refusal } from "../../../hosted/admission/admission.ts";
import type { Grant } from "../../../hosted/admission/grant.ts";
import type { TokenWait } from "../pacer.ts";
import type { Target } from "../target.ts";
import type {
  Cancel,
  GrantedRequest,
  PipelineParts,
  PipelineRequest,
  ReplyCallback,
  ValidRequest,
} from "./pipeline-request.ts";
import { refusal, settled, unserved } from "./settlement.ts";

/** Serves an admitted request. Returns a function that cancels it, or null if it has ended. */
export type Serve = (
  parts: PipelineParts,
  incoming: PipelineRequest,
  request: GrantedRequest,
  done: ReplyCallback,
) => Cancel | null;

/**
 * Admits and serves a request. Waits where credit is being refilled; `waits`: how often it has
 * waited.
 */
export function admit(
  request: ValidRequest,
  serve: Serve,
  done: ReplyCallback,
  waits = 0,
): Cancel | null {
  const { parts, incoming, envelope, method, calls } = request;
  const { target } = incoming;
  const admitted = incoming.payment.admit(
    { profile: target.named, method, strategy: target.strategy, parts: calls },
    waits,
  );
  switch (admitted.kind) {
    case "wait": {
      let cancel: Cancel | null = null;
      const stop = admitted.refilled(() => {
        cancel = admit(request, serve, done, waits + 1);
      });
      return (why) => {
        stop();
        cancel?.(why);
      };
    }
    case "refusal": {
      if (incoming.postpone !== null && isPostponed(admitted, incoming.postpone)) return null;
      parts.observer.refused(admitted.fault.code);
      done({ ...refusal(incoming, envelope, admitted.fault), billing: admitted });
      return null;
    }
    case "grant":
      return serveAt(request, admitted, serve, done);
    case "keyless":
    case "voucher":
      return serve(parts, incoming, { envelope, method, grant: admitted }, done);
  }
}

/** Whether a call over its rate limit waits for a token instead of being refused. */
function isPostponed(
  { limit, fault: { retryAfterMs } }: Refusal,
  postpone: (token: TokenWait) => boolean,
): boolean {
  return limit !== null && postpone({ waitMs: retryAfterMs ?? 0, tokenMs: limit.tokenMs });
}

/**
 * Serves a request in the profile of its grant; first loads a Custom profile that is not in memory.
 */
function serveAt(
  { parts, incoming, envelope, method }: ValidRequest,
  grant: Grant,
  serve: Serve,
  done: ReplyCallback,
): Cancel | null {
  const request: GrantedRequest = { envelope, method, grant };
  const serveNow = (target: Target | Fault): Cancel | null => {
    if (target.kind === "target")
      return serve(
        parts,
        target === incoming.target ? incoming : { ...incoming, target },
        request,
        done,
      );
    parts.observer.refused(target.code);
    done(settled(incoming, request, unserved(target)));
    return null;
  };
  const served = servedAt(parts, incoming.target, grant);
  if (served.kind === "target" || served.code !== "not_prepared") return serveNow(served);
  let isPreparing = true;
  let cancel: Cancel | null = null;
  const stop = grant.prepare((why) => {
    isPreparing = false;
    cancel = serveNow(why ?? servedAt(parts, incoming.target, grant));
  });
  return (why) => {
    if (!isPreparing) return void cancel?.(why);
    stop();
    grant.release();
  };
}

/** The target under the grant, which may name another profile or strategy. */
function servedAt(
  { resolver }: PipelineParts,
  target: Target,
  { service, strategy, keyContext }: Grant,
): Target | Fault {
  const isThere =
    service.profile === target.named &&
    (service.access === "custom") === (target.profile.owner !== null);
  const served = isThere
    ? target
    : resolver.resolve({ ...target.input, within: service.profile }, keyContext.account);
  return served.kind === "fault" || served.strategy === strategy ? served : { ...served, strategy };
}
