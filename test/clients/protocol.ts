// How a client program talks to the script that runs it: its task is the first argument, results
// are lines of JSON, and between READY and CHECK the script makes blocks and logs that the client's
// watchers have to see. The programs in Python and Go follow the same lines.
import { createInterface } from "node:readline";
import { noteOf, type RoundsClient, runRounds } from "./rounds.ts";

/** What is tried. */
export const FEATURES = [
  "basics",
  "accounts",
  "transaction",
  "batch",
  "at once",
  "blocks",
  "logs",
  "pending",
  "filters",
] as const;
/** Single calls that are sent at once, over each wire: a socket has fewer of them in flight. */
const AT_ONCE: Readonly<Record<"http" | "ws", number>> = { http: 100, ws: 500 };
/** What is tried of sending, waiting and reading again: without an API key and with one. */
export const ROUNDS = ["rounds", "keyed rounds"] as const;
export type Feature = (typeof FEATURES)[number] | (typeof ROUNDS)[number];
export type Wire = "http" | "ws";

/** The rounds of one client over one wire. */
export interface RoundsTask {
  readonly feature: (typeof ROUNDS)[number];
  readonly wire: Wire;
  readonly url: string;
  /** Private key of an account that has sent nothing and is used by nobody else. */
  readonly key: string;
  readonly count: number;
  /** Creates the counter. */
  readonly bytecode: string;
}

/** What a program is started with. */
export interface Task {
  /** Where calls go. */
  readonly http: string;
  readonly ws: string;
  /** Where watchers are. */
  readonly watchHttp: string;
  readonly watchWs: string;
  /** A contract that emits a log whenever it is called. */
  readonly emitter: string;
  /** Private key of an account that no other program uses. */
  readonly key: string;
  /** True = only watches, while a node is killed. */
  readonly failover: boolean;
  /** Not empty = runs these and nothing else. */
  readonly rounds: readonly RoundsTask[];
}

/** What the watchers had to see, in order. */
export interface Expected {
  readonly blocks: readonly { readonly number: number; readonly hash: string }[];
  /** Transactions that emitted a log each. */
  readonly transactions: readonly string[];
}

/** How one thing went over one wire. */
export interface Result {
  readonly feature: Feature;
  readonly wire: Wire;
  readonly status: "ok" | "fails" | "not run";
  readonly note: string;
}

/** What a watcher saw. */
export interface Watched {
  readonly feature: Feature;
  readonly wire: Wire;
  /** Block numbers, block hashes or transaction hashes. */
  readonly seen: (string | number)[];
  /** What went wrong on the way; empty = nothing. */
  readonly errors: string[];
}

const ATTEMPT_MS = 45_000;
const POLL_MS = 50;

/** The task of this program. */
export function task(): Task {
  return JSON.parse(process.argv[2] ?? "null");
}

export function tell(result: Result): void {
  process.stdout.write(`${JSON.stringify(result)}\n`);
}

/** Runs the rounds of the task, all at once, and ends the process; returns if it has none. */
export async function tellRounds(
  { rounds }: Task,
  clientOf: (task: RoundsTask) => RoundsClient,
): Promise<void> {
  if (rounds.length === 0) return;
  await Promise.all(rounds.map((it) => tellOne(it, clientOf)));
  process.exit(0);
}

async function tellOne(
  task: RoundsTask,
  clientOf: (task: RoundsTask) => RoundsClient,
): Promise<void> {
  const { feature, wire } = task;
  try {
    const result = await runRounds(clientOf(task), task);
    const isRight = Object.keys(result.wrong).length === 0;
    tell({ feature, wire, status: isRight ? "ok" : "fails", note: noteOf(result) });
  } catch (error) {
    tell({ feature, wire, status: "fails", note: textOf(error) });
  }
}

/** Tries something and tells how it went; a text that it returns is noted. */
export async function attempt(
  feature: Feature,
  wire: Wire,
  run: () => Promise<string | undefined>,
): Promise<void> {
  try {
    const note = await Promise.race([run(), expiry(`not done within ${ATTEMPT_MS / 1_000} s`)]);
    tell({ feature, wire, status: "ok", note: note ?? "" });
  } catch (error) {
    tell({ feature, wire, status: "fails", note: textOf(error) });
  }
}

