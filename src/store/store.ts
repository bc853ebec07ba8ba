// The store: one way in to both engines, the embedded SQLite file and a PostgreSQL server. It knows
// the tables' engine, never what a row means. A failing database throws; callers catch at one
// place.
import type { Kysely, Transaction } from "kysely";
import { isMigrated, migrate } from "./migrations.ts";
import { openPostgres } from "./postgres.ts";
import { openSqlite, readSqlite } from "./sqlite.ts";
import type { Tables } from "./tables.ts";

/** An open store. */
export interface Store {
  readonly engine: Engine;
  /** For single statements. Never inside `transaction`: on SQLite that would wait for itself. */
  readonly db: Kysely<Tables>;
  /**
   * Runs statements that take effect all together or not at all. May run them again, so `run`
   * changes nothing outside of `tx`.
   */
  transaction<T>(run: (tx: Transaction<Tables>) => Promise<T>): Promise<T>;
  close(): Promise<void>;
}

/** What keeps the rows. */
export type Engine = "sqlite" | "postgres";

/** Where a store lies. */
export interface StorePlace {
  /** `postgres://…`; empty = embedded, in the data directory. Holds a secret: never log it. */
  readonly url: string;
  readonly dataDir: string;
}

const MAX_TRIES = 5;

/**
 * Opens the store and brings its tables up to date; throws with a text for the operator when it
 * cannot.
 */
export async function openStore({ url, dataDir }: StorePlace): Promise<Store> {
  const engine: Engine = url === "" ? "sqlite" : "postgres";
  const { db, close } = engine === "sqlite" ? openSqlite(dataDir) : openPostgres(url);
  const refusal = await migrate(db).catch(
    (error: unknown) => `The store cannot be opened: ${reasonOf(error)}. ${ADVICE[engine]}`,
  );
  if (refusal === null) return { engine, db, transaction: (run) => transact(db, run), close };
  await close();
  throw new Error(refusal);
}

/**
 * Opens a store that a service may have open at the same time, to read it; throws with a text for
 * the operator when it cannot.
 */
export async function readStore({ url, dataDir }: StorePlace): Promise<Store> {
  const engine: Engine = url === "" ? "sqlite" : "postgres";
  const { db, close } = engine === "sqlite" ? readSqlite(dataDir) : openPostgres(url);
  const refusal = await isMigrated(db).then(
    (isCurrent) =>
      isCurrent
        ? null
        : "The store was written by another version of svc. Start this version once, then read it.",
    (error: unknown) => `The store cannot be read: ${reasonOf(error)}. ${ADVICE[engine]}`,
  );
  if (refusal === null) return { engine, db, transaction: (run) => transact(db, run), close };
  await close();
  throw new Error(refusal);
}

const ADVICE: Readonly<Record<Engine, string>> = {
  sqlite: "Check data_dir: its disk, and that svc.db in it is this service's file.",
  postgres:
    "Check that the server runs and that storage.url or DATABASE_URL names it, a database on " +
    "it, and a user that may create tables there.",
};

/**
 * Why something failed, also where that stands inside: a host with several addresses fails once for
 * each.
 */
function reasonOf(error: unknown): string {
  if (error instanceof AggregateError) return error.errors.map(reasonOf).join("; ");
  return error instanceof Error ? error.message : String(error);
}

async function transact<T>(
  db: Kysely<Tables>,
  run: (tx: Transaction<Tables>) => Promise<T>,
): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await db.transaction().execute(run);
    } catch (error) {
      if (tries >= MAX_TRIES || !isCollision(error)) throw error;
    }
  }
}

/** Whether PostgreSQL gave up a transaction because of another one; it has taken no effect then. */
function isCollision(error: unknown): boolean {
  return (
    error instanceof Error && "code" in error && (error.code === "40001" || error.code === "40P01")
  );
}
