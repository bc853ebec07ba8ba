// One call to one provider for an operator: the answer, its time, or the error without secrets.
// Within the provider's limits; changes no health.
import type { Channel } from "../core/provider/attempt.ts";
import type { Provider, Transport } from "../core/provider/profile.ts";
import { redact } from "../core/redact/redact.ts";
import type { Failure } from "../core/rpc/failure.ts";
import type { Runtime } from "../runtime.ts";
import { repeatsSecret } from "./engine/refusal.ts";
import { rpcCall, verdictOn } from "./rpc-call.ts";
import type { TimerWheel } from "./timer-wheel.ts";
import type { Upstream } from "./transport.ts";

/** What calls are sent with. */
export interface QueryParts {
  readonly runtime: Runtime;
  readonly timerWheel: TimerWheel;
  readonly upstreams: Readonly<Record<Transport, Pick<Upstream, "send">>>;
}

/** A call to one provider. */
export interface SingleQuery extends Channel {
  readonly method: string;
  /** The JSON array of parameters. */
  readonly params: string;
}

/** An error of a provider as an operator sees it. */
export interface ShownError {
  readonly category: string;
  readonly code: number | null;
  readonly http_status: number | null;
  /** Without secrets. */
  readonly message: string;
}

/** What came of a call. */
export type QueryResult =
  | { readonly kind: "result"; readonly result: Buffer; readonly latencyMs: number }
  | { readonly kind: "error"; readonly error: ShownError; readonly latencyMs: number };

const TIMEOUT_MS = 10_000;
const MAX_MESSAGE_CHARS = 500;

/** Sends a call; always resolves. */
export function queryProvider(parts: QueryParts, query: SingleQuery): Promise<QueryResult> {
  const { runtime, timerWheel, upstreams } = parts;
  const { provider, transport, method, params } = query;
  const startedAtMs = runtime.now();
  const call = { upstream: upstreams[transport], provider, method, params, timeoutMs: TIMEOUT_MS };
  return new Promise((resolve) => {
    const latencyMs = (): number => Math.round((runtime.now() - startedAtMs) * 100) / 100;
    rpcCall(timerWheel, call, {
      // The buffer is lent for this call back only.
      result: (result) =>
        resolve({ kind: "result", result: Buffer.from(result), latencyMs: latencyMs() }),
      failed: (failure) =>
        resolve({
          kind: "error",
          error: shownError(runtime, query, failure),
          latencyMs: latencyMs(),
        }),
    });
  });
}

function shownError(runtime: Runtime, query: SingleQuery, failure: Failure): ShownError {
  const { code, httpStatus, message } = failure;
  return {
    category: verdictOn(failure, query, runtime).category,
    code,
    http_status: httpStatus === 0 ? null : httpStatus,
    message: shownMessage(query.provider, message),
  };
}

function shownMessage(provider: Provider, message: string): string {
  const short = message.slice(0, MAX_MESSAGE_CHARS).toWellFormed();
  return repeatsSecret(provider, message) ? HIDDEN : redact(short);
}

const HIDDEN = "the message repeats a secret of the provider's address and is not shown";
