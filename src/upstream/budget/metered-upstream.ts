// Counts everything that is sent to providers with limits: calls of callers, probes, checks and
// subscriptions. What finds no room is not sent; a request of the service itself waits for room.
import { plainFailure } from "../../core/rpc/failure.ts";
import type { Runtime } from "../../runtime.ts";
import type {
  AnswerListener,
  AnswerStream,
  BorrowedBuffer,
  Dispatch,
  OutgoingRequest,
  ResultSpan,
  SentBatch,
  Sockets,
  StreamSink,
  Upstream,
} from "../transport.ts";
import type { ProviderBudget } from "./provider-budget.ts";
import type { ProviderBudgets } from "./provider-budgets.ts";

/** What metering works with. */
export interface MeterParts {
  readonly runtime: Pick<Runtime, "after">;
  readonly budgets: Pick<ProviderBudgets, "find">;
}

/** Sockets that send nothing beyond the limits of providers. */
export function meteredSockets(sockets: Sockets, parts: MeterParts): Sockets {
  const { budgets, runtime } = parts;
  return {
    ...meteredUpstream(sockets, parts),
    subscribe(provider, params, listener) {
      const budget = budgets.find(provider);
      const subscribe = (): Dispatch => sockets.subscribe(provider, params, listener);
      return budget === null
        ? subscribe()
        : new DeferredRequest({ runtime, budget, methodName: SUBSCRIBE }, subscribe, () =>
            listener.refused(noRoom(), null),
          ).start();
    },
    isFree: (provider) => sockets.isFree?.(provider) ?? true,
    retain: (providers) => sockets.retain(providers),
    close: () => sockets.close(),
    keep: (provider, socketListener) => sockets.keep(provider, socketListener),
    renew: (provider) => sockets.renew(provider),
    report: (provider) => sockets.report(provider),
  };
}

const SUBSCRIBE = "eth_subscribe";

/** A transport that sends nothing beyond the limits of providers. */
export function meteredUpstream(
  upstream: Pick<Upstream, "send">,
  { budgets, runtime }: MeterParts,
): Pick<Upstream, "send"> {
  return {
    send(outgoing, listener) {
      const budget = budgets.find(outgoing.provider);
      if (budget === null) return upstream.send(outgoing, listener);
      const { methodName = "" } = outgoing;
      const send = (): Dispatch => sendCounted(upstream, budget, outgoing, listener);
      const refuse = (): void => listener.failed(noRoom(), null);
      if (outgoing.isProbe === true)
        return new DeferredRequest({ runtime, budget, methodName }, send, refuse).start();
      if (budget.take(methodName) === null) return send();
      refuse();
      return NOT_SENT;
    },
  };
}

/** Sends a request that has been counted. */
function sendCounted(
  upstream: Pick<Upstream, "send">,
  budget: ProviderBudget,
  outgoing: OutgoingRequest,
  listener: AnswerListener,
): Dispatch {
  if (!budget.countsInFlight) return upstream.send(outgoing, listener);
  return new MeteredRequest(budget, listener).send(upstream, outgoing);
}

function noRoom() {
  return { ...plainFailure("unsent", "its own limit is reached"), crowded: true } as const;
}

const NOT_SENT: Dispatch = { sent: false, queued: true, cancel() {} };

/** A request in flight at a provider whose requests in flight are bounded. */
class MeteredRequest implements AnswerListener, Dispatch {
  readonly #budget: ProviderBudget;
  readonly #listener: AnswerListener;
  #dispatch: Dispatch = NOT_SENT;
  #isOver = false;

  constructor(budget: ProviderBudget, listener: AnswerListener) {
    this.#budget = budget;
    this.#listener = listener;
  }

  get sent(): boolean {
    return this.#dispatch.sent;
  }

  get queued(): boolean {
    return this.#dispatch.queued === true;
  }

  get batch(): SentBatch | null {
    return this.#dispatch.batch ?? null;
  }

