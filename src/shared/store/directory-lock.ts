// Locks a data directory for one process; the operating system releases the lock when the process
// ends in any way. Knows nothing of the directory's contents.
import { closeSync, existsSync, mkdirSync, openSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";

const FILE_MODE = 0o600;
const DIRECTORY_MODE = 0o700;

/**
 * Locks the directory for this process, creating it if missing; throws if another process holds it.
 * The returned function releases the lock.
 */
export function lockDirectory(directory: string): () => void {
  mkdirSync(directory, { recursive: true, mode: DIRECTORY_MODE });
  const path = join(directory, "svc.lock");
  createPrivate(path);
  // The operating system releases SQLite's file locks when the process ends.
  const lock = new DatabaseSync(path);
  try {
    lock.exec("BEGIN EXCLUSIVE");
  } catch (error) {
    lock.close();
    throw isBusy(error)
      ? new Error(
          `Another svc uses the data directory ${directory}. Stop it, or give this one a ` +
            "data_dir of its own.",
        )
      : error;
  }
  return () => {
    if (lock.isOpen) lock.close();
  };
}

/**
 * Creates a file that only its owner may read, if it is missing. Does not open an existing file:
 * closing it again would release this process's locks on it.
 */
export function createPrivate(path: string): void {
  if (!existsSync(path)) closeSync(openSync(path, "a", FILE_MODE));
}

const SQLITE_BUSY = 5;

function isBusy(error: unknown): boolean {
  return error instanceof Error && "errcode" in error && error.errcode === SQLITE_BUSY;
}
