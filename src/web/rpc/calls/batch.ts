// Runs a batch: the pipeline once per item, with bounded concurrency and at the caller's rate
// limit; replies keep the order of the requests. The only place that bounds the number of items,
// for every transport and every way to pay.
import { type Interruption, isCharged } from "../../../core/billing/charging.ts";
import { type Fault, fault } from "../../../core/faults/rpc-fault.ts";
import { readRequest } from "../../../core/rpc/envelope.ts";
import { readArray, type Span } from "../../../core/rpc/json.ts";
import type { KeyContext } from "../../../hosted/keys/key-context.ts";
import { noRoom } from "../../../upstream/engine/refusal.ts";
import type { Pieces } from "../../http/respond.ts";
import { evidenceOf } from "../answers/evidence.ts";
import { renderReply } from "../answers/render-reply.ts";
import type { DeliveryCallback, Reply } from "../answers/reply.ts";
import { NOT_JSON, type RpcLimits } from "../limits.ts";
import {
  BATCH_DEADLINE_MS,
  createPacer,
  type PacedItems,
  type Pacer,
  type PacerParts,
  type TokenWait,
} from "../pacer.ts";
import { runPipeline } from "./pipeline.ts";
import {
  type CallerMessage,
  type Cancel,
  type PipelineParts,
  SHORT_BYTES,
} from "./pipeline-request.ts";

/** The items of an accepted batch and the bounds under which they run. */
export interface BatchPlan {
  readonly kind: "batch";
  readonly spans: readonly Span[];
  /** Items in flight at once. */
  readonly concurrency: number;
  /**
   * Lets items over the rate limit wait; null = they are refused, or the caller has no rate limit.
   */
  readonly pacer: Pacer | null;
}

/** A batch of one caller. */
export interface RpcBatch extends Omit<BatchPlan, "kind">, CallerMessage {
  /**
   * Called with each reply. `shown` is false if the reply was replaced by a refusal for lack of
   * memory.
   */
  readonly heard: (reply: Reply, shown: boolean) => void;
}

/** Bounds of batches. */
export interface BatchParts extends PacerParts {
  readonly limits: Pick<RpcLimits, "maxBatchItems" | "batchConcurrency">;
}

/**
 * Reads a batch whose array begins at `start`, and accepts or refuses it.
 * `keyContext` null = a caller without a key.
 */
export function planBatch(
  parts: BatchParts,
  bytes: Buffer,
  start: number,
  keyContext: KeyContext | null,
): BatchPlan | Fault {
  const spans = itemsOfBatch(bytes, start, parts.limits);
  if ("kind" in spans) return spans;
  const fullForMs =
    keyContext === null ? null : (parts.admission?.batches.fullForMs(keyContext.account) ?? null);
  if (fullForMs !== null)
    return fault(
      "rate_limit_exceeded",
      "two batches or WebSockets of this account already wait for its rate limit",
      {
        nextAction: "wait for the answer to an earlier batch, then send this one again",
        retryAfterMs: Math.max(1, Math.ceil(fullForMs)),
      },
    );
  const { batchConcurrency: concurrency } = parts.limits;
  return { kind: "batch", spans, concurrency, pacer: createPacer(parts, keyContext) };
}

/** The items of a batch, or its refusal: it is not JSON, or has too many items or none. */
export function itemsOfBatch(
  bytes: Buffer,
  start: number,
  { maxBatchItems }: Pick<RpcLimits, "maxBatchItems">,
): readonly Span[] | Fault {
  const spans = readArray(bytes, start, maxBatchItems + 1);
  if (spans === null) return NOT_JSON;
  if (spans.length === 0) return fault("invalid_request", "the batch is empty");
  if (spans.length <= maxBatchItems) return spans;
  return fault(
    "invalid_request",
    `a batch may hold ${maxBatchItems} items (limits.max_batch_items)`,
    { nextAction: "send several smaller batches" },
  );
}

/**
 * Receives the body of a batch answer, null if every item was a notification. `settle` must be
 * called once the answer was delivered or lost.
 */
export type BatchDone = (body: Pieces, settle: DeliveryCallback) => void;

/**
 * Runs a batch. Returns a function that cancels it; this settles the items that were answered. If
 * the service itself cut the batch, its items are free.
 */
export function runBatch(
  parts: PipelineParts,
  batch: RpcBatch,
  done: BatchDone,
): (why: Interruption) => void {
  const run = new BatchRun(parts, batch, done);
  run.start();
  return (why) => run.cancel(why);
}

/** A running batch: starts items and gathers their replies in the order of the requests. */
class BatchRun {
  readonly #parts: PipelineParts;
  readonly #batch: Pick<RpcBatch, "spans" | "concurrency" | "pacer" | "heard">;
  readonly #message: CallerMessage;
  readonly #done: BatchDone;
  readonly #replies: Pieces[];
  readonly #cancels = new Map<number, Cancel>();
  /** Settlements of the answered items, called once the whole answer was delivered or lost. */
  readonly #settles: DeliveryCallback[] = [];
  /** Items that the rate limit postponed, in order. */
  readonly #postponed: number[] = [];
  readonly #items: PacedItems;
  #next = 0;
  #inFlight = 0;
  #open: number;
  #starting = false;

