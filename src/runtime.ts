// The runtime: clocks, timers, randomness and ids of requests. Tests pass a simulated one; no other
// file of the service reads a clock.

/** Clocks, timers and randomness. */
export interface Runtime {
  /** Monotonic milliseconds, for measuring and deadlines. Never jumps. */
  readonly now: () => number;
  /** Wall clock, milliseconds since the epoch; for display only. */
  readonly wallMs: () => number;
  /** Uniform in [0, 1). */
  readonly random: () => number;
  /** Calls back once after `ms`; the returned function cancels. Does not keep the process alive. */
  readonly after: (ms: number, run: () => void) => () => void;
  /** Calls back at the end of this turn of the event loop, in the order of the calls. */
  readonly atTurnEnd: (run: () => void) => void;
  /** A new id for a request to a provider, unique in this process. */
  readonly wireId: () => string;
}

// Ids have 16 digits in two halves of 8, each a small integer; `HIGHS` keeps them below 2^53.
const LEAST_HALF = 10_000_000;
const HIGHS = 80_071_992;
const LOWS = 90_000_000;
const HALF_DIGITS = 8;
const ID_DIGITS = 2 * HALF_DIGITS;
/** A string of an id keeps those made with it in memory: 1 KiB. */
const IDS_AT_ONCE = 64;
const ZERO = 0x30;

/** One of several equal parts. */
export interface Share {
  readonly index: number;
  readonly of: number;
}

const ALL: Share = { index: 0, of: 1 };

/** The runtime of the real process. */
export const realRuntime: Runtime = {
  now: () => performance.now(),
  wallMs: () => Date.now(),
  random: Math.random,
  after: (ms, run) => {
    const timer = setTimeout(run, ms);
    timer.unref();
    return () => clearTimeout(timer);
  },
  atTurnEnd: createTurnEnd(),
  wireId: createWireIds(Math.random),
};

/** The runtime of a process that is one of several of a service. */
export function runtimeOf(share: Share): Runtime {
  return { ...realRuntime, wireId: createWireIds(Math.random, share) };
}

/** A call that is still to come. */
export interface PendingRun {
  /** Makes it now, if it was not made or cancelled. */
  readonly run: () => void;
  readonly cancel: () => void;
}

/** Calls `run` once: when the result is told to, or after `ms`. */
export function runWithin(
  { after }: Pick<Runtime, "after">,
  ms: number,
  run: () => void,
): PendingRun {
  let isDone = false;
  const cancelTimer = after(ms, runOnce);
  function runOnce(): void {
    if (isDone) return;
    cancel();
    run();
  }
  function cancel(): void {
    isDone = true;
    cancelTimer();
  }
  return { run: runOnce, cancel };
}

/** The result of `work`; rejects after `ms` with an error that says `what` took longer. */
export function within<T>(
  { after }: Pick<Runtime, "after">,
  ms: number,
  what: string,
  work: Promise<T>,
): Promise<T> {
  return new Promise((resolve, reject) => {
    const cancel = after(ms, () => reject(new Error(`${what} took longer than ${ms} ms`)));
    work.then(resolve, reject).finally(cancel);
  });
}

/**
 * Runs `work` once at a time. All who ask during a run share the next one: it begins after this
 * one, so that its result is newer than what they know.
 */
export function shared<T>(work: () => Promise<T>): () => Promise<T> {
  let running: Promise<T> | null = null;
  let next: Promise<T> | null = null;
  function run(): Promise<T> {
    if (running === null) {
      running = work().finally(() => {
        running = null;
      });
      return running;
    }
    next ??= running
      .catch(() => undefined)
      .then(() => {
        next = null;
        return run();
      });
    return next;
  }
  return run;
}

const LONG_MS = 3_600_000;

/** Keeps the process alive, though it waits for nothing, until the returned function is called. */
export function keepAlive(): () => void {
  const timer = setInterval(() => {}, LONG_MS);
  return () => clearInterval(timer);
}

