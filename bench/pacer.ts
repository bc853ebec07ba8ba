// Wakes the load thread at each arrival, from a thread of its own: timers of an event loop have a
// precision of a millisecond, a sleeping thread of some 60 µs. The load thread itself determines
// which call is due and how late it is.
import { parentPort, workerData } from "node:worker_threads";
import { arrivalGaps, sharedNowMs } from "./arrivals.ts";

/** The message from the load thread to its pacer. */
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
