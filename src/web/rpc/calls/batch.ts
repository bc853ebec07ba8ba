// Runs a batch: the pipeline once per item, with bounded concurrency and at the caller's rate
// limit; replies keep the order of the requests. The only place that bounds the number of items,
// for every transport and every way to pay.
import { type Interruption, isCharged } from "../../../core/billing/charging.ts";
import { interruptedEnd } from "../../../core/call-end.ts";
import { type Fault, fault } from "../../../core/faults/rpc-fault.ts";
import type { Transport } from "../../../core/provider/profile.ts";
import type { CallerIdentity } from "../../../core/provider/silence.ts";
import { type Envelope, type InvalidRequest, readRequests } from "../../../core/rpc/envelope.ts";
import type { KeyContext } from "../../../hosted/keys/key-context.ts";
import { noRoom } from "../../../upstream/engine/refusal.ts";
import type { MemoryShare } from "../../../upstream/transport.ts";
import type { Pieces } from "../../http/respond.ts";
import type { CallPayment } from "../../payment/call-payment.ts";
import { evidenceOf } from "../answers/evidence.ts";
import { type ItemAnswer, itemAnswerOf, JoinedAnswers } from "../answers/joined-answers.ts";
import type { DeliveryCallback, Reply } from "../answers/reply.ts";
import type { CallerView } from "../caller-view.ts";
import { NOT_JSON, type RpcLimits } from "../limits.ts";
import {
  BATCH_DEADLINE_MS,
  createPacer,
  type PacedItems,
  type Pacer,
  type PacerParts,
  type TokenWait,
} from "../pacer.ts";
import type { ServiceMethods } from "../service-methods.ts";
import type { Target } from "../target.ts";
import { runPipeline } from "./pipeline.ts";
import {
  type CallerMessage,
  type Cancel,
  type PipelineParts,
  type PipelineRequest,
  SHORT_BYTES,
} from "./pipeline-request.ts";

/** The items of an accepted batch and the bounds under which they run. */
export interface BatchPlan {
  readonly kind: "batch";
  readonly items: readonly (Envelope | InvalidRequest)[];
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
  const items = itemsOfBatch(bytes, start, parts.limits);
  if ("kind" in items) return items;
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
  return { kind: "batch", items, concurrency, pacer: createPacer(parts, keyContext) };
}

