// The npm package as its user has it: what the tarball holds, that an installation needs nothing
// else, and that the service which runs from it writes nowhere but to the cache folder of its user
// and to `data_dir`. One tarball serves all of these tests.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import {
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { Worker } from "node:worker_threads";
import { installInto, packInto } from "../fakes/package.ts";
import { startProcess } from "../fakes/process.ts";
import { scriptedUpstream } from "../fakes/upstream.ts";

const ROOT = join(import.meta.dirname, "../..");
const MAX_TARBALL_BYTES = 3_000_000;
const folder = mkdtempSync(join(tmpdir(), "svc-package-"));
after(() => rmSync(folder, { recursive: true, force: true }));
const tarball = packInto(folder);
const installed = installInto(join(folder, "app"), tarball);
const LAUNCHER = join(installed, "bin/svc.mjs");
/** What a user has: an empty home, with Node 24 where the launcher would fetch it to. */
const home = join(folder, "home");
mkdirSync(join(home, "cache/svc"), { recursive: true });
const USER = { HOME: home, XDG_CACHE_HOME: join(home, "cache"), NODE_COMPILE_CACHE: "" };

test("package: it holds compiled code, the console and documents: no TypeScript, no test", () => {
  const held = filesIn(installed);
  for (const path of ["bin/svc.mjs", "dist/main.js", "dist/LICENSES.txt", "docs/cli.md", "LICENSE"])
    assert.ok(held.includes(path), path);
  assert.ok(held.some((path) => /^dist\/console\/main-\w+\.js\.br$/.test(path)));
  const odd = held.filter((path) => /\.(ts|tsx|map|sol)$|(^|\/)test\/|^bin\/.*\.ts/.test(path));
  assert.deepEqual(odd, []);
  assert.ok(statSync(tarball).size <= MAX_TARBALL_BYTES, `${statSync(tarball).size} bytes`);
});

test("package: it names no dependency, and installing it adds no other package", () => {
  const manifest = JSON.parse(readFileSync(join(installed, "package.json"), "utf8")) as object;
  const odd = Object.keys(manifest).filter((name) => /dependencies|scripts/i.test(name));
  assert.deepEqual(odd, []);
  assert.deepEqual(globSync("*", { cwd: join(folder, "app/node_modules") }), ["svc"]);
});

test("package: every package that is compiled in is named with its licence", () => {
  const text = readFileSync(join(installed, "dist/LICENSES.txt"), "utf8");
  for (const name of ["undici", "ws", "viem", "mppx", "kysely", "pino", "preact", "zod"])
    assert.match(text, new RegExp(`^${name} [\\d.]+ \\((MIT|Apache-2.0|ISC)\\)$`, "m"));
  assert.ok(!text.includes("undefined"), "a package without a name or licence");
});

test("package: the service answers from it, and changes nothing in its folder", async (t) => {
  const before = stateOf(installed);
  const upstream = await scriptedUpstream();
  t.after(() => upstream.close());
  upstream.script((_, reply) => reply.result('"0x5208"'));
  const config = `
server: { workers: 2 }
data_dir: ${JSON.stringify(join(home, "data"))}
chains: { ethereum: {} }
profiles:
  public: { chains: { ethereum: { providers: [{ id: a, url: ${upstream.url} }] } } }
`;
  const service = await startProcess(t, config, USER, { program: LAUNCHER });
  const call = { jsonrpc: "2.0", id: 7, method: "eth_estimateGas", params: [{}] };
  const { status, text } = await service.post("/rpc/ethereum", call);
  assert.deepEqual([status, JSON.parse(text)], [200, { jsonrpc: "2.0", id: 7, result: "0x5208" }]);
  const page = await (await fetch(`${service.url}/dashboard`)).text();
  const [, asset = ""] = /(assets\/main-\w+\.js)/.exec(page) ?? [];
  assert.equal((await fetch(`${service.url}/dashboard/${asset}`)).status, 200);
  assert.equal((await fetch(`${service.url}/favicon.ico`)).status, 200);
  service.signal("SIGTERM");
  assert.equal(await service.ended, 0);
  assert.deepEqual(stateOf(installed), before);
  assert.ok(existsSync(join(home, "cache/svc/.compile-cache")));
  assert.deepEqual(globSync("*", { cwd: home }).sort(), ["cache", "data"]);
});

test("package: its launcher takes the Node 24 of the cache folder where its own is older", (t) => {
  const older = process.env["npm_node_execpath"] ?? process.execPath;
  const kept = join(ROOT, "node_modules/.node24");
  if (older === process.execPath || !existsSync(kept)) return t.skip("there is no older Node");
  symlinkSync(kept, join(home, "cache/svc/.node24"));
  const before = stateOf(installed);
  const { version } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as {
    readonly version: string;
  };
  const env = { ...process.env, ...USER };
  const ran = spawnSync(older, [LAUNCHER, "version"], { env, encoding: "utf8" });
  assert.deepEqual([ran.stdout, ran.status], [`${version}\n`, 0], ran.stderr);
  assert.deepEqual(stateOf(installed), before);
});

test("package: the thread that checks vouchers starts from it", async () => {
  const thread = new Worker(join(installed, "dist/voucher-worker.js"), { env: {} });
  await new Promise((resolve, reject) => thread.once("online", resolve).once("error", reject));
  await thread.terminate();
});

/** Paths of all files below a folder. */
function filesIn(path: string): readonly string[] {
  return globSync("**/*", { cwd: path }).filter((file) => statSync(join(path, file)).isFile());
}

/** Sizes and times of change of all files below a folder. */
function stateOf(path: string): readonly string[] {
  return filesIn(path).map((file) => {
    const { size, mtimeMs } = statSync(join(path, file));
    return `${file} ${size} ${mtimeMs}`;
  });
}
