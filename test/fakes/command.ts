// A command of `svc` as a process in a folder of its own, as somebody types it there.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";

const MAIN = new URL("../../src/main.ts", import.meta.url).pathname;

/** A command that was started. */
export interface RunningCommand {
  readonly child: ChildProcess;
  /** What it has printed so far. */
  readonly output: () => string;
  /** Its exit code, once it has ended; null = a signal ended it. */
  readonly ended: Promise<number | null>;
}

/** A folder with nothing in it, which the end of the test deletes. */
export function emptyFolder(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), "svc-command-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Starts a command; ended with the test if it still runs. */
export function runCommand(
  t: TestContext,
  cwd: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): RunningCommand {
  const { HOST: _host, PORT: _port, SVC_CONFIG: _config, ...inherited } = process.env;
  const child = spawn(process.execPath, [MAIN, ...args], {
    cwd,
    env: { ...inherited, SVC_WORKERS: "1", ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let text = "";
  for (const stream of [child.stdout, child.stderr])
    stream.on("data", (chunk: Buffer) => {
      text += chunk.toString();
    });
  const ended = once(child, "close").then(() => child.exitCode);
  t.after(async () => {
    child.kill("SIGKILL");
    await ended;
  });
  return { child, output: () => text, ended };
}
