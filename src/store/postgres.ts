// The server engine: PostgreSQL through a bounded pool. What the pool is told (the password above
// all) never enters a text.
import { Kysely, PostgresDialect, type PostgresPool, type PostgresPoolClient } from "kysely";
import { DatabaseError, Pool, type PoolClient, types } from "pg";
import type { OpenEngine } from "./sqlite.ts";
import type { Tables } from "./tables.ts";

const MAX_CONNECTIONS = 10;
const CONNECT_TIMEOUT_MS = 3_000;
const STATEMENT_TIMEOUT_MS = 10_000;
/** Longer than the server's own, for when the server is not heard at all. */
const ANSWER_TIMEOUT_MS = 12_000;

/** Opens a pool on a server; connects with the first statement. */
export function openPostgres(url: string): OpenEngine {
  refuseUnreadable(url);
  const pool = new Pool({
    connectionString: url,
    application_name: "svc",
    max: MAX_CONNECTIONS,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    statement_timeout: STATEMENT_TIMEOUT_MS,
    idle_in_transaction_session_timeout: STATEMENT_TIMEOUT_MS,
    query_timeout: ANSWER_TIMEOUT_MS,
    keepAlive: true,
    allowExitOnIdle: true,
    types: { getTypeParser: parserOf },
  });
  Object.defineProperty(pool.options, "connectionString", { enumerable: false });
  // An idle connection that breaks is replaced by the pool; a busy one fails its statement.
  pool.on("error", () => undefined);
  const db = new Kysely<Tables>({ dialect: new PostgresDialect({ pool: careful(pool) }) });
  return { db, close: () => db.destroy() };
}

/**
 * The pool as Kysely sees it. A connection that failed otherwise than by an answer of the server is
 * never used again.
 */
function careful(pool: Pool): PostgresPool {
  return {
    options: {},
    connect: async () => carefulClient(await pool.connect()),
    end: () => pool.end(),
  };
}

function carefulClient(client: PoolClient): PostgresPoolClient {
  let broken = false;
  // A connection that breaks between two statements says so in this way only; unheard, it would end
  // the process.
  const onError = (): void => {
    broken = true;
  };
  client.on("error", onError);
  // Kysely's type has a second form, for cursors, which this store does not use.
  const query = async (text: string, values: readonly unknown[]) => {
    try {
      return await client.query(text, [...values]);
    } catch (error) {
      broken ||= !(error instanceof DatabaseError) || error.severity !== "ERROR";
      throw error;
    }
  };
  return {
    query: parseQuery(query),
    release(destroy) {
      client.release(destroy === true || broken);
      client.off("error", onError);
    },
  };
}

function parseQuery(query: unknown): PostgresPoolClient["query"] {
  return query as PostgresPoolClient["query"];
}

/**
 * An address that is read differently than it was meant could carry a part of its password into a
 * message of the driver.
 */
function refuseUnreadable(url: string): void {
  const parsed = URL.parse(url);
  const known =
    parsed !== null && (parsed.protocol === "postgres:" || parsed.protocol === "postgresql:");
  if (known && (parsed.username !== "" || !url.includes("@"))) return;
  throw new Error(
    "The database address (storage.url or DATABASE_URL) is not of the form " +
      "postgres://user:password@host:5432/name. " +
      "Write special characters of the password percent-encoded (# as %23, / as %2F, @ as " +
      "%40). Its value is not shown because it may hold a password.",
  );
}

type Parser = (text: string) => unknown;

const INT8 = 20;
const INT2 = 21;
const INT4 = 23;
const NUMERIC = 1700;

/** Every integer is a bigint; sums of integers, which the server calls numeric, are too. */
function parserOf(oid: number): Parser {
  if (oid === INT8 || oid === INT4 || oid === INT2) return BigInt;
  if (oid === NUMERIC) return (text) => (/^-?\d+$/.test(text) ? BigInt(text) : text);
  return types.getTypeParser(oid, "text");
}
