// The embedded engine: node's built-in SQLite under Kysely's dialect. One connection; Kysely runs
// one transaction at a time.

import { existsSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync, type SQLInputValue, type StatementSync } from "node:sqlite";
import {
  Kysely,
  SqliteAdapter,
  type SqliteDatabase,
  SqliteDialect,
  type SqliteStatement,
} from "kysely";
import { errorText } from "../../core/fields.ts";
import { createPrivate, lockDirectory } from "./directory-lock.ts";
import type { Tables } from "./tables.ts";

/** An open engine. */
export interface OpenEngine {
  readonly db: Kysely<Tables>;
  close(): Promise<void>;
}

const BUSY_TIMEOUT_MS = 5_000;
const MAX_STATEMENTS = 200;

/** In place of a directory: a store that ends with the process. */
export const IN_MEMORY = ":memory:";

/** The embedded engine, and the same file below Kysely. */
type EmbeddedEngine = OpenEngine & { readonly file: SqliteDatabase };

/** Opens `svc.db` in a directory and locks the directory until it is closed. */
export function openSqlite(directory: string): EmbeddedEngine {
  const isInMemory = directory === IN_MEMORY;
  const unlock = isInMemory ? () => {} : lockDirectory(directory);
  try {
    return engineOn(openFile(isInMemory ? IN_MEMORY : privateFile(directory)), unlock);
  } catch (error) {
    unlock();
    throw error;
  }
}

function engineOn(opened: DatabaseSync, unlock = (): void => {}): EmbeddedEngine {
  const file = adapted(opened);
  const db = new Kysely<Tables>({ dialect: new EmbeddedDialect({ database: file }) });
  return {
    db,
    file,
    async close() {
      await db.destroy();
      if (opened.isOpen) opened.close();
      unlock();
    },
  };
}

function privateFile(directory: string): string {
  const path = join(directory, "svc.db");
  createPrivate(path);
  return path;
}

/**
 * Opens `svc.db` in a directory read-only; a service may have it open at the same time. Throws if
 * there is none.
 */
export function readSqlite(directory: string): OpenEngine {
  const path = join(directory, "svc.db");
  if (!existsSync(path))
    throw new Error(
      `There is no store in ${directory}: svc has not been started with this data_dir yet.`,
    );
  return engineOn(openFile(path, true));
}

function openFile(path: string, readOnly = false): DatabaseSync {
  const file = new DatabaseSync(path, {
    timeout: BUSY_TIMEOUT_MS,
    enableForeignKeyConstraints: true,
    readOnly,
  });
  try {
    if (!readOnly) file.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL");
    return file;
  } catch (error) {
    file.close();
    const why = errorText(error);
    throw new Error(
      `The store ${path} cannot be opened: ${why}. Go back to a backup of it, or give svc ` +
        "another data_dir.",
    );
  }
}

/**
 * Kysely's dialect with transactional DDL enabled, which SQLite supports: an interrupted migration
 * is rolled back.
 */
class EmbeddedDialect extends SqliteDialect {
  override createAdapter(): SqliteAdapter {
    return new EmbeddedAdapter();
  }
}

/** What Kysely knows of the engine; `isEmbedded` of the ledger tells it by this. */
export class EmbeddedAdapter extends SqliteAdapter {
  override get supportsTransactionalDdl(): boolean {
    return true;
  }
}

/** Adapts node's database to the interface that Kysely expects. Caches prepared statements. */
function adapted(file: DatabaseSync): SqliteDatabase {
  const kept = new Map<string, SqliteStatement>();
  return {
    close: () => file.close(),
    prepare(text) {
      // A failed statement may have ended the transaction already; a failing rollback would hide
      // that failure.
      if (text === "rollback" && !file.isTransaction) return NOTHING;
      const known = kept.get(text);
      if (known !== undefined) return known;
      const statement = statementOf(file.prepare(text));
      if (kept.size >= MAX_STATEMENTS) kept.delete(kept.keys().next().value ?? "");
      kept.set(text, statement);
      return statement;
    },
  };
}

const NOTHING: SqliteStatement = {
  reader: false,
  all: () => [],
  run: () => ({ changes: 0, lastInsertRowid: 0 }),
  iterate: () => [].values(),
};

function statementOf(statement: StatementSync): SqliteStatement {
  statement.setReadBigInts(true);
  return {
    reader: statement.columns().length > 0,
    // Copied to plain objects, like rows of the other engine.
    all: (parameters) => statement.all(...parameters.map(parseInput)).map((row) => ({ ...row })),
    run: (parameters) => statement.run(...parameters.map(parseInput)),
    iterate: (parameters) => statement.iterate(...parameters.map(parseInput)),
  };
}

function parseInput(value: unknown): SQLInputValue {
  if (
    value === null ||
    typeof value === "string" ||
    typeof value === "bigint" ||
    typeof value === "number"
  )
    return value;
  if (value instanceof Uint8Array) return value;
  throw new TypeError(`a ${typeof value} is no value of a column`);
}
