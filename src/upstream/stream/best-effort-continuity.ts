// Continuity of pending transactions, sync states and kinds of vendors: these have no order to
// resume from, so events are delivered as they arrive. Those of vendors have one source and nothing
// by which a duplicate could be told; the others are delivered without duplicates.
import type { MarkDifference } from "../../core/stream/stream-mark.ts";
import type { SubscriptionKind } from "../../core/stream/subscription.ts";
import type { Continuity, EventSink } from "./continuity.ts";

/** Results remembered to prevent duplicates. */
const REMEMBERED = 8_192;
const MAX_KEY_BYTES = 256;

/** Delivers each event of one source, and those of several sources once. */
export class BestEffortContinuity implements Continuity {
  readonly lastHeadAtMs = null;
  readonly height = null;
  readonly filledBlocks = 0;
  readonly strays = 0;
  readonly #kind: SubscriptionKind;
  readonly #eventSink: EventSink;
  readonly #emitted = new Set<string>();

  constructor(kind: SubscriptionKind, eventSink: EventSink) {
    this.#kind = kind;
    this.#eventSink = eventSink;
  }

  async attach(): Promise<null> {
    return null;
  }

  release(): void {}

  mark(): null {
    return null;
  }

  since(): MarkDifference {
    return { kind: "events", events: [] };
  }

  detach(): void {}

  hear(raw: Buffer, head: boolean): void {
    if (head) return;
    if (this.#kind === "vendor") return this.#eventSink.emit([raw], null);
    const key = keyOf(raw);
    if (this.#emitted.has(key)) return;
    if (this.#kind === "syncing" || this.#emitted.size >= REMEMBERED) this.#forgetOldest();
    this.#emitted.add(key);
    this.#eventSink.emit([raw], null);
  }

  #forgetOldest(): void {
    const oldest = this.#emitted.values().next();
    if (oldest.done !== true) this.#emitted.delete(oldest.value);
  }
}

const HASH = /"hash"\s*:\s*"(?=0x[0-9a-fA-F]{64}")/;
const HASH_CHARS = 66;

/**
 * The key of an event: a short event as it is, a longer one by its hash or its beginning. Read from
 * the bytes again, since a slice of the text would keep all of it in memory.
 */
function keyOf(raw: Buffer): string {
  if (raw.length <= MAX_KEY_BYTES) return raw.toString("latin1");
  const found = HASH.exec(raw.toString("latin1"));
  if (found === null) return raw.toString("latin1", 0, MAX_KEY_BYTES);
  const start = found.index + found[0].length;
  return raw.toString("latin1", start, start + HASH_CHARS);
}
