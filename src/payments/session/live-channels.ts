// Channels in memory: their rows as they were last seen, the time of the last read from the chain,
// and the calls that this process has under way. Bounded: the least recently used channel is
// dropped first, and none that is in use. The store is authoritative.
import type { RateLimitOwner } from "../../core/billing/rate-limit.ts";
import type { Store } from "../../shared/store/store.ts";
import { acceptedOf } from "./channel.ts";
import type { ChannelRecord, SessionChannel } from "./channel-record.ts";
import { descriptorText, type Hex } from "./descriptor.ts";

/** A channel that is in use. */
export interface LiveChannel extends RateLimitOwner {
  /** Its row as it was last read or written. */
  record: SessionChannel;
  /** Its descriptor as JSON, for comparison. */
  readonly descriptor: string;
  /** The highest amount promised to this process, written or not. */
  accepted: bigint;
  /**
   * Requests that this process has under way, by the text that identifies a repetition; each
   * promise resolves at the end.
   */
  readonly underWay: Map<string, Promise<void>>;
  /** Requests that are about to be held. */
  entering: number;
  /** When the chain was last read, on the monotonic clock. */
  checkedMs: number;
  /** A chain read under way: concurrent callers share it. */
  checking: Promise<boolean> | null;
  /** True = it is about to be closed, and accepts no calls. */
  ending: boolean;
}

export interface LiveParts {
  readonly store: Pick<Store, "db">;
  readonly channels: ChannelRecord;
  readonly maxChannels?: number;
}

const MAX_CHANNELS = 10_000;
/** Channels examined to find one that is not in use. */
const MAX_TRIED = 64;
const NEVER = Number.NEGATIVE_INFINITY;

/** The channels in memory. */
export class LiveChannels {
  readonly #parts: LiveParts;
  readonly #all = new Map<Hex, LiveChannel>();
  readonly #reading = new Map<Hex, Promise<SessionChannel | null>>();

  constructor(parts: LiveParts) {
    this.#parts = parts;
  }

  /** Loads a channel from the store if it is not in memory; null = there is none, or "full". */
  async find(id: Hex): Promise<LiveChannel | "full" | null> {
    const there = this.#all.get(id);
    if (there !== undefined) {
      this.#all.delete(id);
      this.#all.set(id, there);
      return there;
    }
    const { store, channels } = this.#parts;
    const read =
      this.#reading.get(id) ?? channels.read(store.db, id).finally(() => this.#reading.delete(id));
    this.#reading.set(id, read);
    const record = await read;
    return record === null ? null : this.#add(record);
  }

  /** Null = it is not in memory. */
  peek(id: Hex): LiveChannel | null {
    return this.#all.get(id) ?? null;
  }

  /** Takes over a row that was read or written elsewhere. */
  note(record: SessionChannel): void {
    const live = this.#all.get(record.id);
    if (live === undefined || isOlder(record, live.record)) return;
    live.record = record;
    if (acceptedOf(record) > live.accepted) live.accepted = acceptedOf(record);
  }

  get size(): number {
    return this.#all.size;
  }

  /** Requests under way. */
  get held(): number {
    let count = 0;
    for (const { underWay } of this.#all.values()) count += underWay.size;
    return count;
  }

  #add(record: SessionChannel): LiveChannel | "full" {
    const there = this.#all.get(record.id);
    if (there !== undefined) return there;
    const { maxChannels = MAX_CHANNELS } = this.#parts;
    if (this.#all.size >= maxChannels && !this.#makeRoom()) return "full";
    const live = unused(record);
    this.#all.set(record.id, live);
    return live;
  }

  #makeRoom(): boolean {
    let tried = 0;
    for (const [id, channel] of this.#all) {
      if (isUnused(channel)) return this.#all.delete(id);
      if (++tried >= MAX_TRIED) return false;
    }
    return false;
  }
}

function unused(record: SessionChannel): LiveChannel {
  return {
    record,
    descriptor: descriptorText(record.descriptor),
    accepted: acceptedOf(record),
    underWay: new Map(),
    entering: 0,
    checkedMs: NEVER,
    checking: null,
    ending: false,
    fullAtMs: null,
  };
}

function isUnused({ underWay, entering, ending }: LiveChannel): boolean {
  return underWay.size === 0 && entering === 0 && !ending;
}

/**
 * Whether row `a` is older than row `b`: calls, settlements and deposits only grow, and an end is
 * final.
 */
function isOlder(a: SessionChannel, b: SessionChannel): boolean {
  return (
    a.calls < b.calls ||
    a.settled_units < b.settled_units ||
    a.deposit_units < b.deposit_units ||
    STAGES.indexOf(a.state) < STAGES.indexOf(b.state)
  );
}

const STAGES = ["opening", "open", "closing", "closed", "failed"] as const;
