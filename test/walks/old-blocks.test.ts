// Reads of old blocks, logs, receipts, state and proofs over a full node, which drops old data and
// mostly says so by an empty answer, and an archive node: each goes where it can be answered, none
// is lost, and no empty answer of the full node is believed.
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import type { Service } from "../fakes/service.ts";
import { type FixtureSettings, serviceFixture, until, walked } from "../fakes/service-fixture.ts";
import { NO_METHOD, type Script } from "../fakes/upstream.ts";

const HEAD = 10_000;
const ADDRESS = `0x${"11".repeat(20)}`;
const OLDEST = { state: 9_900, logs: 6_000, receipts: 5_000, blocks: 3_000 } as const;
/** Transactions are named by the number of their block. */
const hashOf = (block: number): string => `0x${block.toString(16).padStart(64, "0")}`;
const hex = (block: number): string => `0x${block.toString(16)}`;

type Kept = Readonly<Record<keyof typeof OLDEST, number>>;

/** A node that has each kind of data from a block on. */
function nodeScript(kept: Kept): Script {
  return ({ method, params }, reply) => {
    const [first, second, third] = params as readonly unknown[];
    const numberOf = (value: unknown): number => Number(value === "latest" ? HEAD : value);
    const given = (oldest: number, block: number, json: string, empty = "null"): void =>
      reply.result(block >= oldest ? json : empty);
    const state = (block: number): void =>
      block >= kept.state
        ? reply.result('"0x7"')
        : reply.error(
            '{"code":-32000,"message":"missing trie node abc (path ) state is not available"}',
          );
    switch (method) {
      case "eth_getBalance":
        return state(numberOf(second));
      case "eth_getProof":
        return state(numberOf(third));
      case "eth_getBlockByNumber": {
        const block = numberOf(first);
        return given(kept.blocks, block, `{"number":"${hex(block)}","hash":"${hashOf(block)}"}`);
      }
      case "eth_getBlockReceipts":
        return given(kept.receipts, numberOf(first), "[{}]");
      case "eth_getTransactionByHash":
        return given(kept.receipts, numberOf(first), `{"hash":"${first}"}`);
      case "eth_getTransactionReceipt":
        return given(kept.receipts, numberOf(first), `{"transactionHash":"${first}"}`);
      case "eth_getLogs": {
        const from = (first as { fromBlock: string }).fromBlock;
        return given(kept.logs, numberOf(from), `[{"blockNumber":"${from}"}]`, "[]");
      }
      default:
        return reply.error(NO_METHOD);
    }
  };
}

const ARCHIVE: Kept = { state: 0, logs: 0, receipts: 0, blocks: 0 };
const logs = (from: number) => [{ fromBlock: hex(from), toBlock: hex(from + 10) }];

/** Twenty reads, and the oldest block that a node must have kept to answer each. */
const READS: readonly (readonly [
  method: string,
  params: readonly unknown[],
  needs: keyof Kept,
  block: number,
])[] = [1, 2_000, 5_500, 9_950].flatMap((block) => [
  ["eth_getBlockByNumber", [hex(block), false], "blocks", block] as const,
  ["eth_getLogs", logs(block), "logs", block] as const,
  ["eth_getTransactionReceipt", [hashOf(block)], "receipts", block] as const,
  ["eth_getBalance", [ADDRESS, hex(block)], "state", block] as const,
  ["eth_getProof", [ADDRESS, [], hex(block)], "state", block] as const,
]);

/** The full node `a`, asked first, and the archive node `b`. */
async function twoNodes(t: TestContext, settings: FixtureSettings, report: unknown = null) {
  const fixture = await serviceFixture(t, [nodeScript(OLDEST), nodeScript(ARCHIVE)], settings);
  const { service, upstreams } = fixture;
  for (const upstream of upstreams) upstream.probesSay({ chainId: 1, height: HEAD });
  upstreams[0]?.reports(report);
  await service.probed();
  return fixture;
}

async function sourcesOf(service: Service, provider: string): Promise<Record<string, string>> {
  const { json } = await service.get("/api/metrics/1");
  const { capabilities } = json.profiles[0].providers.find(
    ({ id }: { id: string }) => id === provider,
  );
  return Object.fromEntries(
    capabilities.map(({ resource, source }: Record<string, string>) => [resource, source]),
  );
}

const ARCHIVAL = { archival: true };
const BOUNDS = {
  capabilities: {
    logs: OLDEST.logs,
    receipts: OLDEST.receipts,
    transactions: OLDEST.receipts,
    blocks: OLDEST.blocks,
    state: "last 100",
    proofs: "last 100",
  },
};
const entry = (oldest: number) => ({ disabled: false, oldestBlock: hex(oldest) });
const REPORT = {
  head: { number: hex(HEAD), hash: hashOf(HEAD) },
  state: { disabled: false, deleteStrategy: { type: "window", retentionBlocks: "0x65" } },
  tx: entry(OLDEST.receipts),
  logs: entry(OLDEST.logs),
  receipts: entry(OLDEST.receipts),
  blocks: entry(OLDEST.blocks),
  stateproofs: { disabled: false, deleteStrategy: { type: "window", retentionBlocks: "0x65" } },
};

