// The records of filters in the database that the nodes of a service share, as one process writes
// them. All times are those of the database's clock.
import { sql } from "kysely";
import {
  type ClaimedFilter,
  FILTER_IDLE_MS,
  type FilterRecord,
  type FilterRecords,
  type FilterUpdate,
} from "../../core/stream/filter-record.ts";
import { databaseNow, isPostgres } from "../store/engine.ts";
import type { Store } from "../store/store.ts";

/** The records as the process of a node keeps them. */
export function storedFilters({ db }: Pick<Store, "db">, nodeId: string): FilterRecords {
  const now = databaseNow(db);
  return {
    async add(origin, mark) {
      const { id, owner, method, params, profile, named, chain, strategy, pin } = origin;
      await sql`insert into filter (id, owner, method, params, profile, named, chain, strategy,
          pin, node_id, claim, answering, mark, polled_at)
        values (${id}, ${owner}, ${method}, ${params}, ${profile}, ${named}, ${chain},
          ${strategy}, ${pin}, ${nodeId}, 1, 0, ${mark}, ${now})
        on conflict (id) do update set mark = excluded.mark, polled_at = excluded.polled_at
          where filter.node_id = excluded.node_id and filter.claim = 1`.execute(db);
    },
    async read(id) {
      const row = await db
        .selectFrom("filter")
        .selectAll()
        .select(sql<bigint>`${now} - polled_at`.as("idle"))
        .where("id", "=", id)
        .executeTakeFirst();
      if (row === undefined) return null;
      const { node_id, claim, answering, idle, polled_at: _, ...same } = row;
      const record: FilterRecord = {
        ...same,
        node: node_id,
        claim: Number(claim),
        isAnswering: answering !== 0n,
        idleMs: Math.max(0, Number(idle)),
      };
      return record;
    },
    async take({ id, claim }) {
      const { numUpdatedRows } = await db
        .updateTable("filter")
        .set({
          node_id: nodeId,
          claim: BigInt(claim + 1),
          answering: 0n,
          polled_at: sql<bigint>`${now}`,
        })
        .where("id", "=", id)
        .where("claim", "=", BigInt(claim))
        .executeTakeFirst();
      return numUpdatedRows === 1n;
    },
    write: (updates) => written(db, nodeId, updates),
    kept: (filters) => keptOf(db, nodeId, filters),
    async touch(id) {
      await db
        .updateTable("filter")
        .set({ polled_at: sql<bigint>`${now}` })
        .where("id", "=", id)
        .execute();
    },
    ...removalsIn(db, nodeId),
  };
}

function removalsIn(db: Store["db"], nodeId: string): Pick<FilterRecords, "remove" | "removeKept"> {
  const now = databaseNow(db);
  return {
    async remove(id, owner) {
      const row = await db
        .deleteFrom("filter")
        .where("id", "=", id)
        .where("owner", "=", owner)
        .where("polled_at", ">", sql<bigint>`${now} - ${sql.lit(FILTER_IDLE_MS)}`)
        .returning("node_id")
        .executeTakeFirst();
      return row?.node_id ?? null;
    },
    async removeKept({ id, claim }, idleMs) {
      await db
        .deleteFrom("filter")
        .where("id", "=", id)
        .where("node_id", "=", nodeId)
        .where("claim", "=", BigInt(claim))
        .where("polled_at", "<=", sql<bigint>`${now} - ${BigInt(idleMs)}`)
        .execute();
    },
  };
}

/**
 * Writes many records at once; returns the ids of those that the process still keeps. A server does
 * not wait for its disk: what it forgets in a crash is told again.
 */
async function written(
  db: Store["db"],
  nodeId: string,
  updates: readonly FilterUpdate[],
): Promise<ReadonlySet<string>> {
  if (updates.length === 0) return new Set();
  const now = databaseNow(db);
  const rows = updates.map(
    ({ id, claim, isAnswering, mark, idleMs }) => sql`(cast(${id} as text),
      cast(${BigInt(claim)} as bigint), cast(${isAnswering ? 1n : 0n} as bigint),
      cast(${mark} as text), ${now} - cast(${BigInt(Math.round(idleMs))} as bigint))`,
  );
  const soon = isPostgres(db)
    ? sql`select set_config('synchronous_commit', 'off', true)`
    : sql`select ''`;
  const { rows: kept } = await sql<{ readonly id: string }>`
    with soon as (${soon}),
      given (id, claim, answering, mark, polled_at) as (values ${sql.join(rows)})
    update filter set answering = given.answering, mark = coalesce(given.mark, filter.mark),
      polled_at = case when given.polled_at > filter.polled_at then given.polled_at
        else filter.polled_at end
    from given, soon where filter.id = given.id and filter.claim = given.claim
      and filter.node_id = ${nodeId}
    returning filter.id as id`.execute(db);
  return new Set(kept.map(({ id }) => id));
}

/** Most filters of one reading. */
const MAX_READ = 1_000;

async function keptOf(
  db: Store["db"],
  nodeId: string,
  filters: readonly ClaimedFilter[],
): Promise<ReadonlySet<string>> {
  const kept = new Set<string>();
  for (let at = 0; at < filters.length; at += MAX_READ) {
    const some = new Map(filters.slice(at, at + MAX_READ).map(({ id, claim }) => [id, claim]));
    const rows = await db
      .selectFrom("filter")
      .select(["id", "claim"])
      .where("id", "in", [...some.keys()])
      .where("node_id", "=", nodeId)
      .execute();
    for (const { id, claim } of rows) if (some.get(id) === Number(claim)) kept.add(id);
  }
  return kept;
}
