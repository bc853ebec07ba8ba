// One provider as the source of one subscription: chosen by the router as for any call, subscribed,
// and queried for missed blocks. Judges no events.
import { fault } from "../../core/faults/rpc-fault.ts";
import type { Counting } from "../../core/provider/attempt.ts";
import type { Consistency, Provider } from "../../core/provider/profile.ts";
import { providerOf } from "../../core/routing/answer-source.ts";
import type { Strategy } from "../../core/routing/strategy.ts";
import type { Subscription } from "../../core/stream/subscription.ts";
import type { Runtime } from "../../runtime.ts";
import type { Outcome } from "../engine/answer.ts";
import type { Upstreams } from "../engine/call-context.ts";
import type { RoutedCall, Router } from "../engine/router.ts";
import type { Tracker } from "../health/tracker.ts";
import type { Shares } from "../shares.ts";
import type { TimerWheel } from "../timer-wheel.ts";
import type { AnswerListener, Dispatch, Sockets } from "../transport.ts";
import { OpenQueries, routeServiceCall } from "./service-call.ts";

/** What streams work with. */
export interface StreamParts {
  readonly runtime: Runtime;
  readonly timerWheel: TimerWheel;
  readonly router: Pick<Router, "route" | "reaches">;
  /** Those of this worker, or shared with others. */
  readonly sockets: Pick<Sockets, "subscribe" | "report">;
  /** Which view callers get of sets that say nothing of it; absent = `off`. */
  readonly consistency?: (() => Consistency) | undefined;
  /** Divides the budget of checks between workers; absent = this process is the whole service. */
  readonly shares?: Shares | undefined;
  /** Absent = no log. */
  readonly log?: StreamLog | undefined;
}

/** Receives log lines. */
export interface StreamLog {
  warn(facts: Readonly<Record<string, unknown>>, message: string): void;
}

/** The subscription and the constraints on its provider. */
export interface SourceRequest {
  readonly tracker: Tracker;
  readonly subscription: Subscription;
  readonly strategy: Strategy;
  readonly pin: Provider | null;
  /** Ids of excluded providers. */
  readonly avoid: ReadonlySet<string>;
  /** What its outcome counts for. */
  readonly counts: Counting;
  readonly deadlineMs: number;
}

/**
 * Hears a source: `opened` once, events from the moment it is subscribed (possibly before
 * `opened`), `lost` at most once after `opened`.
 */
export interface SourceEvents {
  opened(opened: SourceOpening): void;
  event(raw: Buffer): void;
  /** A head of the same provider, if the subscription itself is not to heads. */
  head(raw: Buffer): void;
  lost(): void;
}

/** A provider that serves a subscription. */
export interface Source {
  readonly provider: Provider;
  /** False = its heads are polled, and the logs of each block must be queried. */
  readonly pushesLogs: boolean;
  /**
   * Queries this provider. Resolves with the raw JSON of the result, or null if there is none;
   * never after `close`.
   */
  query(method: string, params: string): Promise<Buffer | null>;
  /** Continues with the same provider as it is configured now. */
  follow(tracker: Tracker, provider: Provider): void;
  /** Closes the source; no event follows. */
  close(): void;
}

/** A source, or the reason why there is none. */
export type SourceOpening =
  | { readonly kind: "open"; readonly source: Source; readonly route: RoutedCall }
  /** `lacking`: providers that were subscribed and were lost or pushed no heads. */
  | {
      readonly kind: "refused";
      readonly outcome: Outcome;
      readonly route: RoutedCall;
      readonly lacking: Provider | null;
    };

/**
 * Finds a provider and subscribes. Returns the function that cancels; after it no event follows.
 */
export function openSource(
  parts: StreamParts,
  request: SourceRequest,
  events: SourceEvents,
): () => void {
  const opening = new Opening(parts, request, events);
  return () => opening.cancel();
}

/** Deadline of one query. */
const ASK_MS = 5_000;
const HEADS = '["newHeads"]';
const ACK = Buffer.from("true");

