// A new configuration while the service runs: no request notices, providers that stay keep their
// health, a faulty file changes nothing.
import assert from "node:assert/strict";
import { rm, writeFile } from "node:fs/promises";
import { test } from "node:test";
import { startProcess } from "../fakes/process.ts";
import { configOf, configText, startService } from "../fakes/service.ts";
import { healthOf, until } from "../fakes/service-fixture.ts";
import { type ScriptedUpstream, scriptedUpstream } from "../fakes/upstream.ts";

const NAMES = ["a", "b", "c", "d"];

function textOf(
  upstreams: readonly ScriptedUpstream[],
  names: readonly string[],
  extra: Record<string, unknown> = {},
): string {
  const providers = names.map((id) => ({ id, url: upstreams[NAMES.indexOf(id)]?.url ?? "" }));
  return configText(providers, extra);
}

test("fifty reloads under load fail no request, and a provider that stays keeps its counts", async (t) => {
  const upstreams = await Promise.all(
    NAMES.map(() =>
      scriptedUpstream(
        ({ params }, reply) => void setTimeout(() => reply.result(`"0x${params}"`), 3),
      ),
    ),
  );
  const service = await startService(textOf(upstreams, NAMES));
  t.after(() => Promise.all([service.close(), ...upstreams.map((it) => it.close())]));
  let running = true;
  let answered = 0;
  const worker = async (n: number): Promise<void> => {
    for (let i = 0; running; i++) {
      const { text } = await service.post("/rpc/1", {
        jsonrpc: "2.0",
        id: 500 + n,
        method: "eth_getBalance",
        params: [`${n}-${i}`],
      });
      assert.equal(text, `{"jsonrpc":"2.0","id":${500 + n},"result":"0x${n}-${i}"}`);
      answered++;
    }
  };
  const workers = Array.from({ length: 12 }, (_, n) => worker(n));
  const sets = [["b", "a"], ["b"], ["c", "d", "b"], ["b", "d"], ["a", "b", "c", "d"]];
  // As many more as a busy machine needs to have served something between them.
  for (let round = 0; round < 50 || answered <= 200; round++) {
    assert.equal(
      service.app.reload(configOf(textOf(upstreams, sets[round % sets.length] ?? NAMES))),
      null,
    );
    await new Promise((resolve) => setTimeout(resolve, 15));
  }
  running = false;
  await Promise.all(workers);
  assert.equal(
    upstreams.reduce((sum, it) => sum + it.asked.length, 0),
    answered,
    "each request was asked once",
  );
  assert.equal((await healthOf(service, "b")).calls, upstreams[1]?.asked.length);
});

test("a provider that was removed finishes what it was asked and its connections are closed", async (t) => {
  const upstreams = await Promise.all(NAMES.slice(0, 2).map(() => scriptedUpstream()));
  const [a, b] = upstreams;
  const service = await startService(textOf(upstreams, ["a"]));
  t.after(() => Promise.all([service.close(), ...upstreams.map((it) => it.close())]));
  let release = (): void => {};
  a?.script((_, reply) => {
    release = () => reply.result('"late"');
  });
  const slow = service.post("/rpc/1", { jsonrpc: "2.0", id: 9, method: "eth_call" });
  await until("the request", () => a?.asked.length === 1);
  assert.equal(service.app.reload(configOf(textOf(upstreams, ["b"]))), null);
  assert.equal(
    (await service.post("/rpc/1", { jsonrpc: "2.0", id: 9, method: "eth_call" })).json.result,
    "0x1",
  );
  assert.equal(b?.asked.length, 1);
  release();
  assert.equal((await slow).json.result, "late");
  await until("the end of its connections", () => a?.connections() === 0);
});

