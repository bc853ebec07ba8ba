// Runs test files as a process: a long one has one of its own, short ones of a folder share one.
// Node's own runner ends no file whose tests have all passed and whose process goes on, by a timer
// of a client for example: such a file would hold the whole job for ever.
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

/** Test files that run as one process. */
export interface TestFiles {
  /** The file's path, or a pattern of several. */
  readonly name: string;
  /** From the repository's root. */
  readonly paths: readonly string[];
}

/** What test files came to. */
export interface FilesResult {
  /** False as well for a file without a test, and for one that had to be ended. */
  readonly ok: boolean;
  readonly tests: number;
  readonly skipped: number;
  readonly seconds: number;
  /** What it printed, with its end in words where that was not a normal one. */
  readonly output: string;
}

/** Options of node for the process of a test file. */
export const FILE_OPTIONS: readonly string[] = [
  "--expose-internals",
  "--disable-warning=internal/test/binding",
  `--import=${new URL("../src/module-hooks.ts", import.meta.url)}`,
  `--import=${new URL("untracked-promises.ts", import.meta.url)}`,
  `--import=${new URL("property-seed.ts", import.meta.url)}`,
];

/** Many times what the longest file takes, also on a machine that does much else. */
const LIMIT_MS = 600_000;
const SEVERAL_LIMIT_MS = 1_200_000;
/** A process that the file started and left holds the pipes of its output open. */
const LAST_OUTPUT_MS = 1_000;
/** Kept of what a file prints, in characters; the last ones. */
const MAX_OUTPUT = 1_000_000;

/** Runs the files, one after the other; a process that takes too long is killed. */
export async function runTogether(
  { name, paths }: TestFiles,
  env: NodeJS.ProcessEnv,
  limitMs = paths.length === 1 ? LIMIT_MS : SEVERAL_LIMIT_MS,
): Promise<FilesResult> {
  const startedAt = performance.now();
  const folder = mkdtempSync(join(tmpdir(), "svc-tests-"));
  const args = [...FILE_OPTIONS, "--test-reporter=spec", entryIn(folder, paths)];
  const child = spawn(process.execPath, args, {
    stdio: ["ignore", "pipe", "pipe"],
    env,
  });
  const printed = textOf(child);
  let killed = false;
  const limit = setTimeout(() => {
    killed = true;
    child.kill("SIGKILL");
  }, limitMs);
  const end = await endOf(child);
  clearTimeout(limit);
  rmSync(folder, { recursive: true, force: true });
  const output = printed();
  const tests = countOf(output, "tests");
  const faults = [
    ...(killed ? [`${name} was killed: it did not end within ${limitMs / 1000} s`] : []),
    ...(tests === null ? [`${name} ended (${end}) without a count of its tests`] : []),
    ...(tests === 0 ? [`${name} has no test`] : []),
  ];
  return {
    ok: end === "0" && faults.length === 0,
    tests: tests ?? 0,
    skipped: countOf(output, "skipped") ?? 0,
    seconds: (performance.now() - startedAt) / 1000,
    output: [output, ...faults.map((fault) => `${fault}\n`)].join(""),
  };
}

/**
 * The module that a process runs: the file itself, or one that imports all. The runner ends a
 * process whose tests are all done, also where the next file would register more a moment later.
 */
function entryIn(folder: string, paths: readonly string[]): string {
  const [path = "", ...more] = paths;
  if (more.length === 0) return path;
  const imports = paths.map((each) => `import ${JSON.stringify(pathToFileURL(each).href)};\n`);
  const entry = join(folder, "several.test.mjs");
  writeFileSync(entry, imports.join(""));
  return entry;
}

/** The exit code, the signal or the error that ended the process, when its output is read. */
async function endOf(child: ChildProcess): Promise<string> {
  const end = Promise.withResolvers<string>();
  const closed = Promise.withResolvers<void>();
  child.once("error", (error) => end.resolve(error.message));
  child.once("exit", (code, signal) => end.resolve(String(code ?? signal)));
  child.once("close", () => closed.resolve());
  const text = await end.promise;
  const patience = setTimeout(closed.resolve, LAST_OUTPUT_MS);
  await closed.promise;
  clearTimeout(patience);
  child.stdout?.destroy();
  child.stderr?.destroy();
  return text;
}

function textOf(child: ChildProcess): () => string {
  let text = "";
  for (const stream of [child.stdout, child.stderr])
    stream?.setEncoding("utf8").on("data", (chunk: string) => {
      text = (text + chunk).slice(-MAX_OUTPUT);
    });
  return () => text;
}

/** The last line that the reporter wrote of this count. */
function countOf(output: string, name: "tests" | "skipped"): number | null {
  const last = [...output.matchAll(new RegExp(`^ℹ ${name} (\\d+)$`, "gm"))].at(-1);
  return last === undefined ? null : Number(last[1]);
}
