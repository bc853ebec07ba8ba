// What changed lately in the whole service. Keeps the latest; what several workers tell of the same
// change counts once.
// Knows no reader.
import type { ChangeEvent } from "./feed-event.ts";

/** Changes that are kept. */
export const MAX_CHANGES = 200;
/** Workers tell of the same change within this time. */
const SAME_MS = 10_000;

interface KeptChange {
  readonly change: ChangeEvent;
  readonly atMs: number;
  readonly subject: string;
  readonly state: string;
  /** How many were added before. */
  readonly order: number;
}

/** The latest changes of a service. */
export class RecentChanges {
  /** In the order of their times. */
  readonly #kept: KeptChange[] = [];
  #added = 0;

  /** The latest first. */
  list(): readonly ChangeEvent[] {
    return this.#kept.map(({ change }) => change).reverse();
  }

  /** False = it is known: the same was told of the same subject just before or after it. */
  add(change: ChangeEvent): boolean {
    const atMs = Date.parse(change.data.at);
    const order = this.#added;
    const added = { change, atMs, subject: subjectOf(change), state: stateOf(change), order };
    const after = this.#kept.findIndex((kept) => kept.atMs > atMs);
    const at = after === -1 ? this.#kept.length : after;
    const isSubject = ({ subject }: KeptChange): boolean => subject === added.subject;
    const neighbours = [
      this.#kept.slice(0, at).findLast(isSubject),
      this.#kept.slice(at).find(isSubject),
    ];
    if (neighbours.some((kept) => kept !== undefined && isSame(kept, added))) return false;
    this.#kept.splice(at, 0, added);
    this.#added++;
    if (this.#kept.length > MAX_CHANGES) this.#dropFirst();
    return true;
  }

  /** Drops the one that was added first: where the clock was set back, not the oldest by time. */
  #dropFirst(): void {
    let first = 0;
    for (const [at, { order }] of this.#kept.entries())
      if (order < (this.#kept[first]?.order ?? 0)) first = at;
    this.#kept.splice(first, 1);
  }
}

function isSame(left: KeptChange, right: KeptChange): boolean {
  return left.state === right.state && Math.abs(left.atMs - right.atMs) < SAME_MS;
}

/** Of what a change tells. */
function subjectOf({ type, data }: ChangeEvent): string {
  const fields: Readonly<Record<string, unknown>> = { ...data };
  return JSON.stringify([type, ...SUBJECT.map((name) => fields[name])]);
}

const SUBJECT = ["profile", "chain", "provider", "transport", "kind", "node", "incident"];

/** How things are after a change: all but its subject and what differs between workers. */
function stateOf({ type, data }: ChangeEvent): string {
  const isOfState = ([name]: readonly [string, unknown]): boolean =>
    !SUBJECT.includes(name) && !OF_WORKER.includes(name);
  return JSON.stringify([type, Object.entries(data).filter(isOfState)]);
}

const OF_WORKER = ["at", "worker", "cause", "lag_blocks"];
