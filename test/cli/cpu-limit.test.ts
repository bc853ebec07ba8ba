// How many CPUs a container allows: the files of both versions of cgroups, limits of parents,
// fractions, and files that are missing or say nothing.
import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir, totalmem } from "node:os";
import { dirname, join } from "node:path";
import { type TestContext, test } from "node:test";
import { cpuLimit, machineLimits, workersFor } from "../../src/cli/worker-count.ts";

async function limitWith(
  t: TestContext,
  files: Readonly<Record<string, string>>,
): Promise<number | null> {
  const root = await mkdtemp(join(tmpdir(), "svc-cgroup-"));
  t.after(() => rm(root, { recursive: true, force: true }));
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(root, path)), { recursive: true });
    await writeFile(join(root, path), text);
  }
  return cpuLimit(root);
}

const PROC = "proc/self/cgroup";
const SYS = "sys/fs/cgroup";

test("version 2: the limit of the process, of a parent, or of the mount that a container sees", async (t) => {
  const one = { [PROC]: "0::/pod/one\n" };
  assert.equal(await limitWith(t, { ...one, [`${SYS}/pod/one/cpu.max`]: "150000 100000\n" }), 1.5);
  assert.equal(
    await limitWith(t, {
      ...one,
      [`${SYS}/pod/one/cpu.max`]: "max 100000\n",
      [`${SYS}/pod/cpu.max`]: "200000 100000\n",
    }),
    2,
  );
  assert.equal(await limitWith(t, { [PROC]: "0::/\n", [`${SYS}/cpu.max`]: "100000 100000\n" }), 1);
  assert.equal(await limitWith(t, { ...one, [`${SYS}/cpu.max`]: "50000 100000\n" }), 0.5);
});

test("version 1: under the name of the controllers or of cpu alone; the smallest limit counts", async (t) => {
  const files = (mount: string, path: string, quota: string) => ({
    [`${SYS}/${mount}${path}/cpu.cfs_quota_us`]: `${quota}\n`,
    [`${SYS}/${mount}${path}/cpu.cfs_period_us`]: "100000\n",
  });
  const both = { [PROC]: "7:memory:/pod\n4:cpu,cpuacct:/pod\n" };
  assert.equal(await limitWith(t, { ...both, ...files("cpu,cpuacct", "/pod", "400000") }), 4);
  assert.equal(
    await limitWith(t, {
      [PROC]: "4:cpu:/pod\n",
      ...files("cpu", "/pod", "400000"),
      ...files("cpu", "", "300000"),
    }),
    3,
  );
});

test("no limit: none is set, files are missing or say nothing", async (t) => {
  assert.equal(await limitWith(t, {}), null);
  assert.equal(await limitWith(t, { [PROC]: "0::/pod\n" }), null);
  assert.equal(await limitWith(t, { [PROC]: "0::/\n", [`${SYS}/cpu.max`]: "max 100000\n" }), null);
  const unlimited = { [`${SYS}/cpu/cpu.cfs_quota_us`]: "-1\n" };
  assert.equal(
    await limitWith(t, {
      [PROC]: "1:cpu:/\nnonsense\n",
      ...unlimited,
      [`${SYS}/cpu/cpu.cfs_period_us`]: "100000\n",
    }),
    null,
  );
  for (const text of ["", "a b\n", "100000 0\n", "0 100000\n", "100000\n"])
    assert.equal(await limitWith(t, { [PROC]: "0::/\n", [`${SYS}/cpu.max`]: text }), null, text);
});

test("one worker for each whole core that there is memory for, at least one and at most eight", () => {
  const GB = 1e9;
  const counts = [
    [4, null, 64 * GB],
    [16, null, 64 * GB],
    [4, 1, 64 * GB],
    [4, 0.5, 64 * GB],
    [4, 2.9, 64 * GB],
    [2, 8, 64 * GB],
    [8, null, 0.4 * GB],
    [8, null, 1.1 * GB],
    [8, 3, 2 * GB],
    [8, null, 4 * GB],
  ] as const;
  assert.deepEqual(
    counts.map(([cores, cpus, memoryBytes]) => workersFor({ cores, cpus, memoryBytes })),
    [4, 8, 1, 1, 2, 2, 1, 2, 3, 8],
  );
  assert.ok(machineLimits().memoryBytes <= totalmem());
});
