// `npm run bench -- --start`: what a start costs: time from the start of the launcher until the
// service is ready and has answered its first call, CPU until it is ready, resident memory of its
// own process ten seconds later, which other processes of the launcher and the bundler are left,
// and how long other callers wait while the first order loads payments. Started as `npm start`
// does, by the Node that runs npm; the plain router also from the installed npm package. Exit code
// as in `run.ts`.
import { type ChildProcess, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { installInto, packInto } from "../test/fakes/package.ts";
import { endProcess } from "./child.ts";
import { type Figure, figureOf, median, saveResults } from "./figures.ts";
import { cpuUs, memoryMb, processTree } from "./procfs.ts";

const ROOT = join(import.meta.dirname, "..");
const READY_MS = 120_000;
const IDLE_MS = 10_000;
const CALL_EVERY_MS = 5;
const CALL = { jsonrpc: "2.0", id: 1, method: "eth_chainId", params: [] };
const ENV = {
  SVC_PUBLIC_URL: "http://localhost:4000",
  SVC_SECRET: "a secret of the benchmark, long enough for it",
  SVC_OPERATOR_TOKEN: "operator-token-of-the-benchmark",
  SVC_WORKERS: "1",
};

/** A configuration to start, and the most time and memory that it may take. */
interface Start {
  readonly name: string;
  readonly file: string;
  readonly change: (text: string) => string;
  readonly mostMb: number;
  /** From the start of the launcher to the first answer. */
  readonly mostMs: number;
  /** Where the first call goes. */
  readonly path: string;
  /** Whether local payments are loaded by the first order. */
  readonly pays: boolean;
}

/** What starts the service: its launcher, and what its environment has besides. */
interface Program {
  readonly launcher: string;
  readonly env: Readonly<Record<string, string>>;
}

const ROUTER: Start = {
  name: "plain router",
  file: "svc.production.yml",
  change: (text) => text.replace("enabled: true", "enabled: false"),
  mostMb: 110,
  mostMs: 600,
  path: "/rpc/ethereum",
  pays: false,
};
const STARTS: readonly Start[] = [
  {
    name: "demonstration",
    file: "svc.yml",
    change: (text) => text,
    mostMb: 220,
    mostMs: 1_500,
    path: "/rpc/local",
    pays: true,
  },
  ROUTER,
];
const PACKED: Start = { ...ROUTER, name: "plain router from the package" };

/** What one start came to. */
interface Measured {
  readonly readyMs: number;
  readonly answerMs: number;
  readonly cpuMs: number;
  readonly rssMb: number;
  readonly besides: readonly string[];
  readonly firstOrderMs: number | null;
  /** The longest that another caller waited meanwhile. */
  readonly othersMs: number | null;
}

/** Runs the measurement; resolves with the exit code. */
export async function measureStarts(rounds: number): Promise<number> {
  let code = 0;
  const figures: Figure[] = [];
  const own: Program = { launcher: join(ROOT, "bin/svc.mjs"), env: {} };
  const folder = mkdtempSync(join(tmpdir(), "svc-bench-"));
  try {
    const starts: readonly (readonly [Start, Program])[] = [
      ...STARTS.map((start) => [start, own] as const),
      [PACKED, packedIn(folder)],
    ];
    for (const [start, program] of starts) {
      // The first start compiles what has changed.
      await measureStart(start, program, 0);
      const all: Measured[] = [];
      for (let round = 0; round < rounds; round++)
        all.push(await measureStart(start, program, IDLE_MS));
      const rssMb = median(all.map((one) => one.rssMb));
      const answerMs = median(all.map((one) => one.answerMs));
      if (rssMb > start.mostMb || answerMs > start.mostMs) code = 1;
      process.stdout.write(`${start.name}: ${lineOf(start, all, { rssMb, answerMs })}\n`);
      figures.push(...figuresOf(start, all));
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  saveResults({
    name: "start",
    title: "Starts",
    method:
      "`npm run bench -- --start`: until the service is ready, and its memory 10 s later, while " +
      "nobody calls. Two values are of odd and even starts.",
    figures,
    discarded: [],
  });
  return code;
}

/** The package of this checkout, installed, with the Node 24 that its launcher would fetch. */
function packedIn(folder: string): Program {
  const installed = installInto(join(folder, "app"), packInto(folder));
  const cache = join(folder, "cache");
  mkdirSync(join(cache, "svc"), { recursive: true });
  symlinkSync(join(ROOT, "node_modules/.node24"), join(cache, "svc/.node24"));
  return { launcher: join(installed, "bin/svc.mjs"), env: { XDG_CACHE_HOME: cache } };
}

function figuresOf({ name, mostMb, mostMs }: Start, all: readonly Measured[]): readonly Figure[] {
  type Value = "readyMs" | "answerMs" | "cpuMs" | "rssMb";
  const figure = (measure: string, what: Value, most: number | null) => {
    const bound = most === null ? null : ({ of: "value", most } as const);
    const rounds = all.map((one) => one[what]);
    return figureOf({ cell: name, measure }, { system: "svc", rounds }, null, bound);
  };
  return [
    figure("ms until ready", "readyMs", null),
    figure("ms until the first answer", "answerMs", mostMs),
    figure("CPU ms until ready", "cpuMs", null),
    figure("MB", "rssMb", mostMb),
  ];
}

function lineOf(
  { mostMb, mostMs, pays }: Start,
  all: readonly Measured[],
  { rssMb, answerMs }: Pick<Measured, "rssMb" | "answerMs">,
): string {
  const of = (read: (one: Measured) => number | null): string =>
    median(all.map((one) => read(one) ?? 0)).toFixed(0);
  const verdict = (value: number, most: number): string =>
    `${value <= most ? "met" : "MISSED"}: at most ${most}`;
  const besides = all.at(-1)?.besides ?? [];
  return [
    `ready after ${of((one) => one.readyMs)} ms with ${of((one) => one.cpuMs)} ms of CPU`,
    `first answer after ${answerMs.toFixed(0)} ms (${verdict(answerMs, mostMs)})`,
    `${rssMb.toFixed(0)} MB after ${IDLE_MS / 1_000} s (${verdict(rssMb, mostMb)})`,
    `beside it: ${besides.join(", ") || "nothing"}`,
    ...(pays
      ? [
          `first order ${of((one) => one.firstOrderMs)} ms, others wait ` +
            `${of((one) => one.othersMs)} ms at most`,
        ]
      : []),
  ].join("; ");
}

async function measureStart(
  start: Start,
  { launcher, env }: Program,
  idleMs: number,
): Promise<Measured> {
  const dir = mkdtempSync(join(tmpdir(), "svc-bench-"));
  const config = start.change(readFileSync(join(ROOT, start.file), "utf8"));
  writeFileSync(join(dir, "svc.yml"), config);
  const node = process.env["npm_node_execpath"] ?? process.execPath;
  const beganMs = performance.now();
  const child = spawn(node, [launcher, "serve", "--port", "0"], {
    cwd: dir,
    env: { ...withoutNpm(), ...ENV, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  try {
    const port = await portOf(child);
    const readyMs = performance.now() - beganMs;
    await timed(`http://127.0.0.1:${port}${start.path}`, CALL, 200);
    const answerMs = performance.now() - beganMs;
    const all = processTree(child.pid ?? 0);
    const pid = all.find((other) => /node-\w+|\/node$/.test(nameOf(other)) && other !== child.pid);
    const own = pid ?? child.pid ?? 0;
    const cpuMs = cpuUs(own) / 1_000;
    await sleep(idleMs);
    const besides = processTree(child.pid ?? 0)
      .filter((other) => other !== own)
      .map((other) => `${nameOf(other).replace(/.*\//, "")} ${memoryMb(other).rss.toFixed(0)} MB`)
      .filter((name) => /^(node|esbuild)/.test(name));
    const { rss: rssMb } = memoryMb(own);
    const order = start.pays && idleMs > 0 ? await firstOrder(port) : null;
    const { firstOrderMs = null, othersMs = null } = order ?? {};
    return { readyMs, answerMs, cpuMs, rssMb, besides, firstOrderMs, othersMs };
  } finally {
    await endProcess(child, "SIGTERM");
    rmSync(dir, { recursive: true, force: true });
  }
}

/** Orders a key, which is answered with offers, while others call. */
async function firstOrder(port: number): Promise<{ firstOrderMs: number; othersMs: number }> {
  const url = `http://127.0.0.1:${port}`;
  for (let warm = 0; warm < 20; warm++) await timed(`${url}/rpc/local`, CALL, 200);
  let othersMs = 0;
  let isOver = false;
  const others = (async () => {
    for (; !isOver; await sleep(CALL_EVERY_MS))
      othersMs = Math.max(othersMs, await timed(`${url}/rpc/local`, CALL, 200));
  })();
  const order = { initial_fund_usd: "0.10" };
  const firstOrderMs = await timed(`${url}/api/v1/agent/keys`, order, 402);
  isOver = true;
  await others;
  return { firstOrderMs, othersMs };
}

async function timed(url: string, body: unknown, status: number): Promise<number> {
  const beganMs = performance.now();
  const headers = { "content-type": "application/json" };
  const response = await fetch(url, { method: "POST", headers, body: JSON.stringify(body) });
  const text = await response.text();
  if (response.status !== status) throw new Error(`${url} answers ${response.status}: ${text}`);
  return performance.now() - beganMs;
}

async function portOf(child: ChildProcess): Promise<number> {
  let text = "";
  const read = (chunk: Buffer): void => {
    text += chunk.toString();
  };
  child.stdout?.on("data", read);
  child.stderr?.on("data", read);
  const deadline = performance.now() + READY_MS;
  for (; performance.now() < deadline && child.exitCode === null; await sleep(5)) {
    const line = text.split("\n").find((one) => one.includes('"svc is serving"'));
    const port = /"port":(\d+)/.exec(line ?? "")?.[1];
    if (port !== undefined) return Number(port);
  }
  throw new Error(`not ready after ${READY_MS} ms, or ended: ${text}`);
}

/** The program of a process; empty = it has ended. */
function nameOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0", 1)[0] ?? "";
  } catch {
    return "";
  }
}

/** The launcher ends with the shell of npm, which is not its parent here. */
function withoutNpm(): NodeJS.ProcessEnv {
  const { npm_lifecycle_event: _, NODE_COMPILE_CACHE: __, ...env } = process.env;
  return env;
}
