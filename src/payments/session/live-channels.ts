// Channels in memory: amounts held for calls in flight, vouchers not written yet, the time of the
// last read from the chain. Bounded: the least recently used channel is dropped first, and none
// that is in use. The store is authoritative.
import type { Epoch } from "../../cluster/node-rows.ts";
import type { RateLimitOwner } from "../../core/billing/rate-limit.ts";
import type { Store } from "../../store/store.ts";
import type { CallKey } from "./call-record.ts";
import type { Voucher } from "./channel.ts";
import { acceptedOf } from "./channel.ts";
import type { ChannelRecord, SessionChannel } from "./channel-record.ts";
import { descriptorText, type Hex } from "./descriptor.ts";
import type { HoldKey } from "./ownership-record.ts";

/** The price of a call under way. */
export interface HeldCall {
  readonly units: bigint;
  readonly call: Omit<CallKey, "channelId">;
  /** Resolves when the call has ended. */
  readonly over: Promise<void>;
  release(): void;
  /** Where other processes see it; null = nowhere. */
  written: Pick<HoldKey, "epoch" | "number"> | null;
  /** True = its row was removed together with its charge. */
  isRemoved: boolean;
}

/** A channel that is in use. */
export interface LiveChannel extends RateLimitOwner {
  /** Its row as it was last read or written. */
  record: SessionChannel;
  /** Its descriptor as JSON, for comparison. */
  readonly descriptor: string;
  /** The highest voucher, written or not; null = there is none. */
  accepted: Voucher | null;
  /** Held for calls in flight, base units: of this process, and of others when last seen. */
  held: bigint;
  heldElsewhere: bigint;
  /** Requests in flight, by the text that identifies a repetition. */
  readonly underWay: Map<string, HeldCall>;
  /** The epoch in which this process alone takes its calls; null = others may. */
  own: Epoch | null;
  /** Resolves after the last change of ownership, of which so many wait or run. */
  turn: Promise<void>;
  queued: number;
  /** When the chain was last read, on the monotonic clock. */
  checkedMs: number;
  /** A chain read under way: concurrent callers share it. */
  checking: Promise<boolean> | null;
  /** True = it is about to be closed, and accepts no calls. */
  ending: boolean;
  /** Called when nothing is held any more. */
  readonly idle: Set<() => void>;
}

/** What calls under way hold of a channel, as far as this process knows. */
export function heldOf({ held, heldElsewhere }: LiveChannel): bigint {
  return held + heldElsewhere;
}

/** The channels in memory. */
export interface LiveChannels {
  /** Loads a channel from the store if it is not in memory; null = there is none, or "full". */
  find(id: Hex): Promise<LiveChannel | "full" | null>;
  /** Null = it is not in memory. */
  peek(id: Hex): LiveChannel | null;
  /** Takes over a row that was read or written elsewhere. */
  note(record: SessionChannel): void;
  readonly size: number;
  readonly held: number;
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

/** No channel in memory yet. */
export function createLiveChannels({
  store,
  channels,
  maxChannels = MAX_CHANNELS,
}: LiveParts): LiveChannels {
  const all = new Map<Hex, LiveChannel>();
  const reading = new Map<Hex, Promise<SessionChannel | null>>();

  function add(record: SessionChannel): LiveChannel | "full" {
    const there = all.get(record.id);
    if (there !== undefined) return there;
    if (all.size >= maxChannels && !makeRoom()) return "full";
    const live = unused(record);
    all.set(record.id, live);
    return live;
  }

  function makeRoom(): boolean {
    let tried = 0;
    for (const [id, channel] of all) {
      if (isUnused(channel)) return all.delete(id);
      if (++tried >= MAX_TRIED) return false;
    }
    return false;
  }

  return {
    async find(id) {
      const there = all.get(id);
      if (there !== undefined) {
        all.delete(id);
        all.set(id, there);
        return there;
      }
      const read = reading.get(id) ?? channels.read(store.db, id).finally(() => reading.delete(id));
      reading.set(id, read);
      const record = await read;
      return record === null ? null : add(record);
    },
    peek: (id) => all.get(id) ?? null,
    note(record) {
      const live = all.get(record.id);
      if (live === undefined || isOlder(record, live.record)) return;
      live.record = record;
      if (acceptedOf(record) > (live.accepted?.units ?? 0n))
        live.accepted = record.vouchers.at(-1) ?? null;
    },
    get size() {
      return all.size;
    },
    get held() {
      let count = 0;
      for (const { underWay } of all.values()) count += underWay.size;
      return count;
    },
  };
}

function unused(record: SessionChannel): LiveChannel {
  return {
    record,
    descriptor: descriptorText(record.descriptor),
    accepted: record.vouchers.at(-1) ?? null,
    held: 0n,
    heldElsewhere: 0n,
    underWay: new Map(),
    own: null,
    turn: Promise.resolve(),
    queued: 0,
    checkedMs: NEVER,
    checking: null,
    ending: false,
    idle: new Set(),
    fullAtMs: null,
  };
}

function isUnused({ held, underWay, queued, ending }: LiveChannel): boolean {
  return held === 0n && underWay.size === 0 && queued === 0 && !ending;
}

/**
 * Whether row `a` is older than row `b`: calls, settlements and deposits only grow, and an end is
 * final.
 */
function isOlder(a: SessionChannel, b: SessionChannel): boolean {
  return (
    a.calls < b.calls ||
    a.settled < b.settled ||
    a.deposit < b.deposit ||
    STAGES.indexOf(a.state) < STAGES.indexOf(b.state)
  );
}

const STAGES = ["opening", "open", "closing", "closed", "failed"] as const;
