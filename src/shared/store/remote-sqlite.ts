// The embedded engine as a process sees it that does not have the file open: Kysely's dialect for
// SQLite over statements that are sent. Transactions are told apart by number; the process with the
// file runs one at a time.
import {
  type CompiledQuery,
  type DatabaseConnection,
  type Driver,
  Kysely,
  type QueryResult,
  SqliteIntrospector,
  SqliteQueryCompiler,
} from "kysely";
import { EmbeddedAdapter, type OpenEngine } from "./sqlite.ts";
import { errorFrom, type SendStatement } from "./statement.ts";
import type { Tables } from "./tables.ts";

/** Opens the engine over statements that are sent. */
export function openRemoteSqlite(send: SendStatement): OpenEngine {
  const db = new Kysely<Tables>({
    dialect: {
      createAdapter: () => new EmbeddedAdapter(),
      createDriver: () => new RemoteDriver(send),
      createQueryCompiler: () => new SqliteQueryCompiler(),
      createIntrospector: (inner) => new SqliteIntrospector(inner),
    },
  });
  return { db, close: () => db.destroy() };
}

class RemoteDriver implements Driver {
  readonly #send: SendStatement;
  #lastTransaction = 0;

  constructor(send: SendStatement) {
    this.#send = send;
  }

  async init(): Promise<void> {}

  async acquireConnection(): Promise<DatabaseConnection> {
    return new RemoteConnection(this.#send);
  }

  async beginTransaction(connection: DatabaseConnection): Promise<void> {
    await parseRemote(connection).begin(++this.#lastTransaction);
  }

  async commitTransaction(connection: DatabaseConnection): Promise<void> {
    await parseRemote(connection).end("commit");
  }

  async rollbackTransaction(connection: DatabaseConnection): Promise<void> {
    await parseRemote(connection).end("rollback");
  }

  async releaseConnection(): Promise<void> {}

  async destroy(): Promise<void> {}
}

class RemoteConnection implements DatabaseConnection {
  readonly #send: SendStatement;
  #transaction: number | null = null;

  constructor(send: SendStatement) {
    this.#send = send;
  }

  async begin(transaction: number): Promise<void> {
    this.#transaction = transaction;
    try {
      await this.#run("begin");
    } catch (error) {
      // It may begin yet: then it ends at once, instead of when its time is over.
      this.#run("rollback").catch(() => {});
      throw error;
    }
  }

  async end(sql: "commit" | "rollback"): Promise<void> {
    await this.#run(sql);
    this.#transaction = null;
  }

  async executeQuery<R>({ sql, parameters }: CompiledQuery): Promise<QueryResult<R>> {
    const { rows, changes, insertId } = await this.#run(sql, parameters);
    return {
      rows: parseRows(rows),
      ...(changes === null ? {} : { numAffectedRows: changes }),
      ...(insertId === null ? {} : { insertId }),
    };
  }

  async *streamQuery<R>(query: CompiledQuery): AsyncIterableIterator<QueryResult<R>> {
    yield await this.executeQuery<R>(query);
  }

  async #run(sql: string, parameters: readonly unknown[] = []) {
    const result = await this.#send({ transaction: this.#transaction, sql, parameters });
    if (!result.ok) throw errorFrom(result.error);
    return result;
  }
}

function parseRemote(connection: DatabaseConnection): RemoteConnection {
  if (!(connection instanceof RemoteConnection)) throw new Error("bug: a foreign connection");
  return connection;
}

function parseRows<R>(rows: readonly unknown[]): R[] {
  return rows as R[];
}
