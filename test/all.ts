// The test job. `npm test`: types, lint and unused code beside every test file, the longest ones
// first, and a table of what each part took. `npm run check`: the static checks alone.
// `npm run unit`: the fast parts alone; with `-- --coverage` they are counted by node, whose table
// ends with lines, branches and functions of all files of `src` that they load. `npm test -- FILE…`
// runs those files alone; options of `node --test` pass through.
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { existsSync, globSync, readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { buildConsole, isConsoleBuilt } from "../bin/build-console.ts";
import { arePackagesBundled } from "../bin/build-packages.ts";
import { checkFailure, type Failure, failureLines, filesFailure } from "./failures.ts";
import { HTTP_VARIANT, LIBRARIES } from "./fakes/http-variant.ts";
import { postgresAvailability, SERVER_URL, startCluster, WITHOUT } from "./fakes/postgres.ts";
import { makeTemplate } from "./fakes/stores.ts";
import { FILE_OPTIONS, type FilesResult, runTogether, type TestFiles } from "./file-process.ts";
import { HTTP_WALKS, inOrder, isUnit, LONGEST_FIRST, MEASURING_MEMORY, partOf } from "./parts.ts";
import { withTemporaryFolder } from "./temporary-folder.ts";

interface Result {
  readonly name: string;
  readonly ok: boolean;
  readonly seconds: number;
  /** Null = it is no run of test files. */
  readonly parts: readonly Part[] | null;
  readonly failures: readonly Failure[];
}

/** Test files, the part that they count to, and the variables that their process has besides. */
interface TestRun extends TestFiles {
  readonly part: string;
  readonly variables: Readonly<Record<string, string>>;
}

/** What the test files of one folder came to. */
interface Part {
  readonly name: string;
  readonly files: number;
  readonly tests: number;
  readonly skipped: number;
  /** Added up over its files, which run side by side. */
  readonly seconds: number;
}

/** Many times what the longest test takes, also on a machine that does much else. */
const TEST_TIMEOUT_MS = 600_000;
/**
 * Test files wait for timers, sockets and chains for more than half of their time: with two a core,
 * a fifth of the run was idle.
 */
const FILES_AT_ONCE = availableParallelism() * 3 + 1;
const FILES_A_PROCESS = 12;
const TEST_FILE = ".test.ts";
/** What a file sets up for all of its tests would be there for all files of its process. */
const SET_UP = /^(?:(?:before|after)(?:Each)?\(|const .* = await )/m;
/** V8 counts in the sources as they are, since types are stripped without moving anything. */
const COVERAGE = ["--experimental-test-coverage", "--test-coverage-include=src/**"];
const SLOWEST_SHOWN = 20;
/** Characters of a failed file's output. */
const SHOWN_AGAIN = 6_000;
const CHECKS = [
  { name: "types (tsc)", args: ["node_modules/typescript/bin/tsc", "-p", "."] },
  {
    name: "types of the console (tsc)",
    args: ["node_modules/typescript/bin/tsc", "-p", "console"],
  },
  {
    name: "format and lint (biome)",
    args: ["node_modules/@biomejs/biome/bin/biome", "check", "--error-on-warnings"],
  },
  { name: "unused code (knip)", args: ["node_modules/knip/bin/knip.js", "--no-progress"] },
];

process.chdir(join(import.meta.dirname, ".."));
// The processes of test files need not all compile the same modules.
process.env["NODE_COMPILE_CACHE"] ??= join(process.cwd(), "node_modules/.compile-cache");
bundlePackages();
process.exitCode = report(await resultsOf(process.argv.slice(2))) ? 0 : 1;

async function resultsOf(args: readonly string[]): Promise<readonly Result[]> {
  const [first, second] = args;
  if (first === "check") return runChecks();
  if (first === "unit" && second === "--coverage")
    return [await runChosen([...COVERAGE, ...units()])];
  if (first === "unit") return [await runFiles("unit tests", unitRuns())];
  if (first !== undefined) return [await withTemporaryFolder(() => runChosen(args))];
  await provideConsole();
  const [checks, tests] = await Promise.all([
    runChecks(),
    withTemporaryFolder(() => withPostgres(runAll)),
  ]);
  return [...checks, tests];
}

/** The longest files first, a process each; then the others, several files a process. */
function runAll(): Promise<Result> {
  const files = testFiles().filter((path) => !isUnit(path));
  const [longest, others] = [LONGEST_FIRST, files.slice(LONGEST_FIRST.length)];
  const short = [...unitRuns(), ...sharedRuns(others, FILES_A_PROCESS)];
  const planned = [longest, ...short.map(({ paths }) => paths)].flat().sort();
  assert.deepEqual(planned, [...testFiles()].sort(), "each test file runs once");
  // What ends last should be short.
  const runs = [...short, ...httpWalks()].sort((a, b) => b.paths.length - a.paths.length);
  return runFiles("tests", [...longest.map(asIs), ...runs]);
}

/** The checks run side by side; the output of one is shown when it fails. */
async function runChecks(): Promise<readonly Result[]> {
  heading(`static checks: ${CHECKS.map(({ name }) => name).join(", ")}`);
  return Promise.all(CHECKS.map(({ name, args }) => run(name, args, "when it fails")));
}

/** Every test file. Throws where there is none, and where the order names one that is gone. */
function testFiles(): readonly string[] {
  const files = globSync(["test/**/*.test.ts", "bench/**/*.test.ts"]);
  if (files.length === 0) throw new Error("no test file found");
  for (const path of [...LONGEST_FIRST, ...HTTP_WALKS, ...MEASURING_MEMORY])
    if (!existsSync(path)) throw new Error(`test/parts.ts names ${path}, which does not exist`);
  return inOrder(files);
}

function units(): readonly string[] {
  return testFiles().filter(isUnit);
}

/** The unit tests of a folder share a process. */
function unitRuns(): readonly TestRun[] {
  return sharedRuns(units(), Number.POSITIVE_INFINITY);
}

/**
 * Files of one folder in processes of so many: half of what a short one would take by itself is the
 * start of its process and the loading of the service.
 */
function sharedRuns(paths: readonly string[], atMost: number): readonly TestRun[] {
  const [apart, sharing] = [paths.filter(isApart), paths.filter((path) => !isApart(path))];
  const folders = Map.groupBy(sharing, (path) => path.split("/").slice(0, 2).join("/"));
  const runs = [...folders].flatMap(([folder, inFolder]) =>
    chunksOf(inFolder, atMost).map((chunk) => ({
      ...asIs(chunk[0] ?? ""),
      name: patternOf(folder, chunk, chunk.length === inFolder.length),
      paths: chunk,
    })),
  );
  return [...runs, ...apart.map(asIs)];
}

/** A pattern that names these files, as short as may be. */
function patternOf(folder: string, paths: readonly string[], areAll: boolean): string {
  if (paths.length === 1) return paths[0] ?? "";
  if (areAll) return `'${folder}/**/*${TEST_FILE}'`;
  const names = paths.map((path) => path.slice(folder.length + 1, -TEST_FILE.length));
  return `'${folder}/{${names.join(",")}}${TEST_FILE}'`;
}

/** Parts of about the same length. */
function chunksOf<T>(list: readonly T[], atMost: number): readonly (readonly T[])[] {
  const parts = Math.max(1, Math.ceil(list.length / atMost));
  const at = (part: number): number => Math.round((part * list.length) / parts);
  return Array.from({ length: parts }, (_, part) => list.slice(at(part), at(part + 1)));
}

function isApart(path: string): boolean {
  return MEASURING_MEMORY.has(path) || SET_UP.test(readFileSync(path, "utf8"));
}

/** Test processes load packages from their bundles; without them they only take longer. */
function bundlePackages(): void {
  if (arePackagesBundled()) return;
  spawnSync(process.execPath, ["bin/build-packages.ts"], { stdio: "inherit" });
}

/** Built once, before the files that open it in a browser run side by side. */
async function provideConsole(): Promise<void> {
  if (!isConsoleBuilt()) await buildConsole();
}

/** What the caller named, through `node --test`; only options = with every test file. */
function runChosen(args: readonly string[]): Promise<Result> {
  heading(`tests: ${args.join(" ")}`);
  const files = args.some((arg) => !arg.startsWith("-")) ? [] : testFiles();
  const options = [
    ...FILE_OPTIONS,
    "--test",
    `--test-concurrency=${FILES_AT_ONCE}`,
    `--test-timeout=${TEST_TIMEOUT_MS}`,
  ];
  return run("tests", [...options, ...args, ...files], "always");
}

function asIs(path: string): TestRun {
  return { name: path, paths: [path], part: partOf(path), variables: {} };
}

/** The walks of HTTP with the service's own HTTP implementations switched off. */
function httpWalks(): readonly TestRun[] {
  const variables = { [HTTP_VARIANT]: LIBRARIES };
  const part = "walks, libraries";
  const runs = sharedRuns(HTTP_WALKS, FILES_A_PROCESS / 3);
  return runs.map((run) => ({ ...run, part, variables }));
}

/** Runs test files in this order, some at a time, and shows what each printed when it ends. */
async function runFiles(name: string, runs: readonly TestRun[]): Promise<Result> {
  heading(`${name}: ${runs.length} processes, ${FILES_AT_ONCE} at a time`);
  const startedAt = performance.now();
  const results: (FilesResult & TestRun)[] = [];
  const waiting = [...runs];
  const runWaiting = async (): Promise<void> => {
    for (let run = waiting.shift(); run !== undefined; run = waiting.shift()) {
      const env = { ...process.env, ...run.variables };
      const result = { ...run, ...(await runTogether(run, env)) };
      console.log(`\n${result.output}${result.ok ? "passed" : "FAILED"}: ${nameOf(result)}`);
      results.push(result);
    }
  };
  await Promise.all(Array.from({ length: FILES_AT_ONCE }, runWaiting));
  showSlowest(results);
  showFailed(results);
  const seconds = (performance.now() - startedAt) / 1000;
  const failures = results
    .filter(({ ok }) => !ok)
    .map(({ name, output, variables }) => filesFailure(name, output, variables));
  return { name, ok: failures.length === 0, seconds, parts: partsOf(results), failures };
}

function nameOf({ name, part }: TestRun): string {
  return `${name} (${part})`;
}

function partsOf(results: readonly (FilesResult & TestRun)[]): readonly Part[] {
  const parts = new Map<string, Part>();
  for (const { part: name, paths, tests, skipped, seconds } of results) {
    const before = parts.get(name) ?? { name, files: 0, tests: 0, skipped: 0, seconds: 0 };
    parts.set(name, {
      name,
      files: before.files + paths.length,
      tests: before.tests + tests,
      skipped: before.skipped + skipped,
      seconds: before.seconds + seconds,
    });
  }
  return [...parts.values()].sort((left, right) => right.seconds - left.seconds);
}

function showSlowest(results: readonly (FilesResult & TestRun)[]): void {
  heading("slowest");
  const slowest = [...results].sort((left, right) => right.seconds - left.seconds);
  for (const result of slowest.slice(0, SLOWEST_SHOWN))
    console.log(`${result.seconds.toFixed(1).padStart(7)} s  ${nameOf(result)}`);
}

/** What failed files printed stands far above: it is shown again where the reader looks. */
function showFailed(results: readonly (FilesResult & TestRun)[]): void {
  for (const result of results) {
    if (result.ok) continue;
    heading(`FAILED: ${nameOf(result)}`);
    console.log(result.output.slice(-SHOWN_AGAIN));
  }
}

/**
 * Runs with one PostgreSQL server for all files, installed where that is allowed; where none can be
 * had, the files that need one are skipped, and say so.
 */
async function withPostgres<T>(work: () => Promise<T>): Promise<T> {
  if (process.env[SERVER_URL]) return work();
  const postgres = postgresAvailability();
  if (postgres.kind === "no") {
    process.env[WITHOUT] = postgres.reason;
    console.log(`NOT TESTED on PostgreSQL: ${postgres.reason}`);
    return work();
  }
  const server = await startCluster({ durable: false });
  process.env[SERVER_URL] = server.urlOf("postgres");
  try {
    await makeTemplate(server);
    return await work();
  } finally {
    await server.stop();
  }
}

function run(
  name: string,
  args: readonly string[],
  show: "always" | "when it fails",
): Promise<Result> {
  const startedAt = performance.now();
  const { promise, resolve } = Promise.withResolvers<Result>();
  const child = spawn(process.execPath, args, {
    stdio: show === "always" ? "inherit" : ["ignore", "pipe", "pipe"],
  });
  const output: Buffer[] = [];
  child.stdout?.on("data", (chunk: Buffer) => output.push(chunk));
  child.stderr?.on("data", (chunk: Buffer) => output.push(chunk));
  child.once("error", (error) => output.push(Buffer.from(error.message)));
  child.once("close", (code) => {
    const seconds = (performance.now() - startedAt) / 1000;
    const text = Buffer.concat(output).toString();
    const failures = code === 0 || show === "always" ? [] : [checkFailure(name, text)];
    const result = { name, ok: code === 0, seconds, parts: null, failures };
    if (show !== "always") console.log(line(result));
    if (!result.ok) process.stdout.write(text);
    resolve(result);
  });
  return promise;
}

function report(results: readonly Result[]): boolean {
  const ok = results.every((result) => result.ok);
  heading(ok ? "all passed" : "FAILED");
  for (const result of results) {
    console.log(line(result));
    for (const part of result.parts ?? []) console.log(partLine(part));
  }
  const failures = results.flatMap((result) => result.failures);
  if (failures.length > 0) heading("what failed");
  for (const failure of failures) console.log(failureLines(failure).join("\n"));
  return ok;
}

function line({ name, ok, seconds }: Result): string {
  return `${ok ? "passed" : "FAILED"}  ${name}  ${seconds.toFixed(1)} s`;
}

function partLine({ name, files, tests, skipped, seconds }: Part): string {
  const columns = [
    `        ${name.padEnd(16)}`,
    `${files} files`.padStart(10),
    `${tests} tests`.padStart(12),
    `${seconds.toFixed(1)} s`.padStart(10),
  ];
  return `${columns.join("")}${skipped === 0 ? "" : `  (${skipped} skipped)`}`;
}

function heading(text: string): void {
  console.log(`\n==== ${text} ====`);
}
