// `npm run clients`: stock clients as they come against the real service over real nodes, over HTTP
// and WebSockets, and once more while a node is killed. Prints a table. Exit codes: 0 nothing that
// was run fails, 1 something does, 2 wrong usage. Names of clients as arguments run only those.
import { type ChildProcess, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { type ClientFixture, startFixture } from "./client-fixture.ts";
import { PLANS, type Program } from "./programs.ts";
import { type Expected, FEATURES, type Result, type Task, type Wire } from "./protocol.ts";

type Row = Result & { readonly client: string };

const WIRES: readonly Wire[] = ["http", "ws"];
const WATCHED = ["blocks", "logs", "pending"] as const;
const CLIENT_MS = 600_000;
const EVENTS = 5;
/** Accounts of the local chain; each client has one of its own. */
const KEYS = [
  "0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d",
  "0x5de4111afa1a4b94908f83103eb1f1706367c2e68ca870fc3fb9a804cdab365a",
  "0x7c852118294e51e653712a81e05800f419141751be58f605c371e15141b007a6",
  "0x47e179ec197488593b187f80a00eb0da91f1b9d0b13f8733639f19c30a34926a",
  "0x8b3a350cf5c34c9194ca85829a2df0ec3153be0318b5e2d3348e872092edffba",
];

const say = (line: string): void => void process.stdout.write(`${line}\n`);
const wanted = process.argv.slice(2);
if (wanted.some((name) => !PLANS.some((it) => it.name === name))) {
  process.stderr.write(`usage: npm run clients -- [${PLANS.map((it) => it.name).join(" | ")}] …\n`);
  process.exit(2);
}
process.exitCode = await main();

async function main(): Promise<number> {
  const programs: Program[] = [];
  for (const { name, prepare } of PLANS.filter(
    (it) => wanted.length === 0 || wanted.includes(it.name),
  )) {
    say(`preparing ${name}`);
    programs.push(await prepare(name));
  }
  const ready = programs.filter((it) => it.kind === "ready");
  const skipped = programs.filter((it) => it.kind === "skipped");
  const steady = await withFixture((fixture) => steadyRound(fixture, ready));
  const failover = await withFixture((fixture) => failoverRound(fixture, ready));
  say(
    `\n${tableOf("Every node well", FEATURES, steady)}\n${tableOf("A node is killed under the watchers", WATCHED, failover)}`,
  );
  for (const { name, why } of skipped) say(`${name}: not run, ${why}`);
  return [...steady, ...failover].some((it) => it.status === "fails") ? 1 : 0;
}

/** Runs with a fixture of its own and ends it. */
async function withFixture<T>(run: (fixture: ClientFixture) => Promise<T>): Promise<T> {
  const ends: (() => Promise<void>)[] = [];
  // The timers of the nodes' keeper hold no process.
  const held = setInterval(() => {}, CLIENT_MS);
  try {
    return await run(await startFixture({ after: (end) => void ends.push(end) }, say));
  } finally {
    for (const end of ends.reverse()) await end();
    clearInterval(held);
  }
}

/** One client after the other: calls, then watchers over some blocks. */
async function steadyRound(
  fixture: ClientFixture,
  programs: readonly Program[],
): Promise<readonly Row[]> {
  const rows: Row[] = [];
  for (const [n, program] of programs.entries()) {
    say(`running ${program.name}`);
    const client = start(program, taskOf(fixture, n, false));
    const from = await heightAt(fixture, [client]);
    client.check(await fixture.since(from, await fixture.emit(EVENTS)));
    rows.push(...(await client.results));
  }
  return rows;
}

/** All clients at once, watching only: a node is killed in the middle. */
async function failoverRound(
  fixture: ClientFixture,
  programs: readonly Program[],
): Promise<readonly Row[]> {
  say("running all of them while a node is killed");
  const clients = programs.map((program, n) => start(program, taskOf(fixture, n, true)));
  const from = await heightAt(fixture, clients);
  const before = await fixture.emit(EVENTS);
  await fixture.killFirst();
  const after = await fixture.emit(EVENTS);
  const expected = await fixture.since(from, [...before, ...after]);
  for (const client of clients) client.check(expected);
  return (await Promise.all(clients.map((it) => it.results))).flat();
}

/** The height at which every client's watchers are there. */
async function heightAt(fixture: ClientFixture, clients: readonly Running[]): Promise<number> {
  await Promise.all(clients.map((it) => it.ready));
  return fixture.height();
}

/**
 * Calls go to nodes in order of priority: who sends a transaction and reads at once what follows
 * from it may ask a node that is a moment behind, whichever service is between. Watchers have the
 * default strategy, or while a node is killed the one in which that node serves them.
 */
function taskOf({ url, emitter }: ClientFixture, n: number, failover: boolean): Task {
  const socketUrl = `${url.replace("http", "ws")}/ws`;
  const [path, watchPath] = [
    "/rpc/priority/local",
    failover ? "/rpc/priority/local" : "/rpc/local",
  ];
  const urls = {
    http: url + path,
    ws: socketUrl + path,
    watchHttp: url + watchPath,
    watchWs: socketUrl + watchPath,
  };
  return { ...urls, emitter, key: KEYS[n % KEYS.length] ?? "", failover };
}

/** A client program that runs. */
interface Running {
  /** Its watchers are there, or it has ended. */
  readonly ready: Promise<void>;
  readonly check: (expected: Expected) => void;
  readonly results: Promise<readonly Row[]>;
}

function start(program: Program, task: Task): Running {
  if (program.kind === "skipped") throw new Error(`${program.name} was not made ready`);
  const child: ChildProcess = spawn(program.command, program.args(JSON.stringify(task)), {
    stdio: ["pipe", "pipe", "pipe"],
    timeout: CLIENT_MS,
    killSignal: "SIGKILL",
  });
  const rows: Row[] = [];
  let problem = "";
  child.stderr?.on("data", (chunk: Buffer) => {
    problem = (problem + chunk.toString()).slice(-2_000);
  });
  child.stdin?.on("error", () => {});
  let isReady = (): void => {};
  const ready = new Promise<void>((resolve) => {
    isReady = resolve;
  });
  if (child.stdout !== null)
    createInterface({ input: child.stdout }).on("line", (line) => {
      if (line === "READY") isReady();
      else if (line.startsWith("{")) rows.push({ client: program.name, ...JSON.parse(line) });
    });
  const results = new Promise<readonly Row[]>((resolve) => {
    child.once("error", (error) => {
      problem += error.message;
    });
    child.once("close", (code) => {
      isReady();
      if (code !== 0) say(`${program.name} ended with ${code ?? "a signal"}: ${problem}`);
      resolve([...rows, ...untold(program.name, rows, task.failover ? WATCHED : FEATURES, code)]);
    });
  });
  return {
    ready,
    results,
    check: (expected) => void child.stdin?.write(`CHECK ${JSON.stringify(expected)}\n`),
  };
}

/** What a program that ended early did not tell of. */
function untold(
  client: string,
  rows: readonly Row[],
  features: readonly Row["feature"][],
  code: number | null,
): readonly Row[] {
  const told = (feature: string, wire: Wire): boolean =>
    rows.some((it) => it.feature === feature && it.wire === wire);
  const missing = features.flatMap((feature) =>
    WIRES.filter((wire) => !told(feature, wire)).map((wire) => ({ client, feature, wire })),
  );
  return missing.map((it) =>
    code === 0
      ? { ...it, status: "not run", note: "the client has no such thing" }
      : { ...it, status: "fails", note: "the program broke off" },
  );
}

function tableOf(title: string, features: readonly Row["feature"][], rows: readonly Row[]): string {
  const clients = [...new Set(rows.map((it) => it.client))];
  const of = (client: string, feature: string, wire: Wire): Row | undefined =>
    rows.find((it) => it.client === client && it.feature === feature && it.wire === wire);
  const lines = clients.flatMap((client) =>
    features.map((feature) => {
      const [http, ws] = WIRES.map((wire) => of(client, feature, wire));
      const notes = [...new Set([http?.note ?? "", ws?.note ?? ""])]
        .filter((it) => it !== "")
        .join(" | ");
      return (
        `| ${client.padEnd(9)} | ${feature.padEnd(11)} | ${(http?.status ?? "").padEnd(7)} | ` +
        `${(ws?.status ?? "").padEnd(9)} | ${notes} |`
      );
    }),
  );
  return (
    `${title}\n\n| Client    | Feature     | HTTP    | WebSocket | Notes |\n| --- | --- | --- | ` +
    `--- | --- |\n${lines.join("\n")}\n`
  );
}