for (const [name, full, report] of [
  ["nothing is known of the full node", {}, null],
  ["the full node declares its bounds", BOUNDS, null],
  ["the full node reports its bounds", {}, REPORT],
] as const)
  test(`20 of 20 reads are answered where ${name}`, async (t) => {
    const { call, service, upstreams } = await twoNodes(t, { providers: [full, ARCHIVAL] }, report);
    if (report !== null)
      await until("the report is known", async () => (await sourcesOf(service, "a"))["logs"]);
    let answered = 0;
    for (const [method, params, needs, block] of READS) {
      const answer = await call(method, params);
      const said = JSON.stringify(answer.json.result);
      assert.ok(!["null", "[]", undefined].includes(said), `${method} ${block}: ${said}`);
      answered++;
      const canFull = block >= OLDEST[needs];
      if (full === BOUNDS || report !== null) {
        const isByHash = method === "eth_getTransactionReceipt";
        if (!isByHash)
          assert.equal(walked(answer), canFull ? "a:ok" : "b:ok", `${method} ${block}`);
      } else if (!canFull && needs === "logs") assert.equal(walked(answer), "b:ok");
    }
    assert.equal(answered, 20);
    const logsOf = (at: number) =>
      (upstreams[at]?.asked ?? []).filter(({ method }) => method === "eth_getLogs").length;
    assert.deepEqual([logsOf(0), logsOf(1)], [1, 3]);
  });

test("an empty answer of a full node teaches what it has dropped, by resource", async (t) => {
  const { call, service } = await twoNodes(t, { providers: [{}, ARCHIVAL] });
  assert.equal(walked(await call("eth_getBlockReceipts", [hex(1)])), "a:unconfirmed b:ok");
  assert.equal(walked(await call("eth_getBlockReceipts", [hex(2)])), "b:ok");
  assert.equal(walked(await call("eth_getBlockByNumber", [hex(9_000), false])), "a:ok");
  assert.deepEqual(await sourcesOf(service, "a"), {
    state: "assumed",
    receipts: "learned",
    proofs: "assumed",
    traces: "assumed",
  });
});

test("while the node that has old logs fails, none of the other is taken for all there is", async (t) => {
  const { call, upstreams } = await twoNodes(t, { providers: [{}, ARCHIVAL] });
  upstreams[1]?.script((_, reply) => reply.body("", 503));
  const answer = await call("eth_getLogs", logs(1));
  assert.equal(walked(answer), "b:server a:unconfirmed");
  assert.equal(answer.json.error.data.code, "unavailable");
  assert.equal(answer.json.error.data.retryable, true);
  assert.equal(walked(await call("eth_getLogs", logs(9_950))), "a:ok");
});

test("a node that is known to lack old logs is not believed, even alone", async (t) => {
  const { call } = await twoNodes(t, { providers: [BOUNDS, BOUNDS] });
  const found = await call("eth_getLogs", logs(1));
  assert.equal(walked(found), "a:unconfirmed b:ok", "what is declared may be out of date");
});

test("a node that is known to lack old logs is not believed where nobody else is left", async (t) => {
  const { call, service, upstreams } = await serviceFixture(t, [nodeScript(OLDEST)], {
    providers: [BOUNDS],
  });
  upstreams[0]?.probesSay({ chainId: 1, height: HEAD });
  await service.probed();
  const answer = await call("eth_getLogs", logs(1));
  assert.equal(walked(answer), "a:unconfirmed");
  assert.equal(answer.json.error.data.code, "unavailable");
});

test("where nothing is known, an empty answer counts once a second operator gave it", async (t) => {
  const empty: Script = (_, reply) => reply.result("[]");
  const { call, service, upstreams } = await serviceFixture(t, [empty, empty, empty]);
  for (const upstream of upstreams) upstream.probesSay({ chainId: 1, height: HEAD });
  await service.probed();
  const answer = await call("eth_getLogs", logs(1));
  assert.deepEqual(answer.json.result, []);
  assert.equal(walked(answer), "a:unconfirmed b:ok");
  assert.equal(walked(await call("eth_getLogs", logs(9_950))), "a:ok");
});

test("eth_capabilities is answered here, with what the living providers have together", async (t) => {
  const { call, service, upstreams } = await twoNodes(t, { providers: [{}, {}] }, REPORT);
  await until("the report is known", async () => (await sourcesOf(service, "a"))["logs"]);
  const answer = await call("eth_capabilities");
  const { head, ...resources } = answer.json.result;
  assert.equal(head.number, hex(HEAD));
  const recent = entry(HEAD - 128);
  const deleteStrategy = { type: "window", retentionBlocks: hex(129) };
  const { head: _, ...reported } = REPORT;
  assert.deepEqual(resources, {
    ...reported,
    state: { ...recent, deleteStrategy },
    stateproofs: { ...recent, deleteStrategy },
  });
  assert.deepEqual(
    upstreams.flatMap(({ asked }) => asked),
    [],
  );
});
