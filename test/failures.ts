// What failed in a run and how to run it alone: the last lines of its output, since what a failed
// test printed stands far above them.

/** A failed test as node's reporter names it. */
export interface FailedTest {
  /** The first line of its name. */
  readonly name: string;
  /** `PATH:LINE`; null = the process was ended before it told. */
  readonly place: string | null;
}

/** Test files that failed, or a check. */
export interface Failure {
  /** A file's path, a pattern of several, or a check's name. */
  readonly name: string;
  /** The command that runs it alone. */
  readonly alone: string;
  readonly tests: readonly FailedTest[];
  /** Told where the file did not list its failed tests: it was killed, for example. */
  readonly lastLine: string | null;
}

/** Names shown of one file. */
const SHOWN = 20;
/** As a test ends; the places of those that failed follow when the file ends. */
const ENDED_TEST = /^ *✖ (.*?)(?: \([\d.]+ms\))?$/gm;
const SUMMARY = "✖ failing tests:";
const FAILED_TEST = /^test at (.+:\d+):\d+\n✖ (.*?)(?: \([\d.]+ms\))?$/gm;

/** The failure of test files, read from what their process printed. */
export function filesFailure(
  name: string,
  output: string,
  variables: Readonly<Record<string, string>> = {},
): Failure {
  const summary = output.lastIndexOf(SUMMARY);
  const isListed = summary !== -1;
  const tests = isListed ? failedTests(output.slice(summary)) : endedTests(output);
  const settings = Object.entries(variables).map(([name, value]) => `${name}=${value} `);
  return {
    name,
    alone: `${settings.join("")}npm test -- ${name}`,
    tests,
    lastLine: isListed && tests.length > 0 ? null : lastLineOf(output),
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
  return [...summary.matchAll(FAILED_TEST)].map(([, place = "", name = ""]) => ({ name, place }));
}

function endedTests(output: string): readonly FailedTest[] {
  return [...output.matchAll(ENDED_TEST)].map(([, name = ""]) => ({ name, place: null }));
}

/** Lines that tell of a failure. */
export function failureLines({ name, alone, tests, lastLine }: Failure): readonly string[] {
  const shown = tests
    .slice(0, SHOWN)
    .map((test) => `        ${test.place === null ? "" : `${test.place}: `}${test.name}`);
  const more = tests.length > SHOWN ? [`        and ${tests.length - SHOWN} more`] : [];
  return [
    `FAILED  ${name}`,
    ...shown,
    ...more,
    ...(lastLine === null ? [] : [`        ${lastLine}`]),
    `        run it alone: ${alone}`,
  ];
}
