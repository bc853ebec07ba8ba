// The outside as one record: time, chance and numbers for the wire. Tests pass a simulated one; nothing below `main.ts` reads a clock of its own.

/** Time and chance as the service sees them. */
export interface World {
  /** Monotonic milliseconds, for measuring and deadlines. Never jumps. */
  readonly now: () => number;
  /** Wall clock, milliseconds since the epoch, for showing only. */
  readonly wallMs: () => number;
  /** Uniform in [0, 1). */
  readonly random: () => number;
  /** Calls back once after `ms`; the returned function cancels. Does not keep the process alive. */
  readonly after: (ms: number, run: () => void) => () => void;
  /** The id of one request to a provider; no other request of this process has it. */
  readonly wireId: () => string;
}

// Ids of requests are two halves of 8 digits, each a small integer.
const LEAST_HALF = 10_000_000;
const HALVES = 90_000_000;
/** 2^53 without its last eight digits, less one. */
const GREATEST_HIGH = 90_071_991;
const MAX_STEP = 65_536;

/** The real outside. */
export const realWorld: World = {
  now: () => performance.now(),
  wallMs: () => Date.now(),
  random: Math.random,
  after: (ms, run) => {
    const timer = setTimeout(run, ms);
    timer.unref();
    return () => clearTimeout(timer);
  },
  wireId: createWireIds(Math.random),
};

/**
 * Ids of requests: numbers of 16 digits below 2^53 that rise from a random start by random steps, so that none occurs twice and none can be guessed
 * from those before it.
 */
export function createWireIds(random: () => number): () => string {
  let high = LEAST_HALF + Math.floor(random() * (GREATEST_HIGH - LEAST_HALF + 1));
  let low = LEAST_HALF + Math.floor(random() * HALVES);
  return () => {
    low += 1 + Math.floor(random() * MAX_STEP);
    if (low >= LEAST_HALF + HALVES) {
      low -= HALVES;
      high = high === GREATEST_HIGH ? LEAST_HALF : high + 1;
    }
    return `${high}${low}`;
  };
}