/** Tries many single calls at once: each reads the balance of an address that has none. */
export function attemptAtOnce(
  wire: Wire,
  balanceOf: (address: `0x${string}`) => Promise<bigint>,
): Promise<void> {
  const addresses = Array.from(
    { length: AT_ONCE[wire] },
    (_, n): `0x${string}` => `0x${(n + 1).toString(16).padStart(40, "0")}`,
  );
  return attempt("at once", wire, async () => {
    const balances = await Promise.all(addresses.map(balanceOf));
    expect(
      balances.every((balance) => balance === 0n),
      "wrong balances",
    );
    return `${addresses.length} calls at once`;
  });
}

/** Fails unless it holds. */
export function expect(holds: boolean, what: string): void {
  if (!holds) throw new Error(what);
}

/** A watcher that has seen nothing yet; where it cannot be started that is told at once. */
export async function watching(
  feature: Feature,
  wire: Wire,
  start: (it: Watched) => unknown,
): Promise<Watched> {
  const watched: Watched = { feature, wire, seen: [], errors: [] };
  try {
    await Promise.race([start(watched), expiry("not started in time")]);
  } catch (error) {
    watched.errors.push(textOf(error));
  }
  return watched;
}

/**
 * Lets the script make blocks, then judges what each watcher saw: everything, once, in order. Ends
 * the process.
 */
export async function judge(watched: readonly Watched[]): Promise<never> {
  process.stdout.write("READY\n");
  const expected = await checkLine();
  await Promise.all(watched.map((it) => judgeOne(it, expected)));
  process.exit(0);
}

async function checkLine(): Promise<Expected> {
  for await (const line of createInterface({ input: process.stdin }))
    if (line.startsWith("CHECK ")) return JSON.parse(line.slice("CHECK ".length));
  throw new Error("the script ended");
}

async function judgeOne(watched: Watched, expected: Expected): Promise<void> {
  const { feature, wire, errors } = watched;
  const deadline = Date.now() + ATTEMPT_MS;
  while (problemsOf(watched, expected).missing > 0 && Date.now() < deadline)
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  const { texts } = problemsOf(watched, expected);
  tell({
    feature,
    wire,
    status: texts.length === 0 ? "ok" : "fails",
    note: [...texts, ...(texts.length === 0 ? [] : errors.slice(0, 1))].join("; "),
  });
}

/**
 * What is wrong with what a watcher saw: everything has to come, once and in order. What came
 * before it was wanted does not count.
 */
export function problemsOf(
  { feature, seen }: Pick<Watched, "feature" | "seen">,
  { blocks, transactions }: Expected,
) {
  const byHash = blocks.map((it) => it.hash);
  const byNumber = blocks.map((it) => it.number);
  const known: ReadonlySet<string | number> = new Set(
    feature === "blocks" ? [...byHash, ...byNumber] : transactions,
  );
  const got = seen.filter((it) => known.has(it));
  const blocksWanted: readonly (string | number)[] = typeof got[0] === "string" ? byHash : byNumber;
  const wanted = feature === "blocks" ? blocksWanted : transactions;
  const missing = wanted.filter((it) => !got.includes(it)).length;
  const repeated = got.length - new Set(got).size;
  const there = wanted.filter((it) => got.includes(it));
  // Transactions may be told in any order before they stand in a block.
  const inOrder = feature === "pending" || [...new Set(got)].every((it, n) => it === there[n]);
  const texts = [
    ...(missing === 0 ? [] : [`${missing} of ${wanted.length} missing`]),
    ...(repeated === 0 ? [] : [`${repeated} repeated`]),
    ...(inOrder ? [] : ["out of order"]),
  ];
  return { missing, texts };
}

function expiry(what: string): Promise<never> {
  return new Promise((_, reject) => setTimeout(() => reject(new Error(what)), ATTEMPT_MS).unref());
}

function textOf(error: unknown): string {
  return (error instanceof Error ? error.message : String(error))
    .replaceAll(/\s+/g, " ")
    .slice(0, 160);
}
