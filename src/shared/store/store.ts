// The store: the common interface to both engines, the embedded SQLite file and a PostgreSQL
// server. Knows no meaning of a row. Database failures throw, and callers catch them in one place.

import type { Kysely, Transaction } from "kysely";
import { errorText } from "../../core/fields.ts";
import type { Runtime } from "../../runtime.ts";
import { isMigrated, migrate } from "./migrations.ts";
import type { OpenServer, PostgresUse } from "./postgres.ts";
import { openRemoteSqlite } from "./remote-sqlite.ts";
import { IN_MEMORY, type OpenEngine, openSqlite, readSqlite } from "./sqlite.ts";
import type { SendStatement } from "./statement.ts";
import { StatementServer } from "./statement-server.ts";
import type { Tables } from "./tables.ts";

/** An open store. */
export interface Store {
  readonly engine: Engine;
  /** It ends with the process that opened it. */
  readonly inMemory?: true;
  /** For single statements. Never use it inside `transaction`: on SQLite that waits forever. */
  readonly db: Kysely<Tables>;
  /**
   * Runs statements as one transaction. May retry it, so `run` must have no effects outside of
   * `tx`.
   */
  transaction<T>(run: (tx: Transaction<Tables>) => Promise<T>): Promise<T>;
  /** The same over connections that are kept for what must not wait; absent = there are none. */
  readonly urgent?: Pick<Store, "db" | "transaction">;
  close(): Promise<void>;
}

/**
 * A store for heartbeats and for the log of changes: nothing else keeps its connections busy, and
 * their statements end in good time.
 */
export function urgently(store: Store): Store {
  return { ...store, ...store.urgent };
}

/** The database engine. */
export type Engine = "sqlite" | "postgres";

/** The location of a store. */
export interface StorePlace {
  /** `postgres://…`; empty = embedded. Contains a secret: never log it. */
  readonly url: string;
  /** Where the embedded file is, or `IN_MEMORY`. */
  readonly dataDir: string;
  /** Where another process of this service has the embedded file open: sends statements there. */
  readonly send?: SendStatement;
  /** Processes of the service that open the store; they share the connections to a server. */
  readonly processes?: number;
  /** Time in which a server has to answer statements that must not wait; absent = as all others. */
  readonly urgentMs?: number;
}

const MAX_TRIES = 5;
/** The name of the process with the file among those whose statements it runs. */
const OWN = "own";

/** Opens the store and migrates its tables; throws an error for the operator if it fails. */
export async function openStore(place: StorePlace): Promise<Store> {
  const { url, dataDir, send } = place;
  const engine: Engine = url === "" ? "sqlite" : "postgres";
  if (engine === "sqlite" && send !== undefined) {
    // The process with the file has brought the tables up to date.
    return storeOf(engine, openRemoteSqlite(send));
  }
  const { db, close, urgent } =
    engine === "sqlite" ? { ...openSqlite(dataDir), urgent: null } : await openServer(url, place);
  await upToDate({ db, close }, engine);
  const store = storeOf(engine, { db, close }, engine === "sqlite" && dataDir === IN_MEMORY);
  if (urgent === null) return store;
  return { ...store, urgent: { db: urgent, transaction: (run) => transact(urgent, run) } };
}

/** Its library is loaded only where a server is configured. */
async function openServer(url: string, use?: PostgresUse): Promise<OpenServer> {
  const { openPostgres } = await import("./postgres.ts");
  return openPostgres(url, use);
}

/** The embedded file, open in this process for the statements of others. */
export interface ServedFile {
  readonly statements: StatementServer;
  /** The same file for this process, in turn with the others. */
  readonly store: Store;
  close(): Promise<void>;
}

/**
 * Opens the embedded file for other processes of the service and brings its tables up to date;
 * throws with a text for the operator when it cannot.
 */
export async function serveFile(
  dataDir: string,
  runtime: Pick<Runtime, "after" | "now">,
): Promise<ServedFile> {
  const { db, file, close } = openSqlite(dataDir);
  await upToDate({ db, close }, "sqlite");
  const statements = new StatementServer(file, runtime);
  const own = openRemoteSqlite((request) => statements.run(request, OWN));
  return { statements, store: storeOf("sqlite", own, dataDir === IN_MEMORY), close };
}

/** Brings the tables up to date; closes the engine and throws where that fails. */
async function upToDate({ db, close }: OpenEngine, engine: Engine): Promise<void> {
  const refusal = await migrate(db).catch(
    (error: unknown) => `The store cannot be opened: ${reasonOf(error)}. ${ADVICE[engine]}`,
  );
  if (refusal === null) return;
  await close();
  throw new Error(refusal);
}

function storeOf(engine: Engine, { db, close }: OpenEngine, isInMemory = false): Store {
  const inMemory = isInMemory ? ({ inMemory: true } as const) : {};
  return { engine, ...inMemory, db, transaction: (run) => transact(db, run), close };
}

/**
 * Opens a store for reading, possibly beside a running service; throws an error for the operator if
 * it fails.
 */
export async function readStore({ url, dataDir }: StorePlace): Promise<Store> {
  const engine: Engine = url === "" ? "sqlite" : "postgres";
  const { db, close } = engine === "sqlite" ? readSqlite(dataDir) : await openServer(url);
  const refusal = await isMigrated(db).then(
    (isCurrent) =>
      isCurrent
        ? null
        : "The store was written by another version of svc. Start this version once, then read it.",
    (error: unknown) => `The store cannot be read: ${reasonOf(error)}. ${ADVICE[engine]}`,
  );
  if (refusal === null) return storeOf(engine, { db, close });
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
 * The reason of a failure, also from nested errors: a host with several addresses fails once for
 * each.
 */
function reasonOf(error: unknown): string {
  if (error instanceof AggregateError) return error.errors.map(reasonOf).join("; ");
  return errorText(error);
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

/**
 * Whether PostgreSQL aborted a transaction because of a conflict with another one; it had no effect
 * then.
 */
function isCollision(error: unknown): boolean {
  return (
    error instanceof Error && "code" in error && (error.code === "40001" || error.code === "40P01")
  );
}
