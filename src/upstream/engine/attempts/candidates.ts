// Which candidate of a plan is asked next: in the order of the plan, but one with a free connection
// before those where a request would have to wait for one.
import type { Channel } from "../../../core/provider/attempt.ts";
import { withReserveAsked } from "../../../core/routing/plan.ts";
import type { Job } from "../job.ts";
import type { Upstreams } from "../route-request.ts";

/** The candidates of one call that have not been asked. */
export class Candidates {
  /** A half-open provider was passed over because its trial was taken. */
  trialsTaken = false;
  readonly #job: Job;
  #channels: readonly Channel[];
  readonly #upstreams: Upstreams;
  #cursor = 0;
  /** Passed over because a request would have had to wait for a connection; null = nobody was. */
  #passedOver: Channel[] | null = null;

  constructor(job: Job, upstreams: Upstreams) {
    this.#job = job;
    this.#channels = job.plan.candidates;
    this.#upstreams = upstreams;
  }

  /** Whether anybody is left. */
  get any(): boolean {
    return this.#cursor < this.#channels.length || (this.#passedOver?.length ?? 0) > 0;
  }

  /** Whether the plan has a reserve that was not added. */
  get hasReserve(): boolean {
    const { reserve, lagWaived } = this.#job.plan;
    return reserve !== undefined && lagWaived !== true;
  }

  /** The reserve of the plan is asked as well, once nobody else is left; false = there is none. */
  addReserve(): boolean {
    const { plan } = this.#job;
    const { reserve } = plan;
    if (reserve === undefined || !this.hasReserve) return false;
    this.#job.plan = withReserveAsked(plan, reserve);
    this.#channels = reserve;
    this.#cursor = 0;
    return true;
  }

  /** The next one that may be asked; null = all were. */
  next(): Channel | null {
    const { tracker, avoid, call, counts } = this.#job.request;
    const { panic } = this.#job.plan;
    for (let channel = this.#take(); channel !== null; channel = this.#take()) {
      const { provider, transport } = channel;
      if (avoid?.has(provider.id) === true || !tracker.hasRoom(provider, call)) continue;
      if (panic === true || tracker.admit(provider, transport, counts)) return channel;
      this.trialsTaken = true;
    }
    return null;
  }

  /** The first one that could be asked beside another at once; null = nobody. */
  hedgeTarget(): Channel | null {
    for (let at = this.#cursor; at < this.#channels.length; at++) {
      const channel = this.#channels[at];
      if (channel !== undefined && this.#mayBeBeside(channel)) return channel;
    }
    return this.#passedOver?.find((channel) => this.#mayBeBeside(channel)) ?? null;
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
    if (!this.#job.request.call.method.replaySafe) return false;
    for (let at = this.#cursor; at < this.#channels.length; at++) {
      const channel = this.#channels[at];
      if (channel !== undefined && this.#isFree(channel)) return true;
    }
    return this.#passedOver?.some((channel) => this.#isFree(channel)) === true;
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

  #mayBeBeside(channel: Channel): boolean {
    const { tracker, avoid, call } = this.#job.request;
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
