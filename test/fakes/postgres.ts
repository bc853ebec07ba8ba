// PostgreSQL for tests: the machine's own binaries, in a directory that is thrown away. All files
// of a test run use one server: that of the test job, or one that the first file starts; a test
// that stops or kills its server starts one of its own. Knows no table.
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import {
  accessSync,
  chownSync,
  constants,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Client, Pool } from "pg";

/** Whether PostgreSQL can be had here; if not, why. */
export type Availability =
  | { readonly kind: "yes" }
  | { readonly kind: "no"; readonly reason: string };

/** A database server of a test's own. */
export interface Cluster {
  /** Address of a database on it. */
  urlOf(database: string): string;
  readonly pid: number;
  /** Ends it at once, as a crash of the machine's process would (`SIGQUIT`: no checkpoint). */
  crash(): Promise<void>;
  /** Halts it without closing its connections, and lets it go on. */
  signal(name: "SIGSTOP" | "SIGCONT"): void;
  /** Starts it again in the same directory. */
  restart(): Promise<void>;
  stop(): Promise<void>;
}

const START_MS = 60_000;
/**
 * Set by the test job once it has tried: the reason why there is no PostgreSQL, so that not every
 * file tries again.
 */
export const WITHOUT = "SVC_TEST_WITHOUT_POSTGRES";
/** The address of a server that tests make their databases on, instead of starting one. */
export const SERVER_URL = "SVC_TEST_DATABASE_URL";
/** The name of a database on that server: new databases are copies of it. */
export const TEMPLATE = "SVC_TEST_DATABASE_TEMPLATE";
const EMPTY = "template1";
const INSTALL_MS = 100_000;
const INSTALL_LOCK = join(tmpdir(), "svc-postgres-install.lock");
const DATABASE = /^[a-z0-9_]+$/;

/** Looks for a server or its binaries, and installs Debian's where that is allowed. */
export function postgresAvailability(): Availability {
  const known = process.env[WITHOUT];
  if (known !== undefined) return { kind: "no", reason: known };
  if (givenUrl() !== undefined || (binaries() !== null && !isInstalling())) return { kind: "yes" };
  const reason = install();
  return reason === null ? { kind: "yes" } : { kind: "no", reason };
}

/** A new database; `drop` removes it. */
export interface NewDatabase {
  readonly url: string;
  readonly drop: () => Promise<void>;
}

/**
 * A new database on the server of this test run, with no row. It may have the tables of the newest
 * store already, so that not every test waits for its migrations.
 */
export function newDatabase(): Promise<NewDatabase> {
  return copyOf(process.env[TEMPLATE] ?? EMPTY);
}

/** A new database without tables. */
export function emptyDatabase(): Promise<NewDatabase> {
  return copyOf(EMPTY);
}

async function copyOf(template: string): Promise<NewDatabase> {
  const server = givenUrl() ?? (await sharedServer());
  const name = `svc_test_${process.pid}_${randomBytes(6).toString("hex")}`;
  await createDatabase(server, name, template);
  const url = withDatabase(server, name);
  waitLongFor(url);
  return { url, drop: () => statement(server, `drop database if exists ${name} with (force)`) };
}

const awaited = new Set<string>();
Pool.prototype.connect = new Proxy(Pool.prototype.connect, {
  apply(connect, pool: Pool, args) {
    if (awaited.has(pool.options.connectionString ?? ""))
      pool.options.connectionTimeoutMillis = START_MS;
    return Reflect.apply(connect, pool, args);
  },
});

/**
 * Lets pools on a database wait for a connection as long as it takes: a service gives up after
 * three seconds, and a machine full of tests may be as slow.
 */
export function waitLongFor(url: string): void {
  awaited.add(url);
}

/**
 * A server of the caller's own; `durable` = it loses nothing when it crashes. The caller stops it.
 */
