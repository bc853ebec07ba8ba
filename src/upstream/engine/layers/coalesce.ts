// Equal reads share one call: the first read begins the call, and equal reads within a moment join.
// When the caller that began it leaves, the next caller takes it over. A caller goes on alone when
// the call fails, when the answer may not be shared, or after a part of the caller's deadline.

import type { Abandoned } from "../../../core/billing/charging.ts";
import { providerOf } from "../../../core/routing/answer-source.ts";
import type { Runtime } from "../../../runtime.ts";
import type { Timer, TimerWheel } from "../../timer-wheel.ts";
import type { MemoryShare } from "../../transport.ts";
import { type Answer, faultAnswer, wholeResult } from "../answer.ts";
import {
  CallContext,
  type Layer,
  NOTHING_SENT,
  type RunningCall,
  type Stage,
  type StageListener,
} from "../call-context.ts";

/** Of the bytes of a request. */
const MAX_QUESTION_BYTES = 16_384;

/** What sharing works with. */
interface CoalesceParts {
  readonly runtime: Runtime;
  readonly timerWheel: TimerWheel;
  /** Whether only calls of one account are equal. */
  readonly byAccount?: () => boolean;
}

/** The layer of shared calls. */
export function coalesce({ byAccount = () => false, ...parts }: CoalesceParts): Layer {
  const calls = new OpenCalls();
  return (next) => (context, listener) => {
    if (context.request.call.body.length > MAX_QUESTION_BYTES) return next(context, listener);
    const slot = calls.slotOf(context, byAccount);
    if (slot === null) return next(context, listener);
    const known = calls.slots[slot] ?? null;
    if (known?.mayBeJoined === true) return known.join(context, listener);
    // One that is too old or has enough followers goes on, and is joined no more.
    const begun = new SharedCall(parts, next, context);
    calls.slots[slot] = begun;
    return begun.begin(context, listener, () => {
      if (calls.slots[slot] === begun) calls.slots[slot] = null;
    });
  };
}

/** Of the table: a power of two, several times the calls that are under way at one time. */
const SLOTS = 8_192;
/** How many slots a call may be in. Where all are taken, a call is made by itself. */
const NEAR_SLOTS = 8;
/** Of longer requests only some bytes choose the slot; all of them are compared. */
const SAMPLES_SHIFT = 8;

/**
 * The calls under way of one router that equal ones may join. A table of a fixed size, not a `Map`:
 * V8 links each outgrown table of a map to its successor, so a table in the old generation keeps
 * every call that was ever in the map alive until the next full collection. That made a call
 * several times as expensive to the garbage collector.
 */
class OpenCalls {
  readonly slots: (SharedCall | null)[] = new Array<SharedCall | null>(SLOTS).fill(null);

  /**
   * The slot of the equal call that was begun last, or else a free one; null = all are taken.
   * `byAccount`: only calls of one account are equal.
   */
  slotOf(context: CallContext, byAccount: () => boolean): number | null {
    const first = slotOf(context);
    let free: number | null = null;
    for (let at = first; at < first + NEAR_SLOTS; at++) {
      const slot = at & (SLOTS - 1);
      const call = this.slots[slot];
      if (call === null || call === undefined) free ??= slot;
      else if (areEqual(call.context, context, byAccount)) return slot;
    }
    return free;
  }
}

/** All bytes but those of the id are the same, and so is how the callers want it. */
function areEqual(
  { request: one }: CallContext,
  { request: other }: CallContext,
  byAccount: () => boolean,
): boolean {
  const [a, b] = [one.call, other.call];
  return (
    one.tracker === other.tracker &&
    one.strategy === other.strategy &&
    one.transport === other.transport &&
    one.mayStream === other.mayStream &&
    (one.room === undefined) === (other.room === undefined) &&
    a.resolution?.hash === b.resolution?.hash &&
    (!byAccount() || one.caller.key === other.caller.key) &&
    a.idStart === b.idStart &&
    a.body.length - a.idEnd === b.body.length - b.idEnd &&
    a.body.compare(b.body, b.idEnd, b.body.length, a.idEnd, a.body.length) === 0 &&
    a.body.compare(b.body, 0, b.idStart, 0, a.idStart) === 0
  );
}

/** A slot by the bytes after the id. */
function slotOf({ request }: CallContext): number {
  const { body, idEnd } = request.call;
  const step = 1 + ((body.length - idEnd) >> SAMPLES_SHIFT);
  let sum = body.length - idEnd;
  for (let at = idEnd; at < body.length; at += step)
    sum = Math.imul(sum ^ (body[at] ?? 0), FNV_PRIME);
  return (sum ^ (sum >>> 15)) & (SLOTS - 1);
}

const FNV_PRIME = 0x01000193;

/** A call that is older than this is joined by nobody. */
const JOIN_MS = 100;
/** Share of its time that a call waits for a call of another before it goes on alone. */
const WAIT_SHARE = 0.6;
const MAX_FOLLOWERS = 1_000;
/** Of a result. */
const MAX_SHARED_BYTES = 65_536;

/** A call that waits for a shared call, or has gone on alone. */
interface Sharer {
  readonly context: CallContext;
  readonly listener: StageListener;
  /** When it goes on alone; null = it waits for the call to its end. */
  timer: Timer | null;
  alone: RunningCall | null;
}

/** One call under way, its owner and those who joined. */
class SharedCall implements StageListener {
  readonly #parts: CoalesceParts;
  readonly #next: Stage;
  /** The call as it is carried out. */
  readonly context: CallContext;
  /** Null = its answer is counted with the service's own. */
  readonly #room: HandedOverShare | null;
  /** In the order in which they joined; null = nobody has. */
  #followers: Set<Sharer> | null = null;
  #owner: Sharer | null = null;
  #running: RunningCall | null = null;
  #close: () => void = NOTHING;

