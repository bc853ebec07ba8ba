// The book of what each process may send to providers, as rows of a store: every process writes its
// own. A share is raised under a lock that no process waits for.
import { type Kysely, sql } from "kysely";
import type { OtherShare, ShareBook, ShareEntry } from "../../core/workers/share-book.ts";
import { databaseNow, isPostgres } from "../store/engine.ts";
import type { Store } from "../store/store.ts";
import type { Tables } from "../store/tables.ts";
import type { ProviderShareTable } from "../store/tables-cluster.ts";
import { readAfter } from "./stored-tokens.ts";

/** Nothing else in the database uses this number for a lock. */
const RAISING_LOCK = 0x5356_4353;

/** The book in a store, as one process. */
export function storedShares(store: Pick<Store, "db" | "transaction">, process: string): ShareBook {
  return {
    process,
    async write(entries) {
      if (entries.length === 0) return [];
      const { db } = store;
      const scopes = entries.map(({ scope }) => scope);
      const rows = await readAfter<ShareRow>(
        db,
        writeOf(db, process, entries),
        readOf(db, process, scopes),
      );
      return rows.map(shareOf);
    },
    raise: (scopes, decide) =>
      store.transaction(async (tx) => {
        if (isPostgres(tx)) {
          const lock = sql<{ readonly free: boolean }>`
            select pg_try_advisory_xact_lock(${sql.lit(RAISING_LOCK)}) as free`;
          const { rows } = await lock.execute(tx);
          if (rows[0]?.free !== true) return null;
        }
        // A statement of its own: it sees what those wrote who had the lock before.
        const { rows } = await readOf(tx, process, scopes).execute(tx);
        const entries = decide(rows.map(shareOf));
        await writeOf(tx, process, entries).execute(tx);
        return entries;
      }),
    async remove(silent) {
      if (silent.length === 0) return;
      const rows = silent.map(
        (other) => sql`(${other.scope}, ${other.process}, ${sql.lit(other.writtenAt)})`,
      );
      await sql`delete from provider_share
        where (scope, process_id, at) in (values ${sql.join(rows)})`.execute(store.db);
    },
  };
}

interface ShareRow extends ProviderShareTable {
  readonly age: bigint;
}

function shareOf({ scope, process_id, share, used, wanted, at, age }: ShareRow): OtherShare {
  return {
    scope,
    process: process_id,
    share,
    used,
    wanted,
    writtenAt: Number(at),
    ageMs: Number(age),
  };
}

function writeOf(db: Kysely<Tables>, process: string, entries: readonly ShareEntry[]) {
  const now = databaseNow(db);
  const rows = entries.map(
    ({ scope, share, used, wanted }) => sql`(cast(${scope} as text), cast(${process} as text),
      cast(${share} as double precision), cast(${used} as double precision),
      cast(${wanted} as double precision), ${now})`,
  );
  return sql`insert into provider_share (scope, process_id, share, used, wanted, at)
    values ${sql.join(rows)} on conflict (scope, process_id) do update set
    share = excluded.share, used = excluded.used, wanted = excluded.wanted, at = excluded.at`;
}

function readOf(db: Kysely<Tables>, process: string, scopes: readonly string[]) {
  return sql<ShareRow>`select scope, process_id, share, used, wanted, at,
    ${databaseNow(db)} - at as age from provider_share
    where scope in (${sql.join(scopes)}) and process_id <> ${process}`;
}
