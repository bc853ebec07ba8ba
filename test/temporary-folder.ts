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
  try {
    return await work();
  } finally {
    if (before === undefined) delete process.env["TMPDIR"];
    else process.env["TMPDIR"] = before;
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
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
