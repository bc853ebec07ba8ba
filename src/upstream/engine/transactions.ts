// Writes: a provider that has a transaction already, or whose answer got lost, has not refused it.
// Answers with the transaction's hash or receipt where a node has it, and names the hash where
// nobody knows what became of it.
import { type Abandoned, abandonedAfter } from "../../core/billing/charging.ts";
import { NO_SOURCE } from "../../core/routing/answer-source.ts";
import { policyOf } from "../../core/routing/policy.ts";
import { type Call, NO_BLOCK } from "../../core/rpc/call.ts";
import { methodOf } from "../../core/rpc/method.ts";
import { writeRequest } from "../../core/rpc/wire-request.ts";
import type { Runtime } from "../../runtime.ts";
import { type Answer, faultAnswer, type Outcome, providerAnswer, resultOf } from "./answer.ts";
import { Job } from "./job.ts";
import { outcomeUnknown } from "./refusal.ts";
import {
  type JobListener,
  NOTHING_SENT,
  type PolicyLayer,
  type RunningJob,
  type Stage,
} from "./stage.ts";
import { transactionHash } from "./transaction-hash.ts";

/** The layer of raw transactions. */
export function transactions(runtime: Runtime): PolicyLayer {
  return {
    appliesTo: ({ transaction }) => transaction !== null,
    layer: (next) => (job, listener) => {
      const submission = new Submission({ runtime, next }, job, listener);
      submission.start();
      return submission;
    },
  };
}

/** Longest time for finding out whether a node has a transaction. */
const LOOKUP_MS = 3_000;

interface SubmissionParts {
  readonly runtime: Runtime;
  readonly next: Stage;
}

/** A transaction on its way. */
class Submission implements JobListener, RunningJob {
  readonly #parts: SubmissionParts;
  readonly #job: Job;
  readonly #listener: JobListener;
  #running: RunningJob | null = null;
  #isLookingUp = false;
  #over = false;

  constructor(parts: SubmissionParts, job: Job, listener: JobListener) {
    this.#parts = parts;
    this.#job = job;
    this.#listener = listener;
  }

  start(): void {
    const running = this.#parts.next(this.#job, this);
    if (!this.#isLookingUp) this.#running = running;
  }

  cancel(): Abandoned {
    if (this.#over) return NOTHING_SENT;
    this.#over = true;
    const left = this.#running?.cancel() ?? NOTHING_SENT;
    return this.#isLookingUp ? abandonedAfter(this.#job.failed) : left;
  }

  /** Decides by what the last provider said. */
  ended(answer: Answer): void {
    const { request, policy, failed } = this.#job;
    const { outcome } = answer;
    if (outcome.kind === "result" || outcome.kind === "stream") return this.#finish(answer);
    if (outcome.kind === "fault" && outcome.fault.code === "outcome_unknown") {
      const hash = transactionHash(request.call.body);
      return this.#finish(faultAnswer(outcomeUnknown(failed, hash)));
    }
    const step = failed.at(-1)?.verdict.step;
    if (step !== "known" && step !== "verify") return this.#finish(answer);
    const hash = transactionHash(request.call.body);
    const wanted = policy.transaction;
    if (hash === null || wanted === null || wanted === "other") return this.#finish(answer);
    // The node has this very transaction: that is what the caller wanted, unless it waits for the
    // receipt.
    if (step === "known" && wanted === "hash") return this.#finish(this.#known(hash));
    this.#lookUp(hash, wanted, answer);
  }

  /**
   * A nonce that was used: by this very transaction, which is a success, or by another. The node
   * that says so is the one that knows.
   */
  #lookUp(hash: string, wanted: "hash" | "receipt", otherwise: Answer): void {
    const { runtime, next } = this.#parts;
    const { request, failed, policy, endsAtMs, lookups } = this.#job;
    const startedAtMs = runtime.now();
    const deadlineMs = Math.min(endsAtMs - startedAtMs, LOOKUP_MS);
    if (deadlineMs <= 0) return this.#finish(otherwise);
    const pin = failed.at(-1)?.attempt.provider ?? null;
    const call = lookupOf(hash, wanted);
    const lookup = new Job(
      { ...request, call, pin, deadlineMs, mayStream: false },
      policyOf(call.method, call.block, { ...policy, coalesce: false, hedge: null, split: false }),
      { startedAtMs, endsAtMs: startedAtMs + deadlineMs },
    );
    this.#job.lookups = [...lookups, lookup];
    this.#isLookingUp = true;
    this.#running = next(lookup, {
      ended: ({ outcome }) => {
        const found = textOf(outcome);
        if (!found.toLowerCase().includes(hash)) this.#finish(otherwise);
        else this.#finish(wanted === "hash" ? this.#known(hash) : this.#answerOf(found));
      },
    });
  }

  #known(hash: string): Answer {
    return this.#answerOf(`"${hash}"`);
  }

  /** A result that the service writes, attributed to the last provider. */
  #answerOf(json: string): Answer {
    const provider = this.#job.failed.at(-1)?.attempt.provider;
    const outcome = resultOf(json);
    return provider === undefined
      ? { outcome, source: NO_SOURCE }
      : providerAnswer(outcome, provider);
  }

  #finish(answer: Answer): void {
    if (this.#over) return;
    this.#over = true;
    this.#listener.ended(answer);
  }
}

/** The call that asks for a transaction, or for its receipt, by its hash. */
function lookupOf(hash: string, what: "hash" | "receipt"): Call {
  const methodName = what === "hash" ? "eth_getTransactionByHash" : "eth_getTransactionReceipt";
  return {
    methodName,
    method: methodOf(methodName),
    block: NO_BLOCK,
    ...writeRequest(methodName, Buffer.from(`["${hash}"]`)),
  };
}

function textOf(outcome: Outcome): string {
  return outcome.kind === "result" ? outcome.body.toString("utf8", outcome.start, outcome.end) : "";
}
