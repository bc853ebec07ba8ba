// One timer wheel for all deadlines of the process: setting and clearing a timer costs a few list
// pointers, and only one real timer runs. Coarse on purpose: a timer fires up to two ticks late,
// never early.
import type { Runtime } from "../runtime.ts";

const TICK_MS = 10;
const SLOTS = 1024;

/** Sets timers. */
export class TimerWheel {
  size = 0;
  readonly #runtime: Runtime;
  readonly #slots: Timer[] = Array.from({ length: SLOTS }, () => new Timer());
  #turnedAtMs: number;
  #tick = 0;
  #running = false;

  constructor(runtime: Runtime) {
    this.#runtime = runtime;
    this.#turnedAtMs = runtime.now();
  }

  /** Calls `run` once, at least `ms` after `nowMs`, the time of this turn. */
  set(ms: number, run: () => void, nowMs = this.#runtime.now()): Timer {
    if (!this.#running) this.#start();
    const behindMs = Math.max(0, nowMs - this.#turnedAtMs);
    const ticks = Math.ceil((Math.max(0, ms) + behindMs) / TICK_MS) + 1;
    const slot = this.#slots[(this.#tick + ticks) % SLOTS];
    const entry = new Timer();
    entry.run = run;
    entry.timerWheel = this;
    entry.dueTick = this.#tick + ticks;
    if (slot !== undefined) entry.insertAfter(slot);
    this.size++;
    return entry;
  }

  #start(): void {
    this.#running = true;
    this.#turnedAtMs = this.#runtime.now();
    this.#runtime.after(TICK_MS, () => this.#turn());
  }

  #turn(): void {
    const elapsed = Math.min(
      SLOTS,
      Math.max(0, Math.floor((this.#runtime.now() - this.#turnedAtMs) / TICK_MS)),
    );
    for (let i = 0; i < elapsed; i++) {
      this.#tick++;
      this.#turnedAtMs += TICK_MS;
      this.#fire(this.#slots[this.#tick % SLOTS]);
    }
    if (this.size === 0) this.#running = false;
    else this.#runtime.after(TICK_MS, () => this.#turn());
  }

  #fire(slot: Timer | undefined): void {
    let entry = slot?.next;
    while (entry !== undefined) {
      const next: Timer | undefined = entry.next;
      if (entry.dueTick <= this.#tick) {
        const { run } = entry;
        entry.clear();
        run();
      }
      entry = next;
    }
  }
}

/** A timer that was set. */
export class Timer {
  run: () => void = nothing;
  timerWheel: TimerWheel | undefined = undefined;
  dueTick = 0;
  next: Timer | undefined = undefined;
  previous: Timer | undefined = undefined;

  insertAfter(head: Timer): void {
    this.previous = head;
    this.next = head.next;
    if (head.next !== undefined) head.next.previous = this;
    head.next = this;
  }

  clear(): void {
    if (this.timerWheel === undefined) return;
    this.timerWheel.size--;
    this.timerWheel = undefined;
    if (this.previous !== undefined) this.previous.next = this.next;
    if (this.next !== undefined) this.next.previous = this.previous;
    this.run = nothing;
  }
}

function nothing(): void {}
