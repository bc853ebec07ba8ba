// What changed lately in the whole service: circuits, cordons, heads, streams, configuration,
// workers and nodes. Keeps the latest; what several workers tell of the same change counts once.
// Knows no reader.
import type { FeedEvent } from "./feed-event.ts";

/** An event that is no call. */
export type ChangeEvent = Exclude<FeedEvent, { readonly type: "call" }>;

/** Changes that are kept. */
export const MAX_CHANGES = 200;
/** Workers tell of the same change within this time. */
const SAME_MS = 10_000;

/** The latest changes of a service. */
export class RecentChanges {
  readonly #changes: { readonly change: ChangeEvent; readonly key: string }[] = [];

  /** The latest first. */
  list(): readonly ChangeEvent[] {
    return this.#changes
      .map(({ change }) => change)
      .sort((left, right) => Date.parse(right.data.at) - Date.parse(left.data.at));
  }

  add(changes: readonly ChangeEvent[]): void {
    for (const change of changes) {
      const key = keyOf(change);
      const atMs = Date.parse(change.data.at);
      const isKnown = this.#changes.some(
        (other) => other.key === key && Math.abs(Date.parse(other.change.data.at) - atMs) < SAME_MS,
      );
      if (!isKnown) this.#changes.push({ change, key });
    }
    if (this.#changes.length > MAX_CHANGES)
      this.#changes.splice(0, this.#changes.length - MAX_CHANGES);
  }
}

/** What it says, without who says it and when. */
function keyOf({ type, data }: ChangeEvent): string {
  return JSON.stringify([type, { ...data, at: null, worker: null }]);
}
