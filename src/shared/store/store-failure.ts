// Distinguishes a store that cannot work now (unreachable, overloaded, full) from a wrong statement
// in this program. Knows the error codes of both engines.

/** Whether a retry may succeed; false = the failure is a bug. */
export function isStoreFailure(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const code = "code" in error && typeof error.code === "string" ? error.code : "";
  if (code === "ERR_SQLITE_ERROR")
    return (
      "errcode" in error &&
      typeof error.errcode === "number" &&
      SQLITE_FAILURES.includes(error.errcode & PRIMARY_CODE)
    );
  if (code === "ERR_INVALID_STATE") return true;
  if (/^[0-9A-Z]{5}$/.test(code) && !/^E[A-Z]{4}$/.test(code))
    return !WRONG_STATEMENT.includes(code.slice(0, 2));
  return (
    /^E[A-Z]{3,}$/.test(code) ||
    /terminated|timeout|timed out|destroyed|after calling end/i.test(error.message)
  );
}

/**
 * Busy, locked, out of memory, read-only, I/O error, corrupt, full, cannot open, lock protocol, not
 * a database.
 */
const SQLITE_FAILURES: readonly number[] = [5, 6, 7, 8, 10, 11, 13, 14, 15, 26];
const PRIMARY_CODE = 0xff;
/** SQLSTATE classes: wrong data, broken constraint, wrong statement. */
const WRONG_STATEMENT: readonly string[] = ["22", "23", "42"];
