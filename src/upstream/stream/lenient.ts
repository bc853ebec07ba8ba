// The routing state as a subscription sees it that has to go on: an open circuit puts a provider last instead of out, and what fails is not held against
// it. The retries of many subscriptions after one lost connection would otherwise close every door for longer than a subscription may wait.
import type { Attempt, Channel, Plan } from "../../core/attempt.ts";
import type { BlockRef, Call } from "../../core/call.ts";
import type { Method } from "../../core/method.ts";
import type { Provider, Transport } from "../../core/profile.ts";
import type { Probe, Selection, Station, Tracker } from "../tracker.ts";

/** A lenient view of a tracker. Whoever uses it sees to it that nobody is asked too often. */
export class LenientTracker implements Tracker {
  readonly #strict: Tracker;

  constructor(strict: Tracker) {
    this.#strict = strict;
  }

  get set() {
    return this.#strict.set;
  }

  plan(call: Call, selection: Selection): Plan {
    const { candidates, excluded } = this.#strict.plan(call, selection);
    const { transport } = selection;
    if (transport === null) return { candidates, excluded };
    const closedOff = excluded.filter(({ reason }) => reason === "circuit_open" || reason === "trial_in_flight");
    const last: readonly Channel[] = closedOff.map(({ provider }) => ({ provider, transport }));
    return { candidates: [...candidates, ...last], excluded: excluded.filter((it) => !closedOff.includes(it)) };
  }

  admit(): boolean {
    return true;
  }

  record(method: Method, attempt: Attempt, block?: BlockRef): void {
    if (attempt.verdict?.effect.kind !== "failure") this.#strict.record(method, attempt, block);
  }

  recordProbe(probe: Probe): void {
    this.#strict.recordProbe(probe);
  }

  recordHead(provider: Provider, height: number): void {
    this.#strict.recordHead(provider, height);
  }

  head(): number | null {
    return this.#strict.head();
  }

  pushesHeads(provider: Provider): boolean {
    return this.#strict.pushesHeads(provider);
  }

  health(provider: Provider, transport: Transport) {
    return this.#strict.health(provider, transport);
  }

  methods(provider: Provider, transport: Transport) {
    return this.#strict.methods(provider, transport);
  }

  retryAfterMs(transport: Transport | null): number | null {
    return this.#strict.retryAfterMs(transport);
  }

  inherit(provider: Provider): Station | null {
    return this.#strict.inherit(provider);
  }
}
