// Attacks that were tried from outside, each as a walk: what one caller or provider does takes
// nothing from other callers, and calls to providers and memory stay within their bounds. Words of
// callers, broken answers behind others, and guesses of secrets have walks of their own.
import assert from "node:assert/strict";
import { connect, type Socket } from "node:net";
import { networkInterfaces } from "node:os";
import { test } from "node:test";
import { answerOf, type ChainView, logsOf } from "../fakes/range-chain.ts";
import { serviceFixture, until, walked } from "../fakes/service-fixture.ts";
import { socketFixture } from "../fakes/socket-fixture.ts";
import type { Script } from "../fakes/upstream.ts";
import { call as request } from "../web/socket/socket-fixture.ts";

const VIEW: ChainView = { head: 50_000, finalized: 49_900, forks: [] };
const dense = (): number => 5;
const hex = (number: number): string => `0x${number.toString(16)}`;

/** Refuses more than 1,000 results, and does not say how many blocks have so many. */
const denseNode: Script = ({ method, params }, reply) => {
  assert.ok(Array.isArray(params));
  const limits = { blocks: null, results: 1_000 };
  const answer = answerOf({ method, params }, VIEW, { density: dense, limits });
  if (answer.kind === "result") reply.result(answer.json);
  else reply.error(JSON.stringify(answer.error));
};

test("200 calls for the logs of dense blocks cost providers what one costs; others get theirs", async (t) => {
  const MAX_PARTS = 20;
  const { call, service, upstreams } = await serviceFixture(t, [denseNode, denseNode, denseNode], {
    extra: { logs: { max_parts: MAX_PARTS } },
    set: { monitoring: { probe_interval_ms: 100 } },
    providers: Array(3).fill({ archival: true }),
  });
  for (const upstream of upstreams) upstream.probesSay({ chainId: 1, height: VIEW.head });
  await until("the head", async () => {
    const { json } = await service.get("/api/metrics/1");
    return json.profiles[0].providers.every(
      (it: { transports: { block_height: number }[] }) =>
        it.transports[0]?.block_height === VIEW.head,
    );
  });
  const asked = (): number => upstreams.reduce((sum, it) => sum + it.asked.length, 0);
  const before = asked();
  for (let n = 0; n < 200; n++) {
    const range = { fromBlock: hex(1 + n), toBlock: n % 2 === 0 ? "latest" : hex(40_000 - n) };
    const { error } = (await call("eth_getLogs", [range])).json;
    assert.equal(error.data.code, "log_range_limit");
    assert.ok(error.data.max_blocks <= 200 * MAX_PARTS, `${error.data.max_blocks} blocks`);
  }
  assert.ok(asked() - before <= 2 * MAX_PARTS + 8, `${asked() - before} calls to providers`);
  const { json } = await call("eth_getLogs", [{ fromBlock: hex(7), toBlock: hex(9) }]);
  assert.equal(JSON.stringify(json.result), `[${logsOf({ from: 7, to: 9 }, VIEW, dense)}]`);
});

test("filters that nobody polls end within the memory that they may take; who polls loses none", async (t) => {
  const MAX_BYTES = 65_536;
  const fixture = await socketFixture(t, ["both", "both"], {
    extra: {
      server: { port: 0, trusted_proxies: ["127.0.0.1"] },
      limits: { max_filter_bytes: MAX_BYTES },
      chains: { ethereum: { chain_id: 1, block_time_ms: 400 } },
    },
  });
  const { chain, mine, service } = fixture;
  await fixture.listening();
  const ask = async (from: number, method: string, params: readonly unknown[]) =>
    (
      await service.post("/rpc/1", request(1, method, params), {
        "x-forwarded-for": `203.0.113.${from}`,
      })
    ).json;
  const victim = (await ask(99, "eth_newFilter", [{}])).result;
  for (let caller = 0; caller < 6; caller++)
    for (let filter = 0; filter < 128; filter++)
      assert.match((await ask(caller, "eth_newFilter", [{}])).result, /^0x/);
  const metric = async (name: RegExp): Promise<number> =>
    Number(name.exec((await service.get("/metrics")).text)?.[1] ?? 0);
  let told = 0;
  let sent = 0;
  for (let block = 0; block < 12; block++) {
    sent += mine().logs.length;
    await until("the victim's logs", async () => {
      told += (await ask(99, "eth_getFilterChanges", [victim])).result.length;
      return told >= sent;
    });
    assert.ok((await metric(/^svc_filter_unread_bytes (\d+)/m)) <= MAX_BYTES);
    assert.equal((await ask(98, "eth_getBalance", [hex(block), "latest"])).error, undefined);
  }
  assert.ok(chain.tip().number > 0 && sent > 0);
  assert.equal(told, sent);
  assert.ok((await metric(/^svc_filters_ended_total\{[^}]*reason="memory"\} (\d+)/m)) > 0);
});

