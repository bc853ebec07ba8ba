// Sends calls that reach a provider at about the same time as one JSON-RPC batch, where the
// operator allows batches, and splits the answer. Learns from providers that refuse. A call that is
// alone goes as if there were no batches.
import {
  type BatchLimits,
  type BatchRefusal,
  batchRefusalOf,
  isCutShort,
  LEAST_BATCH,
  type LearnedBatch,
  learnedFrom,
  mostAtOnce,
} from "../../core/provider/budget/batch-limits.ts";
import type { Provider } from "../../core/provider/profile.ts";
import { crowdedFailure, type Failure } from "../../core/rpc/failure.ts";
import type { Runtime } from "../../runtime.ts";
import type {
  AnswerListener,
  BatchEnding,
  BatchListener,
  BatchUpstream,
  BorrowedBuffer,
  Dispatch,
  OutgoingRequest,
  ResultSpan,
  SentBatch,
  Upstream,
} from "../transport.ts";

/** Counts since the start. */
export class BatchCounts {
  /** Batches that were sent, and their calls. */
  sent = 0;
  calls = 0;
  /** Batches that a provider did not take, or not all of. */
  refused = 0;
  /** Calls of a batch that were asked alone after all. */
  alone = 0;
}

/** What batches are made with. */
export interface BatchingParts {
  readonly runtime: Pick<Runtime, "now" | "after" | "atTurnEnd">;
  readonly counts: BatchCounts;
  /** Counts a call once more that is sent again. False = its provider has no room for that. */
  readonly countAgain: (outgoing: OutgoingRequest) => boolean;
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
export function batchingUpstream(
  http: BatchUpstream,
  parts: BatchingParts,
): Pick<Upstream, "send"> {
  const queues = new WeakMap<Provider, BatchQueue>();
  return {
    send(outgoing, listener) {
      const { provider, mayShare } = outgoing;
      const limits = provider.batch;
      if (mayShare !== true || limits === null || outgoing.body.length > MAX_REQUEST_BYTES)
        return http.send(outgoing, listener);
      const queue = queues.get(provider) ?? new BatchQueue(http, provider, limits, parts);
      queues.set(provider, queue);
      return queue.send(outgoing, listener);
    },
  };
}

/** The calls that are about to be sent to one provider. */
class BatchQueue {
  readonly http: BatchUpstream;
  readonly #provider: Provider;
  readonly #limits: BatchLimits;
  readonly #parts: BatchingParts;
  #open: CallBatch | null = null;
  #learned: LearnedBatch | null = null;

  constructor(http: BatchUpstream, provider: Provider, limits: BatchLimits, parts: BatchingParts) {
    this.http = http;
    this.#provider = provider;
    this.#limits = limits;
    this.#parts = parts;
  }

