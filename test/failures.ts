// What failed in a run and how to run it alone: the last lines of its output, since what a failed
// test printed stands far above them.

/** A failed test as node's reporter names it. */
export interface FailedTest {
  /** The first line of its name. */
  readonly name: string;
  readonly line: number;
}

/** A test file that failed, or a check. */
export interface Failure {
  /** A file's path, or a check's name. */
  readonly name: string;
  /** The command that runs it alone. */
  readonly alone: string;
  readonly tests: readonly FailedTest[];
  /** Told where no test failed: a file that was killed, for example. */
  readonly lastLine: string;
}

/** Names shown of one file. */
const SHOWN = 20;
const SUMMARY = "✖ failing tests:";
const FAILED_TEST = /^test at .+:(\d+):\d+\n✖ (.*?)(?: \([\d.]+ms\))?$/gm;

/** The failure of a test file, read from what the file's process printed. */
export function fileFailure(
  path: string,
  output: string,
  variables: Readonly<Record<string, string>> = {},
): Failure {
  const summary = output.lastIndexOf(SUMMARY);
  const tests = summary === -1 ? [] : failedTests(output.slice(summary));
  const settings = Object.entries(variables).map(([name, value]) => `${name}=${value} `);
  return {
    name: path,
    alone: `${settings.join("")}npm test -- ${path}`,
    tests,
    lastLine: lastLineOf(output),
  };
}

/** The failure of a static check, read from what it printed. */
export function checkFailure(name: string, output: string): Failure {
  return { name, alone: "npm run check", tests: [], lastLine: lastLineOf(output) };
}

function lastLineOf(output: string): string {
  return output.trimEnd().split("\n").at(-1) ?? "";
}

function failedTests(summary: string): readonly FailedTest[] {
  return [...summary.matchAll(FAILED_TEST)].map(([, line = "", name = ""]) => ({
    name,
    line: Number(line),
  }));
}

/** Lines that tell of a failure. */
export function failureLines({ name, alone, tests, lastLine }: Failure): readonly string[] {
  const shown = tests.slice(0, SHOWN).map((test) => `        line ${test.line}: ${test.name}`);
  const more = tests.length > SHOWN ? [`        and ${tests.length - SHOWN} more`] : [];
  return [
    `FAILED  ${name}`,
    ...(tests.length === 0 ? [`        ${lastLine}`] : [...shown, ...more]),
    `        run it alone: ${alone}`,
  ];
}
