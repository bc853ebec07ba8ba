// `svc init` as a process: the file that it writes, and what it refuses.
import assert from "node:assert/strict";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { accepted } from "../config/config-fixture.ts";
import { emptyFolder, runCommand } from "../fakes/command.ts";

test("svc init writes a file that is valid, and overwrites none", async (t) => {
  const folder = emptyFolder(t);
  const file = join(folder, "svc.yml");
  const first = runCommand(t, folder, [
    "init",
    "--chains",
    "1,base,Arb",
    "--port",
    "4100",
    "--hosted",
  ]);
  assert.equal(await first.ended, 0, first.output());
  assert.match(first.output(), /next: svc serve\n/);
  const config = accepted(readFileSync(file));
  assert.deepEqual(
    config.chains.map(({ chainName }) => chainName),
    ["ethereum", "base", "arbitrum"],
  );
  assert.equal(config.server.port, 4_100);
  assert.notEqual(config.hosted, null);
  writeFileSync(file, "kept");
  const second = runCommand(t, folder, ["init"]);
  assert.equal(await second.ended, 1);
  assert.match(second.output(), /svc\.yml exists; --force overwrites it/);
  assert.equal(readFileSync(file, "utf8"), "kept");
  const forced = runCommand(t, folder, ["init", "--force", "--yes"]);
  assert.equal(await forced.ended, 0);
  assert.notEqual(accepted(readFileSync(file)).onDemand, null);
});

test("svc init refuses what it does not know, and repeats no key", async (t) => {
  const folder = emptyFolder(t);
  const key = "a1b2c3d4e5f6a7b8c9";
  for (const [args, message] of [
    [["--chains", "nowhere"], /no known chain is called nowhere/],
    [["--chains", "999"], /several networks/],
    [["--port", "70000"], /0 to 65535/],
    [["--vendors", "nobody"], /alchemy/],
    [["--vendors", `alchemy=${key}`], /name of an environment variable.*ALCHEMY_KEY/],
  ] as const) {
    const { ended, output } = runCommand(t, folder, ["init", ...args]);
    assert.equal(await ended, 1);
    assert.match(output(), message);
    assert.ok(!output().includes(key));
  }
  assert.ok(!existsSync(join(folder, "svc.yml")));
});
