// How many filters callers have, here and at the other workers of this service, so that bounds on
// them hold for the service. Each worker tells its own numbers a moment after they change.
import type { Bus, Topic, WorkerId } from "../../core/workers/bus.ts";
import type { Runtime } from "../../runtime.ts";

/** Changes within this time travel together. */
const TELL_MS = 25;
/** Most callers in one message, and most that are remembered of one worker. */
const MAX_TOLD = 1_000;
const MAX_CALLERS = 100_000;

/** The numbers of filters of callers. */
export class CallerFilters {
  readonly #runtime: Pick<Runtime, "after">;
  /** Null = this process is alone. */
  readonly #bus: Bus | null;
  readonly #here = new Map<string, number>();
  readonly #untold = new Set<string>();
  readonly #others = new Map<WorkerId, Map<string, number>>();
  #allElsewhere = 0;
  #isTelling = false;

  constructor(runtime: Pick<Runtime, "after">, bus: Bus | null) {
    this.#runtime = runtime;
    this.#bus = bus;
    bus?.subscribe(COUNTS, (counts, from) => {
      const theirs = this.#others.get(from) ?? new Map<string, number>();
      this.#others.set(from, theirs);
      for (const [caller, count] of counts)
        if (count === 0) theirs.delete(caller);
        else if (theirs.size < MAX_CALLERS || theirs.has(caller)) theirs.set(caller, count);
      this.#sumUp();
    });
    bus?.onWorkers(() => {
      const living = [...bus.workers(), ...bus.silent()];
      for (const worker of this.#others.keys())
        if (!living.includes(worker)) this.#others.delete(worker);
      this.#sumUp();
      this.#tellSoon(bus, this.#here.keys());
    });
  }

  /** Counts one more, or one fewer, of a caller here. */
  add(caller: string, by: 1 | -1): void {
    const count = (this.#here.get(caller) ?? 0) + by;
    if (count > 0) this.#here.set(caller, count);
    else this.#here.delete(caller);
    if (this.#bus !== null) this.#tellSoon(this.#bus, [caller]);
  }

  /** How many a caller has at all workers. */
  of(caller: string): number {
    const theirs = [...this.#others.values()].map((counts) => counts.get(caller) ?? 0);
    return (this.#here.get(caller) ?? 0) + sum(theirs);
  }

  /** How many all callers have at the other workers. */
  get allElsewhere(): number {
    return this.#allElsewhere;
  }

  #sumUp(): void {
    this.#allElsewhere = sum([...this.#others.values()].flatMap((counts) => [...counts.values()]));
  }

  #tellSoon(bus: Bus, callers: Iterable<string>): void {
    for (const caller of callers) this.#untold.add(caller);
    if (this.#isTelling || this.#untold.size === 0) return;
    this.#isTelling = true;
    this.#runtime.after(TELL_MS, () => {
      this.#isTelling = false;
      const sent = [...this.#untold].slice(0, MAX_TOLD);
      for (const caller of sent) this.#untold.delete(caller);
      bus.publish(
        COUNTS,
        sent.map((caller) => [caller, this.#here.get(caller) ?? 0] as const),
      );
      this.#tellSoon(bus, []);
    });
  }
}

function sum(counts: readonly number[]): number {
  return counts.reduce((total, count) => total + count, 0);
}

/** Callers and how many filters each has now at the worker that says so. */
const COUNTS: Topic<readonly (readonly [caller: string, count: number])[]> = {
  name: "filter.counts",
};
