// The server engine: PostgreSQL through a bounded connection pool. Its connection settings, above
// all the password, never appear in error messages.
import { Kysely, PostgresDialect, type PostgresPool, type PostgresPoolClient } from "kysely";
import { DatabaseError, Pool, type PoolClient, types } from "pg";
import type { OpenEngine } from "./sqlite.ts";
import type { Tables } from "./tables.ts";

/** Shared by the processes of a service; each has at least the least for most statements. */
const MAX_CONNECTIONS = 10;
const MIN_CONNECTIONS = 2;
/** Connections reserved for heartbeats. */
const URGENT_CONNECTIONS = 2;
const CONNECT_TIMEOUT_MS = 3_000;
const STATEMENT_TIMEOUT_MS = 10_000;
/** Longer than the server's own timeout, for a server that does not answer at all. */
const ANSWER_TIMEOUT_MS = 12_000;
/** The server's own timeout, as a part of the time in which it has to answer. */
const STATEMENT_SHARE = 0.85;

/** How a process uses the connections. */
export interface PostgresUse {
  /** Processes of the service that share them. */
  readonly processes?: number;
  /**
   * Time in which statements that must not wait are answered: they have connections of their own.
   * Absent = there are none.
   */
  readonly urgentMs?: number | undefined;
}

/** A server, and the connections that are kept for statements that must not wait. */
export interface OpenServer extends OpenEngine {
  /** Null = there are none. */
  readonly urgent: Kysely<Tables> | null;
}

/** Creates pools; they connect at their first statement. */
export function openPostgres(
  url: string,
  { processes = 1, urgentMs }: PostgresUse = {},
): OpenServer {
  refuseUnreadable(url);
  const all = Math.floor(MAX_CONNECTIONS / processes);
  const others = urgentMs === undefined ? all : all - URGENT_CONNECTIONS;
  const db = pooled(url, Math.max(MIN_CONNECTIONS, others), ANSWER_TIMEOUT_MS);
  const urgent =
    urgentMs === undefined
      ? null
      : pooled(url, URGENT_CONNECTIONS, Math.min(ANSWER_TIMEOUT_MS, urgentMs));
  return {
    db,
    urgent,
    async close() {
      await Promise.all([db.destroy(), urgent?.destroy()]);
    },
  };
}

function pooled(url: string, max: number, answerMs: number): Kysely<Tables> {
  const statementMs = Math.min(STATEMENT_TIMEOUT_MS, Math.ceil(answerMs * STATEMENT_SHARE));
  const pool = new Pool({
    connectionString: url,
    application_name: "svc",
    max,
    connectionTimeoutMillis: Math.min(CONNECT_TIMEOUT_MS, answerMs),
    statement_timeout: statementMs,
    idle_in_transaction_session_timeout: statementMs,
    query_timeout: answerMs,
    keepAlive: true,
    allowExitOnIdle: true,
    types: { getTypeParser: parserOf },
  });
  Object.defineProperty(pool.options, "connectionString", { enumerable: false });
  // The pool replaces an idle connection that breaks; on a busy one the statement fails.
  pool.on("error", () => undefined);
  // A connection that breaks while the pool closes it has no other listener, and an unheard error
  // would end the process.
  pool.on("connect", (client) => client.on("error", () => undefined));
  return new Kysely<Tables>({ dialect: new PostgresDialect({ pool: careful(pool) }) });
}

/**
 * The pool as Kysely uses it. A connection with an error that is not an answer of the server is
 * never reused.
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
  // A connection that breaks between two statements emits this event; without a listener it would
  // end the process.
  const onError = (): void => {
    broken = true;
  };
  client.on("error", onError);
  // Kysely's type also has a form for cursors, which this store does not use.
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
 * Refuses URLs that the driver would parse differently than intended: a part of the password could
 * end up in an error message.
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

/** Parses all integers as bigint, also sums of integers, which the server returns as numeric. */
function parserOf(oid: number): Parser {
  if (oid === INT8 || oid === INT4 || oid === INT2) return BigInt;
  if (oid === NUMERIC) return (text) => (/^-?\d+$/.test(text) ? BigInt(text) : text);
  return types.getTypeParser(oid, "text");
}
