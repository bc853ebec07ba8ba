// Rate limits that nodes share: what each takes of a limit is written and read four times a second,
// in one statement. Knows no caller: limits have digests for names.
import { createHash } from "node:crypto";
import { type RawBuilder, sql } from "kysely";
import type { RateLimitSize } from "../core/billing/gcra.ts";
import {
  type LimitSharing,
  type OtherDemand,
  type OwnDemand,
  SharedLimit,
} from "../core/billing/shared-limit.ts";
import type { Runtime } from "../runtime.ts";
import { databaseNow, isPostgres } from "../store/engine.ts";
import type { Store } from "../store/store.ts";

/** What limits are shared with. */
export interface RateShareParts {
  readonly store: Store;
  readonly runtime: Runtime;
  /** This process among those that share; unique to its start. */
  readonly processId: string;
  /** Processes that share now, this one included. */
  readonly members: () => number;
  readonly intervalMs?: number;
  readonly onError: (error: unknown) => void;
}

/** Limits of this node that it shares with others. */
export interface RateShares extends LimitSharing {
  /** Limits that are shared now. */
  readonly size: number;
  close(): void;
}

/** Four statements a second. */
const INTERVAL_MS = 250;
/** Limits that are used at one time: more keep to equal parts. */
const MAX_LIMITS = 5_000;
/** How long a row says something after its debt is refilled. */
const KEPT_MS = 5_000;
const SCOPE_CHARACTERS = 22;

/** Shares limits over a store. */
export function createRateShares(parts: RateShareParts): RateShares {
  return new StoreRateShares(parts);
}

class StoreRateShares implements RateShares {
  readonly #parts: RateShareParts;
  readonly #limits = new Map<string, SharedLimit>();
  readonly #intervalMs: number;
  #syncedAtMs = Number.NEGATIVE_INFINITY;
  #isSyncing = false;
  #isClosed = false;
  #cancelTimer: (() => void) | null = null;

  constructor(parts: RateShareParts) {
    this.#parts = parts;
    this.#intervalMs = parts.intervalMs ?? INTERVAL_MS;
  }

  get nodes(): number {
    return Math.max(1, this.#parts.members());
  }

  get size(): number {
    return this.#limits.size;
  }

  begin(
    scope: string,
    size: RateLimitSize,
    start: { readonly debt: number; readonly nowMs: number },
  ): SharedLimit | null {
    const digest = digestOf(scope);
    const known = this.#limits.get(digest);
    if (known !== undefined) return known;
    if (this.#limits.size >= MAX_LIMITS || this.#isClosed) return null;
    const limit = new SharedLimit({ size, sharing: this, onStale: () => this.#arm() }, start);
    this.#limits.set(digest, limit);
    this.#arm();
    return limit;
  }

  close(): void {
    this.#isClosed = true;
    this.#cancelTimer?.();
  }

  /** At once where the last time is long enough ago. */
  #arm(): void {
    if (this.#cancelTimer !== null || this.#isSyncing || this.#isClosed) return;
    const { runtime } = this.#parts;
    const waitMs = Math.max(0, this.#syncedAtMs + this.#intervalMs - runtime.now());
    this.#cancelTimer = runtime.after(waitMs, () => {
      this.#cancelTimer = null;
      this.#isSyncing = true;
      this.#sync()
        .catch((error: unknown) => {
          if (!this.#isClosed) this.#parts.onError(error);
        })
        .finally(() => {
          this.#isSyncing = false;
          if (this.#limits.size > 0) this.#arm();
        });
    });
  }

  async #sync(): Promise<void> {
    const { runtime } = this.#parts;
    const startedAtMs = runtime.now();
    this.#syncedAtMs = startedAtMs;
    for (const [scope, limit] of this.#limits)
      if (limit.isOver(startedAtMs)) this.#limits.delete(scope);
    const due = [...this.#limits].flatMap(([scope, limit]) =>
      limit.isDue(startedAtMs) ? [{ scope, limit, own: limit.own(startedAtMs) }] : [],
    );
    if (due.length === 0) return;
    const heard = await exchange(this.#parts, due);
    const nowMs = runtime.now();
    for (const { scope, limit } of due) limit.hear(heard.get(scope) ?? [], nowMs);
  }
}

function digestOf(scope: string): string {
  return createHash("sha256").update(scope).digest("base64url").slice(0, SCOPE_CHARACTERS);
}

interface DueLimit {
  readonly scope: string;
  readonly limit: SharedLimit;
  readonly own: OwnDemand;
}

interface DemandRow {
  readonly scope: string;
  readonly node_id: string;
  readonly used: number;
  readonly debt: number;
  readonly demand: number;
  readonly age: bigint | number;
}

/** Writes what this process takes, and reads what the others do. */
async function exchange(
  { store, processId }: RateShareParts,
  due: readonly DueLimit[],
): Promise<ReadonlyMap<string, readonly OtherDemand[]>> {
  const { db } = store;
  const write = written(db, processId, due);
  const now = databaseNow(db);
  const scopes = sql.join(due.map(({ scope }) => scope));
  const read = sql<DemandRow>`select scope, node_id, used, debt, demand, ${now} - at as age
    from rate_demand where scope in (${scopes}) and node_id <> ${processId}
    and expires_at > ${now}`;
  const { rows } = await (async () => {
    // One statement on a server; an embedded store changes nothing within a reading.
    if (isPostgres(db)) return sql<DemandRow>`with written as (${write}) ${read}`.execute(db);
    await write.execute(db);
    return read.execute(db);
  })();
  const heard = new Map<string, OtherDemand[]>();
  for (const { scope, node_id, used, debt, demand, age } of rows) {
    const list = heard.get(scope) ?? [];
    const ageMs = Math.max(0, Number(age));
    list.push({ nodeId: node_id, used: Number(used), debt: Number(debt), demand, ageMs });
    heard.set(scope, list);
  }
  return heard;
}

function written(
  db: Store["db"],
  processId: string,
  due: readonly DueLimit[],
): RawBuilder<unknown> {
  const now = databaseNow(db);
  const rows = due.map(({ scope, limit, own: { used, debt, demand } }) => {
    const keptMs = BigInt(Math.ceil((debt * 1_000) / limit.size.perSecond) + KEPT_MS);
    return sql`(cast(${scope} as text), cast(${processId} as text),
      cast(${used} as double precision), cast(${debt} as double precision),
      cast(${demand} as double precision), ${now}, ${now} + cast(${keptMs} as bigint))`;
  });
  return sql`insert into rate_demand (scope, node_id, used, debt, demand, at, expires_at)
    values ${sql.join(rows)} on conflict (scope, node_id) do update set used = excluded.used,
      debt = excluded.debt, demand = excluded.demand, at = excluded.at,
      expires_at = excluded.expires_at`;
}

const REMOVED_AT_ONCE = 1_000;

/** Removes what says nothing any more; true = there may be more. */
export async function removeOldDemand({ db }: Pick<Store, "db">): Promise<boolean> {
  const { numAffectedRows } =
    await sql`delete from rate_demand where (scope, node_id) in (select scope, node_id
    from rate_demand where expires_at < ${databaseNow(db)}
    limit ${sql.lit(REMOVED_AT_ONCE)})`.execute(db);
  return numAffectedRows === BigInt(REMOVED_AT_ONCE);
}