  constructor(parts: CoalesceParts, next: Stage, { request, policy, endsAtMs }: CallContext) {
    this.#parts = parts;
    this.#next = next;
    this.#room = request.room === undefined ? null : new HandedOverShare(request.room);
    const shared = this.#room === null ? request : { ...request, room: this.#room };
    this.context = new CallContext(shared, policy, parts.runtime.now());
    this.context.endsAtMs = endsAtMs;
  }

  /** Whether another call may wait for it. */
  get mayBeJoined(): boolean {
    const ageMs = this.#parts.runtime.now() - this.context.startedAtMs;
    return this.#owner !== null && ageMs <= JOIN_MS && this.#count < MAX_FOLLOWERS;
  }

  get #count(): number {
    return this.#followers?.size ?? 0;
  }

  /** Begins it for its first owner. `close` is called when it is over. */
  begin(context: CallContext, listener: StageListener, close: () => void): RunningCall {
    const owner: Sharer = { context, listener, timer: null, alone: null };
    this.#owner = owner;
    this.#close = close;
    const running = this.#next(this.context, this);
    if (this.#owner !== null) this.#running = running;
    return { cancel: () => this.#leave(owner) };
  }

  /** Waits for its answer. */
  join(context: CallContext, listener: StageListener): RunningCall {
    const follower: Sharer = { context, listener, timer: null, alone: null };
    const waitMs = Math.max(0, context.endsAtMs - this.#parts.runtime.now()) * WAIT_SHARE;
    follower.timer = this.#parts.timerWheel.set(waitMs, () => {
      this.#leave(follower);
      this.#goAlone(follower);
    });
    this.#followers ??= new Set();
    this.#followers.add(follower);
    return { cancel: () => this.#leave(follower) };
  }

  /** The call goes on as long as anybody waits for it: then nothing has been abandoned. */
  #leave(sharer: Sharer): Abandoned {
    sharer.timer?.clear();
    if (sharer.alone !== null) return sharer.alone.cancel();
    if (this.#followers?.delete(sharer) === true || sharer !== this.#owner) return NOTHING_SENT;
    return this.#handOver() ? NOTHING_SENT : this.#abandon(sharer);
  }

  /** The first that has room for the answer takes the call over; false = there is none. */
  #handOver(): boolean {
    for (const follower of this.#followers ?? []) {
      const { request, endsAtMs } = follower.context;
      if (this.#room !== null && request.room !== undefined && !this.#room.moveTo(request.room))
        continue;
      this.#followers?.delete(follower);
      this.#owner = follower;
      if (endsAtMs >= this.context.endsAtMs) follower.timer?.clear();
      return true;
    }
    return false;
  }

  #abandon(owner: Sharer): Abandoned {
    const left = this.#running?.cancel() ?? NOTHING_SENT;
    this.#end(owner);
    this.#release((follower) => this.#goAlone(follower));
    return left;
  }

  ended(answer: Answer): void {
    const owner = this.#owner;
    if (owner === null) return;
    // Before its owner hears of it: what is borrowed goes back then.
    const shared = this.#count === 0 ? null : sharedOf(answer);
    this.#end(owner);
    owner.listener.ended(answer);
    const nowMs = this.#parts.runtime.now();
    this.#release((follower) => {
      const isLate = follower.context.endsAtMs <= nowMs;
      if (shared !== null) follower.listener.ended(shared);
      else if (answer.outcome.kind === "fault" && isLate)
        follower.listener.ended(faultAnswer(answer.outcome.fault));
      else this.#goAlone(follower);
    });
  }

  /** It is over. Its attempts are evidence of the call that owned it last. */
  #end(owner: Sharer): void {
    this.#owner = null;
    owner.timer?.clear();
    owner.context.absorb(this.context);
    this.#close();
  }

  /** Tells all who wait. Nobody joins any more, and one that leaves meanwhile is not told. */
  #release(tell: (follower: Sharer) => void): void {
    for (const follower of this.#followers ?? []) {
      this.#followers?.delete(follower);
      follower.timer?.clear();
      tell(follower);
    }
  }

  #goAlone(sharer: Sharer): void {
    sharer.alone = this.#next(sharer.context, sharer.listener);
  }
}

/** An answer as others get it, in memory of its own; null = it is not shared. */
function sharedOf({ outcome, source }: Answer): Answer | null {
  const from = { kind: "shared", provider: providerOf(source) } as const;
  switch (outcome.kind) {
    case "stream":
    case "fault":
      return null;
    case "error":
      return { outcome: { ...outcome, raw: Buffer.from(outcome.raw) }, source: from };
    case "result": {
      const { body, start, end } = outcome;
      if (end - start > MAX_SHARED_BYTES) return null;
      return { outcome: wholeResult(Buffer.from(body.subarray(start, end))), source: from };
    }
  }
}

function NOTHING(): void {}

/** Memory in the share of the caller that owns the call now. */
class HandedOverShare implements MemoryShare {
  #room: MemoryShare;
  #bytes = 0;

  constructor(room: MemoryShare) {
    this.#room = room;
  }

  take(bytes: number): boolean {
    if (!this.#room.take(bytes)) return false;
    this.#bytes += bytes;
    return true;
  }

  giveBack(bytes: number): void {
    const back = Math.min(bytes, this.#bytes);
    this.#bytes -= back;
    this.#room.giveBack(back);
  }

  /** Counts in another share from here on; false = there is no room, and all stays as it is. */
  moveTo(room: MemoryShare): boolean {
    if (!room.take(this.#bytes)) return false;
    this.#room.giveBack(this.#bytes);
    this.#room = room;
    return true;
  }
}
