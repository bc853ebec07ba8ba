// One node of the soak: svc as an operator starts it, supervisor and workers, on the same port in
// each of its lives, with a link to the database and a wall clock that the soak can break.
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { freePort } from "../../fakes/free-port.ts";
import { childrenOf } from "../../fakes/worker-load.ts";
import { type DatabaseLink, openDatabaseLink } from "./database-link.ts";

/** A node, whether it runs or not. */
export interface NodeProcess {
  readonly id: string;
  readonly link: DatabaseLink;
  readonly url: string;
  readonly port: number;
  /** Whether it has been started and not been ended since. */
  readonly isRunning: boolean;
  /** Process ids of its workers; those of a node of one process are none. */
  workers(): readonly number[];
  /** Starts it, and resolves when it serves. */
  start(): Promise<void>;
  /** Ends supervisor and workers at once. */
  kill(): Promise<void>;
  /** Halts or continues supervisor and workers. */
  signalAll(name: "SIGSTOP" | "SIGCONT"): void;
  /** Ends it as an operator does; resolves with its exit code, or the signal that ended it. */
  end(): Promise<number | string>;
  /** Shifts its wall clock. */
  shiftClock(ms: number): void;
  /** Everything printed in all of its lives. */
  log(): string;
  close(): Promise<void>;
}

/** What a node is started with. */
export interface NodePlan {
  readonly id: string;
  readonly databaseUrl: string;
  /** The configuration, with a directory for data of its own. */
  config(dataDir: string): string;
}

const START_MS = 90_000;
const PRELOAD = new URL("./clock-preload.mjs", import.meta.url).href;
const MAIN = new URL("../../../src/main.ts", import.meta.url).pathname;
const SECRET = "the secret that all nodes of the soak share";

/** Prepares a node and its link; starts nothing. */
export async function createNode({ id, databaseUrl, config }: NodePlan): Promise<NodeProcess> {
  const directory = mkdtempSync(join(tmpdir(), `svc-soak-${id}-`));
  const files = { config: join(directory, "svc.yml"), clock: join(directory, "clock") };
  writeFileSync(files.config, config(join(directory, "data")));
  writeFileSync(files.clock, "0");
  const link = await openDatabaseLink(databaseUrl);
  const port = await freePort();
  let child: ChildProcess | null = null;
  let ended: Promise<number | string> = Promise.resolve(0);
  let text = "";

  const spawnChild = (): ChildProcess => {
    const args = [MAIN, "serve", "--config", files.config, "--port", String(port)];
    const started = spawn(process.execPath, args, {
      env: {
        ...process.env,
        NODE_OPTIONS: `${process.env["NODE_OPTIONS"] ?? ""} --import ${PRELOAD}`,
        SVC_TEST_CLOCK: files.clock,
        SVC_SECRET: SECRET,
        DATABASE_URL: link.url,
      },
      stdio: ["ignore", "pipe", "pipe"],
    });
    for (const stream of [started.stdout, started.stderr])
      stream?.on("data", (chunk: Buffer) => {
        text += chunk.toString();
      });
    return started;
  };
  const pids = (): readonly number[] =>
    child?.pid === undefined ? [] : [child.pid, ...childrenOf(child.pid)];
  const signal = (name: NodeJS.Signals): void => {
    for (const pid of pids()) signalOne(pid, name);
  };

  const node: NodeProcess = {
    id,
    link,
    url: `http://127.0.0.1:${port}`,
    port,
    get isRunning() {
      return child !== null;
    },
    workers: () => pids().slice(1),
    async start() {
      const from = text.length;
      const started = spawnChild();
      child = started;
      ended = new Promise((resolve) =>
        started.once("exit", (code, name) => resolve(code ?? name ?? "unknown")),
      );
      await serving(started, () => text.slice(from));
    },
    async kill() {
      signal("SIGKILL");
      await ended;
      child = null;
    },
    signalAll: signal,
    async end() {
      if (child?.pid !== undefined) signalOne(child.pid, "SIGTERM");
      const how = await ended;
      child = null;
      return how;
    },
    shiftClock: (ms) => writeFileSync(files.clock, String(ms)),
    log: () => text,
    async close() {
      signal("SIGCONT");
      await node.kill();
      await link.close();
      rmSync(directory, { recursive: true, force: true });
    },
  };
  return node;
}

/** A process that has ended meanwhile needs no signal. */
function signalOne(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "ESRCH")) throw error;
  }
}

async function serving(child: ChildProcess, text: () => string): Promise<void> {
  for (const deadline = performance.now() + START_MS; performance.now() < deadline; ) {
    if (text().includes('"svc is serving"')) return;
    if (child.exitCode !== null || child.signalCode !== null)
      throw new Error(`a node ended while it started: ${text().slice(-2_000)}`);
    await sleep(20);
  }
  throw new Error(`a node does not serve after ${START_MS} ms: ${text().slice(-2_000)}`);
}
