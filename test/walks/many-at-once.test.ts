// What stock clients send at once (batches of many calls, a thousand calls on one socket) is
// answered by the service exactly as by the one real EVM node behind it.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { JsonRpcProvider, WebSocketProvider } from "ethers";
import { createPublicClient, type Hex, http, webSocket } from "viem";
import { type Devnet, startDevnet } from "../../src/devnet/devnet.ts";
import { endProvider } from "../fakes/ethers-provider.ts";
import { ALICE, localChain } from "../fakes/real-nodes.ts";
import { PATIENT, type Service, startService } from "../fakes/service.ts";
import { open } from "../web/socket/socket-fixture.ts";

const SIZES = [100, 500, 1_000] as const;

/** Addresses of which a few have money, as clients name them. */
function addressOf(n: number): Hex {
  return n % 50 === 0 ? ALICE.address : `0x${(n + 1).toString(16).padStart(40, "0")}`;
}

/** Calls of many kinds, some of which fail at the node. */
function callOf(n: number): unknown {
  const kinds = [
    ["eth_getBalance", [addressOf(n), "latest"]],
    ["eth_getBlockByNumber", ["0x0", n % 2 === 0]],
    ["eth_call", [{ to: addressOf(n), data: "0x" }, "latest"]],
    ["eth_getCode", [addressOf(n), "latest"]],
    ["eth_getTransactionCount", [addressOf(n), "latest"]],
    ["eth_getTransactionByHash", [`0x${n.toString(16).padStart(64, "0")}`]],
    ["eth_chainId", []],
    ["eth_getLogs", [{ fromBlock: "0x0", toBlock: "0x0" }]],
    ["eth_sendRawTransaction", ["0x00"]],
  ] as const;
  const [method, params] = kinds[n % kinds.length] ?? assert.fail();
  return { jsonrpc: "2.0", id: n, method, params };
}

async function post(url: string, body: string): Promise<readonly { readonly id: number }[]> {
  const headers = { "content-type": "application/json" };
  return (await (await fetch(url, { method: "POST", headers, body })).json()) as never;
}

const byId = (answers: readonly { readonly id: number }[]) =>
  answers.toSorted((a, b) => a.id - b.id);

describe("over a real node", () => {
  let devnet: Devnet;
  let service: Service;
  let node = "";
  let url = "";
  let socketUrl = "";

  before(async () => {
    devnet = await startDevnet({ nodes: 1, onProgress: () => {} });
    const providers = devnet.providers.map(({ id, url }) => ({ id, url, archival: true }));
    node = providers[0]?.url ?? assert.fail();
    service = await startService(
      JSON.stringify({
        server: { port: 0 },
        chains: { local: { chain_id: 31_337, block_time_ms: 12_000 } },
        profiles: { team: { chains: { local: { providers } } } },
        deadlines: PATIENT,
      }),
    );
    url = `${service.url}/rpc/local`;
    socketUrl = `${service.url.replace("http", "ws")}/ws/rpc/local`;
  });
  after(() => Promise.all([service.close(), devnet.close()]));

  for (const size of SIZES) {
    it(`a batch of ${size} over HTTP and over a WebSocket is answered as by the node`, async (t) => {
      const body = JSON.stringify(Array.from({ length: size }, (_, n) => callOf(n)));
      const expected = byId(await post(node, body));
      assert.equal(expected.length, size);
      assert.deepEqual(await post(url, body), expected);
      const client = await open(t, service.port, "/ws/rpc/local");
      client.send(body);
      assert.deepEqual(await client.next(), expected);
    });

    it(`viem and ethers batch ${size} calls over HTTP, and read what the node says`, async (t) => {
      const balances = Array.from({ length: size }, (_, n) => addressOf(n));
      const readers = [url, node].map((at) =>
        createPublicClient({
          chain: localChain(at),
          transport: http(at, { retryCount: 0, batch: { batchSize: size, wait: 10 } }),
        }),
      );
      const [ours, theirs] = await Promise.all(
        readers.map((reader) =>
          Promise.all(balances.map((address) => reader.getBalance({ address }))),
        ),
      );
      assert.deepEqual(ours, theirs);
      const provider = new JsonRpcProvider(url, 31_337, { batchMaxCount: size, cacheTimeout: -1 });
      t.after(() => endProvider(provider));
      assert.deepEqual(
        await Promise.all(balances.map((address) => provider.getBalance(address))),
        theirs,
      );
    });
  }

  it("a thousand calls at once on one WebSocket are all answered, to viem and to ethers", async (t) => {
    const addresses = Array.from({ length: 1_000 }, (_, n) => addressOf(n));
    const direct = createPublicClient({
      chain: localChain(node),
      transport: http(node, { retryCount: 0, batch: { batchSize: 1_000 } }),
    });
    const expected = await Promise.all(addresses.map((address) => direct.getBalance({ address })));
    const reader = createPublicClient({
      chain: localChain(url),
      transport: webSocket(socketUrl, { retryCount: 0, reconnect: false }),
    });
    t.after(async () => (await reader.transport.getRpcClient()).close());
    assert.deepEqual(
      await Promise.all(addresses.map((address) => reader.getBalance({ address }))),
      expected,
    );
    const provider = new WebSocketProvider(socketUrl, 31_337, { cacheTimeout: -1 });
    t.after(() => provider.destroy());
    assert.deepEqual(
      await Promise.all(addresses.map((address) => provider.getBalance(address))),
      expected,
    );
  });

  it("a thousand calls of many kinds on one WebSocket are answered as by the node", async (t) => {
    const requests = Array.from({ length: 1_000 }, (_, n) => callOf(n));
    const expected = byId(await post(node, JSON.stringify(requests)));
    const client = await open(t, service.port, "/ws/rpc/local");
    for (const request of requests) client.send(request);
    const answers: { readonly id: number }[] = [];
    while (answers.length < requests.length) answers.push(await client.next());
    assert.deepEqual(byId(answers), expected);
  });
});
