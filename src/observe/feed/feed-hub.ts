// The live feed of the whole service, for those who watch it here: events of this process and of
// the other workers in one order, with ids of this process. What readers of one filter receive is
// written once for all of them, a few times a second. Keeps the latest, so that a reader who comes
// back goes on where it was. Bounded in readers, and in events that are kept.
import type { Runtime } from "../../runtime.ts";
import { type CallFilter, filterKey } from "./call-filter.ts";
import { type EventFeed, type FeedBatch, type FeedItem, MAX_FILTERS } from "./event-feed.ts";
import type { FeedExchange } from "./feed-exchange.ts";
import { RecentChanges } from "./recent-changes.ts";

/** Hears events, and that there are no more. */
export interface HubReader {
  /** `bytes` of `text/event-stream`, which hold so many events. */
  receive(bytes: Buffer, events: number): void;
  end(reason: "draining" | "too_many_filters"): void;
}

/** Why a reader is not let in. */
export type HubRefusal = "too_many_readers" | "too_many_filters";

/** Where a new reader begins. */
export type HubStart =
  /** It gets all that happened since. */
  | { readonly kind: "continued"; readonly bytes: Buffer; readonly events: number }
  /** Events may be missing. */
  | { readonly kind: "resync"; readonly reason: "unknown_id" | "too_old" }
  | { readonly kind: "fresh" };

/** A reader that was let in. */
export interface HubReading {
  readonly start: HubStart;
  leave(): void;
}

/** What a hub works with. */
export interface HubParts {
  readonly runtime: Pick<Runtime, "wallMs" | "after" | "random">;
  readonly feed: EventFeed;
  /** Null = this process is the whole service. */
  readonly exchange: FeedExchange | null;
}

/** Most readers at a time. */
export const MAX_READERS = 16;
/** Most filters at a time, with those that wait for readers who may come back. */
export const MAX_AUDIENCES = 32;
/** Bytes of the events that are kept for readers of one filter who come back. */
const MAX_KEPT_BYTES = 1_048_576;
/** How long a filter is watched without readers, so that one who comes back misses nothing. */
const LINGER_MS = 15_000;
/** How long the events of several workers are gathered before they are written. */
const GATHER_MS = 50;
const SECOND_MS = 1_000;
const BEAT_SECONDS = 5;

const NOT_RUNNING = (): void => {};

/** An event with its number, as it is written, and the keys of the filters that it passed. */
interface PlacedEvent {
  readonly number: number;
  readonly text: string;
  readonly keys: readonly string[];
}

/** The readers of one filter. */
class Audience {
  readonly filter: CallFilter;
  /** Number of the last event that readers who come back cannot be given. */
  after: number;
  /** What was written last, for these readers. */
  readonly written: PlacedEvent[] = [];
  writtenBytes = 0;
  readonly readers = new Set<HubReader>();
  /** In the present second. */
  shown = 0;
  matched = 0;
  /** Since the last beat. */
  beatShown = 0;
  cancelLinger = NOT_RUNNING;

  constructor(filter: CallFilter, after: number) {
    this.filter = filter;
    this.after = after;
  }
}

/** The feed of the whole service. */
export class FeedHub {
  readonly #parts: HubParts;
  /** By the keys of their filters. */
  readonly #audiences = new Map<string, Audience>();
  /** Tells the ids of this process from those of others. */
  readonly #prefix: string;
  /** What workers told lately: each tells of the same change. */
  readonly #changes = new RecentChanges();
  #lastNumber = 0;
  /** Events that are to be written. */
  #placed: PlacedEvent[] = [];
  readers = 0;
  #watchedElsewhere: readonly CallFilter[] = [];
  #isGathering = false;
  #cancelSecond: () => void = NOT_RUNNING;
  #beatEnded = 0;
  #seconds = 0;
  #sinceMs = 0;

