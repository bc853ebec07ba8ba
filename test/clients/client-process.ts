// A client program as a process of its own: starts it, says when to check, gathers its results.
import { type ChildProcess, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import type { Program } from "./programs.ts";
import { type Expected, FEATURES, type Result, ROUNDS, type Task, type Wire } from "./protocol.ts";

/** What a client told of one thing over one wire. */
export type Row = Result & { readonly client: string };

export const WIRES: readonly Wire[] = ["http", "ws"];
/** What clients watch while a node is killed. */
export const WATCHED = ["blocks", "logs", "pending"] as const;
/** Longest time that one program may run. */
export const CLIENT_MS = 900_000;

/** A client program that runs. */
export interface Running {
  /** Its watchers are there, or it has ended. */
  readonly ready: Promise<void>;
  readonly check: (expected: Expected) => void;
  readonly results: Promise<readonly Row[]>;
}

/** Starts a program that was made ready. */
export function start(program: Program, task: Task): Running {
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
      if (problem !== "") process.stdout.write(`${program.name}: ${problem}\n`);
      resolve([...rows, ...untold(program.name, rows, featuresOf(task), code)]);
    });
  });
  return {
    ready,
    results,
    check: (expected) => void child.stdin?.write(`CHECK ${JSON.stringify(expected)}\n`),
  };
}

function featuresOf({ failover, rounds }: Task): readonly Row["feature"][] {
  if (rounds.length > 0) return ROUNDS;
  return failover ? WATCHED : FEATURES;
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
