// The calls under way that equal ones may join, found by what they ask. A table of a fixed size and
// no `Map`: V8 links each outgrown table of a map to the next one, so that those which have become
// old keep all calls that were ever in the map, with all that belongs to them, until the next full
// collection. That made a call several times as expensive to the garbage collector.
import type { Job } from "../job.ts";
import type { SharedCall } from "./shared-call.ts";

/** Of the table: a power of two, several times the calls that are under way at one time. */
const SLOTS = 8_192;
/** How many slots a call may be in. Where all are taken, a call is made by itself. */
const NEAR_SLOTS = 8;
/** Of longer requests only some bytes choose the slot; all of them are compared. */
const SAMPLES_SHIFT = 8;

/** Calls of one router. */
export class OpenCalls {
  readonly #byAccount: () => boolean;
  readonly #slots: (SharedCall | null)[] = new Array<SharedCall | null>(SLOTS).fill(null);

  /** `byAccount`: only calls of one account are equal. */
  constructor(byAccount: () => boolean) {
    this.#byAccount = byAccount;
  }

  /** The slot of the equal call that was begun last, or else a free one; null = all are taken. */
  slotOf(job: Job): number | null {
    const first = slotOf(job);
    let free: number | null = null;
    for (let at = first; at < first + NEAR_SLOTS; at++) {
      const slot = at & (SLOTS - 1);
      const call = this.#slots[slot];
      if (call === null || call === undefined) free ??= slot;
      else if (this.#areEqual(call.job, job)) return slot;
    }
    return free;
  }

  at(slot: number): SharedCall | null {
    return this.#slots[slot] ?? null;
  }

  put(slot: number, call: SharedCall): void {
    this.#slots[slot] = call;
  }

  /** It is over. */
  remove(slot: number, call: SharedCall): void {
    if (this.#slots[slot] === call) this.#slots[slot] = null;
  }

  /** All bytes but those of the id are the same, and so is how the callers want it. */
  #areEqual({ request: one }: Job, { request: other }: Job): boolean {
    const [a, b] = [one.call, other.call];
    return (
      one.tracker === other.tracker &&
      one.strategy === other.strategy &&
      one.transport === other.transport &&
      one.mayStream === other.mayStream &&
      (one.room === undefined) === (other.room === undefined) &&
      a.resolution?.hash === b.resolution?.hash &&
      (!this.#byAccount() || one.caller.key === other.caller.key) &&
      a.idStart === b.idStart &&
      a.body.length - a.idEnd === b.body.length - b.idEnd &&
      a.body.compare(b.body, b.idEnd, b.body.length, a.idEnd, a.body.length) === 0 &&
      a.body.compare(b.body, 0, b.idStart, 0, a.idStart) === 0
    );
  }
}

/** A slot by the bytes after the id. */
function slotOf({ request }: Job): number {
  const { body, idEnd } = request.call;
  const step = 1 + ((body.length - idEnd) >> SAMPLES_SHIFT);
  let sum = body.length - idEnd;
  for (let at = idEnd; at < body.length; at += step)
    sum = Math.imul(sum ^ (body[at] ?? 0), FNV_PRIME);
  return (sum ^ (sum >>> 15)) & (SLOTS - 1);
}

const FNV_PRIME = 0x01000193;