test(
  "new limits and deadlines hold at once; a provider whose address changes starts anew; another " +
    "id for a chain is refused",
  async (t) => {
    const upstreams = await Promise.all(NAMES.slice(0, 2).map(() => scriptedUpstream()));
    const service = await startService(textOf(upstreams, ["a", "b"]));
    t.after(() => Promise.all([service.close(), ...upstreams.map((it) => it.close())]));
    for (let n = 0; n < 4; n++)
      await service.post("/rpc/provider/a/1", { jsonrpc: "2.0", id: 9, method: "eth_call" });
    assert.equal((await healthOf(service, "a")).calls, 4);
    const moved = configText(
      [
        { id: "a", url: `${upstreams[0]?.url}/moved` },
        { id: "b", url: upstreams[1]?.url ?? "" },
      ],
      { limits: { max_batch_items: 1 } },
    );
    assert.equal(service.app.reload(configOf(moved)), null);
    assert.equal((await healthOf(service, "a")).calls, 0);
    const batch = await service.post(
      "/rpc/1",
      [1, 2].map((id) => ({ jsonrpc: "2.0", id, method: "eth_call" })),
    );
    assert.equal(batch.status, 400);
    const other = configOf(textOf(upstreams, ["a"], { chains: { ethereum: { chain_id: 5 } } }));
    assert.match(service.app.reload(other) ?? "", /ethereum had the id 1 before, and has 5 now/);
    await service.post("/rpc/provider/a/1", { jsonrpc: "2.0", id: 9, method: "eth_call" });
    assert.equal(upstreams[0]?.asked.at(-1)?.path, "/moved");
  },
);

test(
  "SIGHUP serves the new file; a faulty or missing one, or another id for a chain, is refused with a " +
    "line and the old one stays",
  async (t) => {
    const upstreams = await Promise.all(
      NAMES.slice(0, 2).map((name) => scriptedUpstream((_, reply) => reply.result(`"${name}"`))),
    );
    t.after(() => Promise.all(upstreams.map((it) => it.close())));
    const service = await startProcess(t, textOf(upstreams, ["a"]));
    const ask = async (): Promise<string> =>
      (await service.post("/rpc/1", { jsonrpc: "2.0", id: 9, method: "eth_call" })).text;
    const hangUp = async (text: string | null, line: RegExp): Promise<void> => {
      const from = service.log().length;
      if (text === null) await rm(service.file);
      else await writeFile(service.file, text);
      service.signal("SIGHUP");
      await until(String(line), () => line.test(service.log().slice(from)));
    };
    assert.match(await ask(), /"a"/);
    await hangUp(textOf(upstreams, ["b"]), /configuration reloaded/);
    assert.match(await ask(), /"b"/);
    await hangUp("profiles: [", /configuration not reloaded/);
    await hangUp(
      textOf(upstreams, ["a"]).replace('"log_level"', '"lgo_level"'),
      /lgo_level.*configuration not reloaded/,
    );
    await hangUp(
      textOf(upstreams, ["a"], { chains: { ethereum: { chain_id: 5 } } }),
      /ethereum had the id 1 before.*configuration not reloaded/,
    );
    await hangUp(null, /cannot be read.*configuration not reloaded/);
    assert.match(await ask(), /"b"/);
    await hangUp(textOf(upstreams, ["a"]), /configuration reloaded/);
    assert.match(await ask(), /"a"/);
  },
);

test("a reload that changes what is read at start says so, and carries out the rest", async (t) => {
  const upstreams = await Promise.all(NAMES.slice(0, 2).map(() => scriptedUpstream()));
  const service = await startService(textOf(upstreams, ["a"]));
  t.after(() => Promise.all([service.close(), ...upstreams.map((upstream) => upstream.close())]));
  assert.equal(service.app.reload(configOf(textOf(upstreams, ["a"]))), null);
  assert.doesNotMatch(service.log(), /takes effect at restart/);
  const other = textOf(upstreams, ["b"], {
    server: { port: 0, compression: "off" },
    upstream: { http: "undici" },
  });
  assert.equal(service.app.reload(configOf(other)), null);
  assert.match(service.log(), /`server` differs, and takes effect at restart/);
  assert.match(service.log(), /`upstream` differs, and takes effect at restart/);
  await service.post("/rpc/1", { jsonrpc: "2.0", id: 9, method: "eth_call" });
  assert.deepEqual(
    upstreams.map(({ asked }) => asked.length),
    [0, 1],
  );
});
