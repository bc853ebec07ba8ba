// The routing state of a query whose provider is chosen already: the source of a stream, or the
// provider that a check asks. That provider is the plan, and its failures do not count, since a
// stream that they concern moves elsewhere by itself.
import type { Attempt, Channel, Verdict } from "../../core/provider/attempt.ts";
import type { Provider } from "../../core/provider/profile.ts";
import type { Plan } from "../../core/routing/plan.ts";
import type { BlockRef, Call } from "../../core/rpc/call.ts";
import type { Method } from "../../core/rpc/method.ts";
import type { Outstanding } from "../health/silence-watch.ts";
import type { Ahead, AttemptEnd, RoutingState, TrackerListener } from "../health/tracker.ts";

/**
 * What counts of its queries. `nothing`: the provider is asked even if its circuit is open, and
 * nothing is recorded. `limits`: its circuit is respected, and successes, rate limits and refusals
 * of the service are recorded as those of any call.
 */
type Counted = "nothing" | "limits";

/** A tracker with one provider, on one transport. */
export class ChosenProvider implements RoutingState {
  readonly #strict: RoutingState;
  readonly #plan: Plan;
  readonly #counted: Counted;

  constructor(strict: RoutingState, channel: Channel, counted: Counted) {
    this.#strict = strict;
    this.#plan = { candidates: [channel], excluded: [] };
    this.#counted = counted;
  }

  get set() {
    return this.#strict.set;
  }

  get extraCalls() {
    return this.#strict.extraCalls;
  }

  get profileId() {
    return this.#strict.profileId;
  }

  attend(listener: Partial<TrackerListener>): () => void {
    return this.#strict.attend(listener);
  }

  get blocks() {
    return this.#strict.blocks;
  }

  head(): number | null {
    return this.#strict.head();
  }

  rangeLimits(call: Call): readonly number[] {
    return this.#strict.rangeLimits(call);
  }

  plan(): Plan {
    return this.#plan;
  }

  hasRoom(provider: Provider, call: Call): boolean {
    return this.#strict.hasRoom(provider, call);
  }

  admit(...[provider, transport]: Parameters<RoutingState["admit"]>): boolean {
    return this.#counted === "nothing" || this.#strict.admit(provider, transport);
  }

  record(method: Method, attempt: Attempt, block?: BlockRef, name?: string): void {
    if (this.#counted === "nothing") return;
    const { verdict } = attempt;
    const harmless = verdict === null ? null : withoutFailure(verdict);
    this.#strict.record(method, { ...attempt, verdict: harmless }, block, name);
  }

  trialPatienceMs(): number | null {
    return null;
  }

  usualMs(): number | null {
    return null;
  }

  mayBeAskedBeside(): boolean {
    return false;
  }

  aheadOf(): Ahead | null {
    return null;
  }

  isFutureBlock(): boolean {
    return false;
  }

  /** Queries are not watched for silence. */
  begin(): void {}

  end(_out: Outstanding, { attempt, call }: AttemptEnd): boolean {
    this.record(call.method, attempt, call.block, call.methodName);
    return false;
  }

  heard(): void {}

  waitMs(): number | null {
    return null;
  }

  takePanicSlot(): boolean {
    return true;
  }

  freePanicSlot(): void {}
}

function withoutFailure(verdict: Verdict): Verdict {
  const { kind } = verdict.effect;
  return kind === "cooldown" || kind === "cordon"
    ? verdict
    : { ...verdict, effect: { kind: "ignored" } };
}