/** The items of a batch, or its refusal: it is not JSON, or has too many items or none. */
export function itemsOfBatch(
  bytes: Buffer,
  start: number,
  { maxBatchItems }: Pick<RpcLimits, "maxBatchItems">,
): BatchPlan["items"] | Fault {
  const items = readRequests(bytes, start, maxBatchItems + 1);
  if (items === null) return NOT_JSON;
  if (items.length === 0) return fault("invalid_request", "the batch is empty");
  if (items.length <= maxBatchItems) return items;
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

/** One item in flight, as the pipeline takes it. */
class BatchItem implements PipelineRequest {
  readonly bytes: Buffer;
  readonly target: Target;
  readonly payment: CallPayment;
  readonly caller: CallerIdentity;
  readonly requestId: string;
  readonly view: CallerView;
  readonly fresh: boolean;
  readonly transport: Transport;
  readonly subscriptionMethods: ServiceMethods | null;
  readonly room: MemoryShare;
  readonly envelope: Envelope | InvalidRequest;
  readonly delivery = "item";
  readonly postpone: PipelineRequest["postpone"];
  readonly index: number;
  /** It has its reply, or is postponed. */
  hasEnded = false;

  /** `postpone`: as of `PipelineRequest`, of any item. */
  constructor(
    message: CallerMessage,
    envelope: BatchItem["envelope"],
    index: number,
    postpone: ((item: BatchItem, token: TokenWait) => boolean) | null,
  ) {
    this.bytes = message.bytes;
    this.target = message.target;
    this.payment = message.payment;
    this.caller = message.caller;
    this.requestId = `${message.requestId}-${index}`;
    this.view = message.view;
    this.fresh = message.fresh === true;
    this.transport = message.transport;
    this.subscriptionMethods = message.subscriptionMethods;
    this.room = message.room;
    this.envelope = envelope;
    this.index = index;
    this.postpone = postpone === null ? null : (token) => postpone(this, token);
  }
}

/** A running batch: starts items and gathers their replies in the order of the requests. */
class BatchRun {
  readonly #parts: PipelineParts;
  readonly #batch: Pick<RpcBatch, "items" | "concurrency" | "pacer" | "heard">;
  readonly #message: CallerMessage;
  readonly #done: BatchDone;
  readonly #answers: JoinedAnswers;
  /** Of the items in flight, by their places. */
  readonly #cancels: (Cancel | null)[] = [];
  /** Settlements of the answered items, called once the whole answer was delivered or lost. */
  readonly #settles: DeliveryCallback[] = [];
  /** Items that the rate limit postponed, in order. */
  readonly #postponed: number[] = [];
  readonly #items: PacedItems;
  #next = 0;
  #inFlight = 0;
  #open: number;
  #starting = false;
  /** Items start at the end of this turn. */
  #startsSoon = false;
  #isOver = false;

  constructor(parts: PipelineParts, batch: RpcBatch, done: BatchDone) {
    this.#parts = parts;
    const { items, concurrency, pacer, heard, ...message } = batch;
    this.#batch = { items, concurrency, pacer, heard };
    this.#message = { ...message, view: message.view.forBatch() };
    this.#done = done;
    this.#answers = new JoinedAnswers(items.length);
    this.#open = items.length;
    const deadlineMs = parts.runtime.now() + BATCH_DEADLINE_MS;
    this.#items = { deadlineMs, itemsLeft: this.#itemsLeft };
  }

  readonly start = (): void => {
    // A reply may come synchronously: the loop that is already running starts the next item, so
    // that calls do not nest.
    if (this.#starting || this.#isOver) return;
    this.#starting = true;
    const { concurrency, pacer } = this.#batch;
    while (this.#inFlight < concurrency && pacer?.isWaiting !== true && this.#itemsLeft() > 0)
      this.#begin(this.#postponed.shift() ?? this.#next++);
    this.#starting = false;
    if (this.#itemsLeft() === 0) pacer?.stop();
  };

  cancel(why: Interruption): void {
    this.#isOver = true;
    this.#batch.pacer?.stop();
    const { target, requestId } = this.#message;
    for (let left = this.#itemsLeft(); left > 0; left--)
      this.#parts.observer.unread(interruptedEnd(why), target.series, requestId);
    for (const cancel of this.#cancels) cancel?.(why);
    this.#settle(why === "left");
  }

  readonly #itemsLeft = (): number =>
    this.#batch.items.length - this.#next + this.#postponed.length;

  #begin(index: number): void {
    const { items, pacer } = this.#batch;
    const envelope = items[index];
    if (envelope === undefined) return;
    this.#inFlight++;
    const postpone = pacer === null ? null : this.#postpone;
    const item = new BatchItem(this.#message, envelope, index, postpone);
    const cancel = runPipeline(this.#parts, item, (reply) => {
      this.#end(item);
      this.#keep(index, reply);
    });
    if (!item.hasEnded) this.#cancels[index] = cancel;
  }

  #end(item: BatchItem): void {
    item.hasEnded = true;
    this.#inFlight--;
    this.#cancels[item.index] = null;
  }

  /** Postpones an item until the rate limit has a token for it; false = it may not wait. */
  readonly #postpone = (item: BatchItem, token: TokenWait): boolean => {
    if (this.#batch.pacer?.wait(token, this.#items, this.start) !== true) return false;
    this.#end(item);
    this.#postponed.push(item.index);
    return true;
  };

  #keep(index: number, reply: Reply): void {
    this.#open--;
    this.#message.view.answered(reply);
    if (reply.settle !== null) this.#settles.push(reply.settle);
    if (reply.id === null) this.#batch.heard(reply, false);
    this.#answers.put(index, reply.id === null ? null : this.#bounded(reply));
    if (this.#open > 0) return this.#startSoon();
    this.#batch.pacer?.stop();
    this.#done(this.#answers.end(), this.#settle);
  }

  /**
   * Starts items once all answers of this turn are taken: to go from one to the other and back
   * for each item takes a sixth more time.
   */
  #startSoon(): void {
    if (this.#starting || this.#startsSoon || this.#itemsLeft() === 0) return;
    this.#startsSoon = true;
    this.#parts.runtime.atTurnEnd(this.#startDue);
  }

  readonly #startDue = (): void => {
    this.#startsSoon = false;
    this.start();
  };

  readonly #settle = (delivered: boolean): void => {
    for (const settle of this.#settles.splice(0)) settle(delivered);
  };

  /** The answer of a reply, or a refusal if the memory budget of the request is used up. */
  #bounded(reply: Reply): ItemAnswer {
    const { target, room } = this.#message;
    const meta = target.meta === "body" ? evidenceOf(reply, this.#parts) : null;
    const answer = itemAnswerOf(reply, meta);
    const { bytes } = answer;
    // A charged answer was found to fit a moment ago, or had a side effect: it is always shown.
    const shown = room.take(bytes) || bytes <= SHORT_BYTES || isCharged(reply.source);
    this.#batch.heard(reply, shown);
    return shown
      ? answer
      : itemAnswerOf({ ...reply, outcome: { kind: "fault", fault: noRoom() } }, meta);
  }
}
