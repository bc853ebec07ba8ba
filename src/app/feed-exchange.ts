// The live feed over the workers of a service: each worker says now and then that somebody watches
// there, and the others send their events while that is so.
import type { Bus, Topic, WorkerId } from "../core/workers/bus.ts";
import type { FeedBatch } from "../observe/feed/event-feed.ts";
import { FEED_EVENT_TYPES, type FeedEvent } from "../observe/feed/feed-event.ts";
import type { FeedExchange } from "../observe/feed/feed-hub.ts";
import type { Runtime } from "../runtime.ts";

interface WatchMessage {
  readonly watching: boolean;
}

const WATCH: Topic<WatchMessage> = { name: "feed watch", parse: parseWatch };
const EVENTS: Topic<FeedBatch> = { name: "feed events", parse: parseBatch };

/** How often a worker repeats that it is watched, and how long that holds. */
const REPEAT_MS = 4_000;
const HOLDS_MS = 11_000;
/** Most events in one message; there are fewer. */
const MAX_EVENTS = 1_000;

/** The feed exchange of a worker. */
export function createFeedExchange(
  bus: Bus,
  { after, now }: Pick<Runtime, "after" | "now">,
): FeedExchange {
  const watchers = new Map<WorkerId, number>();
  let isWatched = false;
  let tell: (isWatched: boolean) => void = () => {};
  let cancelRepeat = (): void => {};
  let cancelCheck = (): void => {};

  /** Whether one of the others is watched now. */
  function check(): void {
    cancelCheck();
    for (const [id, untilMs] of watchers) if (untilMs <= now()) watchers.delete(id);
    if (watchers.size > 0) cancelCheck = after(HOLDS_MS, check);
    if (watchers.size > 0 === isWatched) return;
    isWatched = watchers.size > 0;
    tell(isWatched);
  }

  bus.subscribe(WATCH, ({ watching }, from) => {
    if (watching) watchers.set(from, now() + HOLDS_MS);
    else watchers.delete(from);
    check();
  });

  function repeat(): void {
    bus.publish(WATCH, { watching: true });
    cancelRepeat = after(REPEAT_MS, repeat);
  }

  return {
    setWatching(isWatching) {
      cancelRepeat();
      if (isWatching) repeat();
      else bus.publish(WATCH, { watching: false });
    },
    publish: (batch) => bus.publish(EVENTS, batch),
    onWatched(run) {
      tell = run;
    },
    onEvents: (run) => void bus.subscribe(EVENTS, run),
  };
}

function parseWatch(value: unknown): WatchMessage | null {
  if (!isRecord(value) || typeof value["watching"] !== "boolean") return null;
  return { watching: value["watching"] };
}

function parseBatch(value: unknown): FeedBatch | null {
  if (!isRecord(value)) return null;
  const { events, shown, ended } = value;
  if (!Array.isArray(events) || events.length > MAX_EVENTS) return null;
  if (typeof shown !== "number" || typeof ended !== "number") return null;
  const known = events.filter(isEvent);
  // Every worker sees these, and each tells of them where it is watched.
  const isOwn = ({ type }: FeedEvent): boolean => type === "config" || type === "node";
  return { events: known.filter((event) => !isOwn(event)), shown, ended };
}

function isEvent(value: unknown): value is FeedEvent {
  return (
    isRecord(value) &&
    FEED_EVENT_TYPES.some((type) => type === value["type"]) &&
    isRecord(value["data"])
  );
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null;
}