  send(upstream: Pick<Upstream, "send">, outgoing: OutgoingRequest): Dispatch {
    this.#dispatch = upstream.send(outgoing, this);
    return this;
  }

  cancel(): void {
    this.over();
    this.#dispatch.cancel();
  }

  result(body: Buffer, span: ResultSpan, pool?: BorrowedBuffer): void {
    this.over();
    this.#listener.result(body, span, pool);
  }

  stream(stream: AnswerStream, first: Buffer): void {
    this.#listener.stream(new MeteredStream(stream, this), first);
  }

  heard(): void {
    this.#listener.heard?.();
  }

  broken(message: string): void {
    this.over();
    this.#listener.broken(message);
  }

  failed(...[failure, raw]: Parameters<AnswerListener["failed"]>): void {
    this.over();
    this.#listener.failed(failure, raw);
  }

  /** It is in flight no more; once. */
  over(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#budget.release();
  }
}

/** A long answer that keeps its place among the requests in flight until it ends. */
class MeteredStream implements AnswerStream {
  readonly #stream: AnswerStream;
  readonly #request: MeteredRequest;

  constructor(stream: AnswerStream, request: MeteredRequest) {
    this.#stream = stream;
    this.#request = request;
  }

  get head(): Buffer {
    return this.#stream.head;
  }

  get idAt(): number {
    return this.#stream.idAt;
  }

  get bodyBytes(): number | null {
    return this.#stream.bodyBytes;
  }

  flow(sink: StreamSink): void {
    const request = this.#request;
    this.#stream.flow({
      data: (chunk, borrowed, hasRoom) => sink.data(chunk, borrowed, hasRoom),
      end(last, valueBytes, borrowed) {
        request.over();
        sink.end(last, valueBytes, borrowed);
      },
      broken(message, byCaller) {
        request.over();
        sink.broken(message, byCaller);
      },
    });
  }

  pause(): void {
    this.#stream.pause();
  }

  resume(): void {
    this.#stream.resume();
  }

  recycle(chunk: Buffer): void {
    this.#stream.recycle(chunk);
  }

  cut(): void {
    this.#request.over();
    this.#stream.cut();
  }
}

/** Who waits for room, and for what. */
interface Deferral {
  readonly runtime: Pick<Runtime, "after">;
  readonly budget: ProviderBudget;
  readonly methodName: string;
}

/** A request of the service itself, which waits until its provider has room. */
class DeferredRequest implements Dispatch {
  readonly #deferral: Deferral;
  readonly #send: () => Dispatch;
  readonly #refuse: () => void;
  #dispatch: Dispatch = NOT_SENT;
  #cancelWait = (): void => {};
  #waits = 0;

  constructor(deferral: Deferral, send: () => Dispatch, refuse: () => void) {
    this.#deferral = deferral;
    this.#send = send;
    this.#refuse = refuse;
  }

  get sent(): boolean {
    return this.#dispatch.sent;
  }

  get queued(): boolean {
    return this.#dispatch.queued === true;
  }

  /** Sends it, or begins to wait. */
  start(): Dispatch {
    const { budget, methodName } = this.#deferral;
    if (budget.take(methodName, true) === null) this.#dispatch = this.#send();
    else this.#wait();
    return this;
  }

  cancel(): void {
    this.#cancelWait();
    this.#dispatch.cancel();
  }

  #wait(): void {
    const { runtime, budget, methodName } = this.#deferral;
    const waitMs = budget.waitMs(methodName);
    if (waitMs > LONGEST_WAIT_MS || ++this.#waits > MAX_WAITS) {
      // Its caller does not know it yet.
      this.#cancelWait = runtime.after(0, this.#refuse);
      return;
    }
    budget.reserve();
    this.#cancelWait = runtime.after(Math.max(LEAST_WAIT_MS, waitMs), () => void this.start());
  }
}

/** A provider that has no room for longer than this is not waited for. */
const LONGEST_WAIT_MS = 2_000;
const LEAST_WAIT_MS = 2;
const MAX_WAITS = 500;
