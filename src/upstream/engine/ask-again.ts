// "Not found" for a transaction, receipt or block may come from a provider that is a block behind:
// it is asked once more of one whose head is higher, before the caller is told. Once for each
// question and head, out of the budget of further calls, and never for long.
import type { Abandoned } from "../../core/billing/charging.ts";
import { take } from "../../core/routing/extra-calls.ts";
import type { Call } from "../../core/rpc/call.ts";
import type { Runtime } from "../../runtime.ts";
import type { RoutingState } from "../health/tracker.ts";
import { type Answer, type Outcome, resultOf } from "./answer.ts";
import { Job } from "./job.ts";
import { COST } from "./late-move.ts";
import {
  type JobListener,
  NOTHING_SENT,
  type PolicyLayer,
  type RunningJob,
  type Stage,
} from "./stage.ts";

/** The layer of second questions. */
export function askAgain(runtime: Pick<Runtime, "now">): PolicyLayer {
  const askedOf = new WeakMap<RoutingState, AskedQuestions>();
  return {
    appliesTo: (policy) => policy.askAgain,
    layer: (next) => (job, listener) => {
      const { tracker } = job.request;
      const asked = askedOf.get(tracker) ?? new AskedQuestions();
      askedOf.set(tracker, asked);
      return new AskAgainRun({ runtime, next, asked }, job, listener).start();
    },
  };
}

/** Longest time that the second provider may take: an answer is there already. */
const SECOND_MS = 1_000;
/** Of the bytes of a request; a longer one is not asked again. */
const MAX_QUESTION_BYTES = 1_024;
/** Questions that are remembered for one head. */
const MAX_QUESTIONS = 4_096;

/** What was asked again since the head moved. */
class AskedQuestions {
  readonly #questions = new Set<string>();
  #head = Number.NaN;

  /** Whether a question may be asked again at this height. */
  mayAsk(question: string, head: number): boolean {
    if (head !== this.#head) this.#questions.clear();
    this.#head = head;
    return this.#questions.size < MAX_QUESTIONS && !this.#questions.has(question);
  }

  add(question: string): void {
    this.#questions.add(question);
  }
}

interface AskAgainParts {
  readonly runtime: Pick<Runtime, "now">;
  readonly next: Stage;
  readonly asked: AskedQuestions;
}

/** A call that may be asked again. */
class AskAgainRun implements JobListener, RunningJob {
  readonly #parts: AskAgainParts;
  readonly #job: Job;
  readonly #listener: JobListener;
  #running: RunningJob | null = null;
  /** The second question has been begun. */
  #isSecond = false;
  #over = false;

  constructor(parts: AskAgainParts, job: Job, listener: JobListener) {
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
    // Before the second question there was an answer.
    return this.#isSecond ? { sent: true, countedAsTimeout: false } : left;
  }

  ended(answer: Answer): void {
    const second = isNull(answer.outcome) ? this.#secondJob(answer) : null;
    if (second === null) return this.#finish(answer);
    const { outcome, source } = answer;
    if (outcome.kind === "result") outcome.pool?.recycle(outcome.body);
    this.#ask(second, { outcome: resultOf("null"), source });
  }

  /** The question to a provider that may know more; null = it is not asked. */
  #secondJob({ source }: Answer): Job | null {
    const { request, policy, endsAtMs } = this.#job;
    const { tracker, call } = request;
    if (source.kind !== "provider" || call.body.length > MAX_QUESTION_BYTES) return null;
    const startedAtMs = this.#parts.runtime.now();
    const deadlineMs = Math.min(SECOND_MS, endsAtMs - startedAtMs);
    const ahead = deadlineMs > 0 ? tracker.aheadOf(source.provider, call) : null;
    if (ahead === null) return null;
    const question = questionOf(call);
    if (!this.#parts.asked.mayAsk(question, ahead.head)) return null;
    if (!take(tracker.extraCalls, COST)) {
      this.#job.overBudget = true;
      return null;
    }
    this.#parts.asked.add(question);
    return new Job(
      { ...request, avoid: ahead.others, deadlineMs },
      { ...policy, hedge: null, askAgain: false, lanes: 1, maxAttempts: 1 },
      { startedAtMs, endsAtMs: startedAtMs + deadlineMs },
    );
  }

  #ask(second: Job, otherwise: Answer): void {
    this.#isSecond = true;
    this.#running = this.#parts.next(second, {
      ended: (answer) => {
        const { outcome } = answer;
        const hasAnswer = outcome.kind === "result" || outcome.kind === "stream";
        this.#job.absorb(second);
        this.#job.askedAgain = hasAnswer && !isNull(outcome) ? "found" : "missing";
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
function questionOf({ body, idStart, idEnd }: Call): string {
  return `${body.toString("latin1", 0, idStart)}\n${body.toString("latin1", idEnd)}`;
}

/** Whether a result is `null`. */
function isNull(outcome: Outcome): boolean {
  if (outcome.kind !== "result" || outcome.end - outcome.start !== NULL.length) return false;
  return outcome.body.toString("latin1", outcome.start, outcome.end) === NULL;
}

const NULL = "null";
