// The subscriptions of one client WebSocket: subscribes and unsubscribes, assigns subscription ids
// of the service, and sends no event before its acknowledgement. Knows no frames and no providers.
import type { Interruption } from "../../core/billing/charging.ts";
import { type Fault, fault } from "../../core/faults/rpc-fault.ts";
import { profileId } from "../../core/provider/profile.ts";
import { LOCAL_SOURCE, SHARED_SOURCE } from "../../core/routing/answer-source.ts";
import type { Block } from "../../core/stream/chain-event.ts";
import type { Unconfirmed } from "../../core/stream/log-verification.ts";
import {
  COUNTED_KINDS,
  readSubscription,
  SUBSCRIPTION_KINDS,
  subscriptionParams,
} from "../../core/stream/subscription.ts";
import type { Admission } from "../../hosted/admission/admission.ts";
import type { Series } from "../../observe/series.ts";
import type { Runtime } from "../../runtime.ts";
import { type Outcome, resultOf, sourceOf } from "../../upstream/engine/answer.ts";
import type { RoutedCall } from "../../upstream/engine/router.ts";
import type { Subscriber } from "../../upstream/stream/subscriber.ts";
import type { Subscriptions } from "../../upstream/stream/subscriptions.ts";
import type { RpcParts } from "../rpc/parts.ts";
import {
  type MethodAnswer,
  type MethodCall,
  refused,
  type ServiceMethods,
  streamCaller,
} from "../rpc/service-methods.ts";
import { unconfirmedNotification } from "./notification.ts";

export interface ClientSubscriptionsParts {
  readonly rpc: Pick<RpcParts, "runtime" | "deadlineMs" | "limits" | "admission">;
  readonly subscriptions: Pick<Subscriptions, "open">;
}

/** The connection that notifications are written to. */
export interface NotificationSink {
  /** Sends one message per result; false = the connection accepts no more. */
  notify(id: string, results: readonly Buffer[]): boolean;
  /** Sends one message. */
  send(pieces: readonly Buffer[]): boolean;
  /**
   * `why` decides whether the caller pays for calls under way; omitted = derived from the code.
   */
  close(code: number, reason: string, why?: Interruption): void;
}

/** The subscriptions of one socket. */
export class ClientSubscriptions implements ServiceMethods {
  readonly #parts: ClientSubscriptionsParts;
  readonly #connection: NotificationSink;
  #subscriptions: Map<string, ClientSubscription> | null = null;

  constructor(parts: ClientSubscriptionsParts, connection: NotificationSink) {
    this.#parts = parts;
    this.#connection = connection;
  }

  serve(request: MethodCall, done: (answer: MethodAnswer) => void): (() => void) | null {
    if (request.methodName === "eth_subscribe") return this.#subscribe(request, done);
    done(this.#unsubscribe(request));
    return null;
  }

  /** Ends every subscription. */
  close(): void {
    const subscriptions = this.#subscriptions;
    this.#subscriptions = null;
    for (const clientSubscription of subscriptions?.values() ?? []) clientSubscription.leave();
  }

  #subscribe(request: MethodCall, done: (answer: MethodAnswer) => void): (() => void) | null {
    const { subscriptions, rpc } = this.#parts;
    const { limits, runtime } = rpc;
    const { target, method } = request;
    const subscription = readSubscription(
      subscriptionParams(request.params),
      target.tracker.set.subscriptionKinds,
    );
    const why = refusal(
      request,
      subscription.kind === "invalid" ? subscription.message : null,
      (this.#subscriptions?.size ?? 0) >= limits.maxSocketSubscriptions,
    );
    if (subscription.kind === "invalid" || why !== null) {
      if (why !== null) done(refused(why));
      return null;
    }
    this.#subscriptions ??= new Map();
    const id = newId(runtime, this.#subscriptions);
    const { profile, tracker, strategy, pin } = target;
    const clientSubscription = new ClientSubscription(
      {
        id,
        notify: request.notify,
        kind: COUNTED_KINDS.indexOf(subscription.kind),
        series: target.series,
        connection: this.#connection,
        meter: meterOf(rpc.admission, request),
        maxHeldBytes: limits.maxSocketQueueBytes,
        left: () => this.#subscriptions?.delete(id),
      },
      done,
    );
    this.#subscriptions.set(id, clientSubscription);
    const caller = streamCaller(request.caller, request.grant !== null, limits);
    const terms = { caller, deadlineMs: rpc.deadlineMs(method), profile: profileId(profile) };
    const wanted = { ...terms, tracker, subscription, strategy, pin };
    const leave = subscriptions.open(wanted, clientSubscription);
    return clientSubscription.keep(leave) ? () => clientSubscription.leave() : null;
  }

  #unsubscribe(request: MethodCall): MethodAnswer {
    const params = subscriptionParams(request.params);
    const id: unknown = Array.isArray(params) ? params[0] : undefined;
    const clientSubscription = typeof id === "string" ? this.#subscriptions?.get(id) : undefined;
    if (clientSubscription === undefined)
      return refused(
        fault("subscription_not_found", "no subscription of this connection has this id"),
      );
    clientSubscription.leave();
    return { outcome: resultOf("true"), route: null, written: null, source: LOCAL_SOURCE };
  }
}

/** Charges notifications to the subscriber; null = they are free. */
function meterOf(admission: Admission | null, { grant }: MethodCall): Meter | null {
  return admission === null || grant === null
    ? null
    : (notifications) => admission.meter(grant, notifications);
}

function refusal(request: MethodCall, invalid: string | null, full: boolean): Fault | null {
  if (!request.answered)
    return fault(
      "invalid_request",
      "eth_subscribe without an id has no answer to bring the subscription in",
    );
  if (invalid !== null)
    return fault("invalid_field", invalid, {
      status: 200,
      nextAction: `subscribe to one of: ${SUBSCRIPTION_KINDS.join(", ")}`,
    });
  return full
    ? fault("rate_limit_exceeded", "this connection has as many subscriptions as it may", {
        nextAction: "unsubscribe, or open another connection",
      })
    : null;
}

/** Charges notifications; returns why the socket must be closed, or null. */
type Meter = (notifications: number) => ReturnType<Admission["meter"]>;

interface ClientSubscriptionParts {
  readonly id: string;
  /** Index into `COUNTED_KINDS`. */
  readonly kind: number;
  readonly series: Series;
  readonly connection: NotificationSink;
  readonly meter: Meter | null;
  /** It is told how it is served. */
  readonly notify: boolean;
  readonly maxHeldBytes: number;
  readonly left: () => void;
}

/**
 * One subscription of one caller. Long-lived, so it keeps no reference to the request that created
 * it.
 */
class ClientSubscription implements Subscriber {
  readonly #parts: ClientSubscriptionParts;
  /**
   * `opening`: not created upstream yet. `held`: created, and its acknowledgement is still to be
   * written. `open`: events are delivered.
   */
  #state: "opening" | "held" | "open" | "over" = "opening";
  #held: (readonly Buffer[])[] = [];
  #heldBytes = 0;
  #leave: (() => void) | null = null;
  #done: ((answer: MethodAnswer) => void) | null;

