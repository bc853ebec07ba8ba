// The live feed over the workers of a service: each worker says now and then what is watched there,
// and the others send their events while that is so.
import { isRecord } from "../core/fields.ts";
import type { Bus, Topic, WorkerId } from "../core/workers/bus.ts";
import type { CallFilter } from "../observe/feed/call-filter.ts";
import type { FeedBatch, FeedItem, FilterCount } from "../observe/feed/event-feed.ts";
import { CALL_OUTCOMES, FEED_EVENT_TYPES } from "../observe/feed/feed-event.ts";
import type { FeedExchange } from "../observe/feed/feed-hub.ts";
import type { Runtime } from "../runtime.ts";

interface WatchMessage {
  /** Empty = nobody watches there. */
  readonly filters: readonly CallFilter[];
}

const WATCH: Topic<WatchMessage> = { name: "feed watch", parse: parseWatch };
const EVENTS: Topic<FeedBatch> = { name: "feed events", parse: parseBatch };

/** How often a worker repeats that it is watched, and how long that holds. */
const REPEAT_MS = 4_000;
const HOLDS_MS = 11_000;
/** Bounds of one message; there are fewer. */
const MAX_EVENTS = 20_000;
const MAX_FILTERS = 256;
const MAX_TEXT = 16_384;

interface Watcher {
  readonly untilMs: number;
  readonly filters: readonly CallFilter[];
}

/** The feed exchange of a worker. */
export function createFeedExchange(
  bus: Bus,
  { after, now }: Pick<Runtime, "after" | "now">,
): FeedExchange {
  const watchers = new Map<WorkerId, Watcher>();
  let lastText = "[]";
  let tell: (filters: readonly CallFilter[]) => void = () => {};
  let cancelRepeat = (): void => {};
  let cancelCheck = (): void => {};

  /** Tells what the others watch now, if that has changed. */
  function check(): void {
    cancelCheck();
    for (const [id, { untilMs }] of watchers) if (untilMs <= now()) watchers.delete(id);
    if (watchers.size > 0) cancelCheck = after(HOLDS_MS, check);
    const filters = [...watchers.values()].flatMap((watcher) => watcher.filters);
    const text = JSON.stringify(filters);
    if (text === lastText) return;
    lastText = text;
    tell(filters);
  }

  bus.subscribe(WATCH, ({ filters }, from) => {
    if (filters.length > 0) watchers.set(from, { untilMs: now() + HOLDS_MS, filters });
    else watchers.delete(from);
    check();
  });

  function say(filters: readonly CallFilter[]): void {
    bus.publish(WATCH, { filters });
    if (filters.length > 0) cancelRepeat = after(REPEAT_MS, () => say(filters));
  }

  return {
    setWatched(filters) {
      cancelRepeat();
      say(filters);
    },
    publish: (batch) => bus.publish(EVENTS, batch),
    onWatched(run) {
      tell = run;
    },
    onEvents: (run) => void bus.subscribe(EVENTS, run),
  };
}

function parseWatch(value: unknown): WatchMessage | null {
  if (!isRecord(value) || !Array.isArray(value["filters"])) return null;
  const filters = value["filters"].slice(0, MAX_FILTERS).flatMap((each) => parseFilter(each) ?? []);
  return { filters };
}

/** A filter as another worker sent it; null = it is none. */
export function parseFilter(value: unknown): CallFilter | null {
  if (!isRecord(value)) return null;
  const outcome = CALL_OUTCOMES.find((each) => each === value["outcome"]) ?? null;
  const text = (name: string): string | null => {
    const given = value[name];
    return typeof given === "string" ? given : null;
  };
  return {
    profile: text("profile"),
    chain: text("chain"),
    method: text("method"),
    provider: text("provider"),
    key: text("key"),
    outcome,
    failovers: value["failovers"] === true,
    minMs: typeof value["minMs"] === "number" ? value["minMs"] : null,
  };
}

function parseBatch(value: unknown): FeedBatch | null {
  if (!isRecord(value)) return null;
  const { events, counts, ended } = value;
  if (!Array.isArray(events) || events.length > MAX_EVENTS || !Array.isArray(counts)) return null;
  if (typeof ended !== "number") return null;
  return {
    // Every worker sees these, and each tells of them where it is watched.
    events: events.filter(isItem).filter(({ type }) => type !== "config" && type !== "node"),
    counts: counts.slice(0, MAX_FILTERS).filter(isCount),
    ended,
  };
}

function isItem(value: unknown): value is FeedItem {
  if (!isRecord(value)) return false;
  const { type, data, filters } = value;
  return (
    FEED_EVENT_TYPES.some((known) => known === type) &&
    typeof data === "string" &&
    data.length <= MAX_TEXT &&
    (filters === null ||
      (Array.isArray(filters) && filters.every((key) => typeof key === "string")))
  );
}

function isCount(value: unknown): value is FilterCount {
  if (!isRecord(value)) return false;
  const { filter, shown, matched } = value;
  return typeof filter === "string" && typeof shown === "number" && typeof matched === "number";
}
