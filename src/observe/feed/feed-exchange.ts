// The live feed over the workers of a service: each worker says now and then what is watched there,
// and the others send their events while that is so.
import type { Bus, Topic, WorkerId } from "../../core/workers/bus.ts";
import type { Runtime } from "../../runtime.ts";
import type { CallFilter } from "./call-filter.ts";
import type { FeedBatch } from "./event-feed.ts";
import type { FeedEvent } from "./feed-event.ts";

/** The filters that are watched at a worker; none = nobody watches there. */
const WATCH: Topic<readonly CallFilter[]> = { name: "feed watch" };
const EVENTS: Topic<FeedBatch> = { name: "feed events" };

/** How often a worker repeats that it is watched, and how long that holds. */
const REPEAT_MS = 4_000;
const HOLDS_MS = 11_000;
const OF_EACH_WORKER: ReadonlySet<FeedEvent["type"]> = new Set(["config", "incident", "node"]);

interface Watcher {
  readonly untilMs: number;
  readonly filters: readonly CallFilter[];
}

/** The other workers of the service, as the feed of one of them meets them. */
export class FeedExchange {
  readonly #bus: Bus;
  readonly #runtime: Pick<Runtime, "after" | "now">;
  readonly #watchers = new Map<WorkerId, Watcher>();
  #tell: (filters: readonly CallFilter[]) => void = () => {};
  #cancelRepeat = (): void => {};
  #cancelCheck = (): void => {};

  constructor(bus: Bus, runtime: Pick<Runtime, "after" | "now">) {
    this.#bus = bus;
    this.#runtime = runtime;
    bus.subscribe(WATCH, (filters, from) => {
      const untilMs = runtime.now() + HOLDS_MS;
      if (filters.length > 0) this.#watchers.set(from, { untilMs, filters });
      else this.#watchers.delete(from);
      this.#check();
    });
  }

  /** Says what is watched here; none = nobody watches. */
  setWatched(filters: readonly CallFilter[]): void {
    this.#cancelRepeat();
    this.#bus.publish(WATCH, filters);
    if (filters.length > 0)
      this.#cancelRepeat = this.#runtime.after(REPEAT_MS, () => this.setWatched(filters));
  }

  /** Passes events on to the workers where somebody watches. */
  publish(batch: FeedBatch): void {
    this.#bus.publish(EVENTS, batch);
  }

  /** Calls back with what others watch: when that changes, and now and then. */
  onWatched(run: (filters: readonly CallFilter[]) => void): void {
    this.#tell = run;
  }

  onEvents(run: (batch: FeedBatch) => void): void {
    this.#bus.subscribe(EVENTS, (batch) =>
      // Every worker sees these, and each tells of them where it is watched.
      run({
        ...batch,
        events: batch.events.filter(({ event }) => !OF_EACH_WORKER.has(event.type)),
      }),
    );
  }

  /** Tells what the others watch now. */
  #check(): void {
    this.#cancelCheck();
    const nowMs = this.#runtime.now();
    for (const [id, { untilMs }] of this.#watchers) if (untilMs <= nowMs) this.#watchers.delete(id);
    if (this.#watchers.size > 0)
      this.#cancelCheck = this.#runtime.after(HOLDS_MS, () => this.#check());
    const filters = [...this.#watchers.values()].flatMap((watcher) => watcher.filters);
    this.#tell(filters);
  }
}
