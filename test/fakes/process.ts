// The real service as a process of its own, started from a configuration text as an operator would:
// what the walks of signals, drains and memory talk to.
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { withHttpVariant } from "./http-variant.ts";
import { withPlainRouting } from "./plain-routing.ts";

/** A running service process. */
export interface ServiceProcess {
  readonly url: string;
  readonly pid: number;
  /** Where its configuration is read from. */
  readonly file: string;
  /** Everything printed so far. */
  readonly log: () => string;
  readonly signal: (name: NodeJS.Signals) => void;
  /** Resolves with its exit code, or the signal that ended it. */
  readonly ended: Promise<number | string>;
  post(path: string, body: unknown): Promise<{ readonly status: number; readonly text: string }>;
  /** Resident memory as it tells it. */
  residentBytes(): Promise<number>;
}

/** Ends what was started: a test, or a job that is none. */
export interface Ender {
  after(run: () => Promise<void>): void;
}

const MAIN = new URL("../../src/main.ts", import.meta.url).pathname;
const READY_MS = 180_000;
const ONE_PROCESS = { SVC_WORKERS: "1" };

/**
 * Starts the service and waits until it serves; ended by `after` if it still runs. One process,
 * unless the configuration names a number of workers.
 */
export async function startProcess(
  t: Ender,
  config: string,
  env: Readonly<Record<string, string>> = {},
  { atPort = 0, program = MAIN }: { readonly atPort?: number; readonly program?: string } = {},
): Promise<ServiceProcess> {
  const directory = await mkdtemp(join(tmpdir(), "svc-walk-"));
  const file = join(directory, "svc.yml");
  await writeFile(file, withHttpVariant(withPlainRouting(config)));
  const child = spawn(
    process.execPath,
    [program, "serve", "--config", file, "--port", String(atPort)],
    {
      env: { ...process.env, ...(config.includes("workers") ? {} : ONE_PROCESS), ...env },
      stdio: ["ignore", "pipe", "pipe"],
    },
  );
  const ended = new Promise<number | string>((resolve) =>
    child.once("exit", (code, signal) => resolve(code ?? signal ?? "unknown")),
  );
  t.after(async () => {
    child.kill("SIGKILL");
    await ended;
    await rm(directory, { recursive: true, force: true });
  });
  const log = collect(child);
  const port = await Promise.race([
    servingPort(child, log),
    ended.then((how) => Promise.reject(new Error(`ended while starting (${how}): ${log()}`))),
  ]);
  const url = `http://127.0.0.1:${port}`;
  return {
    url,
    pid: child.pid ?? 0,
    file,
    log,
    signal: (name) => void child.kill(name),
    ended,
    async post(path, body) {
      const text = typeof body === "string" ? body : JSON.stringify(body);
      const response = await fetch(url + path, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: text,
      });
      return { status: response.status, text: await response.text() };
    },
    async residentBytes() {
      const text = await (await fetch(`${url}/metrics`)).text();
      return Number(/^process_resident_memory_bytes (\d+)$/m.exec(text)?.[1]);
    },
  };
}

function collect(child: ChildProcess): () => string {
  let text = "";
  const keep = (chunk: Buffer): void => {
    text += chunk.toString();
  };
  child.stdout?.on("data", keep);
  child.stderr?.on("data", keep);
  return () => text;
}

/** Rejects where the process has ended or takes too long. */
async function servingPort(child: ChildProcess, log: () => string): Promise<string> {
  for (
    const deadline = performance.now() + READY_MS;
    performance.now() < deadline && child.exitCode === null && child.signalCode === null;
    await new Promise((resolve) => setTimeout(resolve, 20))
  ) {
    const line = log()
      .split("\n")
      .find((text) => text.includes('"svc is serving"'));
    const port = /"port":(\d+)/.exec(line ?? "")?.[1];
    if (port !== undefined) return port;
  }
  throw new Error(`not serving after ${READY_MS} ms, or ended: ${log()}`);
}
