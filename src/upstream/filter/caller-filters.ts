// How many filters callers have at the other workers of this service, so that bounds on them hold
// for the service. Each worker tells its own numbers a moment after they change.
import type { Bus, Topic, WorkerId } from "../../core/workers/bus.ts";
import type { Runtime } from "../../runtime.ts";

/** The filters of callers at other workers. */
export interface CallerFilters {
  /** Sets how many filters a caller has here. */
  set(caller: string, count: number): void;
  /** How many a caller has elsewhere. */
  elsewhere(caller: string): number;
  /** How many all callers have elsewhere. */
  allElsewhere(): number;
}

/** The counts of a process that is the whole service. */
export const NO_OTHER_WORKERS: CallerFilters = {
  set() {},
  elsewhere: () => 0,
  allElsewhere: () => 0,
};

/** Changes within this time travel together. */
const TELL_MS = 25;
/** Most callers in one message, and most that are remembered of one worker. */
const MAX_TOLD = 1_000;
const MAX_CALLERS = 100_000;

/** Counts filters with the other workers on a bus. */
export function createCallerFilters(bus: Bus, runtime: Pick<Runtime, "after">): CallerFilters {
  const here = new Map<string, number>();
  const changed = new Set<string>();
  const others = new Map<WorkerId, Map<string, number>>();
  let all = 0;
  let isTelling = false;

  function tell(): void {
    isTelling = false;
    const callers = [...changed].slice(0, MAX_TOLD);
    for (const caller of callers) changed.delete(caller);
    bus.publish(
      COUNTS,
      callers.map((caller) => [caller, here.get(caller) ?? 0] as const),
    );
    if (changed.size > 0) tellSoon();
  }

  function tellSoon(): void {
    if (isTelling) return;
    isTelling = true;
    runtime.after(TELL_MS, tell);
  }

  bus.subscribe(COUNTS, (counts, from) => {
    const theirs = others.get(from) ?? new Map<string, number>();
    others.set(from, theirs);
    for (const [caller, count] of counts)
      if (count === 0) theirs.delete(caller);
      else if (theirs.size < MAX_CALLERS || theirs.has(caller)) theirs.set(caller, count);
    all = sum([...others.values()].flatMap((known) => [...known.values()]));
  });
  bus.onWorkers(() => {
    const living = [...bus.workers(), ...bus.silent()];
    for (const worker of others.keys()) if (!living.includes(worker)) others.delete(worker);
    all = sum([...others.values()].flatMap((known) => [...known.values()]));
    for (const caller of here.keys()) changed.add(caller);
    if (changed.size > 0) tellSoon();
  });

  return {
    set(caller, count) {
      if (count === 0) here.delete(caller);
      else here.set(caller, count);
      changed.add(caller);
      tellSoon();
    },
    elsewhere: (caller) => sum([...others.values()].map((theirs) => theirs.get(caller) ?? 0)),
    allElsewhere: () => all,
  };
}

function sum(counts: readonly number[]): number {
  return counts.reduce((total, count) => total + count, 0);
}

/** Callers and how many filters each has now at the worker that says so. */
const COUNTS: Topic<readonly (readonly [caller: string, count: number])[]> = {
  name: "filter.counts",
};
