// The alarm clock of the fixed-rate load, a thread of its own: timers of an event loop are a
// millisecond coarse, a sleeping thread is exact to some 60 µs. It sleeps until the next arrival
// and wakes the load thread; which call that is, and how late, the load thread works out itself.
import { parentPort, workerData } from "node:worker_threads";
import { arrivalGaps, sharedNowMs } from "./arrivals.ts";

/** What the load thread tells its pacer. */
export interface PacerOrder {
  readonly ratePerSecond: number;
  /** On the shared clock. */
  readonly startMs: number;
  readonly endMs: number;
}

function run(order: PacerOrder): void {
  const nobody = new Int32Array(new SharedArrayBuffer(4));
  const gap = arrivalGaps(order.ratePerSecond);
  let dueMs = order.startMs + gap();
  while (dueMs < order.endMs) {
    const waitMs = dueMs - sharedNowMs();
    if (waitMs > 0) Atomics.wait(nobody, 0, 0, waitMs);
    parentPort?.postMessage(0);
    const nowMs = sharedNowMs();
    while (dueMs <= nowMs) dueMs += gap();
  }
}

function parseOrder(data: unknown): PacerOrder {
  return data as PacerOrder;
}

run(parseOrder(workerData));
