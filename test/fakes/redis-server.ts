// A Redis or Valkey server of a test's own: Debian's program on a free port, with a password and
// without a disk. Knows nothing of what is kept on it.
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { tmpdir } from "node:os";
import { freePort } from "./free-port.ts";

/** A running server. */
export interface RedisServer {
  /** With its password. */
  readonly url: string;
  signal(name: "SIGSTOP" | "SIGCONT" | "SIGKILL"): void;
  /** Starts it again, empty, at the same address, after it was killed. */
  restart(): Promise<void>;
  stop(): Promise<void>;
}

export const REDIS_PASSWORD = "a-password-of-the-tests";
const PROGRAMS = ["valkey-server", "redis-server"];
const START_TRIES = 5;

const program = PROGRAMS.find((name) => spawnSync(name, ["--version"]).error === undefined);

/** Why there is no server here; false = there is one. */
export const WITHOUT_REDIS: string | false =
  program === undefined ? "neither valkey-server nor redis-server is installed" : false;

/** Starts a server. */
export async function startRedis(): Promise<RedisServer> {
  for (let tries = 1; ; tries++) {
    const port = await freePort();
    const child = await start(port);
    if (child !== null) return serverOf(port, child);
    if (tries === START_TRIES) throw new Error("no server could be started");
  }
}

function serverOf(port: number, first: ChildProcess): RedisServer {
  let child = first;
  return {
    url: `redis://:${REDIS_PASSWORD}@127.0.0.1:${port}`,
    signal: (name) => void child.kill(name),
    async restart() {
      if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
      child = (await start(port)) ?? (await start(port)) ?? failed();
    },
    async stop() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const ended = once(child, "exit");
      child.kill("SIGKILL");
      await ended;
    },
  };
}

/** The process once it serves; null = it has ended, for example because the port was taken. */
async function start(port: number): Promise<ChildProcess | null> {
  const settings = {
    port: String(port),
    bind: "127.0.0.1",
    requirepass: REDIS_PASSWORD,
    save: "",
    appendonly: "no",
    maxmemory: "32mb",
    "maxmemory-policy": "allkeys-lru",
    dir: tmpdir(),
  };
  const args = Object.entries(settings).flatMap(([name, value]) => [`--${name}`, value]);
  const child = spawn(program ?? failed(), args, { stdio: ["ignore", "pipe", "ignore"] });
  const ended = once(child, "exit").then(() => null);
  const ready = new Promise<ChildProcess>((resolve) => {
    let text = "";
    child.stdout.on("data", (chunk: Buffer) => {
      text = `${text}${chunk}`.slice(-10_000);
      if (/ready to accept connections/i.test(text)) resolve(child);
    });
  });
  return Promise.race([ready, ended]);
}

function failed(): never {
  throw new Error("the server did not start");
}