  constructor(parts: PipelineParts, batch: RpcBatch, done: BatchDone) {
    this.#parts = parts;
    const { spans, concurrency, pacer, heard, ...message } = batch;
    this.#batch = { spans, concurrency, pacer, heard };
    this.#message = { ...message, view: message.view.forBatch() };
    this.#done = done;
    this.#replies = batch.spans.map(() => null);
    this.#open = batch.spans.length;
    const deadlineMs = parts.runtime.now() + BATCH_DEADLINE_MS;
    this.#items = { deadlineMs, itemsLeft: this.#itemsLeft };
  }

  readonly start = (): void => {
    // A reply may come synchronously: the loop that is already running starts the next item, so
    // that calls do not nest.
    if (this.#starting) return;
    this.#starting = true;
    const { concurrency, pacer } = this.#batch;
    while (this.#inFlight < concurrency && pacer?.isWaiting !== true && this.#itemsLeft() > 0)
      this.#begin(this.#postponed.shift() ?? this.#next++);
    this.#starting = false;
    if (this.#itemsLeft() === 0) pacer?.stop();
  };

  cancel(why: Interruption): void {
    this.#batch.pacer?.stop();
    for (const cancel of this.#cancels.values()) cancel(why);
    this.#settle(why === "left");
  }

  readonly #itemsLeft = (): number =>
    this.#batch.spans.length - this.#next + this.#postponed.length;

  #begin(index: number): void {
    const span = this.#batch.spans[index];
    if (span === undefined) return;
    let ended = false;
    this.#inFlight++;
    const end = (): void => {
      ended = true;
      this.#inFlight--;
      this.#cancels.delete(index);
    };
    const item = {
      ...this.#message,
      envelope: readRequest(this.#message.bytes, span.start, span.end),
      requestId: `${this.#message.requestId}-${index}`,
      delivery: "item" as const,
      postpone: (token: TokenWait) => this.#postpone(index, token, end),
    };
    const cancel = runPipeline(this.#parts, item, (reply) => {
      end();
      this.#keep(index, reply);
    });
    if (!ended && cancel !== null) this.#cancels.set(index, cancel);
  }

  /** Postpones an item until the rate limit has a token for it; false = it may not wait. */
  #postpone(index: number, token: TokenWait, end: () => void): boolean {
    const { pacer } = this.#batch;
    if (pacer === null || !pacer.wait(token, this.#items, this.start)) return false;
    end();
    this.#postponed.push(index);
    return true;
  }

  #keep(index: number, reply: Reply): void {
    this.#open--;
    this.#message.view.answered(reply);
    if (reply.settle !== null) this.#settles.push(reply.settle);
    if (reply.id === null) this.#batch.heard(reply, false);
    else this.#replies[index] = this.#bounded(reply);
    if (this.#open > 0) return this.start();
    this.#batch.pacer?.stop();
    this.#done(join(this.#replies), this.#settle);
  }

  readonly #settle = (delivered: boolean): void => {
    for (const settle of this.#settles.splice(0)) settle(delivered);
  };

  /** The reply as JSON, or a refusal if the memory budget of the request is used up. */
  #bounded(reply: Reply): readonly Buffer[] {
    const { target, room } = this.#message;
    const meta = target.meta === "body" ? evidenceOf(reply, this.#parts) : null;
    const pieces = renderReply(reply, meta);
    const bytes = pieces.reduce((sum, piece) => sum + piece.length, 0);
    // A charged answer was found to fit a moment ago, or had a side effect: it is always shown.
    const shown = room.take(bytes) || bytes <= SHORT_BYTES || isCharged(reply.source);
    this.#batch.heard(reply, shown);
    return shown
      ? pieces
      : renderReply({ ...reply, outcome: { kind: "fault", fault: noRoom() } }, meta);
  }
}

const OPEN = Buffer.from("[");
const COMMA = Buffer.from(",");
const CLOSE = Buffer.from("]");

function join(replies: readonly Pieces[]): Pieces {
  const pieces = replies.flatMap((reply) => (reply === null ? [] : [COMMA, ...reply]));
  if (pieces.length === 0) return null;
  pieces[0] = OPEN;
  pieces.push(CLOSE);
  return gathered(pieces);
}

/**
 * Pieces up to this size are copied together, because each write has a cost; the second constant
 * bounds the size of the result.
 */
const SHORT_PIECE_BYTES = 4_096;
const GATHERED_BYTES = 65_536;

function gathered(pieces: readonly Buffer[]): readonly Buffer[] {
  const result: Buffer[] = [];
  let run: Buffer[] = [];
  let runBytes = 0;
  const flush = (): void => {
    if (run.length > 0) result.push(Buffer.concat(run, runBytes));
    run = [];
    runBytes = 0;
  };
  for (const piece of pieces) {
    const isShort = piece.length <= SHORT_PIECE_BYTES;
    if (!isShort || runBytes + piece.length > GATHERED_BYTES) flush();
    if (isShort) {
      run.push(piece);
      runBytes += piece.length;
    } else result.push(piece);
  }
  flush();
  return result;
}
