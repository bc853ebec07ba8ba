// A simulated outside: time moves only by `advance`, chance comes from a seed, timers run in the
// order they are due. Knows nothing of what it drives.
import { createTurnEnd, createWireIds, type Runtime } from "../../src/runtime.ts";

/** A world whose time and chance the test holds in its hand. */
export interface SimulatedWorld extends Runtime {
  /**
   * Moves time forward and runs every timer that falls due on the way, in order, each at its own
   * time.
   */
  readonly advance: (ms: number) => void;
  /** Moves the clock alone, also backwards, as a broken clock would: no timer runs. */
  readonly jump: (ms: number) => void;
  /**
   * Moves time forward as a process that is held up sees it: what fell due meanwhile runs late,
   * with the next `advance`.
   */
  readonly stall: (ms: number) => void;
  /** Timers that have neither run nor been cancelled. */
  readonly pendingTimers: () => number;
}

interface Timer {
  dueMs: number;
  readonly order: number;
  readonly run: () => void;
}

const START_MS = 1_000_000;
const WALL_OFFSET_MS = Date.UTC(2026, 0, 1) - START_MS;
const MAX_TIMERS_PER_ADVANCE = 1_000_000;

/** A fresh simulated world; the same seed gives the same chance. */
export function simulatedWorld(seed: number): SimulatedWorld {
  let nowMs = START_MS;
  let order = 0;
  const timers = new Set<Timer>();
  return {
    now: () => nowMs,
    wallMs: () => WALL_OFFSET_MS + nowMs,
    random: seededRandom(seed),
    after(ms, run) {
      order += 1;
      const timer: Timer = { dueMs: nowMs + Math.max(0, ms), order, run };
      timers.add(timer);
      return () => {
        timers.delete(timer);
      };
    },
    advance(ms) {
      const endMs = nowMs + ms;
      for (let ran = 0; ; ran++) {
        const timer = nextDue(timers, endMs);
        if (timer === null) break;
        if (ran >= MAX_TIMERS_PER_ADVANCE)
          throw new Error("timers keep falling due: a loop without time passing?");
        timers.delete(timer);
        nowMs = Math.max(nowMs, timer.dueMs);
        timer.run();
      }
      nowMs = endMs;
    },
    jump(ms) {
      for (const timer of timers) timer.dueMs += ms;
      nowMs += ms;
    },
    stall(ms) {
      nowMs += ms;
    },
    pendingTimers: () => timers.size,
    // Sockets are real, also where time is not.
    atTurnEnd: createTurnEnd(),
    // A row of its own: how many requests are sent does not change what chance brings.
    wireId: createWireIds(seededRandom(seed + 1)),
  };
}

/** Uniform numbers in [0, 1) that depend on nothing but the seed (mulberry32). */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

function nextDue(timers: ReadonlySet<Timer>, endMs: number): Timer | null {
  let next: Timer | null = null;
  for (const timer of timers) {
    if (timer.dueMs > endMs) continue;
    if (
      next === null ||
      timer.dueMs < next.dueMs ||
      (timer.dueMs === next.dueMs && timer.order < next.order)
    )
      next = timer;
  }
  return next;
}
