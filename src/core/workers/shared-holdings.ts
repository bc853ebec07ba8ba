// What callers hold at all workers of a service, so that a bound on what one caller holds holds for
// the service. Each worker tells what a caller holds there a moment after that changes, and again
// now and then, so that a lost message does no lasting harm.
import { setNewest } from "../newest.ts";
import type { Bus, BusClock, Topic, WorkerId } from "./bus.ts";

/** What callers hold: a number of things, or which. */
export interface Holdings<V> {
  /** Tells the other workers what a holder holds here; null = nothing. */
  tell(holder: string, held: V | null): void;
  /** What a holder holds at each of the other workers. */
  elsewhere(holder: string): readonly V[];
}

/** The holdings of a process that is the whole service. */
export const NO_SHARED_HOLDINGS: Holdings<never> = { tell() {}, elsewhere: () => [] };

/** The number of things that a holder holds at all other workers. */
export function countElsewhere(holdings: Holdings<number>, holder: string): number {
  return holdings.elsewhere(holder).reduce((sum, count) => sum + count, 0);
}

/** Changes within this time travel together. */
const TELL_MS = 5;
/** How often everything is told again, and when what was not told again is forgotten. */
const REPEAT_MS = 10_000;
const KEPT_MS = 35_000;
/** Most holders in one message, and most holders of one worker. */
const MAX_TOLD = 500;
const MAX_HOLDERS = 100_000;

type HoldingsMessage<V> = readonly (readonly [holder: string, held: V | null])[];

interface HeldElsewhere<V> {
  readonly held: V;
  readonly heardAtMs: number;
}

/** Shares holdings of one kind, of unique name, over a bus. */
export class SharedHoldings<V> implements Holdings<V> {
  readonly #bus: Bus;
  readonly #clock: BusClock;
  readonly #topic: Topic<HoldingsMessage<V>>;
  readonly #here = new Map<string, V>();
  readonly #others = new Map<WorkerId, Map<string, HeldElsewhere<V>>>();
  readonly #untold = new Set<string>();
  #isTelling = false;
  #isRepeating = false;

  constructor(bus: Bus, clock: BusClock, name: string) {
    this.#bus = bus;
    this.#clock = clock;
    this.#topic = { name: `holdings.${name}` };
    bus.subscribe(this.#topic, (message, from) => this.#hear(message, from));
    bus.onWorkers(() => this.#workersChanged());
  }

  tell(holder: string, held: V | null): void {
    if (held === null) this.#here.delete(holder);
    else this.#here.set(holder, held);
    this.#tellSoon(holder);
    this.#repeat();
  }

  elsewhere(holder: string): readonly V[] {
    const all: V[] = [];
    for (const theirs of this.#others.values()) {
      const heard = theirs.get(holder);
      if (heard === undefined) continue;
      if (this.#clock.now() - heard.heardAtMs > KEPT_MS) theirs.delete(holder);
      else all.push(heard.held);
    }
    return all;
  }

  #hear(message: HoldingsMessage<V>, from: WorkerId): void {
    const theirs = this.#others.get(from) ?? new Map<string, HeldElsewhere<V>>();
    this.#others.set(from, theirs);
    for (const [holder, held] of message) {
      if (held === null) theirs.delete(holder);
      else setNewest(theirs, holder, { held, heardAtMs: this.#clock.now() }, MAX_HOLDERS);
    }
  }

  #workersChanged(): void {
    const living = [...this.#bus.workers(), ...this.#bus.silent()];
    for (const worker of this.#others.keys())
      if (!living.includes(worker)) this.#others.delete(worker);
    for (const holder of this.#here.keys()) this.#tellSoon(holder);
  }

  #tellSoon(holder: string): void {
    this.#untold.add(holder);
    if (this.#isTelling) return;
    this.#isTelling = true;
    this.#clock.after(TELL_MS, () => this.#tell());
  }

  #tell(): void {
    this.#isTelling = false;
    const holders = [...this.#untold].slice(0, MAX_TOLD);
    for (const holder of holders) this.#untold.delete(holder);
    this.#bus.publish(
      this.#topic,
      holders.map((holder) => [holder, this.#here.get(holder) ?? null]),
    );
    const [next] = this.#untold;
    if (next !== undefined) this.#tellSoon(next);
  }

  /** Tells everything again, as long as there is something. */
  #repeat(): void {
    if (this.#isRepeating) return;
    this.#isRepeating = true;
    this.#clock.after(REPEAT_MS, () => {
      this.#isRepeating = false;
      if (this.#here.size === 0) return;
      for (const holder of this.#here.keys()) this.#tellSoon(holder);
      this.#repeat();
    });
  }
}
