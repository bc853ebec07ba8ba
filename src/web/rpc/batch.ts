// A batch: the pipeline once per item, a bounded number at a time and at the caller's rate, replies
// in the order of the requests.
import { type Interruption, isCharged } from "../../core/billing/charging.ts";
import { type Fault, fault } from "../../core/faults/rpc-fault.ts";
import type { Transport } from "../../core/provider/profile.ts";
import type { CallerIdentity } from "../../core/provider/silence.ts";
import type { Span } from "../../core/rpc/json.ts";
import type { KeyContext } from "../../hosted/keys/key-context.ts";
import { noRoom } from "../../upstream/engine/refusal.ts";
import type { Room } from "../../upstream/transport.ts";
import type { RpcLimits } from "./limits.ts";
import type { Pacer, TokenWait } from "./pacer.ts";
import {
  type Cancel,
  type DeliveryCallback,
  evidenceOfReply,
  type PipelineParts,
  type Reply,
  runPipeline,
  type SubscriptionMethods,
} from "./pipeline.ts";
import { renderReply } from "./render-reply.ts";
import type { Target } from "./target.ts";

/** A batch as it came through the door. */
export interface RpcBatch {
  readonly bytes: Buffer;
  readonly spans: readonly Span[];
  readonly address: Target;
  readonly keyContext: KeyContext | null;
  readonly caller: CallerIdentity;
  readonly requestId: string;
  /** Items in flight at once. */
  readonly concurrency: number;
  /**
   * Of the request: for what is gathered of each item, and for the answers of all until they have
   * been sent.
   */
  readonly room: Room;
  readonly transport: Transport;
  readonly subscriptionMethods: SubscriptionMethods | null;
  /**
   * Lets items beyond the caller's rate wait; null = they are refused, or no rate limits the
   * caller.
   */
  readonly pacer: Pacer | null;
  /**
   * Hears each reply when it is in, whether it stands in the answer as it is, and of which item it
   * is.
   */
  readonly heard: (reply: Reply, shown: boolean, index: number) => void;
  /**
   * Hears which items are charged though the batch was cancelled before their answers; null =
   * nobody does.
   */
  readonly abandoned: ((index: number) => void) | null;
}

/**
 * Why a batch of so many items is refused as a whole, before any of them is served; null = it is
 * not.
 */
export function refusalOfBatch(
  items: number,
  { maxBatchItems }: Pick<RpcLimits, "maxBatchItems">,
): Fault | null {
  if (items === 0) return fault("invalid_request", "the batch is empty");
  if (items <= maxBatchItems) return null;
  return fault(
    "invalid_request",
    `a batch may hold ${maxBatchItems} items (limits.max_batch_items)`,
    { nextAction: "send several smaller batches" },
  );
}

/**
 * Why a caller's batch is refused as a whole because of those of its account that wait already;
 * null = it is not.
 */
export function refusalWhileWaiting(
  { admission }: Pick<PipelineParts, "admission">,
  keyContext: KeyContext | null,
): Fault | null {
  const fullForMs =
    admission === null || keyContext === null
      ? null
      : admission.batches.fullForMs(keyContext.payer);
  if (fullForMs === null) return null;
  const nextAction = "wait for the answer to an earlier batch, then send this one again";
  const retryAfterMs = Math.max(1, Math.ceil(fullForMs));
  return fault(
    "rate_limit_exceeded",
    "two batches of this account already wait for its rate limit",
    { nextAction, retryAfterMs },
  );
}

/**
 * Hears the pieces of a batch's answer, null when every item was a notification; `settle` has to be
 * called once it is known what became of the answer.
 */
export type BatchDone = (body: readonly Buffer[] | null, settle: DeliveryCallback) => void;

/**
 * Serves a batch. Returns the way to cancel it, which settles the items that were answered: those
 * of a batch that the service cut are free.
 */
