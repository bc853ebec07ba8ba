// A call that several jobs wait for. It is carried out once, for its owner; when that one leaves,
// the next that waits takes it over. A job that cannot be served so goes on alone: when the call
// fails, when its answer is not one to share, or when it has waited for its share of its time.
import type { Abandoned } from "../../../core/billing/charging.ts";
import { providerOf } from "../../../core/routing/answer-source.ts";
import type { Runtime } from "../../../runtime.ts";
import type { Timer, TimerWheel } from "../../timer-wheel.ts";
import { type Answer, faultAnswer } from "../answer.ts";
import { Job } from "../job.ts";
import { type JobListener, NOTHING_SENT, type RunningJob, type Stage } from "../stage.ts";
import { HandedOverRoom } from "./handed-over-room.ts";

/** What sharing works with. */
export interface CoalesceParts {
  readonly runtime: Runtime;
  readonly timerWheel: TimerWheel;
}

/** A call that is older than this is joined by nobody. */
const JOIN_MS = 100;
/** Share of its time that a job waits for a call of another before it goes on alone. */
const WAIT_SHARE = 0.6;
const MAX_FOLLOWERS = 1_000;
/** Of a result. */
const MAX_SHARED_BYTES = 65_536;

/** A job that waits for a shared call, or has gone on alone. */
interface Sharer {
  readonly job: Job;
  readonly listener: JobListener;
  /** When it goes on alone; null = it waits for the call to its end. */
  timer: Timer | null;
  alone: RunningJob | null;
}

/** One call under way, its owner and those who joined. */
export class SharedCall implements JobListener {
  readonly #parts: CoalesceParts;
  readonly #next: Stage;
  /** The call as it is carried out. */
  readonly job: Job;
  /** Null = its answer is counted with the service's own. */
  readonly #room: HandedOverRoom | null;
  /** In the order in which they joined; null = nobody has. */
  #followers: Set<Sharer> | null = null;
  #owner: Sharer | null = null;
  #running: RunningJob | null = null;
  #close: () => void = NOTHING;

  constructor(parts: CoalesceParts, next: Stage, { request, policy, endsAtMs }: Job) {
    this.#parts = parts;
    this.#next = next;
    this.#room = request.room === undefined ? null : new HandedOverRoom(request.room);
    const shared = this.#room === null ? request : { ...request, room: this.#room };
    this.job = new Job(shared, policy, { startedAtMs: parts.runtime.now(), endsAtMs });
  }

  /** Whether another job may wait for it. */
  get mayBeJoined(): boolean {
    const ageMs = this.#parts.runtime.now() - this.job.startedAtMs;
    return this.#owner !== null && ageMs <= JOIN_MS && this.#count < MAX_FOLLOWERS;
  }

  get #count(): number {
    return this.#followers?.size ?? 0;
  }

  /** Begins it for its first owner. `close` is called when it is over. */
  begin(job: Job, listener: JobListener, close: () => void): RunningJob {
    const owner: Sharer = { job, listener, timer: null, alone: null };
    this.#owner = owner;
    this.#close = close;
    const running = this.#next(this.job, this);
    if (this.#owner !== null) this.#running = running;
    return { cancel: () => this.#leave(owner) };
  }

  /** Waits for its answer. */
  join(job: Job, listener: JobListener): RunningJob {
    const follower: Sharer = { job, listener, timer: null, alone: null };
    const waitMs = Math.max(0, job.endsAtMs - this.#parts.runtime.now()) * WAIT_SHARE;
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
      const { request, endsAtMs } = follower.job;
      if (this.#room !== null && request.room !== undefined && !this.#room.moveTo(request.room))
        continue;
      this.#followers?.delete(follower);
      this.#owner = follower;
      if (endsAtMs >= this.job.endsAtMs) follower.timer?.clear();
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
    this.#release((follower) => {
      if (shared !== null) follower.listener.ended(shared);
      else if (answer.outcome.kind === "fault" && this.#isLate(follower))
        follower.listener.ended(faultAnswer(answer.outcome.fault));
      else this.#goAlone(follower);
    });
  }

  /** It is over. Its attempts are evidence of the job that owned it last. */
  #end(owner: Sharer): void {
    this.#owner = null;
    owner.timer?.clear();
    owner.job.absorb(this.job);
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
    sharer.alone = this.#next(sharer.job, sharer.listener);
  }

  #isLate({ job }: Sharer): boolean {
    return job.endsAtMs <= this.#parts.runtime.now();
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
      return { outcome: { kind: "error", raw: Buffer.from(outcome.raw) }, source: from };
    case "result": {
      const { body, start, end } = outcome;
      if (end - start > MAX_SHARED_BYTES) return null;
      const value = Buffer.from(body.subarray(start, end));
      return {
        outcome: { kind: "result", body: value, start: 0, end: value.length, idAt: null },
        source: from,
      };
    }
  }
}

function NOTHING(): void {}
