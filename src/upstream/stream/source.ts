// One provider as the source of one subscription: chosen by the router like for any call,
// subscribed, and asked for missed blocks. Judges no event.

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

/** What sources work with. */
export interface SourceParts {
  readonly runtime: Runtime;
  readonly timerWheel: TimerWheel;
  readonly sockets: Sockets;
  /** For heads and logs where no socket can be had; null = they are never polled. */
  readonly polls: Polls | null;
  readonly limits: () => RouterLimits;
}

/** Opens sources that are polled. */
export interface Polls {
  /**
   * Finds a provider that answers over HTTP. Returns the way to cancel, after which nobody hears
   * anything.
   */
  open(request: SourceRequest, events: SourceEvents): () => void;
}

/** Which provider is wanted for what. */
export interface SourceRequest {
  readonly tracker: Tracker;
  readonly subscription: Subscription;
  readonly strategy: Strategy;
  readonly pin: Provider | null;
  /** Ids of providers that are not to be asked. */
  readonly avoid: ReadonlySet<string>;
  /** Open circuits keep nobody from being tried, and failures are not counted. */
  readonly breakerBypass: boolean;
  readonly deadlineMs: number;
}

/**
 * Hears a source: `opened` once, events from the moment it is subscribed (which may be earlier),
 * `lost` at most once after `opened`.
 */
export interface SourceEvents {
  opened(opened: SourceOpening): void;
  event(raw: Buffer): void;
  /** A head of the same provider, where the subscription itself is not one to heads. */
  head(raw: Buffer): void;
  lost(reason: string): void;
}

/** A provider that serves a subscription. */
export interface Source {
  readonly provider: Provider;
  /** False = its heads are polled, and the logs of each block have to be asked for. */
  readonly pushesLogs: boolean;
  /**
   * Asks this provider; resolves with the raw JSON of the result, or null where there is none.
   * Never resolves after `close`.
   */
  ask(method: string, params: string): Promise<Buffer | null>;
  /** Goes on with the same provider as it is configured now. */
  follow(tracker: Tracker, provider: Provider): void;
  /** Nobody hears anything after this. */
  close(): void;
}

/** A source, or why there is none. */
export type SourceOpening =
  | { readonly kind: "open"; readonly source: Source; readonly route: RoutedCall }
  /** `lacking`: who was subscribed, and was lost or pushed no heads. */
  | {
      readonly kind: "refused";
      readonly outcome: Outcome;
      readonly route: RoutedCall;
      readonly lacking: Provider | null;
    };

/**
 * Finds a provider and subscribes. Returns the way to cancel, after which nobody hears anything.
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

/** Longest time for one question. */
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
    // Where its address or headers have changed, its socket is closed, and with it the subscription
    // lost: nothing here has to follow.
    const follow = (): void => {};
    return {
      provider,
      pushesLogs: true,
      ask: (method, params) => this.ask(method, params),
      follow,
      close: () => this.close(),
    };
  }

  /** The router's way of sending: a subscription in place of a request. */
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
   * Subscribes to the heads of the same provider beside its logs, which are delivered in the order
   * of the chain.
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
