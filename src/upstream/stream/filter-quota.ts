// How many different log filters each caller has open, at all workers of the service, so that no
// caller can use up all streams. Knows no stream and no provider.
import { createHash } from "node:crypto";
import type { Holdings } from "../../core/workers/shared-holdings.ts";
import type { StreamCaller, Subscriber } from "./subscriber.ts";

/** Counts the open log filters of all callers. */
export interface FilterQuota {
  /** Whether one more filter is within the caller's limit. */
  allows(caller: StreamCaller, key: string): boolean;
  /**
   * Joins a stream and counts it for the caller until the subscriber is refused, ends or leaves.
   * Returns the function that leaves.
   */
  hold(
    caller: StreamCaller,
    key: string,
    subscriber: Subscriber,
    join: (counted: Subscriber) => () => void,
  ): () => void;
}

/** Creates an empty quota; `holdings` tells of the filters that callers have at other workers. */
export function createFilterQuota(holdings: Holdings): FilterQuota {
  /** Number of subscriptions by caller and filter. */
  const callers = new Map<string, Map<string, number>>();

  function give(id: string, filter: string): void {
    const filters = callers.get(id);
    const left = (filters?.get(filter) ?? 0) - 1;
    if (filters === undefined) return;
    if (left > 0) return void filters.set(filter, left);
    filters.delete(filter);
    holdings.remove(id, filter);
    if (filters.size === 0) callers.delete(id);
  }

  return {
    allows({ id, maxLogFilters }, key) {
      const filter = nameOf(key);
      const filters = callers.get(id) ?? new Map<string, number>();
      const elsewhere = holdings.elsewhere(id);
      if (filters.has(filter) || elsewhere.has(filter)) return true;
      let count = filters.size;
      for (const other of elsewhere) if (!filters.has(other)) count++;
      return count < maxLogFilters;
    },
    hold({ id }, key, subscriber, join) {
      const filter = nameOf(key);
      const filters = callers.get(id) ?? new Map<string, number>();
      callers.set(id, filters);
      const before = filters.get(filter) ?? 0;
      filters.set(filter, before + 1);
      if (before === 0) holdings.add(id, filter);
      let held = true;
      const release = (): void => {
        if (held) give(id, filter);
        held = false;
      };
      const leave = join(releasing(subscriber, release));
      return () => {
        release();
        leave();
      };
    },
  };
}

const NAME_CHARS = 16;

/** A short name for a filter, which may be long: the same at every worker. */
function nameOf(key: string): string {
  return createHash("sha256").update(key).digest("base64url").slice(0, NAME_CHARS);
}

/** Wraps a subscriber so that `release` is called when it ends. */
function releasing(subscriber: Subscriber, release: () => void): Subscriber {
  return {
    started: (route, position) => subscriber.started(route, position),
    events: (results) => subscriber.events(results),
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
