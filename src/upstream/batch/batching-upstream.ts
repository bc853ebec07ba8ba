// Puts calls to one provider together that are sent at about the same time, where its operator
// allows that: one request, and an answer to each. Learns from providers that refuse. A call that
// is alone goes as if there were no batches.
import {
  type BatchLimits,
  LEAST_BATCH,
  type LearnedBatch,
  learnedFrom,
  mostAtOnce,
} from "../../core/provider/budget/batch-limits.ts";
import type { Provider } from "../../core/provider/profile.ts";
import type { Runtime } from "../../runtime.ts";
import type {
  AnswerListener,
  BatchUpstream,
  Dispatch,
  OutgoingRequest,
  Upstream,
} from "../transport.ts";
import { CallBatch, type CallBatchParts } from "./call-batch.ts";

/** Counts since the start. */
export interface BatchCounts {
  /** Batches that were sent, and their calls. */
  sent: number;
  calls: number;
  /** Batches that a provider did not take, or not all of. */
  refused: number;
  /** Calls of a batch that were asked alone after all. */
  alone: number;
}

/** Counts of nothing. */
export function newBatchCounts(): BatchCounts {
  return { sent: 0, calls: 0, refused: 0, alone: 0 };
}

/** What batches are made with. */
export interface BatchingParts extends Pick<CallBatchParts, "countAgain"> {
  readonly runtime: Pick<Runtime, "now" | "after" | "atTurnEnd">;
  readonly counts: BatchCounts;
  /** A provider did not take a batch: from now on it gets at most `most` calls at once. */
  readonly onRefused?: (provider: Provider, most: number) => void;
}

/**
 * Longest request that goes with others, and most bytes of requests in a batch: many proxies accept
 * bodies of up to 1 MB.
 */
const MAX_REQUEST_BYTES = 65_536;
const MAX_BATCH_BYTES = 524_288;

/** A transport that sends batches to providers with `batch`. */
export function batchingUpstream(http: BatchUpstream, parts: BatchingParts): Upstream {
  const queues = new WeakMap<Provider, BatchQueue>();
  return {
    send(outgoing, listener) {
      const { provider, mayBatch } = outgoing;
      const limits = provider.batch;
      if (mayBatch !== true || limits === null || outgoing.body.length > MAX_REQUEST_BYTES)
        return http.send(outgoing, listener);
      let queue = queues.get(provider);
      if (queue === undefined) {
        queue = new BatchQueue(http, provider, limits, parts);
        queues.set(provider, queue);
      }
      return queue.send(outgoing, listener);
    },
    isFree: (provider) => http.isFree?.(provider) ?? true,
    retain: (providers) => http.retain(providers),
    close: () => http.close(),
  };
}

/** The calls that are about to be sent to one provider. */
class BatchQueue {
  readonly #http: BatchUpstream;
  readonly #provider: Provider;
  readonly #limits: BatchLimits;
  readonly #parts: BatchingParts;
  readonly #batchParts: CallBatchParts;
  #open: CallBatch | null = null;
  #learned: LearnedBatch | null = null;

  constructor(http: BatchUpstream, provider: Provider, limits: BatchLimits, parts: BatchingParts) {
    this.#http = http;
    this.#provider = provider;
    this.#limits = limits;
    this.#parts = parts;
    const { countAgain, counts } = parts;
    this.#batchParts = {
      http,
      countAgain,
      refused: (batch, refusal) => {
        counts.refused++;
        const learned = learnedFrom(refusal, batch.size, parts.runtime.now());
        this.#learn(learned);
      },
      askedAlone: () => {
        counts.alone++;
      },
    };
  }

  send(outgoing: OutgoingRequest, listener: AnswerListener): Dispatch {
    const most = mostAtOnce(this.#limits, this.#learned, this.#parts.runtime.now());
    if (most < LEAST_BATCH) return this.#http.send(outgoing, listener);
    const open = this.#open;
    if (open !== null && open.bytes + outgoing.body.length > MAX_BATCH_BYTES) this.#flush(open);
    const batch = this.#open ?? this.#begin();
    const call = batch.add(outgoing, listener);
    if (batch.size >= most) this.#flush(batch);
    return call;
  }

  #begin(): CallBatch {
    const batch = new CallBatch(this.#batchParts);
    const { runtime } = this.#parts;
    const flush = (): void => this.#flush(batch);
    if (this.#limits.waitMs === 0) runtime.atTurnEnd(flush);
    else runtime.after(this.#limits.waitMs, flush);
    this.#open = batch;
    return batch;
  }

  #flush(batch: CallBatch): void {
    if (batch.isSent) return;
    if (this.#open === batch) this.#open = null;
    if (!batch.send()) return;
    const { counts } = this.#parts;
    counts.sent++;
    counts.calls += batch.size;
  }

  #learn(learned: LearnedBatch): void {
    const { runtime, onRefused } = this.#parts;
    const before = mostAtOnce(this.#limits, this.#learned, runtime.now());
    if (learned.most >= before) return;
    this.#learned = learned;
    onRefused?.(this.#provider, learned.most);
  }
}
