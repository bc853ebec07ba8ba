// A caller reads its own writes at any worker of a service and at any node of a cluster, whichever
// provider is asked: real processes before scripted providers of which one alone takes writes.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { type Hex, keccak256, toHex } from "viem";
import { newDatabase, postgresAvailability } from "../fakes/postgres.ts";
import { startProcess } from "../fakes/process.ts";
import { ALICE } from "../fakes/real-nodes.ts";
import { configText } from "../fakes/service.ts";
import { until } from "../fakes/service-fixture.ts";
import { scriptedUpstream } from "../fakes/upstream.ts";

const postgres = postgresAvailability();
const skip = postgres.kind === "no" && postgres.reason;
const OPERATOR = "operator-of-two-nodes-0123456789-0123456789";
const NONCE = 5;

/** Providers that know of no transaction, but that the first one takes what is sent. */
async function providers(t: TestContext) {
  const sent: Hex[] = [];
  const urls = await Promise.all(
    [true, false].map(async (takesWrites) => {
      const upstream = await scriptedUpstream((asked, reply) => {
        const [first] = Array.isArray(asked.params) ? asked.params : [];
        switch (asked.method) {
          case "eth_sendRawTransaction":
            if (!takesWrites) return reply.error('{"code":-32601,"message":"not available"}');
            sent.push(first);
            return reply.result(`"${keccak256(first)}"`);
          case "eth_getTransactionCount":
            return reply.result(`"${toHex(NONCE)}"`);
          default:
            return reply.result("null");
        }
      });
      upstream.probesSay({ chainId: 1, height: 100 });
      t.after(() => upstream.close());
      return upstream.url;
    }),
  );
  return { sent, urls };
}

interface Answered {
  /** The worker that answered. */
  readonly worker: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of any shape
  readonly result: any;
}

/** Sends one call on a connection of its own. */
function call(url: string, method: string, params: readonly unknown[]): Promise<Answered> {
  return new Promise((resolve, reject) => {
    const headers = { "content-type": "application/json" };
    request(url, { method: "POST", headers, agent: false }, (answer) => {
      let body = "";
      answer.setEncoding("utf8").on("data", (text: string) => {
        body += text;
      });
      answer.on("end", () => {
        const id = String(answer.headers["x-svc-request-id"]);
        const worker = /^req-[0-9a-z]+-(\d+)-[0-9a-z]+$/.exec(id)?.[1] ?? "";
        resolve({ worker, result: JSON.parse(body).result });
      });
    })
      .on("error", reject)
      .end(JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }));
  });
}

const signed = (nonce: number): Promise<Hex> =>
  ALICE.signTransaction({ nonce, chainId: 1, gas: 21_000n, gasPrice: 1n, to: ALICE.address });

const nonceAt = (url: string) => call(url, "eth_getTransactionCount", [ALICE.address, "pending"]);

test("two workers: the next nonce and the pending transaction are the same at both", async (t) => {
  const { urls, sent } = await providers(t);
  const text = configText(
    urls.map((url, at) => ({ id: `p${at}`, url })),
    {
      server: { port: 0, workers: 2 },
      consistency: "tip",
      chains: { ethereum: { chain_id: 1, block_time_ms: 12_000 } },
    },
  );
  const service = await startProcess(t, text);
  const url = `${service.url}/rpc/priority/1`;
  const raws = [await signed(NONCE), await signed(NONCE + 1)];
  for (const raw of raws) assert.equal((await call(url, SEND, [raw])).result, keccak256(raw));
  assert.deepEqual(sent, raws);
  const seen = new Map<string, string>();
  await until("both workers", async () => {
    const { worker, result } = await nonceAt(url);
    seen.set(worker, result);
    return seen.size === 2 && [...seen.values()].every((nonce) => nonce === toHex(NONCE + 2));
  });
  const told = new Map<string, string>();
  await until("both workers", async () => {
    const { worker, result } = await call(url, "eth_getTransactionByHash", [
      keccak256(raws[1] ?? "0x"),
    ]);
    told.set(worker, JSON.stringify(result));
    return told.size === 2;
  });
  const [one, other] = [...told.values()];
  assert.equal(one, other);
  assert.equal(JSON.parse(one ?? "null").nonce, toHex(NONCE + 1));
});

const SEND = "eth_sendRawTransaction";

test("two nodes: the same, for the key that sent it alone", { skip }, async (t) => {
  const { urls } = await providers(t);
  const { url: database, drop } = await newDatabase();
  t.after(drop);
  const dataDir = mkdtempSync(join(tmpdir(), "svc-own-writes-"));
  t.after(() => rmSync(dataDir, { recursive: true, force: true }));
  const profile = {
    chains: { ethereum: { providers: urls.map((url, at) => ({ id: `p${at}`, url })) } },
  };
  const nodes = await Promise.all(
    ["n1", "n2"].map((id) =>
      startProcess(
        t,
        JSON.stringify({
          data_dir: join(dataDir, id),
          storage: { url: database },
          cluster: { enabled: true, node_id: id, region: "eu" },
          consistency: "tip",
          chains: { ethereum: { chain_id: 1, name: "Ethereum", block_time_ms: 12_000 } },
          profiles: { premium: profile, public: profile },
          hosted: { enabled: true, operator_token: OPERATOR },
        }),
      ),
    ),
  );
  const [first, second] = nodes;
  assert.ok(first !== undefined && second !== undefined);
  const newKey = async (): Promise<string> => {
    const created = await fetch(`${first.url}/api/v1/agent/keys`, { method: "POST" });
    return JSON.parse(await created.text()).key;
  };
  const [mine, other] = [await newKey(), await newKey()];
  const at = (node: typeof first, key: string): string => `${node.url}/rpc/k/${key}/ethereum`;
  const raw = await signed(NONCE);
  assert.equal((await call(at(first, mine), SEND, [raw])).result, keccak256(raw));
  await until(
    "the nonce at the other node",
    async () => (await nonceAt(at(second, mine))).result === toHex(NONCE + 1),
  );
  const byHash = (key: string) =>
    call(at(second, key), "eth_getTransactionByHash", [keccak256(raw)]);
  assert.equal((await byHash(mine)).result.from, ALICE.address.toLowerCase());
  assert.equal((await byHash(other)).result, null);
});
