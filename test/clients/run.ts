// `npm run clients`: stock clients as they come against the real service over real nodes, over HTTP
// and WebSockets; once more while a node is killed; and in rounds of sending and reading while
// nodes lag behind each other. Prints a table of each. Exit codes: 0 nothing that was run fails, 1
// something does, 2 wrong usage.
import { readFileSync, writeFileSync } from "node:fs";
import { parseArgs } from "node:util";
import type { Ender } from "../fakes/process.ts";
import { type ClientFixture, startFixture } from "./client-fixture.ts";
import { CLIENT_MS, type Row, type Running, start, WATCHED, WIRES } from "./client-process.ts";
import { PLANS, type Program } from "./programs.ts";
import { FEATURES, ROUNDS, type Task, type Wire } from "./protocol.ts";
import { startRoundsFixture } from "./rounds-fixture.ts";

const EVENTS = 5;
/** Accounts of the local chain; each client has one of its own. */
const KEYS = [
  "0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d",
  "0x5de4111afa1a4b94908f83103eb1f1706367c2e68ca870fc3fb9a804cdab365a",
  "0x7c852118294e51e653712a81e05800f419141751be58f605c371e15141b007a6",
  "0x47e179ec197488593b187f80a00eb0da91f1b9d0b13f8733639f19c30a34926a",
  "0x8b3a350cf5c34c9194ca85829a2df0ec3153be0318b5e2d3348e872092edffba",
] as const;

/** The task of a program that runs rounds, but for them. */
const NOTHING_ELSE: Omit<Task, "rounds"> = {
  http: "",
  ws: "",
  watchHttp: "",
  watchWs: "",
  emitter: `0x${"00".repeat(20)}`,
  key: KEYS[0],
  failover: false,
};

/** The parts of the run, each with a service of its own. */
const PARTS = {
  calls: { title: "Every node well", features: FEATURES, run: callsPart },
  failover: { title: "A node is killed under the watchers", features: WATCHED, run: failoverPart },
  rounds: { title: "Nodes lag behind each other", features: ROUNDS, run: roundsPart },
} as const;
type Part = keyof typeof PARTS;

const USAGE = `usage: npm run clients -- [CLIENT …] [--part PART …] [--rounds N] [--nodes N]

  CLIENT    ${PLANS.map((it) => it.name).join(" | ")}; default: all
  --part    ${Object.keys(PARTS).join(" | ")}; default: all
  --rounds  of sending, waiting and reading, over each wire; default: 100
  --nodes   in the rounds, 1 to 3; default: 3. One alone says what is right
  --write   writes the tables to CONFORMANCE.md
`;
const DOCUMENT = new URL("../../CONFORMANCE.md", import.meta.url);
/** Between these the document has the tables. */
const PLACE = /(<!-- clients: .*? -->\n)[\s\S]*(\n<!-- \/clients -->)/;

interface Arguments {
  readonly clients: readonly string[];
  readonly parts: readonly Part[];
  readonly rounds: number;
  readonly nodes: number;
  /** Whether the tables are written to the document. */
  readonly writes: boolean;
}

const say = (line: string): void => void process.stdout.write(`${line}\n`);
const wanted = readArguments(process.argv.slice(2));
if (wanted === null) process.stderr.write(USAGE);
const exitCode = wanted === null ? 2 : await main(wanted);
// Programs of others may leave handles behind that would hold this one.
process.stdout.write("", () => process.exit(exitCode));

/** Null = they are wrong. */
function readArguments(args: readonly string[]): Arguments | null {
  const options = {
    part: { type: "string", multiple: true, default: Object.keys(PARTS) },
    rounds: { type: "string", default: "100" },
    nodes: { type: "string", default: "3" },
    write: { type: "boolean", default: false },
  } as const;
  try {
    const { values, positionals } = parseArgs({ args: [...args], options, allowPositionals: true });
    const all = PLANS.map((it) => it.name);
    const parts = values.part.filter((it): it is Part => it in PARTS);
    const [rounds, nodes] = [Number(values.rounds), Number(values.nodes)];
    const isRight =
      positionals.every((it) => all.includes(it)) &&
      parts.length === values.part.length &&
      isWithin(rounds, 10_000) &&
      isWithin(nodes, 3);
    const clients = positionals.length === 0 ? all : positionals;
    return isRight ? { clients, parts, rounds, nodes, writes: values.write } : null;
  } catch {
    return null;
  }
}