  constructor(parts: HubParts) {
    this.#parts = parts;
    const { runtime, feed, exchange } = parts;
    const chance = Math.floor(runtime.random() * 36 ** 6).toString(36);
    this.#prefix = `${feed.worker}.${chance}.`;
    exchange?.onWatched((filters) => {
      this.#watchedElsewhere = filters;
      this.#follow();
    });
    exchange?.onEvents((batch) => this.#hear(batch));
  }

  /** Why a reader of a filter cannot be let in now; null = it can. */
  refusal(filter: CallFilter): HubRefusal | null {
    if (this.readers >= MAX_READERS) return "too_many_readers";
    const watched = this.#filters(({ readers }) => readers.size > 0);
    watched.set(filterKey(filter), filter);
    return watched.size > MAX_FILTERS ? "too_many_filters" : null;
  }

  /** Lets a reader in; null = it is refused. */
  join(
    reader: HubReader,
    { filter, lastId }: { readonly filter: CallFilter; readonly lastId: string | null },
  ): HubReading | null {
    if (this.refusal(filter) !== null) return null;
    const key = filterKey(filter);
    const start = this.#startAfter(lastId, key);
    const known = this.#audiences.get(key);
    const audience = known ?? this.#newAudience(key, filter);
    audience.cancelLinger();
    audience.readers.add(reader);
    this.readers++;
    if (known === undefined) this.#changed();
    return { start, leave: () => this.#leave(key, audience, reader) };
  }

  /** Ends all readers. */
  close(): void {
    this.#end([...this.#audiences.keys()], "draining");
    this.#changed();
  }

  #startAfter(lastId: string | null, key: string): HubStart {
    if (lastId === null) return { kind: "fresh" };
    const number = lastId.startsWith(this.#prefix) ? Number(lastId.slice(this.#prefix.length)) : -1;
    if (!Number.isSafeInteger(number) || number < 0 || number > this.#lastNumber)
      return { kind: "resync", reason: "unknown_id" };
    const audience = this.#audiences.get(key);
    // Nothing is heard of a filter while nobody watches.
    if (audience === undefined || number < audience.after)
      return { kind: "resync", reason: "too_old" };
    const missed = audience.written.filter((event) => event.number > number);
    const text = missed.map((event) => event.text).join("");
    return { kind: "continued", bytes: Buffer.from(text), events: missed.length };
  }

  #newAudience(key: string, filter: CallFilter): Audience {
    while (this.#audiences.size >= MAX_AUDIENCES || this.#filters().size >= MAX_FILTERS)
      if (!this.#dropLingering()) break;
    const audience = new Audience(filter, this.#lastNumber);
    this.#audiences.set(key, audience);
    return audience;
  }

  #leave(key: string, audience: Audience, reader: HubReader): void {
    if (!audience.readers.delete(reader)) return;
    this.readers--;
    if (audience.readers.size > 0 || this.#audiences.get(key) !== audience) return;
    audience.cancelLinger = this.#parts.runtime.after(LINGER_MS, () => {
      this.#audiences.delete(key);
      this.#changed();
    });
  }

  /** Drops the oldest filter that has no reader; false = each has one. */
  #dropLingering(): boolean {
    for (const [key, { readers, cancelLinger }] of this.#audiences) {
      if (readers.size > 0) continue;
      cancelLinger();
      this.#audiences.delete(key);
      return true;
    }
    return false;
  }

  /** The filters that are watched, by their keys: here by such audiences, and elsewhere. */
  #filters(isCounted: (audience: Audience) => boolean = () => true): Map<string, CallFilter> {
    const filters = new Map<string, CallFilter>();
    for (const [key, audience] of this.#audiences)
      if (isCounted(audience)) filters.set(key, audience.filter);
    for (const filter of this.#watchedElsewhere) filters.set(filterKey(filter), filter);
    return filters;
  }

  /** Follows that an audience came or went. */
  #changed(): void {
    const filters = Array.from(this.#audiences.values(), ({ filter }) => filter);
    this.#parts.exchange?.setWatched(filters);
    this.#follow();
    if (filters.length === 0) {
      this.#cancelSecond();
      this.#cancelSecond = NOT_RUNNING;
    } else if (this.#cancelSecond === NOT_RUNNING) {
      this.#beatEnded = 0;
      this.#seconds = 0;
      this.#sinceMs = this.#parts.runtime.wallMs();
      this.#cancelSecond = this.#nextSecond();
    }
  }

  /** Has the feed of this process pass events on while somebody watches, here or elsewhere. */
  #follow(): void {
    const { feed, exchange } = this.#parts;
    const filters = this.#followed();
    if (filters.size === 0) return feed.watch(filters, null);
    const isWatchedElsewhere = this.#watchedElsewhere.length > 0;
    feed.watch(filters, (batch) => {
      if (isWatchedElsewhere) exchange?.publish(batch);
      this.#hear(batch);
    });
    const others = [...this.#audiences.keys()].filter((key) => !filters.has(key));
    if (others.length === 0) return;
    this.#end(others, "too_many_filters");
    this.#changed();
  }

  /**
   * The filters that all workers follow. Where readers came to several workers at once there can be
   * too many: each worker leaves out the same ones.
   */
  #followed(): ReadonlyMap<string, CallFilter> {
    const filters = this.#filters();
    if (filters.size <= MAX_FILTERS) return filters;
    const isFollowed = new Set([...filters.keys()].sort().slice(0, MAX_FILTERS));
    return new Map(Array.from(filters).filter(([key]) => isFollowed.has(key)));
  }

  #end(keys: readonly string[], reason: Parameters<HubReader["end"]>[0]): void {
    for (const key of keys) {
      const audience = this.#audiences.get(key);
      if (audience === undefined) continue;
      this.#audiences.delete(key);
      audience.cancelLinger();
      const readers = [...audience.readers];
      this.readers -= readers.length;
      audience.readers.clear();
      for (const reader of readers) reader.end(reason);
    }
  }

  #hear({ events, counts, ended }: FeedBatch): void {
    if (this.#audiences.size === 0) return;
    this.#beatEnded += ended;
    for (const { filter, shown, matched } of counts) {
      const audience = this.#audiences.get(filter);
      if (audience === undefined) continue;
      audience.shown += shown;
      audience.matched += matched;
      audience.beatShown += shown;
    }
    for (const event of events) this.#place(event);
    if (events.length > 0) this.#gather();
  }

  /** Assigns an event its id and delivers it to the readers whose filters it passed. */
  #place(item: FeedItem): void {
    const { event, filters } = item;
    const keys = filters ?? [...this.#audiences.keys()];
    if (!keys.some((key) => this.#audiences.has(key))) return;
    if (this.#isToldAgain(item)) return;
    const number = ++this.#lastNumber;
    const text = `id: ${this.#prefix}${number}\n${passing(event.type, event.data)}`;
    this.#placed.push({ number, text, keys });
  }

  /** Whether another worker told of the same change. */
  #isToldAgain({ event }: FeedItem): boolean {
    if (this.#parts.exchange === null || event.type === "call") return false;
    return !this.#changes.add(event);
  }

  /** Writes soon; at once where there are no other workers to wait for. */
  #gather(): void {
    const { runtime, exchange } = this.#parts;
    if (exchange === null) return this.#write();
    if (this.#isGathering) return;
    this.#isGathering = true;
    runtime.after(GATHER_MS, () => {
      this.#isGathering = false;
      this.#write();
    });
  }

  #write(): void {
    const placed = this.#placed;
    this.#placed = [];
    for (const [key, audience] of this.#audiences) {
      const own = placed.filter(({ keys }) => keys.includes(key));
      for (const event of own) keep(audience, event);
      send(
        audience,
        own.map(({ text }) => text),
      );
    }
  }

  #nextSecond(): () => void {
    return this.#parts.runtime.after(SECOND_MS, () => {
      this.#cancelSecond = this.#nextSecond();
      this.#second();
    });
  }

