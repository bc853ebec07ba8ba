// Who goes on with purchases, and when: a request that waits for its own, and a worker that comes
// back to every open one. Each is driven by one at a time: in this process by a map, among
// processes by leases. Bounds how many are driven at once.

import { type AdvanceParts, advance, isRailOf } from "./advance.ts";
import type { PurchaseRow } from "./record.ts";
import { byId, type DueRails, due, giveBack, lease } from "./rows.ts";

/** What drives purchases. */
export interface PurchaseScheduler {
  /**
   * Waits for the end of a purchase, and goes on with it meanwhile; returns its row when it has
   * ended or the time is over. Throws where the store does.
   */
  follow(row: PurchaseRow, waitMs: number): Promise<PurchaseRow>;
  /**
   * One for each rail, and one for purchases whose rail is not there: takes a step with those that
   * are due, as far as bounds allow. A slow chain holds up nothing but its own. Each throws where
   * the store does.
   */
  readonly ticks: readonly (() => Promise<void>)[];
  /** Begins nothing any more, and waits for the steps that are under way. */
  close(): Promise<void>;
}

/** What it works with. */
export interface PurchaseSchedulerParts extends AdvanceParts {
  readonly onError: (error: unknown) => void;
}

/** Purchases that requests of this process drive at once. */
const MAX_DRIVEN = 64;
/**
 * Purchases of a rail that the worker takes a step with at once, and those that it finds at a time.
 */
const MAX_STEPS = 8;
const MAX_DUE = 64;
/** Between two looks of a request that waits. */
const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 1_000;
const PAUSE_GROWTH = 1.5;
/** Between two looks of the worker. */
const FIRST_BACKOFF_MS = 1_000;
const LONGEST_BACKOFF_MS = 60_000;

/** A driver of nothing yet. */
export function createPurchaseScheduler(parts: PurchaseSchedulerParts): PurchaseScheduler {
  const { store, runtime, onError } = parts;
  const underWay = new Map<string, Promise<void>>();
  let isClosed = false;

  /** Drives a purchase that nobody drives here. Never rejects. */
  function start(id: string, drive: () => Promise<void>): Promise<void> {
    const driving = drive()
      .catch(onError)
      .finally(() => underWay.delete(id));
    underWay.set(id, driving);
    return driving;
  }

  async function driveUntil(id: string, untilMs: number): Promise<void> {
    let row = await lease(parts, id, runtime.wallMs());
    if (row === null) return;
    for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = longer(pauseMs)) {
      row = await advance(parts, row);
      const leftMs = untilMs - runtime.now();
      if (row.ended_at !== null) return;
      if (isClosed || leftMs <= 0) break;
      await pause(Math.min(pauseMs, leftMs));
      if (isClosed) break;
      row = await lease(parts, id, runtime.wallMs());
      if (row === null) return;
    }
    await giveBack(parts, id, { lookAtMs: runtime.wallMs() + FIRST_BACKOFF_MS, looks: 0 });
  }

  async function stepOnce(id: string): Promise<void> {
    const row = await lease(parts, id, runtime.wallMs());
    if (row === null) return;
    const looks = Number(row.looks);
    const rail = parts.rails.find((it) => isRailOf(it, row));
    // A chain that does not answer is not asked for each of its purchases: others would wait for
    // all these answers.
    const after =
      rail !== undefined && parts.asks.isTroubled(rail) ? row : await advance(parts, row);
    const backoffMs = Math.min(FIRST_BACKOFF_MS * 2 ** Math.min(looks, 10), LONGEST_BACKOFF_MS);
    if (after.ended_at === null)
      await giveBack(parts, id, { lookAtMs: runtime.wallMs() + backoffMs, looks: looks + 1 });
  }

  async function tick(which: DueRails): Promise<void> {
    const ids = await due(parts, {
      which,
      limit: MAX_DUE,
      nowMs: runtime.wallMs(),
      except: underWay.keys(),
    });
    for (let from = 0; from < ids.length && !isClosed; from += MAX_STEPS) {
      await Promise.all(
        ids
          .slice(from, from + MAX_STEPS)
          .map((id) => underWay.get(id) ?? start(id, () => stepOnce(id))),
      );
    }
  }

  const pause = (ms: number): Promise<void> =>
    new Promise((resolve) => void runtime.after(Math.max(1, ms), resolve));

  /** Resolves when `work` has ended, or the time is over. */
  const within = (work: Promise<void>, ms: number): Promise<void> => {
    return new Promise((resolve) => {
      const cancel = runtime.after(Math.max(1, ms), resolve);
      void work.then(resolve).finally(cancel);
    });
  };

  return {
    async follow(first, waitMs) {
      const untilMs = runtime.now() + waitMs;
      let pauseMs = FIRST_PAUSE_MS;
      for (let row = first; ; pauseMs = longer(pauseMs)) {
        const leftMs = untilMs - runtime.now();
        if (row.ended_at !== null || isClosed || leftMs <= 0) return row;
        const driven = underWay.get(row.id);
        if (driven !== undefined) await within(driven, leftMs);
        else if (underWay.size < MAX_DRIVEN)
          await within(
            start(row.id, () => driveUntil(first.id, untilMs)),
            leftMs,
          );
        row = (await byId(store, first.id)) ?? row;
        // Also where another process drives it, or nobody can.
        if (row.ended_at === null) await pause(Math.min(pauseMs, untilMs - runtime.now()));
      }
    },
    ticks: [
      ...parts.rails.map((it) => () => tick({ kind: "of", rail: it })),
      () => tick({ kind: "of_none", rails: parts.rails }),
    ],
    async close() {
      isClosed = true;
      await Promise.all(underWay.values());
    },
  };
}

function longer(pauseMs: number): number {
  return Math.min(pauseMs * PAUSE_GROWTH, LONGEST_PAUSE_MS);
}
