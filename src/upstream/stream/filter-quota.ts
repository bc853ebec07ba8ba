// How many different log filters each caller has open, so that no caller can use up all streams.
// Knows no stream and no provider.
import type { RoutedCall } from "../engine/router.ts";
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

/** Creates an empty quota. */
export function createFilterQuota(): FilterQuota {
  /** Number of subscriptions by caller and stream. */
  const callers = new Map<string, Map<string, number>>();

  function give(id: string, key: string): void {
    const streams = callers.get(id);
    const left = (streams?.get(key) ?? 0) - 1;
    if (streams === undefined) return;
    if (left > 0) streams.set(key, left);
    else streams.delete(key);
    if (streams.size === 0) callers.delete(id);
  }

  return {
    allows({ id, maxLogFilters }, key) {
      const streams = callers.get(id);
      return streams === undefined || streams.has(key) || streams.size < maxLogFilters;
    },
    hold({ id }, key, subscriber, join) {
      const streams = callers.get(id) ?? new Map<string, number>();
      callers.set(id, streams);
      streams.set(key, (streams.get(key) ?? 0) + 1);
      let held = true;
      const release = (): void => {
        if (held) give(id, key);
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

/** Wraps a subscriber so that `release` is called when it ends. */
function releasing(subscriber: Subscriber, release: () => void): Subscriber {
  return {
    started: (route: RoutedCall | null) => subscriber.started(route),
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