  constructor(parts: ClientSubscriptionParts, done: (answer: MethodAnswer) => void) {
    this.#parts = parts;
    this.#done = done;
  }

  /**
   * Stores the function that leaves the subscription. False = the subscribe call has ended already,
   * so there is nothing to cancel.
   */
  keep(leave: () => void): boolean {
    if (this.#state === "over") leave();
    else this.#leave = leave;
    return this.#state === "opening";
  }

  /** Leaves the subscription: no event is sent after this. */
  leave(): void {
    if (this.#state === "over") return;
    this.#state = "over";
    this.#held = [];
    this.#done = null;
    this.#parts.left();
    this.#leave?.();
  }

  started(route: RoutedCall | null): void {
    if (this.#state !== "opening") return;
    this.#state = "held";
    const source = route === null ? SHARED_SOURCE : route.source;
    this.#answer({
      outcome: resultOf(`"${this.#parts.id}"`),
      route,
      written: (shown) => this.#written(shown),
      source,
    });
  }

  refused(outcome: Outcome, route: RoutedCall | null): void {
    if (this.#state !== "opening") return;
    this.#state = "over";
    this.#parts.left();
    this.#answer({ outcome, route, written: null, source: sourceOf(outcome, route) });
  }

  events(results: readonly Buffer[]): void {
    if (this.#state === "open") return this.#send(results);
    if (this.#state !== "held") return;
    this.#held.push(results);
    for (const result of results) this.#heldBytes += result.length;
    if (this.#heldBytes > this.#parts.maxHeldBytes) this.#parts.connection.close(1013, "too slow");
  }

  unconfirmed(block: Block, why: Unconfirmed): void {
    const { id, notify, connection } = this.#parts;
    if (notify && this.#state === "open")
      connection.send([unconfirmedNotification(id, block, why)]);
  }

  ended(): void {
    if (this.#state !== "over")
      this.#parts.connection.close(
        1011,
        "subscription recovery exceeded its bounds; reconnect and resubscribe",
      );
  }

  #answer(answer: MethodAnswer): void {
    const done = this.#done;
    this.#done = null;
    done?.(answer);
  }

  /**
   * The acknowledgement was written, or replaced by a refusal: then nobody knows the id, and the
   * subscription ends.
   */
  #written(shown: boolean): void {
    if (!shown) return this.leave();
    if (this.#state !== "held") return;
    this.#state = "open";
    const held = this.#held;
    this.#held = [];
    for (const results of held) this.events(results);
  }

  #send(results: readonly Buffer[]): void {
    const { id, kind, connection, series, meter } = this.#parts;
    const why = meter === null ? null : meter(results.length);
    if (why === "balance_exhausted") return connection.close(1008, why);
    if (why === "unavailable")
      return connection.close(1013, "the balance cannot be read; try again later", "cut");
    if (connection.notify(id, results))
      series.notifications[kind] = (series.notifications[kind] ?? 0) + results.length;
  }
}

/** `0x` and 32 hex digits, the first not 0: the format of nodes, and of constant length. */
function newId(runtime: Runtime, taken: ReadonlyMap<string, unknown>): string {
  for (;;) {
    let id = `0x${(1 + Math.floor(runtime.random() * 15)).toString(16)}`;
    for (let i = 0; i < 31; i++) id += Math.floor(runtime.random() * 16).toString(16);
    if (!taken.has(id)) return id;
  }
}
