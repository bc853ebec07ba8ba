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
    return this.#start(id, this.#driveUntil(id, untilMs));
  }

  async #tick(which: DueRails): Promise<void> {
    const nowMs = this.#parts.runtime.wallMs();
    const except = this.#underWay.keys();
    const ids = await due(this.#parts, { which, limit: MAX_DUE, nowMs, except });
    for (let from = 0; from < ids.length && !this.#isClosed; from += MAX_STEPS) {
      const step = (id: string) => this.#underWay.get(id) ?? this.#start(id, this.#stepOnce(id));
      await Promise.all(ids.slice(from, from + MAX_STEPS).map(step));
    }
  }

  /** Drives a purchase until it has ended or the time is over. */
  async #driveUntil(id: string, untilMs: number): Promise<void> {
    const { runtime } = this.#parts;
    for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = longer(pauseMs)) {
      const row = await lease(this.#parts, id, runtime.wallMs());
      if (row === null || (await advance(this.#parts, row)).ended_at !== null) return;
      const leftMs = untilMs - runtime.now();
      if (this.#isClosed || leftMs <= 0) break;
      await pause(runtime, Math.min(pauseMs, leftMs));
      if (this.#isClosed) break;
    }
    await this.#putOff(id, 0);
  }

  /** Takes one step with a purchase. */
  async #stepOnce(id: string): Promise<void> {
    const { railCalls, runtime } = this.#parts;
    const row = await lease(this.#parts, id, runtime.wallMs());
    if (row === null) return;
    const rail = railOf(this.#parts, row);
    // A chain that does not answer is not asked for each of its purchases: the others would wait
    // for all of its timeouts.
    const isAsked = rail === undefined || !railCalls.isUnreachable(rail);
    const after = isAsked ? await advance(this.#parts, row) : row;
    if (after.ended_at === null) await this.#putOff(id, Number(row.looks) + 1);
  }

  /** Gives a purchase back; `looks` = how often the worker has looked at it in a row. */
  async #putOff(id: string, looks: number): Promise<void> {
    const backoffMs = FIRST_BACKOFF_MS * 2 ** Math.min(Math.max(looks - 1, 0), 10);
    const lookAtMs = this.#parts.runtime.wallMs() + Math.min(backoffMs, LONGEST_BACKOFF_MS);
    await giveBack(this.#parts, id, { lookAtMs, looks });
  }

  /** Keeps what drives a purchase. Never rejects. */
  #start(id: string, work: Promise<void>): Promise<void> {
    const driving = work.catch(this.#parts.onError).finally(() => this.#underWay.delete(id));
    this.#underWay.set(id, driving);
    return driving;
  }
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