/** An answer of more than a piece, as a provider writes it. */
const answerTo = (id: string, result: string): string =>
  `{"jsonrpc":"2.0","id":${id},"result":"${result.padEnd(2_000, "0")}"}`;

test("an answer with another one behind it is neither delivered nor kept", async (t) => {
  const { call, upstreams } = await serviceFixture(
    t,
    [
      ({ id }, reply) => reply.body(`${answerTo(id, "0xa")}${answerTo("7", "0xbad")}`),
      ({ id }, reply) => reply.body(answerTo(id, "0xb")),
    ],
    { extra: { cache: {} } },
  );
  const get = () => call("eth_getCode", [`0x${"1".repeat(40)}`, "0x1"]);
  for (let n = 0; n < 2; n++) {
    const answer = await get();
    assert.match(answer.json.result, /^0xb0+$/);
    if (n === 0) assert.equal(walked(answer), "a:bad_body b:ok");
  }
  upstreams[1]?.script((_, reply) => reply.reset());
  assert.doesNotMatch((await get()).text, /0xa|0xbad/);
});

const OUTSIDE = Object.values(networkInterfaces())
  .flat()
  .find((it) => it?.family === "IPv4" && !it.internal)?.address;

test("connections that one address leaves idle leave room for others", {
  skip: OUTSIDE === undefined && "this machine has no address but its own",
}, async (t) => {
  const MOST = 40;
  const { service } = await serviceFixture(t, [undefined], {
    extra: { server: { port: 0, host: "0.0.0.0" }, limits: { max_connections: MOST } },
  });
  const idle: Socket[] = [];
  t.after(() => {
    for (const socket of idle) socket.destroy();
  });
  let ended = 0;
  for (let n = 0; n < MOST; n++) {
    const socket = connect({ port: service.port, host: OUTSIDE ?? "" });
    socket.on("error", () => {}).on("close", () => ended++);
    idle.push(socket);
  }
  await until("the refusals", () => ended >= MOST / 4);
  const answer = await service.post("/rpc/1", request(1, "eth_gasPrice"));
  assert.equal(answer.json.result, "0x1");
});

test("every answer, of whatever surface, forbids browsers to guess what it is", async (t) => {
  const { service } = await serviceFixture(t, [undefined]);
  for (const path of [
    "/api/health",
    "/api/chains",
    "/agent.json",
    "/metrics",
    "/nowhere",
    "/rpc/1",
  ])
    assert.equal((await service.get(path)).headers.get("x-content-type-options"), "nosniff", path);
  const { headers } = await service.post("/rpc/1", request(1, "eth_gasPrice"));
  assert.equal(headers.get("x-content-type-options"), "nosniff");
});

test("seven megabytes of escaped names are refused unread, wherever they stand", async (t) => {
  const { service, upstreams } = await serviceFixture(t, [undefined]);
  await service.probed();
  const names = Array.from({ length: 420_000 }, (_, n) => `"\\u0061${n}":1`).join(",");
  const refusal = async (body: string) => (await service.post("/rpc/1", body)).json.error.message;
  assert.match(await refusal(`{${names}}`), /at most 64 members/);
  for (const method of ["eth_newFilter", "eth_getFilterLogs", "eth_getFilterChanges"])
    assert.match(
      await refusal(`{"jsonrpc":"2.0","id":1,"method":"${method}","params":[{${names}}]}`),
      /at most 500000 characters|not found/,
    );
  assert.equal(upstreams[0]?.asked.length, 0);
});