  #second(): void {
    const nowMs = this.#parts.runtime.wallMs();
    const now = new Date(nowMs).toISOString();
    const since = new Date(this.#sinceMs).toISOString();
    const isBeat = ++this.#seconds % BEAT_SECONDS === 0;
    const calls_per_s = this.#beatEnded / BEAT_SECONDS;
    for (const audience of this.#audiences.values()) {
      const { shown, matched, beatShown } = audience;
      const texts: string[] = [];
      if (matched > shown)
        texts.push(passing("sampled", { since, until: now, shown, of: matched }));
      if (isBeat) {
        const shown_per_s = beatShown / BEAT_SECONDS;
        texts.push(passing("beat", { now, calls_per_s, shown_per_s }));
        audience.beatShown = 0;
      }
      audience.shown = 0;
      audience.matched = 0;
      send(audience, texts);
    }
    if (isBeat) this.#beatEnded = 0;
    this.#sinceMs = nowMs;
  }
}

/** Keeps an event for readers who come back; what is too much goes, the oldest first. */
function keep(audience: Audience, event: PlacedEvent): void {
  audience.written.push(event);
  audience.writtenBytes += Buffer.byteLength(event.text);
  while (audience.writtenBytes > MAX_KEPT_BYTES) {
    const oldest = audience.written.shift();
    if (oldest === undefined) return;
    audience.writtenBytes -= Buffer.byteLength(oldest.text);
    audience.after = oldest.number;
  }
}

function send({ readers }: Audience, texts: readonly string[]): void {
  if (texts.length === 0) return;
  const bytes = Buffer.from(texts.join(""));
  for (const reader of [...readers]) reader.receive(bytes, texts.length);
}

/** An event as it is sent. JSON that is not indented has no line breaks. */
export function passing(type: string, data: object): string {
  return `event: ${type}\ndata: ${JSON.stringify(data)}\n\n`;
}
