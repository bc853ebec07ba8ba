// One provider as the source of one subscription: chosen by the router as for any call, subscribed,
// and queried for missed blocks. Judges no events.

import { fault } from "../../core/faults/rpc-fault.ts";
import type { Provider } from "../../core/provider/profile.ts";
import { SERVICE_CALLER } from "../../core/provider/silence.ts";
import { providerOf } from "../../core/routing/answer-source.ts";
import type { Strategy } from "../../core/routing/strategy.ts";
import { NO_BLOCK } from "../../core/rpc/call.ts";
import { methodOf } from "../../core/rpc/method.ts";
import { writeRequest } from "../../core/rpc/wire-request.ts";
import type { Subscription } from "../../core/stream/subscription.ts";
import type { Runtime } from "../../runtime.ts";
import type { Outcome } from "../engine/answer.ts";
import { createRouter, type RoutedCall, type RouterLimits } from "../engine/router.ts";
import type { Tracker } from "../health/tracker.ts";
import { rpcCall } from "../rpc-call.ts";
import type { TimerWheel } from "../timer-wheel.ts";
import type { AnswerListener, Dispatch, Sockets } from "../transport.ts";
import { BreakerBypass } from "./breaker-bypass.ts";

/** Dependencies of sources. */
export interface SourceParts {
  readonly runtime: Runtime;
  readonly timerWheel: TimerWheel;
  readonly sockets: Sockets;
  /** Polls heads and logs when no socket is available; null = never. */
  readonly polls: Polls | null;
  readonly limits: () => RouterLimits;
}

/** Opens polled sources. */
export interface Polls {
  /**
   * Finds a provider that answers over HTTP. Returns the function that cancels; after it no event
   * follows.
   */
  open(request: SourceRequest, events: SourceEvents): () => void;
}

/** The subscription and the constraints on its provider. */
export interface SourceRequest {
  readonly tracker: Tracker;
  readonly subscription: Subscription;
  readonly strategy: Strategy;
  readonly pin: Provider | null;
  /** Ids of excluded providers. */
  readonly avoid: ReadonlySet<string>;
  /** Providers with open circuits may be tried, and failures are not counted. */
  readonly breakerBypass: boolean;
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
  lost(reason: string): void;
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
  ask(method: string, params: string): Promise<Buffer | null>;
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
  parts: SourceParts,
  request: SourceRequest,
  events: SourceEvents,
): () => void {
  const opening = new Opening(parts, request, events);
  opening.start();
  return () => opening.cancel();
}

/** Deadline of one query. */
const ASK_MS = 5_000;
const HEADS = '["newHeads"]';
const ACK = Buffer.from("true");

class Opening implements Pick<Source, "ask" | "close"> {
  readonly #parts: SourceParts;
  readonly #request: SourceRequest;
  readonly #events: SourceEvents;
  readonly #pending = new Set<{ stop: () => void }>();
  #route: RoutedCall | null = null;
  #main: Dispatch | null = null;
  #heads: Dispatch | null = null;
  #provider: Provider | null = null;
  #opened = false;
  #closed = false;

  constructor(parts: SourceParts, request: SourceRequest, events: SourceEvents) {
    this.#parts = parts;
    this.#request = request;
    this.#events = events;
  }

  start(): void {
    const { subscription, strategy, pin, avoid, breakerBypass, deadlineMs } = this.#request;
    const tracker = breakerBypass
      ? new BreakerBypass(this.#request.tracker)
      : this.#request.tracker;
    const { runtime, timerWheel, limits } = this.#parts;
    const method = methodOf("eth_subscribe");
    const call = {
      methodName: "eth_subscribe",
      method,
      block: NO_BLOCK,
      ...writeRequest("eth_subscribe", Buffer.from(subscription.params)),
    };
    const router = createRouter({
      runtime,
      timerWheel,
      limits,
      upstreams: {
        ws: { send: (outgoing, listener) => this.#subscribe(outgoing.provider, listener) },
      },
    });
    this.#route = router.route(
      {
        call,
        tracker,
        strategy,
        pin,
        avoid,
        caller: SERVICE_CALLER,
        transport: "ws",
        deadlineMs,
        mayStream: false,
      },
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

  ask(method: string, params: string): Promise<Buffer | null> {
    const { timerWheel, sockets } = this.#parts;
    const provider = this.#provider;
    return new Promise((resolve) => {
      if (this.#closed || provider === null) return;
      const question = { stop: (): void => {} };
      this.#pending.add(question);
      const end = (result: Buffer | null): void => {
        this.#pending.delete(question);
        resolve(result);
      };
      question.stop = rpcCall(
        timerWheel,
        { upstream: sockets, provider, method, params, timeoutMs: ASK_MS },
        { result: end, failed: () => end(null) },
      );
    });
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
    for (const question of this.#pending) question.stop();
    this.#pending.clear();
  }

  #sourceAt(provider: Provider): Source {
    // If its address or headers change, its socket closes and the subscription is lost: nothing to
    // do here.
    const follow = (): void => {};
    return {
      provider,
      pushesLogs: true,
      ask: (method, params) => this.ask(method, params),
      follow,
      close: () => this.close(),
    };
  }

  /** The transport given to the router: sends a subscription in place of a request. */
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
    if (this.#opened || this.#route === null) return this.#events.lost(reason);
    const outcome = {
      kind: "fault",
      fault: fault("unavailable", `the provider of the subscription was lost (${reason})`, {
        status: 200,
      }),
    } as const;
    this.#finish({ kind: "refused", outcome, route: this.#route, lacking: this.#provider });
  }
}
