// The routing state of calls that the service makes for itself: what a tracker knows, without what
// belongs to callers alone (hedges, trials with patience, panic slots and the watch for silence).
import type { Attempt } from "../../core/provider/attempt.ts";
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

/** A tracker for calls of the service; what is planned and what counts is its subclass's. */
export abstract class ServiceState implements RoutingState {
  protected readonly strict: RoutingState;

  constructor(strict: RoutingState) {
    this.strict = strict;
  }

  abstract plan(call: Call, selection: Selection): Plan;
  abstract admit(provider: Provider, transport: Transport): boolean;
  abstract record(method: Method, attempt: Attempt, block?: BlockRef, name?: string): void;
  abstract heard(provider: Provider, transport: Transport): void;
  abstract waitMs(call: Call, selection: Selection): number | null;

  get set() {
    return this.strict.set;
  }

  get extraCalls() {
    return this.strict.extraCalls;
  }

  get rechecks() {
    return this.strict.rechecks;
  }

  get profileId() {
    return this.strict.profileId;
  }

  get blocks() {
    return this.strict.blocks;
  }

  attend(listener: Partial<TrackerListener>): () => void {
    return this.strict.attend(listener);
  }

  head(): number | null {
    return this.strict.head();
  }

  rangeLimits(call: Call): readonly number[] {
    return this.strict.rangeLimits(call);
  }

  hasRoom(provider: Provider, call: Call): boolean {
    return this.strict.hasRoom(provider, call);
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

  hasBlock(): void {}

  namedBlock(provider: Provider, number: number): void {
    this.strict.namedBlock(provider, number);
  }

  lacksBlock(): void {}

  /** Attempts are not watched for silence. */
  begin(): void {}

  end(_out: Outstanding, { attempt, call }: AttemptEnd): boolean {
    this.record(call.method, attempt, call.block, call.methodName);
    return false;
  }

  takePanicSlot(): boolean {
    return true;
  }

  freePanicSlot(): void {}
}
