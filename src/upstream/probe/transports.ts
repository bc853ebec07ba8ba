// Whether an endpoint takes batches, and what it offers over WebSocket.
import type { Provider } from "../../core/provider/profile.ts";
import { writeRequest } from "../../core/rpc/wire-request.ts";
import type { Runtime } from "../../runtime.ts";
import { HTTP_LIMITS, HttpUpstream } from "../http/http-upstream.ts";
import type { OnHandshake } from "../http/tls-client.ts";
import { MemoryBudget } from "../memory-budget.ts";
import { SOCKET_LIMITS } from "../socket/socket-limits.ts";
import { createSockets } from "../socket/sockets.ts";
import { SsrfGuard } from "../ssrf-guard.ts";
import { TimerWheel } from "../timer-wheel.ts";
import type { BatchUpstream, Dispatch, Sockets } from "../transport.ts";

const MAX_ANSWER_BYTES = 8_388_608;
const CONNECTIONS = 2;

/** Connections of a probe, apart from those of a service. */
export class ProbeTransports {
  readonly runtime: Runtime;
  readonly timerWheel: TimerWheel;
  readonly upstreams: { readonly http: HttpUpstream; readonly ws: Sockets };
  #batches: BatchUpstream | null = null;

  /** `onHandshake` hears of the certificates of hosts. */
  constructor(runtime: Runtime, onHandshake: OnHandshake = () => {}) {
    this.runtime = runtime;
    this.timerWheel = new TimerWheel(runtime);
    const { timerWheel } = this;
    const limits = {
      ...HTTP_LIMITS,
      connectionsPerOrigin: CONNECTIONS,
      maxWholeBytes: MAX_ANSWER_BYTES,
      maxAnswerBytes: MAX_ANSWER_BYTES,
    };
    const http = new HttpUpstream(runtime, limits, new SsrfGuard(), {
      budget: MemoryBudget.unbounded(),
      timerWheel,
      onHandshake,
      limited: (direct) => {
        this.#batches = direct;
        return direct;
      },
    });
    const ws = createSockets({
      runtime,
      timerWheel,
      limits: { ...SOCKET_LIMITS, maxFrameBytes: MAX_ANSWER_BYTES, closeTimeoutMs: 250 },
    });
    this.upstreams = { http, ws };
  }

  /** Whether two calls in one request are both answered. */
  takesBatch(provider: Provider, timeoutMs: number): Promise<boolean> {
    const methods = ["eth_chainId", "eth_blockNumber"];
    const requests = methods.map((method) => ({
      provider,
      methodName: method,
      ...writeRequest(method, Buffer.from("[]")),
      mayStream: false,
    }));
    return inTime(this.timerWheel, timeoutMs, (resolve) => {
      const answered = new Set<number>();
      return this.#batches?.sendBatch(requests, {
        isWaiting: true,
        isOpen: (place) => !answered.has(place),
        isAnswered: (place) => answered.has(place),
        heard() {},
        result: (place) => void answered.add(place),
        failed() {},
        tooLong() {},
        over: ({ kind }) => resolve(kind === "answered" && answered.size === methods.length),
      });
    });
  }

  /** Whether a subscription of this kind is acknowledged; it ends at once. */
  takesSubscription(provider: Provider, kind: string, timeoutMs: number): Promise<boolean> {
    return inTime(this.timerWheel, timeoutMs, (resolve) =>
      this.upstreams.ws.subscribe(provider, JSON.stringify(kind === "logs" ? [kind, {}] : [kind]), {
        started: () => resolve(true),
        refused: () => resolve(false),
        event() {},
        lost: () => resolve(false),
      }),
    );
  }

  async close(): Promise<void> {
    await Promise.all([this.upstreams.http.close(), this.upstreams.ws.close()]);
  }
}

/** What `start` resolves with, else false when the time is over; then it is cancelled. */
function inTime(
  timerWheel: TimerWheel,
  timeoutMs: number,
  start: (resolve: (value: boolean) => void) => Dispatch | undefined,
): Promise<boolean> {
  return new Promise((resolve) => {
    const end = (value: boolean): void => {
      timer.clear();
      resolve(value);
      queueMicrotask(() => dispatch?.cancel());
    };
    const timer = timerWheel.set(timeoutMs, () => end(false));
    const dispatch = start(end);
  });
}
