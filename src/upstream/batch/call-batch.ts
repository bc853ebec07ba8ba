// The calls of one batch: collected, sent as one request, each answered for itself. A call whose
// batch the provider refused, or left it out of, is asked alone at once: only reads are here.
import {
  type BatchRefusal,
  batchRefusalOf,
  isCutShort,
} from "../../core/provider/budget/batch-limits.ts";
import { type Failure, plainFailure } from "../../core/rpc/failure.ts";
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
} from "../transport.ts";

/** What a batch works with. */
export interface CallBatchParts {
  readonly http: BatchUpstream;
  /** Counts a call once more that is sent again. False = its provider has no room for that. */
  readonly countAgain: (outgoing: OutgoingRequest) => boolean;
  /** The provider did not take the batch, or not all of it. */
  readonly refused: (batch: CallBatch, refusal: BatchRefusal) => void;
  /** A call of a batch is asked alone after all. */
  readonly askedAlone: () => void;
}

/** One call of a batch. */
export class BatchedCall implements Dispatch {
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
  askAlone(http: BatchUpstream): void {
    this.state = "answered";
    this.#alone = http.send(this.outgoing, this.listener);
  }
}

/** The calls of one batch. */
export class CallBatch implements BatchListener, SentBatch {
  isSilent = false;
  isGivenUp = false;
  /** Null = it is not sent yet, or its only call went alone. */
  dispatch: Dispatch | null = null;
  /** Bytes of its requests. */
  bytes = 0;
  readonly #parts: CallBatchParts;
  #calls: BatchedCall[] = [];
  #open = 0;
  #answered = 0;
  #isSent = false;
  /** The provider said of some call that it did not take the batch. */
  #refusal: BatchRefusal | null = null;

  constructor(parts: CallBatchParts) {
    this.#parts = parts;
  }

  get size(): number {
    return this.#calls.length;
  }

  get isSent(): boolean {
    return this.#isSent;
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
    this.#isSent = true;
    this.#calls = this.#calls.filter(({ state }) => state === "open");
    const [only] = this.#calls;
    if (only === undefined) return false;
    if (this.#calls.length === 1) {
      this.#open = 0;
      only.askAlone(this.#parts.http);
      return false;
    }
    const requests = this.#calls.map(({ outgoing }) => outgoing);
    this.dispatch = this.#parts.http.sendBatch(requests, this);
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
    if (call !== null) this.#askAlone(call);
  }

  over(ending: BatchEnding): void {
    const left = this.#calls.filter(({ state }) => state === "open");
    const refusal = this.#refusal ?? refusalOf(ending, left.length, this.#answered);
    this.#open = 0;
    if (refusal !== null) this.#parts.refused(this, refusal);
    const failure = failureOf(ending);
    for (const call of left) {
      if (call.state !== "open") continue;
      call.state = "answered";
      if (refusal !== null || failure === null) this.#askAlone(call);
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

  #askAlone(call: BatchedCall): void {
    const { askedAlone, countAgain, http } = this.#parts;
    askedAlone();
    if (countAgain(call.outgoing)) call.askAlone(http);
    else call.listener.failed({ ...plainFailure("unsent", NO_ROOM), crowded: true }, null);
  }
}

const NO_ROOM = "its own limit is reached";

/**
 * What the end of a batch says about batches of this size; null = nothing. A provider that leaves
 * calls out takes as many as it answered.
 */
function refusalOf(ending: BatchEnding, left: number, answered: number): BatchRefusal | null {
  switch (ending.kind) {
    case "single":
      return { kind: "unsupported" };
    case "failed":
      return batchRefusalOf(ending.failure, true);
    case "answered":
      if (left === 0) return null;
      if (ending.unowned !== null) return batchRefusalOf(ending.unowned, true);
      if (left <= ending.passedOver) return null;
      return { kind: "too_large", most: Math.max(1, answered) };
  }
}

function failureOf(ending: BatchEnding): Failure | null {
  switch (ending.kind) {
    case "single":
      return null;
    case "failed":
      return ending.failure;
    case "answered":
      return ending.unowned;
  }
}
