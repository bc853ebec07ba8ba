// The routing state of a query whose provider is chosen already: the source of a stream, or the
// provider that a check asks. That provider is the plan, and its failures do not count, since a
// stream that they concern moves elsewhere by itself.
import type { Attempt, Channel, Verdict } from "../../core/provider/attempt.ts";
import type { Provider, Transport } from "../../core/provider/profile.ts";
import type { Plan } from "../../core/routing/plan.ts";
import type { BlockRef } from "../../core/rpc/call.ts";
import type { Method } from "../../core/rpc/method.ts";
import type { RoutingState } from "../health/tracker.ts";
import { ServiceState } from "./service-state.ts";

/**
 * What counts of its queries. `nothing`: the provider is asked even if its circuit is open, and
 * nothing is recorded. `limits`: its circuit is respected, and successes, rate limits and refusals
 * of the service are recorded as those of any call.
 */
type Counted = "nothing" | "limits";

/** A tracker with one provider, on one transport. */
export class ChosenProvider extends ServiceState {
  readonly #plan: Plan;
  readonly #counted: Counted;

  constructor(strict: RoutingState, channel: Channel, counted: Counted) {
    super(strict);
    this.#plan = { candidates: [channel], excluded: [] };
    this.#counted = counted;
  }

  plan(): Plan {
    return this.#plan;
  }

  admit(provider: Provider, transport: Transport): boolean {
    return this.#counted === "nothing" || this.strict.admit(provider, transport);
  }

  record(method: Method, attempt: Attempt, block?: BlockRef, name?: string): void {
    if (this.#counted === "nothing") return;
    const { verdict } = attempt;
    const harmless = verdict === null ? null : withoutFailure(verdict);
    this.strict.record(method, { ...attempt, verdict: harmless }, block, name);
  }

  heard(): void {}

  waitMs(): number | null {
    return null;
  }
}

function withoutFailure(verdict: Verdict): Verdict {
  const { kind } = verdict.effect;
  return kind === "cooldown" || kind === "cordon"
    ? verdict
    : { ...verdict, effect: { kind: "ignored" } };
}