class Opening {
  readonly #parts: StreamParts;
  readonly #request: SourceRequest;
  readonly #events: SourceEvents;
  readonly #queries: OpenQueries;
  #route: RoutedCall | null = null;
  #main: Dispatch | null = null;
  #heads: Dispatch | null = null;
  #provider: Provider | null = null;
  #opened = false;
  #closed = false;

  constructor(parts: StreamParts, request: SourceRequest, events: SourceEvents) {
    this.#parts = parts;
    this.#request = request;
    this.#events = events;
    this.#queries = new OpenQueries(parts.router);
    const { subscription, ...whom } = request;
    const upstreams: Upstreams = {
      ws: { send: (outgoing, listener) => this.#subscribe(outgoing.provider, listener) },
    };
    const { params } = subscription;
    this.#route = routeServiceCall(
      parts.router,
      { ...whom, method: "eth_subscribe", params, transport: "ws", upstreams },
      ({ outcome, source }, route) => {
        const provider = providerOf(source);
        this.#route = route;
        if (outcome.kind !== "result" || provider === null)
          return this.#finish({ kind: "refused", outcome, route, lacking: null });
        this.#provider = provider;
        if (subscription.kind === "logs") this.#followHeads(provider, route);
        else this.#finish({ kind: "open", source: this.#sourceAt(provider), route });
      },
    );
  }

  cancel(): void {
    this.#opened = true;
    this.close();
  }

  close(): void {
    this.#closed = true;
    this.#route?.cancel();
    this.#main?.cancel();
    this.#heads?.cancel();
    this.#queries.close();
  }

  #sourceAt(provider: Provider): Source {
    const channel = { provider, transport: "ws" } as const;
    const whom = { tracker: this.#request.tracker, channel, counts: "nothing" } as const;
    return {
      provider,
      pushesLogs: true,
      query: (method, params) => this.#queries.run({ ...whom, method, params, deadlineMs: ASK_MS }),
      // If its address or headers change, its socket closes and the subscription is lost: nothing
      // to do here.
      follow() {},
      close: () => this.close(),
    };
  }

  /** Sends a subscription in place of the request of an attempt. */
  #subscribe(provider: Provider, listener: AnswerListener): Dispatch {
    const dispatch = this.#parts.sockets.subscribe(provider, this.#request.subscription.params, {
      started: () => listener.result(ACK, { start: 0, end: ACK.length, idAt: null }),
      refused: (failure, raw) => listener.failed(failure, raw),
      event: (raw) => this.#events.event(raw),
      lost: (reason) => this.#lost(reason),
    });
    this.#main = dispatch;
    if (this.#closed) dispatch.cancel();
    return dispatch;
  }

  /**
   * Subscribes to the heads of the same provider besides its logs, which are delivered in chain
   * order.
   */
  #followHeads(provider: Provider, route: RoutedCall): void {
    const { timerWheel, sockets } = this.#parts;
    const timer = timerWheel.set(ASK_MS, () => this.#lost("no heads in time"));
    this.#heads = sockets.subscribe(provider, HEADS, {
      started: () => {
        timer.clear();
        this.#finish({ kind: "open", source: this.#sourceAt(provider), route });
      },
      refused: (failure) => {
        timer.clear();
        this.#lost(`no heads (${failure.kind})`);
      },
      event: (raw) => this.#events.head(raw),
      lost: (reason) => this.#lost(reason),
    });
    if (this.#closed) this.#heads.cancel();
  }

  #finish(opened: SourceOpening): void {
    if (this.#opened) return;
    this.#opened = true;
    this.#events.opened(opened);
  }

  #lost(reason: string): void {
    if (this.#closed) return;
    this.close();
    if (this.#opened || this.#route === null) return this.#events.lost();
    const message = `the provider of the subscription was lost (${reason})`;
    const why = { kind: "fault", fault: fault("unavailable", message, { status: 200 }) } as const;
    this.#finish({ kind: "refused", outcome: why, route: this.#route, lacking: this.#provider });
  }
}
