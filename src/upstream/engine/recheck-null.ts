// "Not found" for a transaction, receipt or block may come from a provider that is a block behind:
// it is asked once more of one whose head is higher, before the caller is told. Once for each
// call and head, out of the budget of further calls, and never for long. One who told of the
// transaction a few blocks ago, when it was in a block above the served tip, is asked in any case.
import type { Abandoned } from "../../core/billing/charging.ts";
import type { Provider } from "../../core/provider/profile.ts";
import { owe, take } from "../../core/routing/extra-calls.ts";
import type { Call } from "../../core/rpc/call.ts";
import type { Runtime } from "../../runtime.ts";
import type { RoutingState } from "../health/tracker.ts";
import { type Answer, type Outcome, resultOf } from "./answer.ts";
import { Job } from "./job.ts";
import { costOf } from "./late-move.ts";
import { blockNumberIn, MAX_BLOCKS_AHEAD, PreconfirmedTransactions } from "./preconfirmed.ts";
import {
  type JobListener,
  NOTHING_SENT,
  type PolicyLayer,
  type RunningJob,
  type Stage,
} from "./stage.ts";

/** The layer of rechecks. */
export function recheckNull(runtime: Pick<Runtime, "now">): PolicyLayer {
  const memories = new WeakMap<RoutingState, Memory>();
  return {
    appliesTo: (policy) => policy.recheckNull,
    layer: (next) => (job, listener) => {
      const { tracker } = job.request;
      const memory = memories.get(tracker) ?? {
        asked: new RecheckedCalls(),
        preconfirmed: new PreconfirmedTransactions(),
      };
      memories.set(tracker, memory);
      return new RecheckRun({ runtime, next, ...memory }, job, listener).start();
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

/** What is remembered of one provider set. */
interface Memory {
  readonly asked: RecheckedCalls;
  readonly preconfirmed: PreconfirmedTransactions;
}

interface RecheckParts extends Memory {
  readonly runtime: Pick<Runtime, "now">;
  readonly next: Stage;
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
    const isMissing = isNull(answer.outcome);
    if (!isMissing) this.#notePreconfirmed(answer);
    const second = isMissing ? this.#secondJob(answer) : null;
    if (second === null) return this.#finish(answer);
    const { outcome, source } = answer;
    if (outcome.kind === "result") outcome.pool?.recycle(outcome.body);
    this.#recheck(second, { outcome: resultOf("null"), source });
  }

  /** The call to a provider that may know more; null = there is none. */
  #secondJob({ source }: Answer): Job | null {
    const { request, policy, endsAtMs } = this.#job;
    if (source.kind !== "provider" || request.call.body.length > MAX_REQUEST_BYTES) return null;
    const startedAtMs = this.#parts.runtime.now();
    const deadlineMs = Math.min(SECOND_MS, endsAtMs - startedAtMs);
    const avoid = deadlineMs > 0 ? this.#leftOut(source.provider) : null;
    if (avoid === null) return null;
    return new Job(
      { ...request, avoid, deadlineMs },
      { ...policy, hedge: null, recheckNull: false, lanes: 1, maxAttempts: 1 },
      { startedAtMs, endsAtMs: startedAtMs + deadlineMs },
    );
  }

  /** Who is not asked after this provider's `null`; null = nobody is asked. */
  #leftOut(provider: Provider): ReadonlySet<string> | null {
    const { asked, preconfirmed, runtime } = this.#parts;
    const { tracker, call } = this.#job.request;
    const { extraCalls, set } = tracker;
    const key = keyOf(call);
    const cost = costOf(provider, call);
    const known = preconfirmed.providerOf(key, runtime.now());
    if (known !== null && known !== provider.id) {
      owe(extraCalls, cost);
      return new Set(set.providers.flatMap(({ id }) => (id === known ? [] : [id])));
    }
    const ahead = tracker.aheadOf(provider, call);
    if (ahead === null || !asked.mayRecheck(key, ahead.head)) return null;
    if (!take(extraCalls, cost)) {
      this.#job.overBudget = true;
      return null;
    }
    asked.add(key);
    return ahead.others;
  }

  /** Remembers who told of a transaction in a block above the served tip. */
  #notePreconfirmed({ outcome, source }: Answer): void {
    const { tracker, call } = this.#job.request;
    if (source.kind !== "provider" || call.body.length > MAX_REQUEST_BYTES) return;
    const block = blockNumberIn(call, outcome);
    const tip = block === null ? null : tracker.blocks.servedTip();
    if (block === null || tip === null || block <= tip || block > tip + MAX_BLOCKS_AHEAD) return;
    const { preconfirmed, runtime } = this.#parts;
    preconfirmed.add(keyOf(call), source.provider.id, tracker.set.chain, runtime.now());
  }

  #recheck(second: Job, otherwise: Answer): void {
    this.#isSecond = true;
    this.#running = this.#parts.next(second, {
      ended: (answer) => {
        const { outcome } = answer;
        const hasAnswer = outcome.kind === "result" || outcome.kind === "stream";
        this.#job.absorb(second);
        this.#notePreconfirmed(answer);
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
