// Statements and their results on the way between a process and the process that has the embedded
// database open. Knows neither the file nor the way.

/** A statement on the file; a transaction begins and ends with `begin`, `commit`, `rollback`. */
export interface StatementRequest {
  /** The transaction that it belongs to, unique in the process that asks; null = none. */
  readonly transaction: number | null;
  readonly sql: string;
  readonly parameters: readonly unknown[];
}

/** The result of a statement: rows, the number of changed rows, or the failure. */
export type StatementResult =
  | {
      readonly ok: true;
      readonly rows: readonly unknown[];
      readonly changes: bigint | null;
      readonly insertId: bigint | null;
    }
  | { readonly ok: false; readonly error: StatementError };

/** An error of the engine, with what callers tell failures apart by. */
export interface StatementError {
  readonly message: string;
  /** Null = none. */
  readonly code: string | null;
  readonly errcode: number | null;
}

/** Sends statements to where the file is open; throws when they cannot be sent or answered. */
export type SendStatement = (request: StatementRequest) => Promise<StatementResult>;

/** An error as it travels. */
export function statementErrorOf(error: unknown): StatementError {
  if (!(error instanceof Error)) return { message: String(error), code: null, errcode: null };
  const code = "code" in error && typeof error.code === "string" ? error.code : null;
  const errcode = "errcode" in error && typeof error.errcode === "number" ? error.errcode : null;
  return { message: error.message, code, errcode };
}

/** The same error where it arrives. */
export function errorFrom({ message, code, errcode }: StatementError): Error {
  return Object.assign(
    new Error(message),
    code === null ? {} : { code },
    errcode === null ? {} : { errcode },
  );
}
