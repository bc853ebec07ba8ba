// The live feed of the whole service, for those who watch it here: events of this process and of
// the other workers in one order, with ids of this process. Keeps the latest, so that a reader who
// comes back goes on where it was. Bounded in readers, and in events that are kept.
import type { Runtime } from "../../runtime.ts";
import type { EventFeed, FeedBatch } from "./event-feed.ts";
import type { CallEvent } from "./feed-event.ts";

/** An event as readers receive it. */
export interface HubEvent {
  /** Of the hub; 0 = the event is not kept, and has no id. */
  readonly number: number;
  /** As it is sent: an event of `text/event-stream`. */
  readonly text: string;
  /** Null = it is no call. */
  readonly call: CallEvent | null;
}

/** Hears events, and that there are no more. */
export interface HubReader {
  receive(events: readonly HubEvent[]): void;
  end(reason: "draining"): void;
}

/** Where a new reader begins. */
export type HubStart =
  /** It gets all that happened since. */
  | { readonly kind: "continued"; readonly events: readonly HubEvent[] }
  /** Events may be missing. */
  | { readonly kind: "resync"; readonly reason: "unknown_id" | "too_old" }
  | { readonly kind: "fresh" };

/** A reader that was let in. */
export interface HubReading {
  readonly start: HubStart;
  leave(): void;
}

/** The other workers of the service. */
export interface FeedExchange {
  /** Says whether somebody watches here. */
  setWatching(isWatching: boolean): void;
  /** Passes events on to the workers where somebody watches; false = nobody does. */
  publish(batch: FeedBatch): void;
  /** Calls back when others begin or cease to watch. */
  onWatched(run: (isWatched: boolean) => void): void;
  onEvents(run: (batch: FeedBatch) => void): void;
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
/** Most events that are kept for readers who come back. */
const MAX_KEPT = 1_000;
/** How long the feed goes on without readers, so that one who comes back misses nothing. */
const LINGER_MS = 15_000;
const SECOND_MS = 1_000;
const BEAT_SECONDS = 5;

/** The feed of the whole service. */
export class FeedHub {
  readonly #parts: HubParts;
  readonly #readers = new Set<HubReader>();
  readonly #kept: HubEvent[] = [];
  /** Tells the ids of this process from those of others. */
  readonly #prefix: string;
  #lastNumber = 0;
  #isRunning = false;
  #isWatchedElsewhere = false;
  #cancelLinger: () => void = () => {};
  #cancelSecond: () => void = () => {};
  #shown = 0;
  #ended = 0;
  #beatShown = 0;
  #beatEnded = 0;
  #seconds = 0;
  #sinceMs = 0;

