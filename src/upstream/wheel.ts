// One timer wheel for every deadline of the process: setting and clearing costs a few list pointers, and only one real timer ever runs.
// Coarse on purpose: an alarm goes off up to two ticks late, never early.
import type { World } from "../world.ts";

/** Something to do at a time unless it is cleared before. */
export interface Alarm {
  clear(): void;
}

/** Sets alarms. */
export interface Wheel {
  /** Calls `run` once, at least `ms` from now. */
  set(ms: number, run: () => void): Alarm;
  /** Alarms set and not yet gone off. */
  readonly size: number;
}

const TICK_MS = 10;
const SLOTS = 1024;

/** A wheel on the clock of `world`. */
export function createWheel(world: World): Wheel {
  return new SlottedWheel(world);
}

class SlottedWheel implements Wheel {
  size = 0;
  readonly #world: World;
  readonly #slots: Entry[] = Array.from({ length: SLOTS }, () => new Entry());
  #turnedAtMs: number;
  #tick = 0;
  #running = false;

  constructor(world: World) {
    this.#world = world;
    this.#turnedAtMs = world.now();
  }

  set(ms: number, run: () => void): Alarm {
    if (!this.#running) this.#start();
    const behindMs = Math.max(0, this.#world.now() - this.#turnedAtMs);
    const ticks = Math.ceil((Math.max(0, ms) + behindMs) / TICK_MS) + 1;
    const slot = this.#slots[(this.#tick + ticks) % SLOTS];
    const entry = new Entry();
    entry.run = run;
    entry.wheel = this;
    entry.dueTick = this.#tick + ticks;
    if (slot !== undefined) entry.insertAfter(slot);
    this.size++;
    return entry;
  }

  #start(): void {
    this.#running = true;
    this.#turnedAtMs = this.#world.now();
    this.#world.after(TICK_MS, () => this.#turn());
  }

  #turn(): void {
    const elapsed = Math.min(SLOTS, Math.max(0, Math.floor((this.#world.now() - this.#turnedAtMs) / TICK_MS)));
    for (let i = 0; i < elapsed; i++) {
      this.#tick++;
      this.#turnedAtMs += TICK_MS;
      this.#ring(this.#slots[this.#tick % SLOTS]);
    }
    if (this.size === 0) this.#running = false;
    else this.#world.after(TICK_MS, () => this.#turn());
  }

  #ring(slot: Entry | undefined): void {
    let entry = slot?.next;
    while (entry !== undefined) {
      const next: Entry | undefined = entry.next;
      if (entry.dueTick <= this.#tick) {
        const { run } = entry;
        entry.clear();
        run();
      }
      entry = next;
    }
  }
}

class Entry implements Alarm {
  run: () => void = nothing;
  wheel: SlottedWheel | undefined = undefined;
  dueTick = 0;
  next: Entry | undefined = undefined;
  previous: Entry | undefined = undefined;

  insertAfter(head: Entry): void {
    this.previous = head;
    this.next = head.next;
    if (head.next !== undefined) head.next.previous = this;
    head.next = this;
  }

  clear(): void {
    if (this.wheel === undefined) return;
    this.wheel.size--;
    this.wheel = undefined;
    if (this.previous !== undefined) this.previous.next = this.next;
    if (this.next !== undefined) this.next.previous = this.previous;
    this.run = nothing;
  }
}

function nothing(): void {}
