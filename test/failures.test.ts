// The end of a failed run names each failed test and the command that runs its file alone.
import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { describe, it } from "node:test";
import { failureLines, filesFailure } from "./failures.ts";
import { runTogether } from "./file-process.ts";

const FILE = `import { describe, it, test } from "node:test";
describe("outer", () => {
  it("is well", () => {});
  it("fails (seed 12)", () => { throw new Error("broken"); });
});
test("has a name\\nof two lines", async () => { throw new Error("lost"); });
test("is not done", { todo: true }, () => { throw new Error("no failure"); });
`;

describe("what a failed run ends with", () => {
  it("is the names of its failed tests, their places, and how to run the file alone", async (t) => {
    const folder = await mkdtemp(join(tmpdir(), "svc-failures-"));
    t.after(() => rm(folder, { recursive: true }));
    const path = join(folder, "a.test.mjs");
    await writeFile(path, FILE);
    const { NODE_TEST_CONTEXT: _, ...env } = process.env;
    const place = relative(process.cwd(), path);
    const { output } = await runTogether({ name: path, paths: [path] }, env);
    assert.deepEqual(failureLines(filesFailure(path, output)), [
      `FAILED  ${path}`,
      `        ${place}:4: fails (seed 12)`,
      `        ${place}:6: has a name`,
      `        run it alone: npm test -- ${path}`,
    ]);
  });

  it("is what failed and the last line of a file that had to be ended, with the variables it ran with", () => {
    const output =
      "▶ b\n  ✖ c (2.5ms)\n✔ a (1ms)\ntest/a.test.ts was killed: it did not end within 600 s\n";
    assert.deepEqual(failureLines(filesFailure("test/a.test.ts", output, { HTTP: "libraries" })), [
      "FAILED  test/a.test.ts",
      "        c",
      "        test/a.test.ts was killed: it did not end within 600 s",
      "        run it alone: HTTP=libraries npm test -- test/a.test.ts",
    ]);
  });

  it("is a bounded list", () => {
    const failed = (n: number): string => `test at a.ts:${n}:1\n✖ test ${n} (1.5ms)\n  Error: x\n`;
    const output = `✖ failing tests:\n\n${Array.from({ length: 30 }, (_, n) => failed(n)).join("\n")}`;
    const lines = failureLines(filesFailure("a.ts", output));
    assert.equal(lines.length, 23);
    assert.deepEqual(lines.slice(-3, -1), ["        a.ts:19: test 19", "        and 10 more"]);
  });
});
