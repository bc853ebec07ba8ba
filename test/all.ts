// The test job behind `npm test`: type-check, lint and unused code first, then every test file, a
// total at the end. `npm test -- FILE…` runs those files alone; options of `node --test` pass
// through.
import { spawn } from "node:child_process";
import { globSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { HTTP_VARIANT, LIBRARIES } from "./fakes/http-variant.ts";
import { postgresAvailability, WITHOUT } from "./fakes/postgres.ts";

interface Result {
  readonly name: string;
  readonly ok: boolean;
  readonly seconds: number;
}

/** Many times what the longest one takes: it ends what hangs, and nothing that is only slow. */
const TEST_TIMEOUT_MS = 300_000;
const TEST_OPTIONS = [
  "--test",
  `--test-concurrency=${availableParallelism()}`,
  `--test-timeout=${TEST_TIMEOUT_MS}`,
];
const CHECKS = [
  { name: "types (tsc)", args: ["node_modules/typescript/bin/tsc", "-p", "."] },
  {
    name: "format and lint (biome)",
    args: ["node_modules/@biomejs/biome/bin/biome", "check", "--error-on-warnings"],
  },
  { name: "unused code (knip)", args: ["node_modules/knip/bin/knip.js", "--no-progress"] },
];

/** Walks about the bytes of requests and answers: they run on node's server and undici as well. */
const HTTP_WALKS = [
  "batches",
  "charging",
  "compression",
  "corpus",
  "drain",
  "failover",
  "pipelining",
  "streaming",
  "surface",
  "wire",
].map((name) => `test/walks/${name}.test.ts`);

const passedOn = process.argv.slice(2);
const chosen = passedOn.some((arg) => !arg.startsWith("-"));
process.chdir(join(import.meta.dirname, ".."));
// Each test file is a process of its own: they need not all compile the same modules.
process.env["NODE_COMPILE_CACHE"] ??= join(process.cwd(), "node_modules/.compile-cache");
process.exitCode = report([
  ...(chosen ? [] : await runChecks()),
  await runTests(),
  ...(chosen ? [] : [await runHttpWalks()]),
])
  ? 0
  : 1;

/** The checks run side by side; what one prints is shown when it fails. */
async function runChecks(): Promise<readonly Result[]> {
  heading(`static checks: ${CHECKS.map(({ name }) => name).join(", ")}`);
  return Promise.all(CHECKS.map(({ name, args }) => run(name, args, "when it fails")));
}

async function runTests(): Promise<Result> {
  if (!chosen) providePostgres();
  const files = chosen ? [] : globSync(["test/**/*.test.ts", "bench/**/*.test.ts"]).sort();
  heading(
    chosen
      ? `tests: ${passedOn.join(" ")}`
      : `tests: ${files.length} files, ${availableParallelism()} at a time`,
  );
  if (!chosen && files.length === 0) throw new Error("no test file found");
  return run("tests", [...TEST_OPTIONS, ...passedOn, ...files], "always");
}

/** The walks of HTTP with the service's own HTTP implementations switched off. */
function runHttpWalks(): Promise<Result> {
  heading(`${HTTP_WALKS.length} walks on node's HTTP server and undici`);
  const args = [...TEST_OPTIONS, ...passedOn, ...HTTP_WALKS];
  return run("HTTP walks on libraries", args, "always", { [HTTP_VARIANT]: LIBRARIES });
}

/**
 * Installed once, before the files that need it run side by side; where that cannot be, they are
 * skipped, and say so.
 */
function providePostgres(): void {
  const postgres = postgresAvailability();
  if (postgres.kind === "yes") return;
  process.env[WITHOUT] = postgres.reason;
  console.log(`NOT TESTED on PostgreSQL: ${postgres.reason}`);
}

function run(
  name: string,
  args: readonly string[],
  show: "always" | "when it fails",
  env: Readonly<Record<string, string>> = {},
): Promise<Result> {
  const startedAt = performance.now();
  const { promise, resolve } = Promise.withResolvers<Result>();
  const child = spawn(process.execPath, args, {
    env: { ...process.env, ...env },
    stdio: show === "always" ? "inherit" : ["ignore", "pipe", "pipe"],
  });
  const output: Buffer[] = [];
  child.stdout?.on("data", (chunk: Buffer) => output.push(chunk));
  child.stderr?.on("data", (chunk: Buffer) => output.push(chunk));
  child.once("error", (error) => output.push(Buffer.from(error.message)));
  child.once("close", (code) => {
    const result = { name, ok: code === 0, seconds: (performance.now() - startedAt) / 1000 };
    if (show !== "always") console.log(line(result));
    if (!result.ok) process.stdout.write(Buffer.concat(output));
    resolve(result);
  });
  return promise;
}

function report(results: readonly Result[]): boolean {
  const ok = results.every((result) => result.ok);
  heading(ok ? "all passed" : "FAILED");
  for (const result of results) console.log(line(result));
  return ok;
}

function line({ name, ok, seconds }: Result): string {
  return `${ok ? "passed" : "FAILED"}  ${name}  ${seconds.toFixed(1)} s`;
}

function heading(text: string): void {
  console.log(`\n==== ${text} ====`);
}
