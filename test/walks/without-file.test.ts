// The service where no file says what to serve: every known chain, to this machine only.
import assert from "node:assert/strict";
import { realpathSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { emptyFolder, runCommand } from "../fakes/command.ts";
import { until } from "../fakes/service-fixture.ts";

test("without a file every known chain is served to this machine, and said so", async (t) => {
  const folder = emptyFolder(t);
  const { child, output, ended } = runCommand(t, folder, ["--port", "0"]);
  await until("the greeting", () => output().includes("init` writes it"));
  const base = /svc is ready at (http:\/\/127\.0\.0\.1:\d+)/.exec(output())?.[1] ?? "";
  assert.match(output(), new RegExp(`curl -s ${base}/rpc/ethereum `));
  assert.ok(output().includes(`${base}/dashboard`));
  assert.ok(output().includes(join(realpathSync(folder), "svc.yml")), output());
  assert.equal((await fetch(`${base}/api/health`)).status, 200);
  // Whether its public addresses can be reached is not ours to say; that it is known is.
  const call = { jsonrpc: "2.0", id: 1, method: "eth_chainId", params: [] };
  const codeAt = async (chain: string): Promise<unknown> => {
    const body = JSON.stringify(call);
    const headers = { "content-type": "application/json" };
    const answer = await fetch(`${base}/rpc/${chain}`, { method: "POST", headers, body });
    return ((await answer.json()) as { error?: { data?: { code?: string } } }).error?.data?.code;
  };
  assert.ok([undefined, "not_prepared"].includes((await codeAt("100")) as string | undefined));
  assert.equal(await codeAt("nowhere"), "unknown_chain");
  child.kill("SIGTERM");
  assert.equal(await ended, 0);
});

test("without a file no other machine is served", async (t) => {
  const folder = emptyFolder(t);
  const flag = runCommand(t, folder, ["serve", "--port", "0", "--host", "0.0.0.0"]);
  assert.equal(await flag.ended, 1);
  assert.match(flag.output(), /^command line +--host +must be a loopback address/m);
  const variable = runCommand(t, folder, ["--port", "0"], { HOST: "0.0.0.0" });
  assert.equal(await variable.ended, 1);
  assert.match(variable.output(), /^environment +HOST +must be a loopback address/m);
});

test("a file that is named must be there, and so must one in production", async (t) => {
  const folder = emptyFolder(t);
  for (const [args, env] of [
    [["serve", "--config", "svc.yml"], {}],
    [["serve"], { SVC_CONFIG: "svc.yml" }],
    [["serve"], { NODE_ENV: "production" }],
    [["audit"], {}],
  ] as const) {
    const { ended, output } = runCommand(t, folder, args, env);
    assert.equal(await ended, 1);
    assert.match(output(), /svc\.yml +cannot be read \(ENOENT\)/);
  }
});
