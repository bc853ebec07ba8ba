// Runs the statements of other processes on the embedded file, one transaction at a time. Each has
// bounded time: of a process that is silent or gone in the middle of one, nothing is written.
import type { SqliteDatabase } from "kysely";
import type { Runtime } from "../../runtime.ts";
import { type StatementRequest, type StatementResult, statementErrorOf } from "./statement.ts";

type ServerRuntime = Pick<Runtime, "after" | "now">;

const LIMITS = {
  /** The longest that one transaction holds the others up. */
  transactionMs: 5_000,
  /** Steps that wait for their turn. */
  maxWaiting: 10_000,
  /** The longest wait for a turn: the process that sent the step has given up by then. */
  waitMs: 12_000,
} as const;

type StatementLimits = Readonly<Record<keyof typeof LIMITS, number>>;

interface Waiting {
  readonly process: string;
  readonly request: StatementRequest;
  readonly sinceMs: number;
  readonly settle: (result: StatementResult) => void;
}

/** The transaction that is open. */
interface OpenTransaction {
  readonly process: string;
  readonly id: number;
  readonly cancel: () => void;
}

/** Runs the statements of other processes. */
export class StatementServer {
  readonly #file: Pick<SqliteDatabase, "prepare">;
  readonly #runtime: ServerRuntime;
  readonly #limits: StatementLimits;
  #waiting: Waiting[] = [];
  #open: OpenTransaction | null = null;

  constructor(
    file: Pick<SqliteDatabase, "prepare">,
    runtime: ServerRuntime,
    limits: StatementLimits = LIMITS,
  ) {
    this.#file = file;
    this.#runtime = runtime;
    this.#limits = limits;
  }

  /** Resolves when the step was carried out, or has failed. */
  run(request: StatementRequest, process: string): Promise<StatementResult> {
    return new Promise((settle) => {
      const waiting: Waiting = { process, request, sinceMs: this.#runtime.now(), settle };
      if (this.#isOver(waiting)) return this.#endOver(waiting);
      if (this.#mayRun(waiting)) this.#runNow(waiting);
      else if (this.#waiting.length < this.#limits.maxWaiting) this.#waiting.push(waiting);
      else settle(failed("the store is overloaded: timeout"));
      this.#runWaiting();
    });
  }

  /** A process is gone: its transaction is undone, and what it still wanted is forgotten. */
  forget(process: string): void {
    this.#forget((waiting) => waiting.process === process);
    if (this.#open?.process === process) this.#undo();
    this.#runWaiting();
  }

  /** Whether its turn has come: no transaction is open, or it is its own. */
  #mayRun({ process, request }: Waiting): boolean {
    return this.#open === null ? this.#waiting.length === 0 : this.#isOwn(process, request);
  }

  /** Whether it belongs to a transaction that is not open: not begun yet, or undone. */
  #isOver({ process, request }: Waiting): boolean {
    const { transaction, sql } = request;
    return transaction !== null && sql !== "begin" && !this.#isOwn(process, request);
  }

  /** Its sender has given the transaction up: a `begin` that still waits must not run. */
  #endOver({ process, request, settle }: Waiting): void {
    this.#forget(
      (waiting) =>
        waiting.process === process && waiting.request.transaction === request.transaction,
    );
    settle(request.sql === "rollback" ? DONE : TIMED_OUT);
  }

  /** Answers and drops steps that wait. */
  #forget(isMeant: (waiting: Waiting) => boolean): void {
    const forgotten = this.#waiting.filter(isMeant);
    if (forgotten.length === 0) return;
    this.#waiting = this.#waiting.filter((waiting) => !isMeant(waiting));
    for (const { settle } of forgotten) settle(TIMED_OUT);
  }

  #isOwn(process: string, { transaction }: StatementRequest): boolean {
    return this.#open?.process === process && this.#open.id === transaction;
  }

  #runWaiting(): void {
    while (this.#open === null) {
      const next = this.#waiting.shift();
      if (next === undefined) return;
      if (this.#runtime.now() - next.sinceMs < this.#limits.waitMs) this.#runNow(next);
      else next.settle(TIMED_OUT);
    }
  }

  #runNow({ process, request, settle }: Waiting): void {
    const { transaction, sql } = request;
    const result = this.#execute(request);
    if (transaction !== null && sql === "begin" && result.ok) this.#began(process, transaction);
    // A commit that fails is followed by a rollback.
    if (sql === "rollback" || (sql === "commit" && result.ok)) this.#ended();
    settle(result);
  }

  #began(process: string, id: number): void {
    const cancel = this.#runtime.after(this.#limits.transactionMs, () => {
      this.#undo();
      this.#runWaiting();
    });
    this.#open = { process, id, cancel };
  }

  #ended(): void {
    this.#open?.cancel();
    this.#open = null;
  }

  #undo(): void {
    this.#execute(ROLLBACK);
    this.#ended();
  }

  #execute({ sql, parameters }: Omit<StatementRequest, "transaction">): StatementResult {
    try {
      const statement = this.#file.prepare(sql);
      if (statement.reader)
        return { ok: true, rows: statement.all(parameters), changes: null, insertId: null };
      const { changes, lastInsertRowid } = statement.run(parameters);
      return { ok: true, rows: [], changes: BigInt(changes), insertId: BigInt(lastInsertRowid) };
    } catch (error) {
      return { ok: false, error: statementErrorOf(error) };
    }
  }
}

const ROLLBACK = { sql: "rollback", parameters: [] };
const TIMED_OUT = failed("the transaction timed out");
const DONE: StatementResult = { ok: true, rows: [], changes: 0n, insertId: 0n };

function failed(message: string): StatementResult {
  return { ok: false, error: { message, code: "ETIMEDOUT", errcode: null } };
}
