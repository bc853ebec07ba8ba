// "Not found" for a transaction, receipt or block may come from a provider that is a block behind:
// it is asked once more of one whose head is higher, before the caller is told. Once for each
// call and head, out of the budget of further calls, and never for long.
import type { Abandoned } from "../../core/billing/charging.ts";
import { take } from "../../core/routing/extra-calls.ts";
import type { Call } from "../../core/rpc/call.ts";
import type { Runtime } from "../../runtime.ts";
import type { RoutingState } from "../health/tracker.ts";
import { type Answer, type Outcome, resultOf } from "./answer.ts";
import { Job } from "./job.ts";
import { costOf } from "./late-move.ts";
import {
  type JobListener,
  NOTHING_SENT,
  type PolicyLayer,
  type RunningJob,
  type Stage,
} from "./stage.ts";

/** The layer of rechecks. */
export function recheckNull(runtime: Pick<Runtime, "now">): PolicyLayer {
  const askedOf = new WeakMap<RoutingState, RecheckedCalls>();
  return {
    appliesTo: (policy) => policy.recheckNull,
    layer: (next) => (job, listener) => {
      const { tracker } = job.request;
      const asked = askedOf.get(tracker) ?? new RecheckedCalls();
      askedOf.set(tracker, asked);
      return new RecheckRun({ runtime, next, asked }, job, listener).start();
    },
  };
}

/** Longest time that the second provider may take: an answer is there already. */
const SECOND_MS = 1_000;
/** Of the bytes of a request; a longer one is not asked again. */
const MAX_REQUEST_BYTES = 1_024;
/** Calls that are remembered for one head. */
const MAX_KEYS = 4_096;

/** What was asked again since the head moved. */
class RecheckedCalls {
  readonly #keys = new Set<string>();
  #head = Number.NaN;

  /** Whether a call may be asked again at this height. */
  mayRecheck(key: string, head: number): boolean {
    if (head !== this.#head) this.#keys.clear();
    this.#head = head;
    return this.#keys.size < MAX_KEYS && !this.#keys.has(key);
  }

  add(key: string): void {
    this.#keys.add(key);
  }
}

interface RecheckParts {
  readonly runtime: Pick<Runtime, "now">;
  readonly next: Stage;
  readonly asked: RecheckedCalls;
}

/** A call that may be asked again. */
class RecheckRun implements JobListener, RunningJob {
  readonly #parts: RecheckParts;
  readonly #job: Job;
  readonly #listener: JobListener;
  #running: RunningJob | null = null;
  /** The recheck has begun. */
  #isSecond = false;
  #over = false;

  constructor(parts: RecheckParts, job: Job, listener: JobListener) {
    this.#parts = parts;
    this.#job = job;
    this.#listener = listener;
  }

  start(): RunningJob {
    const running = this.#parts.next(this.#job, this);
    if (!this.#isSecond) this.#running = running;
    return this;
  }

  cancel(): Abandoned {
    if (this.#over) return NOTHING_SENT;
    this.#over = true;
    const left = this.#running?.cancel() ?? NOTHING_SENT;
    // Before the recheck there was an answer.
    return this.#isSecond ? { sent: true, countedAsTimeout: false } : left;
  }

  ended(answer: Answer): void {
    const second = isNull(answer.outcome) ? this.#secondJob(answer) : null;
    if (second === null) return this.#finish(answer);
    const { outcome, source } = answer;
    if (outcome.kind === "result") outcome.pool?.recycle(outcome.body);
    this.#recheck(second, { outcome: resultOf("null"), source });
  }

  /** The call to a provider that may know more; null = there is none. */
  #secondJob({ source }: Answer): Job | null {
    const { request, policy, endsAtMs } = this.#job;
    const { tracker, call } = request;
    if (source.kind !== "provider" || call.body.length > MAX_REQUEST_BYTES) return null;
    const startedAtMs = this.#parts.runtime.now();
    const deadlineMs = Math.min(SECOND_MS, endsAtMs - startedAtMs);
    const ahead = deadlineMs > 0 ? tracker.aheadOf(source.provider, call) : null;
    if (ahead === null) return null;
    const key = keyOf(call);
    if (!this.#parts.asked.mayRecheck(key, ahead.head)) return null;
    if (!take(tracker.extraCalls, costOf(source.provider, call))) {
      this.#job.overBudget = true;
      return null;
    }
    this.#parts.asked.add(key);
    return new Job(
      { ...request, avoid: ahead.others, deadlineMs },
      { ...policy, hedge: null, recheckNull: false, lanes: 1, maxAttempts: 1 },
      { startedAtMs, endsAtMs: startedAtMs + deadlineMs },
    );
  }

  #recheck(second: Job, otherwise: Answer): void {
    this.#isSecond = true;
    this.#running = this.#parts.next(second, {
      ended: (answer) => {
        const { outcome } = answer;
        const hasAnswer = outcome.kind === "result" || outcome.kind === "stream";
        this.#job.absorb(second);
        this.#job.rechecked = hasAnswer && !isNull(outcome) ? "found" : "missing";
        this.#finish(hasAnswer ? answer : otherwise);
      },
    });
  }

  #finish(answer: Answer): void {
    this.#over = true;
    this.#listener.ended(answer);
  }
}

/** All bytes of a request but those of its id. */
function keyOf({ body, idStart, idEnd }: Call): string {
  return `${body.toString("latin1", 0, idStart)}\n${body.toString("latin1", idEnd)}`;
}

/** Whether a result is `null`. */
function isNull(outcome: Outcome): boolean {
  if (outcome.kind !== "result" || outcome.end - outcome.start !== NULL.length) return false;
  return outcome.body.toString("latin1", outcome.start, outcome.end) === NULL;
}

const NULL = "null";
