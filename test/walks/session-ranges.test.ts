// Calls over ranges of blocks that are paid for one by one: asked for in parts that the price
// covers, which is told and held before the first part is sent.

import assert from "node:assert/strict";
import { test } from "node:test";
import { answerOf, type ChainView, type Density, logsOf } from "../fakes/range-chain.ts";
import type { Script } from "../fakes/upstream.ts";
import {
  callOf,
  chainsOfFile,
  challengesOf,
  rowOf,
  sessionFixture,
  stockClient,
} from "./session-fixture.ts";

const chains = await chainsOfFile();

const VIEW: ChainView = { head: 5_000, finalized: 4_940, forks: [] };
const LIMIT = 100;
const density: Density = (block) => (block % 9 === 0 ? 1 : 0);
const hex = (number: number): string => `0x${number.toString(16)}`;
const rangeOf = (from: number, to: number) => [{ fromBlock: hex(from), toBlock: hex(to) }];
const logs = (from: number, to: number) =>
  JSON.parse(`[${logsOf({ from, to }, VIEW, density).join(",")}]`);

const node: Script = ({ method, params }, reply) => {
  if (method === "eth_chainId") return reply.result('"0x1"');
  assert.ok(Array.isArray(params));
  const limits = { blocks: LIMIT, results: null };
  const answer = answerOf({ method, params }, VIEW, { density, limits });
  if (answer.kind === "result") reply.result(answer.json);
  else reply.error(JSON.stringify(answer.error));
};

test("each planned part of a range costs as one call, told before and held; one that is refused costs what was sent", async (t) => {
  const fixture = await sessionFixture(t, chains, {
    hosted: { buckets: { managed: { per_second: 1_000, burst: 6 } } },
    providerSettings: { archival: true, capabilities: { limits: { max_block_range: LIMIT } } },
  });
  const { upstream, service, url } = fixture;
  upstream.script(node);
  upstream.probesSay(null);
  await service().probed();
  const amountOf = async (init: RequestInit): Promise<unknown> => {
    const response = await fetch(url(), init);
    assert.equal(response.status, 402);
    return challengesOf(response)[0]?.request["amount"];
  };
  const asked = () => upstream.asked.filter(({ method }) => method === "eth_getLogs").length;
  const range = callOf("eth_getLogs", 1, rangeOf(1, 1_000));
  // Ten parts of 15 CU: 750 base units.
  assert.equal(await amountOf(range), "750");
  assert.equal(asked(), 0);
  const { manager } = stockClient(chains, chains.payer);
  const answer = await manager.fetch(url(), range);
  assert.deepEqual(JSON.parse(await answer.text()).result, logs(1, 1_000));
  assert.deepEqual(
    [answer.headers.get("x-svc-cu"), answer.headers.get("x-svc-usd"), asked()],
    ["150", "0.00075", 10],
  );
  const spent = async () => (await rowOf(fixture, manager.channelId ?? "")).spent_units;
  assert.equal(await spent(), 750n);

  const batch = {
    ...range,
    body: JSON.stringify(
      [rangeOf(1, 200), rangeOf(5, 100), rangeOf(1, 300)].map((params, id) => ({
        ...{ jsonrpc: "2.0", id, method: "eth_getLogs", params },
      })),
    ),
  };
  assert.equal(await amountOf(batch), "450");
  const several = await manager.fetch(url(), batch);
  assert.deepEqual(
    JSON.parse(await several.text()).map((one: { readonly result: unknown }) => one.result),
    [logs(1, 200), logs(5, 100), logs(1, 300)],
  );
  assert.equal(several.headers.get("x-svc-cu"), "90");
  assert.equal(await spent(), 1_200n);

  const tooMany = await manager.fetch(url(), callOf("eth_getLogs", 1, rangeOf(1, 2_500)));
  assert.equal(JSON.parse(await tooMany.text()).error.data.max_blocks, 2_000);
  assert.deepEqual(
    [tooMany.headers.get("x-svc-cu"), asked(), await spent()],
    ["15", 17, 1_275n],
    "it was asked for once, whole",
  );
});
