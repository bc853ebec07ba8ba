// What callers hold at all workers of a service, so that a bound on the number of different things
// of one caller holds for the service. Each worker tells what it holds a moment after it changes,
// and everything again now and then, so that a lost message does no lasting harm.
import type { Bus, Topic, WorkerId } from "./bus.ts";

/** What holders hold at this worker and at the others. */
export interface Holdings {
  /** This worker. */
  readonly worker: WorkerId;
  add(holder: string, thing: string): void;
  remove(holder: string, thing: string): void;
  /** What a holder holds at the other workers, each thing once. */
  elsewhere(holder: string): ReadonlySet<string>;
}

/** The holdings of a process that is the whole service. */
export const NO_SHARED_HOLDINGS: Holdings = {
  worker: "1",
  add() {},
  remove() {},
  elsewhere: () => new Set(),
};

/** The time, and the way to wait. */
interface Clock {
  now(): number;
  after(ms: number, run: () => void): () => void;
}

/** Changes within this time travel together. */
const TELL_MS = 5;
/** How often everything is told again, and when what was not told again is forgotten. */
const REPEAT_MS = 10_000;
const KEPT_MS = 35_000;
/** Most holders in one message, most things of one holder, and most holders of one worker. */
const MAX_TOLD = 500;
const MAX_THINGS = 1_024;
const MAX_HOLDERS = 100_000;

type HoldingsMessage = readonly (readonly [holder: string, things: readonly string[]])[];

interface HeldElsewhere {
  readonly things: readonly string[];
  readonly heardAtMs: number;
}

/** Shares holdings of one kind, of unique name, over a bus. */
export class SharedHoldings implements Holdings {
  readonly worker: WorkerId;
  readonly #bus: Bus;
  readonly #clock: Clock;
  readonly #topic: Topic<HoldingsMessage>;
  readonly #here = new Map<string, Set<string>>();
  readonly #others = new Map<WorkerId, Map<string, HeldElsewhere>>();
  readonly #untold = new Set<string>();
  #isTelling = false;
  #isRepeating = false;

  constructor(bus: Bus, clock: Clock, name: string) {
    this.worker = bus.self;
    this.#bus = bus;
    this.#clock = clock;
    this.#topic = { name: `holdings.${name}` };
    bus.subscribe(this.#topic, (message, from) => this.#hear(message, from));
    bus.onWorkers(() => this.#workersChanged());
  }

  add(holder: string, thing: string): void {
    this.#here.set(holder, (this.#here.get(holder) ?? new Set()).add(thing));
    this.#tellSoon(holder);
    this.#repeat();
  }

  remove(holder: string, thing: string): void {
    const things = this.#here.get(holder);
    things?.delete(thing);
    if (things?.size === 0) this.#here.delete(holder);
    this.#tellSoon(holder);
  }

  elsewhere(holder: string): ReadonlySet<string> {
    let all: Set<string> | null = null;
    for (const theirs of this.#others.values()) {
      const held = theirs.get(holder);
      if (held === undefined) continue;
      if (this.#clock.now() - held.heardAtMs > KEPT_MS) theirs.delete(holder);
      else {
        all ??= new Set();
        for (const thing of held.things) all.add(thing);
      }
    }
    return all ?? new Set();
  }

  #hear(message: HoldingsMessage, from: WorkerId): void {
    const theirs = this.#others.get(from) ?? new Map<string, HeldElsewhere>();
    this.#others.set(from, theirs);
    for (const [holder, things] of message) {
      theirs.delete(holder);
      if (things.length > 0) theirs.set(holder, { things, heardAtMs: this.#clock.now() });
      const [oldest = holder] = theirs.keys();
      if (theirs.size > MAX_HOLDERS) theirs.delete(oldest);
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
      holders.map((holder) => [holder, [...(this.#here.get(holder) ?? [])].slice(0, MAX_THINGS)]),
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
