// One JSON-RPC call to one provider outside of routing, for probes and for checks of providers that
// users add. Not counted among callers' requests.
import type { Channel, Verdict } from "../core/provider/attempt.ts";
import type { Transport } from "../core/provider/profile.ts";
import { classify } from "../core/provider-errors/classify.ts";
import { type Failure, lateFailure, plainFailure } from "../core/rpc/failure.ts";
import { methodOf } from "../core/rpc/method.ts";
import { writeRequest } from "../core/rpc/wire-request.ts";
import type { Runtime } from "../runtime.ts";
import type { TimerWheel } from "./timer-wheel.ts";
import type { AnswerListener, Upstream } from "./transport.ts";

/** A call and the provider that it goes to. */
export interface RpcCall extends Omit<ProviderCall, "transport"> {
  readonly upstream: Pick<Upstream, "send">;
  readonly timeoutMs: number;
  /** It only tests whether the provider is reachable. */
  readonly isProbe?: true;
}

/** A call to one provider over one transport. */
export interface ProviderCall extends Channel {
  readonly method: string;
  /** The JSON array of parameters. */
  readonly params: string;
}

/** What calls are sent with. */
export interface ProviderCallParts {
  readonly runtime: Runtime;
  readonly timerWheel: TimerWheel;
  readonly upstreams: Readonly<Record<Transport, Pick<Upstream, "send">>>;
}

/** Sends a call, and resolves with the raw JSON of the result or the reason why there is none. */
export function callProvider(
  { timerWheel, upstreams }: ProviderCallParts,
  { transport, ...call }: ProviderCall,
  timeoutMs: number,
): Promise<Buffer | Failure> {
  return new Promise((resolve) => {
    rpcCall(
      timerWheel,
      { ...call, upstream: upstreams[transport], timeoutMs },
      // The buffer is lent for this call back only.
      { result: (result) => resolve(Buffer.from(result)), failed: resolve },
    );
  });
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
    fail(lateFailure(sent, queued));
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

/** What a failure of such a call says of its provider. */
export function verdictOn(
  failure: Failure,
  { provider, method }: Pick<RpcCall, "provider" | "method">,
  { wallMs }: Pick<Runtime, "wallMs">,
): Verdict {
  const context = { methodName: method, rules: provider.errorRules, wallMs: wallMs() };
  return classify(failure, methodOf(method), context);
}

/** The number in a result that is a hex quantity; null = it is none. */
export function readQuantity(result: Buffer): number | null {
  const text = result.toString("latin1", 0, MAX_QUANTITY_CHARS);
  return /^"0x[0-9a-fA-F]{1,13}"$/.test(text) ? Number(text.slice(1, -1)) : null;
}

const MAX_QUANTITY_CHARS = 20;
