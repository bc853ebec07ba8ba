// The port of continuity: keeps a subscription complete when its provider is replaced. Says what
// every implementation must do, not how.
import type { Block } from "../../core/stream/chain-event.ts";
import type { Unconfirmed } from "../../core/stream/log-verification.ts";
import type { MarkDifference, StreamMark } from "../../core/stream/stream-mark.ts";
import type { SubscriptionKind } from "../../core/stream/subscription.ts";
import type { PendingParts } from "./checks/pending-logs.ts";
import type { Source } from "./source.ts";
import type { EventBlock } from "./tip-buffer.ts";

/**
 * Why a source cannot serve. `far`: more blocks were missed than may be fetched. `unanswered`: it
 * does not return what it must have. `backlog`: it sends faster than events can be checked.
 * `missing_logs`: it left logs out, which have been delivered from elsewhere. `forgotten`: no
 * source can serve, since removals are due whose logs are no longer kept.
 */
export type SourceFailure = "far" | "unanswered" | "backlog" | "missing_logs" | "forgotten";

/** Receives the events and failures of a continuity. */
export interface EventSink {
  /**
   * Results of a block of this number may be emitted next; the continuity still stands before
   * them. Not called where results only take back what was emitted.
   */
  expect(number: number): void;
  /**
   * Delivers results to the subscribers, in order. `block`: the newest block that they are of; null
   * = they are of none, or only take back what was emitted.
   */
  emit(results: readonly Buffer[], block: EventBlock | null): void;
  /** Logs of the block are told before they were checked, in spite of `strict`. */
  unconfirmed(block: Block, why: Unconfirmed): void;
  /** The source cannot serve any longer. */
  failed(why: SourceFailure): void;
}

/** Keeps a subscription complete across sources. */
export interface Continuity {
  /**
   * Continues at a source from where the last one stopped; events are queued until `release`.
   * Resolves with null once nothing is missing. `round` counts how often all sources were tried in
   * vain: the time limit of a source grows with it.
   */
  attach(source: Source, round: number): Promise<SourceFailure | null>;
  /** Delivers the queued events, and from now on events as they arrive. */
  release(): void;
  /** Detaches the source; events of it that were not delivered are dropped. */
  detach(): void;
  /**
   * Accepts an event of the source. `head`: it is a head; otherwise an event of the subscription.
   */
  hear(raw: Buffer, head: boolean): void;
  /** Where it stands: everything up to there was emitted; null = it has no order to go on from. */
  mark(): StreamMark | null;
  /** What a subscriber at a mark misses of what was emitted here. */
  since(mark: StreamMark): MarkDifference;
  /** When the source last pushed a head (ms); null = it need not. */
  readonly lastHeadAtMs: number | null;
  /** Height that has been delivered; null = not applicable. */
  readonly height: number | null;
  /** Number of blocks that were backfilled. */
  readonly filledBlocks: number;
}

/** Dependencies of a continuity. */
export interface ContinuityParts extends PendingParts {
  /** The number of the served tip, above which nothing is delivered yet; null = none holds. */
  readonly tip: () => number | null;
  /** Where it goes on; null = it begins with the newest block. */
  readonly resume: StreamMark | null;
}

// Continuity of pending transactions, sync states and kinds of vendors: these have no order to
// resume from, so events are delivered as they arrive. Those of vendors have one source and nothing
// by which a duplicate could be told; the others are delivered without duplicates.

/** Results remembered to prevent duplicates. */
const REMEMBERED = 8_192;
const MAX_KEY_BYTES = 256;

/** Delivers each event of one source, and those of several sources once. */
export class BestEffortContinuity implements Continuity {
  readonly lastHeadAtMs = null;
  readonly height = null;
  readonly filledBlocks = 0;
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
 * The key of an event: short events whole, longer ones by hash or prefix. Read from the bytes
 * again, since a slice of the text would keep all of it in memory.
 */
function keyOf(raw: Buffer): string {
  if (raw.length <= MAX_KEY_BYTES) return raw.toString("latin1");
  const found = HASH.exec(raw.toString("latin1"));
  if (found === null) return raw.toString("latin1", 0, MAX_KEY_BYTES);
  const start = found.index + found[0].length;
  return raw.toString("latin1", start, start + HASH_CHARS);
}