  constructor(parts: HubParts) {
    this.#parts = parts;
    const { runtime, feed, exchange } = parts;
    const chance = Math.floor(runtime.random() * 36 ** 6).toString(36);
    this.#prefix = `${feed.worker}.${chance}.`;
    exchange?.onWatched((isWatched) => {
      this.#isWatchedElsewhere = isWatched;
      this.#follow();
    });
    exchange?.onEvents((batch) => {
      if (this.#isRunning) this.#hear(batch);
    });
  }

  get readers(): number {
    return this.#readers.size;
  }

  /** Lets a reader in; null = there are as many as may be. */
  join(reader: HubReader, lastId: string | null): HubReading | null {
    if (this.#readers.size >= MAX_READERS) return null;
    const start = this.#startAfter(lastId);
    this.#readers.add(reader);
    this.#cancelLinger();
    if (!this.#isRunning) this.#run();
    return { start, leave: () => this.#leave(reader) };
  }

  /** Ends all readers. */
  close(): void {
    for (const reader of [...this.#readers]) reader.end("draining");
    this.#readers.clear();
    this.#cancelLinger();
    this.#rest();
  }

  #startAfter(lastId: string | null): HubStart {
    if (lastId === null) return { kind: "fresh" };
    const number = lastId.startsWith(this.#prefix) ? Number(lastId.slice(this.#prefix.length)) : -1;
    if (!Number.isSafeInteger(number) || number < 0 || number > this.#lastNumber)
      return { kind: "resync", reason: "unknown_id" };
    const oldest = this.#kept[0]?.number ?? this.#lastNumber + 1;
    // Nothing is heard while nobody watches.
    if (!this.#isRunning || number < oldest - 1) return { kind: "resync", reason: "too_old" };
    return { kind: "continued", events: this.#kept.filter((event) => event.number > number) };
  }

  #leave(reader: HubReader): void {
    if (!this.#readers.delete(reader) || this.#readers.size > 0) return;
    this.#cancelLinger = this.#parts.runtime.after(LINGER_MS, () => this.#rest());
  }

  #run(): void {
    this.#isRunning = true;
    this.#kept.length = 0;
    this.#sinceMs = this.#parts.runtime.wallMs();
    this.#parts.exchange?.setWatching(true);
    this.#follow();
    this.#cancelSecond = this.#nextSecond();
  }

  #rest(): void {
    this.#isRunning = false;
    this.#cancelSecond();
    this.#parts.exchange?.setWatching(false);
    this.#follow();
  }

  /** Has the feed of this process pass events on while somebody watches, here or elsewhere. */
  #follow(): void {
    const { feed, exchange } = this.#parts;
    if (!this.#isRunning && !this.#isWatchedElsewhere) return feed.watch(null);
    feed.watch((batch) => {
      if (this.#isWatchedElsewhere) exchange?.publish(batch);
      if (this.#isRunning) this.#hear(batch);
    });
  }

  #hear({ events, shown, ended }: FeedBatch): void {
    this.#shown += shown;
    this.#ended += ended;
    this.#pass(
      events.map((event) => {
        const number = ++this.#lastNumber;
        const call = event.type === "call" ? event.data : null;
        const text = `id: ${this.#prefix}${number}\n${sentAs(event.type, event.data)}`;
        return { number, text, call };
      }),
    );
  }

  #pass(events: readonly HubEvent[]): void {
    this.#kept.push(...events.filter(({ number }) => number > 0));
    if (this.#kept.length > MAX_KEPT) this.#kept.splice(0, this.#kept.length - MAX_KEPT);
    for (const reader of [...this.#readers]) reader.receive(events);
  }

  #nextSecond(): () => void {
    return this.#parts.runtime.after(SECOND_MS, () => {
      this.#cancelSecond = this.#nextSecond();
      this.#second();
    });
  }

  #second(): void {
    const nowMs = this.#parts.runtime.wallMs();
    const [shown, ended] = [this.#shown, this.#ended];
    this.#shown = 0;
    this.#ended = 0;
    this.#beatShown += shown;
    this.#beatEnded += ended;
    this.#seconds++;
    const events: HubEvent[] = [];
    const now = new Date(nowMs).toISOString();
    if (ended > shown) {
      const since = new Date(this.#sinceMs).toISOString();
      events.push(passing("sampled", { since, until: now, shown, of: ended }));
    }
    this.#sinceMs = nowMs;
    if (this.#seconds % BEAT_SECONDS === 0) {
      const calls_per_s = this.#beatEnded / BEAT_SECONDS;
      events.push(
        passing("beat", { now, calls_per_s, shown_per_s: this.#beatShown / BEAT_SECONDS }),
      );
      this.#beatShown = 0;
      this.#beatEnded = 0;
    }
    if (events.length > 0) this.#pass(events);
  }
}

/** An event that is not kept. */
export function passing(type: string, data: object): HubEvent {
  return { number: 0, text: sentAs(type, data), call: null };
}

/** JSON has no line breaks outside of strings, and in strings they are escaped. */
function sentAs(type: string, data: object): string {
  return `event: ${type}\ndata: ${JSON.stringify(data)}\n\n`;
}
