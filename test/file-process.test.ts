// The test job ends whatever a test file does, and tells of it.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { type FilesResult, runTogether } from "./file-process.ts";

const IMPORT = 'import { test } from "node:test";\n';

describe("a test file as a process", () => {
  let folder = "";
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "svc-file-"));
  });
  after(() => rm(folder, { recursive: true }));

  async function resultOf(body: string, limitMs = 120_000): Promise<FilesResult> {
    const path = join(folder, `${randomUUID()}.test.mjs`);
    await writeFile(path, IMPORT + body);
    const { NODE_TEST_CONTEXT: _, ...env } = process.env;
    return runTogether({ name: path, paths: [path] }, env, limitMs);
  }

  it("counts what passed and what was skipped", async () => {
    const body = 'test("a", () => {});\ntest("b", { skip: "not here" }, () => {});';
    const { ok, tests, skipped } = await resultOf(body);
    assert.deepEqual([ok, tests, skipped], [true, 2, 1]);
  });

  it("runs several files, and counts the tests of all, however the first one fares", async () => {
    const bodies = ['test("a", () => { throw new Error("broken"); });', 'test("b", () => {});'];
    const paths = bodies.map(() => join(folder, `${randomUUID()}.test.mjs`));
    await Promise.all(paths.map((path, n) => writeFile(path, `${IMPORT}${bodies[n]}`)));
    const { NODE_TEST_CONTEXT: _, ...env } = process.env;
    const { ok, tests, output } = await runTogether({ name: "both", paths }, env);
    assert.deepEqual([ok, tests], [false, 2]);
    assert.match(output, /broken/);
  });

  it("fails with a failed test, and shows it", async () => {
    const { ok, output } = await resultOf('test("a", () => { throw new Error("broken"); });');
    assert.equal(ok, false);
    assert.match(output, /broken/);
  });

  for (const [what, body] of [
    ["a rejection that nobody handles", "Promise.reject(new Error('lost'));"],
    ["an error thrown later", "setImmediate(() => { throw new Error('lost'); });"],
    ["an error thrown after a wait", "(async () => { await 0; throw new Error('lost'); })();"],
  ] as const)
    it(`fails with ${what}, and shows it`, async () => {
      const wait = "await new Promise((resolve) => setTimeout(resolve, 20));";
      const { ok, output } = await resultOf(`test("a", async () => { ${body} ${wait} });`);
      assert.equal(ok, false);
      assert.match(output, /lost/);
    });

  it("makes no promise slow: the runner does not track them", async () => {
    const body =
      'import { executionAsyncId } from "node:async_hooks";\n' +
      'test("a", async () => { await 0; console.log("id", executionAsyncId()); });';
    assert.match((await resultOf(body)).output, /^id 0$/m);
  });

  it("fails where there is no test, and where the process ends in the middle", async () => {
    const empty = await resultOf("");
    assert.equal(empty.ok, false);
    assert.match(empty.output, /has no test/);
    const ended = await resultOf('test("a", () => process.kill(process.pid, "SIGKILL"));');
    assert.equal(ended.ok, false);
    assert.match(ended.output, /ended \(SIGKILL\) without a count/);
  });

  for (const [what, body] of [
    ["waits for ever after its tests", 'test("a", () => {}); setInterval(() => {}, 1_000);'],
    [
      "never yields",
      'const started = process.ppid; process.on("SIGTERM", () => {});' +
        'test("a", async () => { while (process.ppid === started) await 0; });',
    ],
  ] as const)
    it(`is killed at its limit when it ${what}`, async () => {
      const { ok, output } = await resultOf(body, 2_000);
      assert.equal(ok, false);
      assert.match(output, /was killed: it did not end within 2 s/);
    });

  it("ends where a process that it started and left holds its output open", async () => {
    const child =
      'import { spawn } from "node:child_process";\n' +
      'test("a", () => { const left = spawn(process.execPath, ["-e", "setInterval(() => {}, 100)"],' +
      ' { stdio: "inherit" }); console.log("left", left.pid); left.unref(); });';
    const { ok, output } = await resultOf(child);
    process.kill(Number(/left (\d+)/.exec(output)?.[1]), "SIGKILL");
    assert.equal(ok, true);
  });
});
