// From the file of another gateway to a running service by the commands that a person types: no
// output holds a key, and the key reaches the provider.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { startProcess } from "../fakes/process.ts";
import { scriptedUpstream } from "../fakes/upstream.ts";

const MAIN = new URL("../../src/main.ts", import.meta.url).pathname;
const KEY = "k3yOfTheWalk5pQ7rS9tU1";

/** Runs a command of svc; its exit code and everything that it prints. */
function run(args: readonly string[], env: Readonly<Record<string, string>> = {}) {
  const child = spawn(process.execPath, [MAIN, ...args], {
    env: { ...process.env, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const printed = { out: "", error: "" };
  child.stdout.on("data", (chunk: Buffer) => {
    printed.out += chunk.toString();
  });
  child.stderr.on("data", (chunk: Buffer) => {
    printed.error += chunk.toString();
  });
  return new Promise<{ code: number | null; out: string; error: string }>((resolve) =>
    child.once("close", (code) => resolve({ code, ...printed })),
  );
}

async function folder(t: TestContext): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), "svc-import-"));
  t.after(() => rm(path, { recursive: true, force: true }));
  return path;
}

test("import, check, probe and serve", async (t) => {
  const node = await scriptedUpstream((_, reply) => reply.result('"0x2a"'));
  t.after(() => node.close());
  const path = await folder(t);
  const [old, file, variables] = ["erpc.yaml", "svc.yml", "svc.env"].map((name) =>
    join(path, name),
  );
  assert.ok(old !== undefined && file !== undefined && variables !== undefined);
  // The chain of the provider is not said: it is asked for it.
  const project = { id: "main", upstreams: [{ endpoint: `${node.url}/v2/${KEY}` }] };
  await writeFile(old, `projects:\n  - ${JSON.stringify(project)}\n`);
  const made = await run(["import", old, "--out", file, "--keys", variables]);
  assert.equal(made.code, 0, made.error);
  assert.match(made.error, /imported from eRPC/);
  const text = await readFile(file, "utf8");
  assert.match(text, /ethereum: \{\}/);
  const [, name = "", value] = /^(\w+)='(.*)'\n$/.exec(await readFile(variables, "utf8")) ?? [];
  assert.equal(value, KEY);
  assert.equal((await stat(variables)).mode & 0o777, 0o600);
  const checked = await run(["check-config", file, "--live"], { [name]: KEY });
  assert.equal(checked.code, 0, checked.error + checked.out);
  assert.match(checked.out, /valid \(1 chains, 1 profiles\)\nok {6}public\/ethereum/);
  const unset = await run(["check-config", file]);
  assert.equal(unset.code, 1);
  const service = await startProcess(t, text, { [name]: KEY });
  const call = { jsonrpc: "2.0", id: 1, method: "eth_gasPrice", params: [] };
  const answer = await service.post("/rpc/ethereum", call);
  assert.match(answer.text, /"result":"0x2a"/);
  assert.ok(node.asked.some((asked) => asked.path === `/v2/${KEY}`));
  const printed = [made, checked, unset].map(({ out, error }) => out + error);
  for (const each of [text, service.log(), ...printed]) assert.ok(!each.includes(KEY), each);
});

test("files that are there are kept, and a file that is none of a gateway is refused", async (t) => {
  const path = await folder(t);
  const [old, file] = ["old.yml", "svc.yml"].map((name) => join(path, name));
  assert.ok(old !== undefined && file !== undefined);
  await writeFile(old, "name: nothing\n");
  const none = await run(["import", old]);
  assert.equal(none.code, 1);
  assert.match(none.error, /of no format that is known/);
  const chains = { base: { chain_id: 8453, providers: [{ id: "a", url: "https://a.example" }] } };
  await writeFile(old, JSON.stringify({ slug: "public", chains }));
  await writeFile(file, "mine\n");
  const kept = await run(["import", old, "--out", file]);
  assert.equal(kept.code, 1);
  assert.match(kept.error, /cannot be written \(EEXIST\)/);
  assert.equal(await readFile(file, "utf8"), "mine\n");
  const shown = await run(["import", old]);
  assert.equal(shown.code, 0);
  assert.match(shown.out, /base: \{\}/);
});
