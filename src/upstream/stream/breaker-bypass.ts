// The routing state of a subscription in recovery: a provider with an open circuit is tried last
// instead of being excluded, and failures do not count. Otherwise the retries of many subscriptions
// after one lost connection would open every circuit for longer than a subscription may wait.
import type { Attempt, Channel } from "../../core/provider/attempt.ts";
import type { Provider, Transport } from "../../core/provider/profile.ts";
import type { Plan } from "../../core/routing/plan.ts";
import type { BlockRef, Call } from "../../core/rpc/call.ts";
import type { Method } from "../../core/rpc/method.ts";
import type { Outstanding } from "../health/silence-watch.ts";
import type {
  Ahead,
  AttemptEnd,
  RoutingState,
  Selection,
  TrackerListener,
} from "../health/tracker.ts";

/** A tracker without open circuits. Its user must limit how often it is asked. */
export class BreakerBypass implements RoutingState {
  readonly #strict: RoutingState;

  constructor(strict: RoutingState) {
    this.#strict = strict;
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

  plan(call: Call, selection: Selection): Plan {
    const { candidates, excluded } = this.#strict.plan(call, selection);
    const { transport } = selection;
    if (transport === null) return { candidates, excluded };
    const closedOff = excluded.filter(
      ({ reason }) => reason === "circuit_open" || reason === "trial_in_flight",
    );
    const last: readonly Channel[] = closedOff.map(({ provider }) => ({ provider, transport }));
    return {
      candidates: [...candidates, ...last],
      excluded: excluded.filter((exclusion) => !closedOff.includes(exclusion)),
    };
  }

  hasRoom(provider: Provider, call: Call): boolean {
    return this.#strict.hasRoom(provider, call);
  }

  admit(): boolean {
    return true;
  }

  record(method: Method, attempt: Attempt, block?: BlockRef, name?: string): void {
    if (attempt.verdict?.effect.kind !== "failure")
      this.#strict.record(method, attempt, block, name);
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

  /** Attempts are not watched for silence. */
  begin(): void {}

  end(_out: Outstanding, { attempt, call }: AttemptEnd): boolean {
    this.record(call.method, attempt, call.block, call.methodName);
    return false;
  }

  heard(provider: Provider, transport: Transport): void {
    this.#strict.heard(provider, transport);
  }

  waitMs(call: Call, selection: Selection): number | null {
    return this.#strict.waitMs(call, selection);
  }

  takePanicSlot(): boolean {
    return true;
  }

  freePanicSlot(): void {}
}
