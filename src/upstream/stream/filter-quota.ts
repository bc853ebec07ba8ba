// How many different log filters each caller has open, at all workers of the service, so that no
// caller can use up all streams. Knows no stream and no provider.
import { createHash } from "node:crypto";
import type { Holdings } from "../../core/workers/shared-holdings.ts";
import type { StreamCaller, Subscriber } from "./subscriber.ts";

/** How often the text of a filter is in memory while it is open. */
export const COPIES_OF_FILTER = 6;
/** Filters up to this length are bounded by their number alone. */
export const SHORT_CHARS = 4_096;
/** Most characters of the different filters of one caller. */
export const MAX_CALLER_CHARS = 4_000_000;

/** Of one caller. */
type OpenFilters = Map<string, { count: number; readonly chars: number }>;

/** Counts the open log filters of all callers. */
export class FilterQuota {
  readonly #holdings: Holdings<readonly string[]>;
  /** Number of subscriptions, and characters of the filter, by caller and filter. */
  readonly #callers = new Map<string, OpenFilters>();

  /** `holdings`: the filters that callers have at other workers. */
  constructor(holdings: Holdings<readonly string[]>) {
    this.#holdings = holdings;
  }

  /** Whether one more filter is within the caller's limit. */
  allows({ id, maxLogFilters }: StreamCaller, key: string): boolean {
    const filter = nameOf(key);
    const filters: OpenFilters = this.#callers.get(id) ?? new Map();
    const elsewhere = new Set(this.#holdings.elsewhere(id).flat());
    if (filters.has(filter) || elsewhere.has(filter)) return true;
    const open = [...filters.values()].reduce((sum, { chars }) => sum + chars, 0);
    if (key.length > SHORT_CHARS && open + key.length > MAX_CALLER_CHARS) return false;
    return elsewhere.union(filters).size < maxLogFilters;
  }

  /**
   * Joins a stream and counts it for the caller until the subscriber is refused, ends or leaves.
   * Returns the function that leaves.
   */
  hold(
    { id }: StreamCaller,
    key: string,
    subscriber: Subscriber,
    join: (counted: Subscriber) => () => void,
  ): () => void {
    const filter = nameOf(key);
    // The functions below do not keep the key: any number of equal filters may be open.
    const filters: OpenFilters = this.#callers.get(id) ?? new Map();
    this.#callers.set(id, filters);
    const open = filters.get(filter) ?? { count: 0, chars: key.length };
    filters.set(filter, open);
    if (open.count++ === 0) this.#tell(id, filters);
    let held = true;
    const release = (): void => {
      if (held) this.#give(id, filter);
      held = false;
    };
    const leave = join(releasing(subscriber, release));
    return () => {
      release();
      leave();
    };
  }

  #give(id: string, filter: string): void {
    const filters = this.#callers.get(id);
    const open = filters?.get(filter);
    if (filters === undefined || open === undefined || --open.count > 0) return;
    filters.delete(filter);
    this.#tell(id, filters);
    if (filters.size === 0) this.#callers.delete(id);
  }

  #tell(id: string, filters: ReadonlyMap<string, unknown>): void {
    this.#holdings.tell(id, filters.size === 0 ? null : [...filters.keys()].slice(0, MAX_TOLD));
  }
}

const NAME_CHARS = 16;
/** Most filters of one caller that other workers are told of. */
const MAX_TOLD = 1_024;

/** A short name for a filter, which may be long: the same at every worker. */
function nameOf(key: string): string {
  return createHash("sha256").update(key).digest("base64url").slice(0, NAME_CHARS);
}

/** Wraps a subscriber so that `release` is called when it ends. */
function releasing(subscriber: Subscriber, release: () => void): Subscriber {
  return {
    started: (route, position) => subscriber.started(route, position),
    events: (results) => subscriber.events(results),
    unconfirmed: (block, why) => subscriber.unconfirmed?.(block, why),
    refused(outcome, route) {
      release();
      subscriber.refused(outcome, route);
    },
    ended(reason) {
      release();
      subscriber.ended(reason);
    },
  };
}