export function runBatch(
  parts: PipelineParts,
  batch: RpcBatch,
  done: BatchDone,
): (why: Interruption) => void {
  const { bytes, spans, address, keyContext, caller, transport, subscriptionMethods, pacer, room } =
    batch;
  const replies: (readonly Buffer[] | null)[] = spans.map(() => null);
  const cancels = new Map<number, Cancel>();
  /** Of the items that are charged when the answer was written. */
  const settles: DeliveryCallback[] = [];
  /** Items that were started and then put off by the rate limit, in order. */
  const postponed: number[] = [];
  let next = 0;
  let inFlight = 0;
  let open = spans.length;
  let starting = false;

  function start(): void {
    // Replies that come at once must not nest a call per item.
    if (starting) return;
    starting = true;
    while (inFlight < batch.concurrency && pacer?.waiting !== true && itemsLeft() > 0)
      begin(postponed.shift() ?? next++);
    starting = false;
    if (itemsLeft() === 0) pacer?.stop();
  }

  function itemsLeft(): number {
    return spans.length - next + postponed.length;
  }

  function begin(index: number): void {
    const span = spans[index];
    if (span === undefined) return;
    let ended = false;
    inFlight++;
    const end = (): void => {
      ended = true;
      inFlight--;
      cancels.delete(index);
    };
    const postpone = (token: TokenWait): boolean => {
      if (pacer === null || !pacer.wait(token, itemsLeft, start)) return false;
      end();
      postponed.push(index);
      return true;
    };
    const requestId = `${batch.requestId}-${index}`;
    const ways = {
      requestId,
      mayStream: false,
      settlesLater: true,
      transport,
      subscriptionMethods,
      postpone,
      room,
      freeBytes: SHORT_BYTES,
    };
    const cancel = runPipeline(
      parts,
      { bytes, span, address, keyContext, caller, ...ways },
      (reply) => {
        end();
        keep(index, reply);
      },
    );
    if (!ended && cancel !== null) cancels.set(index, cancel);
  }

  function keep(index: number, reply: Reply): void {
    open--;
    if (reply.settle !== null) settles.push(reply.settle);
    if (reply.id === null) batch.heard(reply, false, index);
    else replies[index] = bounded(reply, index);
    if (open > 0) return start();
    pacer?.stop();
    done(join(replies), settle);
  }

  function settle(delivered: boolean): void {
    for (const one of settles.splice(0)) one(delivered);
  }

  function bounded(reply: Reply, index: number): readonly Buffer[] {
    const meta = address.meta === "body" ? evidenceOfReply(reply, parts.runtime.now()) : null;
    const pieces = renderReply(reply, meta);
    const bytes = pieces.reduce((sum, it) => sum + it.length, 0);
    // What is charged had room a moment ago, or has written something.
    const shown = room.take(bytes) || bytes <= SHORT_BYTES || isCharged(reply.source);
    batch.heard(reply, shown, index);
    return shown
      ? pieces
      : renderReply({ ...reply, outcome: { kind: "fault", fault: noRoom() } }, meta);
  }

  start();
  return (why) => {
    pacer?.stop();
    for (const [index, cancel] of cancels) if (cancel(why)) batch.abandoned?.(index);
    settle(why === "left");
  };
}

/** Answers that are no longer than their refusal would be need no room. */
const SHORT_BYTES = 1_024;
const OPEN = Buffer.from("[");
const COMMA = Buffer.from(",");
const CLOSE = Buffer.from("]");

function join(replies: readonly (readonly Buffer[] | null)[]): readonly Buffer[] | null {
  const pieces: Buffer[] = [];
  for (const reply of replies) {
    if (reply === null) continue;
    pieces.push(pieces.length === 0 ? OPEN : COMMA, ...reply);
  }
  if (pieces.length === 0) return null;
  pieces.push(CLOSE);
  return gathered(pieces);
}

/**
 * Pieces up to this size are copied together, into pieces of at most the second one: a write of
 * each costs more.
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
