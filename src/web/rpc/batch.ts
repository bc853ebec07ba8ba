// A batch: the spine once per item, a bounded number at a time, replies in the order of the requests.
import type { Interruption } from "../../core/charging.ts";
import { fault } from "../../core/fault.ts";
import type { Span } from "../../core/json.ts";
import type { Transport } from "../../core/profile.ts";
import type { Holder } from "../../hosted/holder.ts";
import type { Address } from "./address.ts";
import { type Cancel, type Desk, type ExchangeParts, evidenceOfReply, exchange, type Reply } from "./exchange.ts";
import { renderReply } from "./render.ts";

/** A batch as it came through the door. */
export interface Batch {
  readonly bytes: Buffer;
  readonly spans: readonly Span[];
  readonly address: Address;
  readonly holder: Holder | null;
  readonly requestId: string;
  /** Items in flight at once. */
  readonly concurrency: number;
  /** Takes room for bytes of the answer until it has been sent; false = there is none. */
  readonly reserve: (bytes: number) => boolean;
  readonly transport: Transport;
  readonly desk: Desk | null;
  /** Hears each reply when it is in, whether it stands in the answer as it is, and of which item it is. */
  readonly heard: (reply: Reply, shown: boolean, index: number) => void;
  /** Hears which items are charged though the batch was cancelled before their answers; null = nobody does. */
  readonly abandoned: ((index: number) => void) | null;
}

/** Serves a batch. `done` hears the pieces of the answer, or null when every item was a notification. Returns the way to cancel it. */
export function runBatch(parts: ExchangeParts, batch: Batch, done: (body: readonly Buffer[] | null) => void): (why: Interruption) => void {
  const { bytes, spans, address, holder, transport, desk } = batch;
  const replies: (readonly Buffer[] | null)[] = spans.map(() => null);
  const cancels = new Map<number, Cancel>();
  let next = 0;
  let open = spans.length;
  let starting = false;

  function start(): void {
    // Replies that come at once must not nest a call per item.
    if (starting) return;
    starting = true;
    while (next < spans.length && next - (spans.length - open) < batch.concurrency) begin(next++);
    starting = false;
  }

  function begin(index: number): void {
    const span = spans[index];
    if (span === undefined) return;
    let finished = false;
    const requestId = `${batch.requestId}-${index}`;
    const cancel = exchange(parts, { bytes, span, address, holder, requestId, mayStream: false, transport, desk }, (reply) => {
      finished = true;
      cancels.delete(index);
      keep(index, reply);
    });
    if (!finished && cancel !== null) cancels.set(index, cancel);
  }

  function keep(index: number, reply: Reply): void {
    open--;
    if (reply.id === null) batch.heard(reply, false, index);
    else replies[index] = bounded(reply, index);
    if (open > 0) return start();
    done(join(replies));
  }

  function bounded(reply: Reply, index: number): readonly Buffer[] {
    const meta = address.meta === "body" ? evidenceOfReply(reply, parts.world.now()) : null;
    const pieces = renderReply(reply, meta);
    const bytes = pieces.reduce((sum, it) => sum + it.length, 0);
    const shown = batch.reserve(bytes);
    batch.heard(reply, shown, index);
    if (shown) return pieces;
    const tooLarge = fault("response_too_large", "this answer does not fit beside the others");
    return renderReply({ ...reply, outcome: { kind: "fault", fault: tooLarge } }, meta);
  }

  start();
  return (why) => {
    for (const [index, cancel] of cancels) if (cancel(why)) batch.abandoned?.(index);
  };
}

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
  return pieces;
}
