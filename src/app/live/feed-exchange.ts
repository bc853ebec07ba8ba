// The live feed over the workers of a service: each worker says now and then what is watched there,
// and the others send their events while that is so.
import type { Bus, Topic, WorkerId } from "../../core/workers/bus.ts";
import type { CallFilter } from "../../observe/feed/call-filter.ts";
import type { FeedBatch } from "../../observe/feed/event-feed.ts";
import type { FeedEvent } from "../../observe/feed/feed-event.ts";
import type { FeedExchange } from "../../observe/feed/feed-hub.ts";
import type { Runtime } from "../../runtime.ts";

interface WatchMessage {
  /** Empty = nobody watches there. */
  readonly filters: readonly CallFilter[];
}

const WATCH: Topic<WatchMessage> = { name: "feed watch" };
const EVENTS: Topic<FeedBatch> = { name: "feed events" };

/** How often a worker repeats that it is watched, and how long that holds. */
const REPEAT_MS = 4_000;
const HOLDS_MS = 11_000;
const OF_EACH_WORKER: ReadonlySet<FeedEvent["type"]> = new Set(["config", "node"]);

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
    onEvents: (run) =>
      void bus.subscribe(EVENTS, (batch) =>
        // Every worker sees these, and each tells of them where it is watched.
        run({
          ...batch,
          events: batch.events.filter(({ event }) => !OF_EACH_WORKER.has(event.type)),
        }),
      ),
  };
}
