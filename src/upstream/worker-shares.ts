// Bounds that hold for the whole service, divided between its workers: equal parts at first, then
// by demand. A worker that needs more says so to the worker that owns the bound, which lowers the
// parts of others before it raises that one. Nothing is sent while every part suffices.
import type { Bus, QuestionTopic, WorkerId } from "../core/workers/bus.ts";
import { divided, equalPart } from "../core/workers/division.ts";
import type { Runtime } from "../runtime.ts";

/** What a part of a bound is used for. */
export interface ShareUse {
  /** How much is in use and cannot be given away now. */
  used(): number;
  /** How much would be in use if there were no bound. */
  wanted(): number;
  /** The part has changed. */
  changed?(): void;
}

/** This worker's part of a bound. */
export interface Allowance {
  readonly limit: number;
  /** Says that the part does not suffice. */
  readonly short: () => void;
  close(): void;
}

/** The parts of all bounds. */
export interface Shares {
  /** The part of a whole number; one use for each key. */
  of(key: string, total: number, use: ShareUse): Allowance;
}

/** The shares of a process that is the whole service. */
export const WHOLE_SHARES: Shares = {
  of: (_, total) => ({ limit: total, short() {}, close() {} }),
};

/** Dependencies. */
export interface WorkerSharesParts {
  readonly bus: Bus;
  readonly runtime: Pick<Runtime, "after">;
  /** Number of configured workers. */
  readonly workers: number;
}

/** How often demand is looked at. */
const ROUND_MS = 250;
const ANSWER_MS = 1_000;
/** Most bounds that wait to be divided anew, and most parts of bounds not used here. */
const MAX_KEYS = 4_096;

interface Held {
  readonly total: number;
  readonly use: ShareUse;
  limit: number;
}

/** Divides bounds between the workers on a bus. */
export class WorkerShares implements Shares {
  readonly #parts: WorkerSharesParts;
  readonly #held = new Map<string, Held>();
  /** Parts of bounds that are not used here yet. */
  readonly #assigned = new Map<string, { readonly total: number; readonly limit: number }>();
  readonly #short = new Set<string>();
  /** Bounds that this worker owns and is dividing anew. */
  readonly #dividing = new Set<string>();
  #cancelTick: (() => void) | null = null;

