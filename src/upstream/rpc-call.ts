// One JSON-RPC call to one provider outside of routing, for probes and for checks of providers that
// users add. Not counted among callers' requests.
import type { Provider } from "../core/provider/profile.ts";
import { type Failure, plainFailure } from "../core/rpc/failure.ts";
import { writeRequest } from "../core/rpc/wire-request.ts";
import type { TimerWheel } from "./timer-wheel.ts";
import type { AnswerListener, Upstream } from "./transport.ts";

/** A call and the provider that it goes to. */
export interface RpcCall {
  readonly upstream: Pick<Upstream, "send">;
  readonly provider: Provider;
  readonly method: string;
  /** The JSON array of parameters. */
  readonly params: string;
  readonly timeoutMs: number;
  /** It only tests whether the provider is reachable. */
  readonly isProbe?: true;
}

/** Receives the raw JSON of the result, or the reason why there is none. */
export interface RpcCallListener {
  result(result: Buffer): void;
  failed(failure: Failure): void;
}

/** Sends the call. The returned function cancels it; `caller` hears nothing after that. */
export function rpcCall(
  timerWheel: TimerWheel,
  { upstream, provider, method, params, timeoutMs, isProbe }: RpcCall,
  caller: RpcCallListener,
): () => void {
  const fail = (failure: Failure): void => {
    timer.clear();
    caller.failed(failure);
  };
  const listener: AnswerListener = {
    result(body, { start, end }) {
      timer.clear();
      caller.result(body.subarray(start, end));
    },
    stream(stream) {
      stream.cut();
      fail(plainFailure("body", "the answer is too long"));
    },
    broken() {},
    failed: fail,
  };
  // If this process was blocked, the answer may have arrived without having been read: wait one
  // more turn.
  let timer = timerWheel.set(timeoutMs, () => {
    timer = timerWheel.set(0, expire);
  });
  const expire = (): void => {
    const { sent, queued } = dispatch;
    dispatch.cancel();
    const failure = plainFailure(sent ? "timeout" : "unsent", "no answer in time");
    fail(!sent && queued === true ? { ...failure, crowded: true } : failure);
  };
  const dispatch = upstream.send(
    {
      provider,
      methodName: method,
      ...writeRequest(method, Buffer.from(params)),
      mayStream: false,
      ...(isProbe === undefined ? {} : { isProbe }),
    },
    listener,
  );
  return () => {
    timer.clear();
    dispatch.cancel();
  };
}