function isWithin(count: number, most: number): boolean {
  return Number.isInteger(count) && count >= 1 && count <= most;
}

async function main(args: Arguments): Promise<number> {
  const programs: Program[] = [];
  for (const { name, prepare } of PLANS.filter((it) => args.clients.includes(it.name))) {
    say(`preparing ${name}`);
    programs.push(await prepare(name));
  }
  const ready = programs.filter((it) => it.kind === "ready");
  let fails = false;
  const tables: string[] = [];
  for (const part of args.parts) {
    const { title, features, run } = PARTS[part];
    const rows = await withEnder((ender) => run(ender, ready, args));
    fails ||= rows.some((it) => it.status === "fails");
    tables.push(tableOf(title, features, rows));
  }
  say(`\n${tables.join("\n")}`);
  const skipped = programs.flatMap((it) =>
    it.kind === "skipped" ? [`${it.name}: not run, ${it.why}`] : [],
  );
  for (const line of skipped) say(line);
  if (args.writes) writeTables([...tables, ...skipped]);
  return fails ? 1 : 0;
}

function writeTables(tables: readonly string[]): void {
  const text = readFileSync(DOCUMENT, "utf8");
  const part = `\n\`npm run clients\`, over three local nodes.\n\n${tables.join("\n")}`;
  writeFileSync(
    DOCUMENT,
    text.replace(PLACE, (_, begin, end) => begin + part + end),
  );
}

/** Runs something and ends what it started. */
async function withEnder<T>(run: (ender: Ender) => Promise<T>): Promise<T> {
  const ends: (() => Promise<void>)[] = [];
  // The timers of the nodes' keeper hold no process.
  const held = setInterval(() => {}, CLIENT_MS);
  try {
    return await run({ after: (end) => void ends.push(end) });
  } finally {
    for (const end of ends.reverse()) await end();
    clearInterval(held);
  }
}

/** One client after the other: calls, then watchers over some blocks. */
async function callsPart(ender: Ender, programs: readonly Program[]): Promise<readonly Row[]> {
  const fixture = await startFixture(ender, say);
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
async function failoverPart(ender: Ender, programs: readonly Program[]): Promise<readonly Row[]> {
  const fixture = await startFixture(ender, say);
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

/** All clients at once, so that blocks come in quick succession. */
async function roundsPart(
  ender: Ender,
  programs: readonly Program[],
  { rounds: count, nodes }: Arguments,
): Promise<readonly Row[]> {
  const fixture = await startRoundsFixture(ender, { nodes, onProgress: say });
  const tasks: (readonly [Program, Task])[] = [];
  for (const program of programs)
    tasks.push([program, { ...NOTHING_ELSE, rounds: await fixture.tasks(count) }]);
  say(`running ${count} rounds of all of them`);
  const clients = tasks.map(([program, task]) => start(program, task));
  const rows = (await Promise.all(clients.map((it) => it.results))).flat();
  say(fixture.lags());
  return rows;
}

/** The height at which every client's watchers are there. */
async function heightAt(fixture: ClientFixture, clients: readonly Running[]): Promise<number> {
  await Promise.all(clients.map((it) => it.ready));
  return fixture.height();
}

/** The default strategy; while a node is killed the one in which that node serves the watchers. */
function taskOf({ url, emitter }: ClientFixture, n: number, failover: boolean): Task {
  const socketUrl = `${url.replace("http", "ws")}/ws`;
  const watchPath = failover ? "/rpc/priority/local" : "/rpc/local";
  const urls = {
    http: `${url}/rpc/local`,
    ws: `${socketUrl}/rpc/local`,
    watchHttp: url + watchPath,
    watchWs: socketUrl + watchPath,
  };
  return { ...urls, emitter, key: KEYS[n % KEYS.length] ?? KEYS[0], failover, rounds: [] };
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
        .join("; ");
      return (
        `| ${client.padEnd(9)} | ${feature.padEnd(12)} | ${(http?.status ?? "").padEnd(7)} | ` +
        `${(ws?.status ?? "").padEnd(9)} | ${notes} |`
      );
    }),
  );
  return (
    `${title}\n\n| Client    | Feature      | HTTP    | WebSocket | Notes |\n| --- | --- | --- | ` +
    `--- | --- |\n${lines.join("\n")}\n`
  );
}