  constructor(parts: WorkerSharesParts) {
    this.#parts = parts;
    const { bus } = parts;
    bus.onWorkers(() => this.#reset());
    bus.serve(WANT, async ({ key, total }) => {
      if (!this.#dividing.has(key) && this.#dividing.size < MAX_KEYS)
        await this.#redivide(key, total);
      return true;
    });
    bus.serve(REPORT, ({ key, total }) => this.#report(key, total));
    bus.serve(ASSIGN, ({ key, total, limit, epoch }) => this.#assign(key, { total, limit, epoch }));
  }

  of(key: string, total: number, use: ShareUse): Allowance {
    const limit = this.#assignedOf(key, total) ?? this.#equalPart(total);
    const held: Held = { total, use, limit };
    this.#held.set(key, held);
    return {
      get limit() {
        return held.limit;
      },
      short: () => this.#needs(key),
      close: () => {
        if (this.#held.get(key) === held) this.#held.delete(key);
      },
    };
  }

  #needs(key: string): void {
    if (this.#short.size < MAX_KEYS) this.#short.add(key);
    this.#cancelTick ??= this.#parts.runtime.after(ROUND_MS, () => this.#tick());
  }

  #tick(): void {
    this.#cancelTick = null;
    const { bus } = this.#parts;
    for (const key of this.#short) {
      const held = this.#held.get(key);
      if (held === undefined) continue;
      const message = { key, total: held.total };
      void bus.request(bus.ownerOf(key), { topic: WANT, message, timeoutMs: ANSWER_MS });
    }
    this.#short.clear();
  }

  /** Asks all workers what they use and want, and divides the bound anew. */
  async #redivide(key: string, total: number): Promise<void> {
    this.#dividing.add(key);
    try {
      const ids = this.#parts.bus.workers();
      const reports = await Promise.all(ids.map((id) => this.#request(id, REPORT, { key, total })));
      // One that does not answer may be using its part: nothing is moved without it.
      const known = reports.filter((report) => report !== null);
      if (known.length === ids.length) await this.#divide(key, total, { ids, reports: known });
    } finally {
      this.#dividing.delete(key);
    }
  }

  async #divide(
    key: string,
    total: number,
    { ids, reports }: { readonly ids: readonly WorkerId[]; readonly reports: readonly Report[] },
  ): Promise<void> {
    const parts = divided(
      total,
      reports.map(({ wanted }) => wanted),
    );
    const epoch = ids.join(" ");
    const changes = ids.map((id, n) => {
      const before = reports[n]?.limit ?? 0;
      // A part that was lowered may still be in use.
      const held = Math.max(before, reports[n]?.used ?? 0);
      return { id, before, held, after: parts[n] ?? before };
    });
    const lowered = await Promise.all(
      changes.map(async ({ id, before, held, after }) => {
        if (after >= before) return held;
        const message = { key, total, limit: after, epoch };
        const used = await this.#request(id, ASSIGN, message);
        return used === null ? held : Math.max(after, used);
      }),
    );
    let free = total - lowered.reduce((sum, part) => sum + part, 0);
    for (const { id, before, after } of changes) {
      const more = Math.min(after - before, free);
      if (more <= 0) continue;
      free -= more;
      await this.#request(id, ASSIGN, { key, total, limit: before + more, epoch });
    }
  }

  async #request<M, R>(to: WorkerId, topic: QuestionTopic<M, R>, message: M): Promise<R | null> {
    const reply = await this.#parts.bus.request(to, { topic, message, timeoutMs: ANSWER_MS });
    return reply.ok ? reply.value : null;
  }

  #report(key: string, total: number): Report {
    const held = this.#held.get(key);
    // Of another total nothing is known: what is in use counts all the same.
    const part = held?.total === total ? held.limit : this.#assignedOf(key, total);
    const limit = part ?? this.#equalPart(total);
    const { wanted = 0, used = 0 } =
      held === undefined ? {} : { wanted: held.use.wanted(), used: held.use.used() };
    return { limit, wanted: Math.max(0, wanted), used: Math.max(0, used) };
  }

  /** Takes a part; returns what is in use. */
  #assign(key: string, { total, limit, epoch }: Omit<Assignment, "key">): number {
    const held = this.#held.get(key);
    // Workers came or went since: the parts are equal again.
    if (epoch !== this.#parts.bus.workers().join(" ")) return held?.limit ?? limit;
    this.#assigned.delete(key);
    this.#assigned.set(key, { total, limit });
    const [oldest = key] = this.#assigned.keys();
    if (this.#assigned.size > MAX_KEYS) this.#assigned.delete(oldest);
    if (held === undefined) return 0;
    // A part of a bound that was changed here, or is not changed here yet.
    if (held.total !== total) return Math.max(0, held.use.used());
    held.limit = limit;
    held.use.changed?.();
    return Math.max(0, held.use.used());
  }

  /** Workers came or went: a new one knows nothing but equal parts. */
  #reset(): void {
    this.#assigned.clear();
    for (const held of this.#held.values()) {
      held.limit = this.#equalPart(held.total);
      held.use.changed?.();
    }
  }

  /** The part that was assigned of a bound of this total; null = none. */
  #assignedOf(key: string, total: number): number | null {
    const assigned = this.#assigned.get(key);
    return assigned?.total === total ? assigned.limit : null;
  }

  #equalPart(total: number): number {
    const { bus, workers } = this.#parts;
    return equalPart(total, { index: Number(bus.self) - 1, of: workers });
  }
}

interface Bound {
  readonly key: string;
  readonly total: number;
}

interface Report {
  readonly limit: number;
  readonly used: number;
  readonly wanted: number;
}

interface Assignment extends Bound {
  readonly limit: number;
  /** The workers that it was made for. */
  readonly epoch: string;
}

const WANT: QuestionTopic<Bound, true> = { name: "share.want" };

const REPORT: QuestionTopic<Bound, Report> = { name: "share.report" };

const ASSIGN: QuestionTopic<Assignment, number> = { name: "share.assign" };
