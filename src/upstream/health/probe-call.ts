// One call of a probe whose result says a number. Records nothing.
import type { Channel } from "../../core/provider/attempt.ts";
import type { Transport } from "../../core/provider/profile.ts";
import { classify } from "../../core/provider-errors/classify.ts";
import { type Failure, plainFailure } from "../../core/rpc/failure.ts";
import { methodOf } from "../../core/rpc/method.ts";
import type { Runtime } from "../../runtime.ts";
import { rpcCall } from "../rpc-call.ts";
import type { TimerWheel } from "../timer-wheel.ts";
import type { Upstream } from "../transport.ts";

/** Dependencies of such calls. */
export interface ProbeCallParts {
  readonly runtime: Runtime;
  readonly timerWheel: TimerWheel;
  readonly upstreams: Readonly<Partial<Record<Transport, Pick<Upstream, "send">>>>;
}

/** A call whose result says a number. */
export interface NumberCall {
  readonly method: string;
  readonly params: string;
  readonly timeoutMs: number;
  /** The number in a result; null = there is none. */
  readonly read: (result: Buffer) => number | null;
}

/** Why there is no number. */
export interface FailedProbeCall {
  readonly kind: "failed";
  /** The category of the provider's error. */
  readonly category: string;
  readonly failure: Failure;
}

/** Sends the call; `done` is called once. Returns the function that cancels. */
export function callNumber(
  parts: ProbeCallParts,
  { provider, transport }: Channel,
  { method, params, timeoutMs, read }: NumberCall,
  done: (result: number | FailedProbeCall) => void,
): () => void {
  const upstream = parts.upstreams[transport];
  if (upstream === undefined) return () => {};
  const failed = (failure: Failure): void => {
    const verdict = classify(failure, methodOf(method), {
      methodName: method,
      rules: provider.errorRules,
      wallMs: parts.runtime.wallMs(),
    });
    done({ kind: "failed", category: verdict.category, failure });
  };
  return rpcCall(
    parts.timerWheel,
    { upstream, provider, method, params, timeoutMs, isProbe: true },
    {
      result(result) {
        const number = read(result);
        if (number === null) failed(plainFailure("body", "not a number"));
        else done(number);
      },
      failed,
    },
  );
}
