// Drives purchases to their end: a request follows its own, and a worker returns to every open one.
// A purchase is driven once at a time: within this process by a map, among processes by leases.
// Bounds how many are driven at once.
import { pause, type Runtime } from "../../runtime.ts";
import { type AdvanceParts, advance, isRailOf } from "./advance.ts";
import type { PurchaseRow } from "./record.ts";
import { byId, type DueRails, due, giveBack, lease } from "./rows.ts";

/** Drives purchases. */
export interface PurchaseScheduler {
  /**
   * Drives a purchase and waits for its end; returns its row when it has ended or the time is over.
   * Throws where the store does.
   */
  follow(row: PurchaseRow, waitMs: number): Promise<PurchaseRow>;
  /**
   * Takes one step with every due purchase, within bounds. One function for each rail, so that a
   * slow chain delays its own purchases only, and one for purchases whose rail is not configured.
   * Each throws where the store does.
   */
  readonly ticks: readonly (() => Promise<void>)[];
  /** Starts nothing more, and waits for the steps under way. */
  close(): Promise<void>;
}

/** What the scheduler works with. */
export interface PurchaseSchedulerParts extends AdvanceParts {
  readonly onError: (error: unknown) => void;
}

/** Purchases that requests of this process drive at once. */
const MAX_DRIVEN = 64;
/** Purchases of a rail that the worker drives at once. */
const MAX_STEPS = 8;
/** Due purchases of a rail that the worker reads at a time. */
const MAX_DUE = 64;
/** Between two checks by a waiting request. */
const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 1_000;
const PAUSE_GROWTH = 1.5;
/** Between two checks by the worker. */
const FIRST_BACKOFF_MS = 1_000;
const LONGEST_BACKOFF_MS = 60_000;

/** A scheduler that drives nothing yet. */
export function createPurchaseScheduler(parts: PurchaseSchedulerParts): PurchaseScheduler {
  const { store, runtime, onError } = parts;
  const underWay = new Map<string, Promise<void>>();
  let isClosed = false;

  /** Drives a purchase that is not driven in this process. Never rejects. */
  function start(id: string, drive: () => Promise<void>): Promise<void> {
    const driving = drive()
      .catch(onError)
      .finally(() => underWay.delete(id));
    underWay.set(id, driving);
    return driving;
  }

  async function tick(which: DueRails): Promise<void> {
    const query = { which, limit: MAX_DUE, nowMs: runtime.wallMs(), except: underWay.keys() };
    const ids = await due(parts, query);
    for (let from = 0; from < ids.length && !isClosed; from += MAX_STEPS) {
      const step = (id: string) => underWay.get(id) ?? start(id, () => stepOnce(parts, id));
      await Promise.all(ids.slice(from, from + MAX_STEPS).map(step));
    }
  }

  return {
    async follow(first, waitMs) {
      const untilMs = runtime.now() + waitMs;
      const drive = () => driveUntil(parts, first.id, { untilMs, isClosed: () => isClosed });
      let pauseMs = FIRST_PAUSE_MS;
      for (let row = first; ; pauseMs = longer(pauseMs)) {
        const leftMs = untilMs - runtime.now();
        if (row.ended_at !== null || isClosed || leftMs <= 0) return row;
        const driven =
          underWay.get(row.id) ?? (underWay.size < MAX_DRIVEN ? start(row.id, drive) : null);
        if (driven !== null) await within(runtime, driven, leftMs);
        row = (await byId(store, first.id)) ?? row;
        // Another process may drive it, or this one may have no place for it.
        if (row.ended_at === null)
          await pause(runtime, Math.max(1, Math.min(pauseMs, untilMs - runtime.now())));
      }
    },
    ticks: [
      ...parts.rails.map((rail) => () => tick({ kind: "of", rail })),
      () => tick({ kind: "of_none", rails: parts.rails }),
    ],
    async close() {
      isClosed = true;
      await Promise.all(underWay.values());
    },
  };
}

interface DrivePeriod {
  readonly untilMs: number;
  readonly isClosed: () => boolean;
}

/** Drives a purchase until it has ended or the time is over. */
async function driveUntil(
  parts: PurchaseSchedulerParts,
  id: string,
  { untilMs, isClosed }: DrivePeriod,
): Promise<void> {
  const { runtime } = parts;
  let row = await lease(parts, id, runtime.wallMs());
  if (row === null) return;
  for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = longer(pauseMs)) {
    row = await advance(parts, row);
    const leftMs = untilMs - runtime.now();
    if (row.ended_at !== null) return;
    if (isClosed() || leftMs <= 0) break;
    await pause(runtime, Math.min(pauseMs, leftMs));
    if (isClosed()) break;
    row = await lease(parts, id, runtime.wallMs());
    if (row === null) return;
  }
  await giveBack(parts, id, { lookAtMs: runtime.wallMs() + FIRST_BACKOFF_MS, looks: 0 });
}

/** Takes one step with a purchase. */
async function stepOnce(parts: PurchaseSchedulerParts, id: string): Promise<void> {
  const { runtime } = parts;
  const row = await lease(parts, id, runtime.wallMs());
  if (row === null) return;
  const looks = Number(row.looks);
  const rail = parts.rails.find((candidate) => isRailOf(candidate, row));
  // A chain that does not answer is not asked for each of its purchases: the others would wait for
  // all of its timeouts.
  const after =
    rail !== undefined && parts.railCalls.isUnreachable(rail) ? row : await advance(parts, row);
  const backoffMs = Math.min(FIRST_BACKOFF_MS * 2 ** Math.min(looks, 10), LONGEST_BACKOFF_MS);
  if (after.ended_at === null)
    await giveBack(parts, id, { lookAtMs: runtime.wallMs() + backoffMs, looks: looks + 1 });
}

/** Resolves when `work` has ended or the time is over. */
function within(runtime: Runtime, work: Promise<void>, ms: number): Promise<void> {
  return new Promise((resolve) => {
    const cancel = runtime.after(Math.max(1, ms), resolve);
    void work.then(resolve).finally(cancel);
  });
}

function longer(pauseMs: number): number {
  return Math.min(pauseMs * PAUSE_GROWTH, LONGEST_PAUSE_MS);
}
