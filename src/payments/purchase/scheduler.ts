// Drives purchases to their end: a request follows its own, and a worker returns to every open one.
// A purchase is driven once at a time: within this process by a map, among processes by leases.
// Bounds how many are driven at once.
import { pause, type Runtime } from "../../runtime.ts";
import { type AdvanceParts, advance, railOf } from "./advance.ts";
import type { PurchaseRow } from "./record.ts";
import { byId, type DueRails, due, giveBack, lease } from "./rows.ts";

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

/** Drives purchases. */
export class PurchaseScheduler {
  readonly #parts: PurchaseSchedulerParts;
  readonly #underWay = new Map<string, Promise<void>>();
  #isClosed = false;
  /**
   * Each takes one step with every due purchase, within bounds. One function for each rail, so that
   * a slow chain delays its own purchases only, and one for purchases whose rail is not configured.
   * Each throws where the store does.
   */
  readonly ticks: readonly (() => Promise<void>)[];

  constructor(parts: PurchaseSchedulerParts) {
    this.#parts = parts;
    this.ticks = [
      ...parts.rails.map((rail) => () => this.#tick({ kind: "of", rail })),
      () => this.#tick({ kind: "of_none", rails: parts.rails }),
    ];
  }

  /**
   * Drives a purchase and waits for its end; returns its row when it has ended or the time is over.
   * Throws where the store does.
   */
  async follow(first: PurchaseRow, waitMs: number): Promise<PurchaseRow> {
    const { runtime, store } = this.#parts;
    const untilMs = runtime.now() + waitMs;
    let pauseMs = FIRST_PAUSE_MS;
    for (let row = first; ; pauseMs = longer(pauseMs)) {
      const leftMs = untilMs - runtime.now();
      if (row.ended_at !== null || this.#isClosed || leftMs <= 0) return row;
      const driven = this.#driving(first.id, untilMs);
      if (driven !== null) await within(runtime, driven, leftMs);
      row = (await byId(store, first.id)) ?? row;
      // Another process may drive this purchase, or this process may have no free slot.
      if (row.ended_at === null)
        await pause(runtime, Math.max(1, Math.min(pauseMs, untilMs - runtime.now())));
    }
  }

  /** Starts nothing more, and waits for the steps under way. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all(this.#underWay.values());
  }

  /** A purchase driven by this process; null = too many are. */
  #driving(id: string, untilMs: number): Promise<void> | null {
    const there = this.#underWay.get(id);
    if (there !== undefined || this.#underWay.size >= MAX_DRIVEN) return there ?? null;
    const period = { untilMs, isClosed: () => this.#isClosed };
    return this.#start(id, driveUntil(this.#parts, id, period));
  }

  async #tick(which: DueRails): Promise<void> {
    const nowMs = this.#parts.runtime.wallMs();
    const except = this.#underWay.keys();
    const ids = await due(this.#parts, { which, limit: MAX_DUE, nowMs, except });
    for (let from = 0; from < ids.length && !this.#isClosed; from += MAX_STEPS) {
      const step = (id: string) =>
        this.#underWay.get(id) ?? this.#start(id, stepOnce(this.#parts, id));
      await Promise.all(ids.slice(from, from + MAX_STEPS).map(step));
    }
  }

  /** Keeps what drives a purchase. Never rejects. */
  #start(id: string, work: Promise<void>): Promise<void> {
    const driving = work.catch(this.#parts.onError).finally(() => this.#underWay.delete(id));
    this.#underWay.set(id, driving);
    return driving;
  }
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
  const rail = railOf(parts, row);
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