export async function startCluster({ durable }: { readonly durable: boolean }): Promise<Cluster> {
  const directory = mkdtempSync(join(tmpdir(), "svc-postgres-"));
  initialise(directory);
  const start = () => run({ directory, durable, watchedPid: process.pid });
  let server = await start();
  return {
    urlOf: (database) => urlOf(directory, database),
    get pid() {
      return server.pid;
    },
    async crash() {
      server.kill("SIGQUIT");
      await server.ended();
    },
    signal: (name) => server.kill(name),
    async restart() {
      server = await start();
    },
    async stop() {
      server.kill("SIGCONT");
      server.kill("SIGINT");
      await server.ended();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

/** Makes a database on a server, as a copy of another one. */
export async function createDatabase(
  server: string,
  name: string,
  template = EMPTY,
): Promise<void> {
  for (const each of [name, template])
    if (!DATABASE.test(each)) throw new Error(`${each} is no name of a test database`);
  await statement(server, `create database ${name} template ${template} strategy file_copy`);
}

function givenUrl(): string | undefined {
  const url = process.env[SERVER_URL];
  return url === "" ? undefined : url;
}

/**
 * The server that the files of one test run share: the one that makes the directory starts it, the
 * others wait until it says that it is ready.
 */
async function sharedServer(): Promise<string> {
  const runner = runnerPid();
  const directory = join(tmpdir(), `svc-postgres-run-${runner}-${startOf(runner)}`);
  const ready = join(directory, "ready");
  if (makeDirectory(directory)) {
    initialise(directory);
    await run({ directory, durable: false, watchedPid: runner });
    writeFileSync(`${ready}.new`, "");
    renameSync(`${ready}.new`, ready);
  }
  for (const deadline = performance.now() + START_MS; !existsSync(ready); await sleep(20)) {
    if (performance.now() > deadline)
      throw new Error(
        `the test run's PostgreSQL in ${directory} did not get ready: see ${join(directory, "log")}`,
      );
  }
  return urlOf(directory, "postgres");
}

/**
 * The process whose end is the end of the test run: the runner of this file, or this process where
 * it runs alone.
 */
function runnerPid(): number {
  return process.env["NODE_TEST_CONTEXT"]?.startsWith("child") === true
    ? process.ppid
    : process.pid;
}

/**
 * When a process started, so that a number that is used again is told apart; "0" where that cannot
 * be known.
 */
function startOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/stat`, "utf8").split(") ").at(-1)?.split(" ")[19] ?? "0";
  } catch {
    return "0";
  }
}

function makeDirectory(directory: string): boolean {
  try {
    mkdirSync(directory, { mode: 0o700 });
    return true;
  } catch (error) {
    if (existsSync(directory)) return false;
    throw error;
  }
}

function initialise(directory: string): void {
  const user = serverUser();
  if (user !== null) chownSync(directory, user.uid, user.gid);
  const args = [
    "-D",
    join(directory, "data"),
    "--no-sync",
    "-A",
    "trust",
    "-E",
    "UTF8",
    "--locale=C",
    "-U",
    "postgres",
  ];
  const { status, stderr, stdout } = spawnSync(binary("initdb"), args, {
    ...user,
    cwd: directory,
    encoding: "utf8",
  });
  if (status !== 0) throw new Error(`initdb failed: ${stdout}${stderr}`);
}

/** Settings of a server whose databases live for moments and survive no crash. */
const WITHOUT_COSTS = [
  "fsync=off",
  "full_page_writes=off",
  "synchronous_commit=off",
  "autovacuum=off",
  "jit=off",
];

interface Server {
  readonly pid: number;
  /** Resolves when it has ended; keeps this process alive until then. */
  ended(): Promise<void>;
  kill(name: NodeJS.Signals): void;
}

/**
 * Runs a server and, beside it, a shell that ends it and removes its directory when the watched
 * process is gone.
 */
async function run(it: {
  readonly directory: string;
  readonly durable: boolean;
  readonly watchedPid: number;
}): Promise<Server> {
  const { directory } = it;
  const economy = it.durable ? [] : WITHOUT_COSTS;
  const settings = [
    ...economy,
    "listen_addresses=",
    `unix_socket_directories=${directory}`,
    "max_connections=300",
    "shared_buffers=32MB",
    "dynamic_shared_memory_type=mmap",
    "max_wal_size=128MB",
  ];
  const args = ["-D", join(directory, "data"), ...settings.flatMap((setting) => ["-c", setting])];
  const log = openSync(join(directory, "log"), "a");
  const child = spawn(binary("postgres"), args, {
    ...serverUser(),
    cwd: directory,
    stdio: ["ignore", log, log],
    detached: true,
  });
  const ended = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  child.unref();
  watch(it.watchedPid, child, directory);
  await answering(urlOf(directory, "postgres"), join(directory, "log"));
  return {
    pid: child.pid ?? 0,
    ended() {
      child.ref();
      return ended;
    },
    kill: (name) => void child.kill(name),
  };
}

function watch(watchedPid: number, child: ChildProcess, directory: string): void {
  const script =
    `while kill -0 ${watchedPid} && kill -0 ${child.pid}; do sleep 0.5; done; kill -0 ` +
    `${watchedPid} && exit; kill -CONT ${child.pid}; kill -INT ${child.pid}; sleep 2; rm -rf "$1"`;
  spawn("/bin/sh", ["-c", script, "sh", directory], { stdio: "ignore", detached: true }).unref();
}

async function answering(url: string, log: string): Promise<void> {
  for (const deadline = performance.now() + START_MS; ; await sleep(30)) {
    try {
      return await statement(url, "select 1");
    } catch (error) {
      if (performance.now() > deadline)
        throw new Error(`PostgreSQL does not answer: ${String(error)}; see ${log}`);
    }
  }
}

async function statement(url: string, text: string): Promise<void> {
  const client = new Client({ connectionString: url, connectionTimeoutMillis: START_MS });
  client.on("error", () => undefined);
  try {
    await client.connect();
    await client.query(text);
  } finally {
    await client.end();
  }
}

function urlOf(directory: string, database: string): string {
  return `postgres://postgres@localhost/${database}?host=${encodeURIComponent(directory)}`;
}

function withDatabase(url: string, database: string): string {
  const parsed = new URL(url);
  parsed.pathname = `/${database}`;
  return parsed.href;
}

/**
 * PostgreSQL refuses to run as root: then as its own user, or as nobody. Null = as the user of
 * the tests.
 */
function serverUser(): { readonly uid: number; readonly gid: number } | null {
  if (process.getuid?.() !== 0) return null;
  const lines = readFileSync("/etc/passwd", "utf8").split("\n");
  const found = ["postgres", "nobody"]
    .map((name) => lines.find((line) => line.startsWith(`${name}:`)))
    .find((line) => line !== undefined);
  if (found === undefined)
    throw new Error(
      "PostgreSQL does not run as root, and there is neither a user postgres nor nobody",
    );
  const [, , uid, gid] = found.split(":");
  return { uid: Number(uid), gid: Number(gid) };
}

function binary(name: string): string {
  const directory = binaries();
  if (directory === null) throw new Error("there are no PostgreSQL binaries here");
  return join(directory, name);
}

/** The directory that holds `initdb` and `postgres`, the newest version first. */
function binaries(): string | null {
  const installed = globSync("/usr/lib/postgresql/*/bin/initdb")
    .map((path) => dirname(path))
    .sort((a, b) => versionOf(b) - versionOf(a));
  const directories = [...installed, ...(process.env["PATH"] ?? "").split(delimiter)];
  return (
    directories.find(
      (directory) => isProgram(join(directory, "initdb")) && isProgram(join(directory, "postgres")),
    ) ?? null
  );
}

function versionOf(path: string): number {
  return Number(/postgresql\/(\d+)/.exec(path)?.[1] ?? 0);
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/**
 * Whether another test run installs right now: the binaries are there before the libraries and the
 * user that they need.
 */
function isInstalling(): boolean {
  if (process.getuid?.() !== 0 || !existsSync(INSTALL_LOCK)) return false;
  return spawnSync("flock", ["--shared", "--nonblock", INSTALL_LOCK, "true"]).status === 1;
}

/** Installs Debian's packages; returns why that was not possible. */
function install(): string | null {
  if (process.getuid?.() !== 0)
    return "no PostgreSQL binaries, and only root may install them (apt-get install postgresql)";
  console.log("# installing PostgreSQL for the tests of the store (apt-get install postgresql)");
  // The lock keeps files that run at the same time from installing twice.
  const packages =
    "apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -y -q " +
    "--no-install-recommends postgresql";
  const once = `flock 9 && { ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || { ${packages}; }; }`;
  const { status, stderr, error } = spawnSync(
    "/bin/sh",
    ["-c", `{ ${once}; } 9>"$1"`, "sh", INSTALL_LOCK],
    {
      encoding: "utf8",
      timeout: INSTALL_MS,
    },
  );
  if (status === 0 && binaries() !== null) return null;
  return (
    "no PostgreSQL binaries, and installing them failed: " +
    `${error?.message ?? stderr.trim().split("\n").at(-1) ?? "unknown"}`
  );
}
