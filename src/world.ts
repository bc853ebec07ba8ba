// The outside as one record: time and chance. Tests pass a simulated one; nothing below `main.ts` reads a clock of its own.

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
}

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
};
