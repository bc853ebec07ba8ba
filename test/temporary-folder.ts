// Where the files of a test run keep what they write: a folder in memory where the machine has room
// for it. A store waits for the disk at each commit, and tests make thousands of them. What they
// end are processes, never the machine, so nothing that they show depends on the disk.
import { accessSync, chmodSync, constants, mkdtempSync, rmSync, statfsSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const IN_MEMORY = "/dev/shm";
/** Several times what all files hold at a time. */
const ROOM_BYTES = 4 * 1024 ** 3;

/**
 * Runs with `TMPDIR` set to a new folder, which is removed in the end with everything in it. Every
 * user may enter it: PostgreSQL does not run as root.
 */
export async function withTemporaryFolder<T>(work: () => Promise<T>): Promise<T> {
  const before = process.env["TMPDIR"];
  const folder = mkdtempSync(
    join(before === undefined && hasRoom() ? IN_MEMORY : tmpdir(), "svc-test-"),
  );
  chmodSync(folder, 0o711);
  process.env["TMPDIR"] = folder;
  const interrupted = (): void => {
    remove(folder);
    process.exit(1);
  };
  process.once("SIGINT", interrupted).once("SIGTERM", interrupted);
  try {
    return await work();
  } finally {
    process.off("SIGINT", interrupted).off("SIGTERM", interrupted);
    if (before === undefined) delete process.env["TMPDIR"];
    else process.env["TMPDIR"] = before;
    remove(folder);
  }
}

/** What a test left running may still write there: that fails no run. */
function remove(folder: string): void {
  try {
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  } catch (error) {
    console.log(`${folder} is left: ${String(error)}`);
  }
}

function hasRoom(): boolean {
  try {
    accessSync(IN_MEMORY, constants.W_OK);
    const { bavail, bsize } = statfsSync(IN_MEMORY);
    return bavail * bsize >= ROOM_BYTES;
  } catch {
    return false;
  }
}
