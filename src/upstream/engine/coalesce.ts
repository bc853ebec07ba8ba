// Equal reads that are under way share one answer: the first one is carried out, and those that ask
// the same within a moment wait for it. Streams and long answers are never shared, and what is
// borrowed is copied. One that cannot be served so goes on alone.
import { providerOf } from "../../core/routing/answer-source.ts";
import type { Runtime } from "../../runtime.ts";
import type { RoutingState } from "../health/tracker.ts";
import type { Timer, TimerWheel } from "../timer-wheel.ts";
import type { Answer } from "./answer.ts";
import { type CancelJob, type Job, NOTHING_SENT, type PolicyLayer, type Stage } from "./stage.ts";

/** What sharing works with. */
export interface CoalesceParts {
  readonly runtime: Runtime;
  readonly timerWheel: TimerWheel;
}

/** A call that is older than this is joined by nobody. */
const JOIN_MS = 100;
/** Share of its time that a follower waits before it goes on alone. */
const WAIT_SHARE = 0.6;
const MAX_FOLLOWERS = 1_000;
/** Of the bytes of a request and of a result. */
const MAX_SHARED_BYTES = 65_536;
/** Of calls that can be joined at one time, for one provider set. */
const MAX_LEADERS = 1_024;

/** A job that waits for another one's answer; `goAlone` is for when there is none to share. */
interface Follower {
  share(answer: Answer): void;
  goAlone(): void;
}

/** A call under way that others may join. */
interface Leader {
  readonly startedAtMs: number;
  readonly followers: Set<Follower>;
}

/** The layer of shared answers. */
export function coalesce(parts: CoalesceParts): PolicyLayer {
  const leadersOf = new WeakMap<RoutingState, Map<string, Leader>>();
  return {
    appliesTo: ({ coalesce }) => coalesce,
    layer: (next) => (job, done) => {
      const { tracker, call } = job.request;
      if (call.body.length > MAX_SHARED_BYTES) return next(job, done);
      const leaders = leadersOf.get(tracker) ?? new Map<string, Leader>();
      leadersOf.set(tracker, leaders);
      const key = keyOf(job);
      const leader = leaders.get(key);
      const isJoined =
        leader !== undefined &&
        parts.runtime.now() - leader.startedAtMs <= JOIN_MS &&
        leader.followers.size < MAX_FOLLOWERS;
      if (isJoined) return follow(parts, leader, { next, job, done });
      if (leader !== undefined || leaders.size >= MAX_LEADERS) return next(job, done);
      const begun = { startedAtMs: parts.runtime.now(), followers: new Set<Follower>() };
      leaders.set(key, begun);
      return lead(begun, { next, job, done }, () => leaders.delete(key));
    },
  };
}

/** A job, and what follows it. */
interface Joined {
  readonly next: Stage;
  readonly job: Job;
  readonly done: (answer: Answer) => void;
}

/** Equal keys are equal questions: all bytes but those of the id, and how the caller wants it. */
function keyOf({ request }: Job): string {
  const { call, strategy, transport, mayStream } = request;
  const { body, idStart, idEnd } = call;
  const question = `${body.toString("latin1", 0, idStart)}\n${body.toString("latin1", idEnd)}`;
  return `${strategy} ${transport} ${mayStream} ${question}`;
}

function lead(leader: Leader, { next, job, done }: Joined, close: () => void): CancelJob {
  let isOver = false;
  const end = (shared: Answer | null): void => {
    for (const follower of leader.followers) {
      if (shared === null) follower.goAlone();
      else follower.share(shared);
    }
  };
  const cancel = next(job, (answer) => {
    isOver = true;
    close();
    // Before the caller hears of it: what is borrowed goes back then.
    const shared = leader.followers.size === 0 ? null : sharedOf(answer);
    done(answer);
    end(shared);
  });
  return () => {
    if (isOver) return NOTHING_SENT;
    isOver = true;
    close();
    const left = cancel();
    end(null);
    return left;
  };
}

function follow({ timerWheel, runtime }: CoalesceParts, leader: Leader, joined: Joined): CancelJob {
  const { next, job, done } = joined;
  let alone: CancelJob | null = null;
  const leave = (): boolean => {
    timer.clear();
    return leader.followers.delete(follower);
  };
  const follower: Follower = {
    share(answer) {
      if (leave()) done(answer);
    },
    goAlone() {
      if (leave()) alone = next(job, done);
    },
  };
  leader.followers.add(follower);
  const waitMs = Math.max(0, job.endsAtMs - runtime.now()) * WAIT_SHARE;
  const timer: Timer = timerWheel.set(waitMs, () => follower.goAlone());
  return () => {
    leave();
    return alone?.() ?? NOTHING_SENT;
  };
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
