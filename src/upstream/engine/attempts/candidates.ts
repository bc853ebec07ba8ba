// Picks the next candidate of a plan: in the order of the plan, but a provider with a free
// connection before providers where a request would wait for one. Also decides what follows a slow
// attempt: wait, ask a second provider as well (a hedge, within the budget), or ask the next
// provider because the attempt is overdue.
import type { Channel } from "../../../core/provider/attempt.ts";
import { creditsOf } from "../../../core/provider/budget/budget-limits.ts";
import type { Provider } from "../../../core/provider/profile.ts";
import { hedgeAfterMs, LEAST_ATTEMPT_MS, overdueAfterMs } from "../../../core/routing/hedge.ts";
import { withReserveAsked } from "../../../core/routing/plan.ts";
import type { Call } from "../../../core/rpc/call.ts";
import type { CallContext, Upstreams } from "../call-context.ts";
import type { PendingAttempt } from "./attempt.ts";

/** The candidates of one call that have not been asked. */
export class Candidates {
  readonly #context: CallContext;
  #channels: readonly Channel[];
  readonly #upstreams: Upstreams;
  #cursor = 0;
  /** Passed over because a request would have had to wait for a connection; null = nobody was. */
  #passedOver: Channel[] | null = null;

  constructor(context: CallContext, upstreams: Upstreams) {
    this.#context = context;
    this.#channels = context.plan.candidates;
    this.#upstreams = upstreams;
  }

  /** Whether anybody is left. */
  get any(): boolean {
    return this.#cursor < this.#channels.length || (this.#passedOver?.length ?? 0) > 0;
  }

  /** Whether the plan has a reserve that was not added. */
  get hasReserve(): boolean {
    const { reserve, lagWaived } = this.#context.plan;
    return reserve !== undefined && lagWaived !== true;
  }

  /** The reserve of the plan is asked as well, once nobody else is left; false = there is none. */
  addReserve(): boolean {
    const { plan } = this.#context;
    const { reserve } = plan;
    if (reserve === undefined || !this.hasReserve) return false;
    this.#context.plan = withReserveAsked(plan, reserve);
    this.#channels = reserve;
    this.#cursor = 0;
    return true;
  }

  /** The next one that may be asked; null = all were. */
  next(): Channel | null {
    const { tracker, avoid, call, counts } = this.#context.request;
    const { panic } = this.#context.plan;
    for (let channel = this.#take(); channel !== null; channel = this.#take()) {
      const { provider, transport } = channel;
      if (avoid?.has(provider.id) === true) continue;
      if (provider.budget !== null && !tracker.hasRoom(provider, call)) continue;
      if (panic === true || tracker.admit(provider, transport, counts)) return channel;
      this.#context.trialsTaken = true;
    }
    return null;
  }

  /**
   * What follows for an attempt that has not been answered. A hedge has been paid for. `isAlone`:
   * no other attempt is out.
   */
  stepWhenSlow(pending: PendingAttempt, isAlone: boolean): SlowStep {
    const context = this.#context;
    const { tracker, call } = context.request;
    if (pending.isTrial) {
      tracker.extraCalls.takeAnyway(costOf(pending.provider, call));
      return { kind: "next" };
    }
    const target = this.#hedgeTarget();
    const usualMs =
      tracker.usualMs(pending, call.method, 0.99) ??
      (target === null ? null : tracker.usualMs(target, call.method, 0.99));
    const overdueMs = usualMs === null ? Number.POSITIVE_INFINITY : overdueAfterMs(usualMs);
    if (pending.ageMs >= overdueMs) return { kind: "next" };
    const wait = (untilMs: number): SlowStep => {
      const ms = Math.min(untilMs, overdueMs) - pending.ageMs;
      return { kind: "wait", ms: ms === Number.POSITIVE_INFINITY ? null : ms };
    };
    const { hedge } = context.policy;
    if (hedge === null || target === null || !isAlone) return wait(Number.POSITIVE_INFINITY);
    const askedP95Ms = tracker.usualMs(pending, call.method, 0.95);
    const hedgeMs = hedgeAfterMs(askedP95Ms, tracker.usualMs(target, call.method, 0.5), hedge);
    if (pending.ageMs < hedgeMs) return wait(hedgeMs);
    if (tracker.extraCalls.take(costOf(target.provider, call))) return { kind: "hedge", target };
    context.overBudget = true;
    return wait(2 * Math.max(pending.ageMs, hedge.floorMs));
  }

  /** The first one that could be asked beside another at once; null = nobody. */
  #hedgeTarget(): Channel | null {
    return this.#find((channel) => this.#mayBeHedged(channel));
  }

  /** The first one of those that are left that is wanted; null = none is. */
  #find(isWanted: (channel: Channel) => boolean): Channel | null {
    for (let at = this.#cursor; at < this.#channels.length; at++) {
      const channel = this.#channels[at];
      if (channel !== undefined && isWanted(channel)) return channel;
    }
    return this.#passedOver?.find(isWanted) ?? null;
  }

  /** One of those that are left is asked out of turn. */
  takeOut(taken: Channel): void {
    const left = [...(this.#passedOver ?? []), ...this.#channels.slice(this.#cursor)];
    this.#cursor = this.#channels.length;
    this.#passedOver = left.filter((channel) => channel !== taken);
  }

  /**
   * Whether a request that may be sent anywhere need not wait for a connection, since another
   * candidate has a free one.
   */
  isAnyFree(): boolean {
    const { replaySafe } = this.#context.request.call.method;
    return replaySafe && this.#find((channel) => this.#isFree(channel)) !== null;
  }

  #take(): Channel | null {
    for (
      let channel = this.#channels[this.#cursor++];
      channel !== undefined;
      channel = this.#channels[this.#cursor++]
    ) {
      if (this.#isFree(channel) || !this.isAnyFree()) return channel;
      this.#passedOver ??= [];
      this.#passedOver.push(channel);
    }
    const waiting = this.#passedOver;
    if (waiting === null) return null;
    const free = waiting.findIndex((channel) => this.#isFree(channel));
    return waiting.splice(Math.max(0, free), 1)[0] ?? null;
  }

  #mayBeHedged(channel: Channel): boolean {
    const { tracker, avoid, call } = this.#context.request;
    const { provider } = channel;
    return (
      !provider.backup &&
      avoid?.has(provider.id) !== true &&
      this.#isFree(channel) &&
      tracker.hasRoom(provider, call) &&
      tracker.mayBeAskedBeside(channel, call.method)
    );
  }

  #isFree({ provider, transport }: Channel): boolean {
    return this.#upstreams[transport]?.isFree?.(provider) ?? true;
  }
}

/** The next step. */
export type SlowStep =
  /** Looks again after `ms`; null = waits until the end of the attempt. */
  | { readonly kind: "wait"; readonly ms: number | null }
  /** Asks this provider as well. */
  | { readonly kind: "hedge"; readonly target: Channel }
  /** Asks the next provider; this one may still answer. */
  | { readonly kind: "next" };

/** When an attempt of a call is first looked at; null = it has all the time that it was given. */
export function firstCheckMs(
  { policy, plan, request }: CallContext,
  couldFollow: boolean,
): number | null {
  if (!couldFollow || !request.call.method.replaySafe || plan.panic === true) return null;
  return policy.hedge === null ? LEAST_ATTEMPT_MS : policy.hedge.floorMs;
}

/** What a call costs at a provider, in credits. */
export function costOf({ budget }: Provider, { methodName }: Call): number {
  return budget === null ? 1 : creditsOf(budget, methodName);
}