/**
 * Batches work until the end of a turn of the event loop. Used for small writes: each write may
 * wake the process that reads it, and a process just woken by one write is still awake for the
 * next.
 */
export function createTurnEnd(
  schedule: (run: () => void) => void = setImmediate,
): (run: () => void) => void {
  let due: (() => void)[] = [];
  function runAll(): void {
    const runs = due;
    due = [];
    let done = 0;
    try {
      for (const run of runs) {
        done++;
        run();
      }
    } finally {
      // A throw does not stop the others.
      for (const run of runs.slice(done)) add(run);
    }
  }
  function add(run: () => void): void {
    if (due.push(run) === 1) schedule(runAll);
  }
  return add;
}

/**
 * Creates ids of requests: numbers of 16 digits below 2^53. A counter from a random start, permuted
 * with random keys (a Feistel network), so that ids never repeat and earlier ids do not reveal the
 * next. Processes that use different shares have no id in common.
 */
export function createWireIds(random: () => number, { index, of }: Share = ALL): () => string {
  const lows = Math.floor(LOWS / of);
  const leastLow = LEAST_HALF + index * lows;
  const [k1, k2, k3, k4] = [keyOf(random), keyOf(random), keyOf(random), keyOf(random)];
  let high = Math.floor(random() * HIGHS);
  let low = Math.floor(random() * lows);
  /** Writes the digits of the next id. */
  function writeNext(digits: Buffer, at: number): void {
    if (++low === lows) {
      low = 0;
      high = (high + 1) % HIGHS;
    }
    const low1 = wrapped(low + drawn(high, k1, lows), lows);
    const high1 = wrapped(high + drawn(low1, k2, HIGHS), HIGHS);
    const low2 = wrapped(low1 + drawn(high1, k3, lows), lows);
    const high2 = wrapped(high1 + drawn(low2, k4, HIGHS), HIGHS);
    writeHalf(digits, at, LEAST_HALF + high2);
    writeHalf(digits, at + HALF_DIGITS, leastLow + low2);
  }
  return inBlocks(writeNext);
}

/**
 * Strings of the ids that a function writes. Many are made at once: parts of one text cost a
 * fraction of what numbers cost that are made into strings.
 */
function inBlocks(writeNext: (digits: Buffer, at: number) => void): () => string {
  const digits = Buffer.alloc(IDS_AT_ONCE * ID_DIGITS);
  let text = "";
  let used = 0;
  return () => {
    if (used === text.length) {
      for (let at = 0; at < digits.length; at += ID_DIGITS) writeNext(digits, at);
      text = digits.toString("latin1");
      used = 0;
    }
    used += ID_DIGITS;
    return text.slice(used - ID_DIGITS, used);
  };
}

function writeHalf(digits: Buffer, from: number, half: number): void {
  let rest = half;
  for (let at = from + HALF_DIGITS - 1; at >= from; at--) {
    const tens = (rest / 10) | 0;
    digits[at] = ZERO + rest - 10 * tens;
    rest = tens;
  }
}

function keyOf(random: () => number): number {
  return Math.floor(random() * 2 ** 32) | 0;
}

/** A pseudorandom number below `limit`, derived from a value and a key. */
function drawn(value: number, key: number, limit: number): number {
  let bits = Math.imul(value ^ key, 0x9e3779b1);
  bits = Math.imul(bits ^ (bits >>> 15), 0x85ebca6b);
  return (((bits ^ (bits >>> 13)) >>> 0) * (limit / 2 ** 32)) | 0;
}

/** The sum of two numbers below `limit`, modulo `limit`. */
function wrapped(sum: number, limit: number): number {
  return sum < limit ? sum : sum - limit;
}

/** Resolves after `ms`. */
export function pause(runtime: Pick<Runtime, "after">, ms: number): Promise<void> {
  return new Promise((resolve) => void runtime.after(ms, resolve));
}
