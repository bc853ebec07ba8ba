// The routing state as a subscription sees it that has to go on: an open circuit puts a provider last instead of out, and what fails is not held against
// it. The retries of many subscriptions after one lost connection would otherwise close every door for longer than a subscription may wait.
import type { Attempt, Channel, Plan } from "../../core/attempt.ts";
import type { BlockRef, Call } from "../../core/call.ts";
import type { Method } from "../../core/method.ts";
import type { Transport } from "../../core/profile.ts";
import type { RoutingState, Selection } from "../tracker.ts";

/** A lenient view of a tracker. Whoever uses it sees to it that nobody is asked too often. */
export class LenientTracker implements RoutingState {
  readonly #strict: RoutingState;

  constructor(strict: RoutingState) {
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

  record(method: Method, attempt: Attempt, block?: BlockRef, name?: string): void {
    if (attempt.verdict?.effect.kind !== "failure") this.#strict.record(method, attempt, block, name);
  }

  retryAfterMs(transport: Transport | null): number | null {
    return this.#strict.retryAfterMs(transport);
  }
}