  send(outgoing: OutgoingRequest, listener: AnswerListener): Dispatch {
    const most = mostAtOnce(this.#limits, this.#learned, this.#parts.runtime.now());
    if (most < LEAST_BATCH) return this.http.send(outgoing, listener);
    const open = this.#open;
    if (open !== null && open.bytes + outgoing.body.length > MAX_BATCH_BYTES) this.#flush(open);
    const batch = this.#open ?? this.#begin();
    const call = batch.add(outgoing, listener);
    if (batch.size >= most) this.#flush(batch);
    return call;
  }

  #begin(): CallBatch {
    const batch = new CallBatch(this);
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

  /** The provider did not take a batch of so many calls, or not all of it. */
  refused(refusal: BatchRefusal, size: number): void {
    const { runtime, counts, onRefused } = this.#parts;
    counts.refused++;
    const nowMs = runtime.now();
    const learned = learnedFrom(refusal, size, nowMs);
    if (learned.most >= mostAtOnce(this.#limits, this.#learned, nowMs)) return;
    this.#learned = learned;
    onRefused?.(this.#provider, learned.most);
  }

  /** A call of a batch is asked alone after all. */
  sendAlone(call: BatchedCall): void {
    const { counts, countAgain } = this.#parts;
    counts.alone++;
    if (countAgain(call.outgoing)) call.sendAlone(this.http);
    else call.listener.failed(crowdedFailure(), null);
  }
}

/** One call of a batch. */
class BatchedCall implements Dispatch {
  readonly outgoing: OutgoingRequest;
  readonly listener: AnswerListener;
  state: "open" | "answered" | "left" = "open";
  readonly #batch: CallBatch;
  /** Its own request; null = it has none. */
  #alone: Dispatch | null = null;

  constructor(batch: CallBatch, outgoing: OutgoingRequest, listener: AnswerListener) {
    this.#batch = batch;
    this.outgoing = outgoing;
    this.listener = listener;
  }

  get sent(): boolean {
    return (this.#alone ?? this.#batch.dispatch)?.sent === true;
  }

  get queued(): boolean {
    return (this.#alone ?? this.#batch.dispatch)?.queued === true;
  }

  get batch(): SentBatch | null {
    return this.#alone === null && this.#batch.dispatch !== null ? this.#batch : null;
  }

  cancel(): void {
    if (this.state !== "open") return this.#alone?.cancel();
    this.state = "left";
    this.#batch.leave();
  }

  /** Sends it as a request of its own. */
  sendAlone(http: BatchUpstream): void {
    this.state = "answered";
    this.#alone = http.send(this.outgoing, this.listener);
  }
}

/** The calls of one batch. */
class CallBatch implements BatchListener, SentBatch {
  isSilent = false;
  isGivenUp = false;
  /** Null = it is not sent yet, or its only call went alone. */
  dispatch: Dispatch | null = null;
  /** Bytes of its requests. */
  bytes = 0;
  readonly #queue: BatchQueue;
  #calls: BatchedCall[] = [];
  #open = 0;
  #answered = 0;
  isSent = false;
  /** The provider said of some call that it did not take the batch. */
  #refusal: BatchRefusal | null = null;

  constructor(queue: BatchQueue) {
    this.#queue = queue;
  }

  get size(): number {
    return this.#calls.length;
  }

  get isWaiting(): boolean {
    return this.#open > 0;
  }

  add(outgoing: OutgoingRequest, listener: AnswerListener): BatchedCall {
    const call = new BatchedCall(this, outgoing, listener);
    this.#calls.push(call);
    this.#open++;
    this.bytes += outgoing.body.length;
    return call;
  }

  /** Sends it. True = as a batch; a call that is alone goes as it is. */
  send(): boolean {
    this.isSent = true;
    this.#calls = this.#calls.filter(({ state }) => state === "open");
    const [only] = this.#calls;
    if (only === undefined) return false;
    if (this.#calls.length === 1) {
      this.#open = 0;
      only.sendAlone(this.#queue.http);
      return false;
    }
    const requests = this.#calls.map(({ outgoing }) => outgoing);
    this.dispatch = this.#queue.http.sendBatch(requests, this);
    return true;
  }

  /** The caller of a call has left; with the last of them the request ends. */
  leave(): void {
    if (--this.#open === 0) this.dispatch?.cancel();
  }

  isOpen(place: number): boolean {
    return this.#calls[place]?.state === "open";
  }

  isAnswered(place: number): boolean {
    return this.#calls[place]?.state === "answered";
  }

  heard(): void {
    this.#calls.find(({ state }) => state === "open")?.listener.heard?.();
  }

  result(place: number, body: Buffer, span: ResultSpan, pool?: BorrowedBuffer): void {
    const call = this.#take(place);
    if (call === null) pool?.recycle(body);
    else call.listener.result(body, span, pool);
  }

  failed(place: number, failure: Failure, raw: Buffer | null): void {
    const refusal = batchRefusalOf(failure, false);
    this.#refusal ??= refusal;
    if (refusal !== null || isCutShort(failure)) return this.tooLong(place);
    this.#take(place)?.listener.failed({ ...failure, incident: this }, raw);
  }

  tooLong(place: number): void {
    const call = this.#take(place);
    if (call !== null) this.#queue.sendAlone(call);
  }

  over(ending: BatchEnding): void {
    const left = this.#calls.filter(({ state }) => state === "open");
    const refusal = this.#refusal ?? refusalOf(ending, left.length, this.#answered);
    this.#open = 0;
    if (refusal !== null) this.#queue.refused(refusal, this.size);
    const { failure } = ending;
    for (const call of left) {
      if (call.state !== "open") continue;
      call.state = "answered";
      if (refusal !== null || failure === null) this.#queue.sendAlone(call);
      else call.listener.failed({ ...failure, incident: failure.incident ?? this }, null);
    }
  }

  /** The call at a place, which has its answer from now on; null = it needs none. */
  #take(place: number): BatchedCall | null {
    const call = this.#calls[place];
    if (call?.state !== "open") return null;
    call.state = "answered";
    this.#open--;
    this.#answered++;
    return call;
  }
}

/**
 * What the end of a batch says about batches of this size; null = nothing. A provider that leaves
 * calls out takes as many as it answered.
 */
function refusalOf(
  { kind, failure, passedOver }: BatchEnding,
  left: number,
  answered: number,
): BatchRefusal | null {
  if (kind === "single") return { kind: "unsupported" };
  if (kind === "answered" && left === 0) return null;
  if (failure !== null) return batchRefusalOf(failure, true);
  return left <= passedOver ? null : { kind: "too_large", most: Math.max(1, answered) };
}
