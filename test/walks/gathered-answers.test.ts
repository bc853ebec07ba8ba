// Answers that are gathered in memory (batches, WebSockets, users' providers) stand in one budget
// and in their caller's share of it: what is beyond is refused, and every byte goes back, however a
// call, its provider or its connection ends.
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { WebSocket } from "ws";
import { hostedFixture, OPERATOR_TOKEN } from "../fakes/hosted-fixture.ts";
import { seededRandom } from "../fakes/runtime.ts";
import { namedSeeds } from "../fakes/seed.ts";
import { configText, type Service, startService } from "../fakes/service.ts";
import { serviceFixture, until } from "../fakes/service-fixture.ts";
import { socketUpstream } from "../fakes/socket-upstream.ts";
import { type Script, scriptedUpstream } from "../fakes/upstream.ts";

const MB = 1_000_000;
const BOUND = {
  limits: { max_caller_bytes: 3 * MB, max_in_flight_bytes: 8 * MB, max_batch_items: 100 },
};
const LONG = JSON.stringify("x".repeat(MB));

/** What is counted as held now. */
async function held(service: Service): Promise<number> {
  return Number(/^svc_in_flight_bytes (\d+)$/m.exec((await service.get("/metrics")).text)?.[1]);
}

function batchOf(items: number): readonly unknown[] {
  return Array.from({ length: items }, (_, id) => ({
    jsonrpc: "2.0",
    id,
    method: "eth_getBlockReceipts",
    params: [`0x${id}`],
  }));
}

interface Item {
  readonly result?: string;
  readonly error?: {
    readonly data: {
      readonly code: string;
      readonly retryable: boolean;
      readonly next_action: string;
    };
  };
}

/** Counts the answers of a batch; those that are refused say what to do. */
function countOf(items: readonly Item[]): { readonly whole: number; readonly refused: number } {
  let whole = 0;
  for (const { result, error } of items) {
    if (result?.length === MB) whole++;
    else
      assert.deepEqual(
        [
          error?.data.code,
          error?.data.retryable,
          /alone in an HTTP request/.test(error?.data.next_action ?? ""),
        ],
        ["unavailable", true, true],
      );
  }
  return { whole, refused: items.length - whole };
}

/** Looks at what is held until the test says that it is enough. */
function watched(service: Service): { stop(): Promise<number> } {
  let running = true;
  let most = 0;
  const looking = (async () => {
    while (running) most = Math.max(most, await held(service));
  })();
  return {
    async stop() {
      running = false;
      await looking;
      return most;
    },
  };
}

test(
  "ten batches of long answers take no more memory than their caller's share, and what is " +
    "beyond is refused item by item",
  async (t) => {
    const { service, upstreams } = await serviceFixture(t, [(_, reply) => reply.result(LONG)], {
      extra: BOUND,
    });
    const watch = watched(service);
    const counts = await Promise.all(
      Array.from({ length: 10 }, async () =>
        countOf((await service.post("/rpc/1", batchOf(6))).json),
      ),
    );
    const most = await watch.stop();
    assert.ok(most <= 3.2 * MB, `${most} bytes held`);
    const [whole, refused] = [
      counts.reduce((sum, it) => sum + it.whole, 0),
      counts.reduce((sum, it) => sum + it.refused, 0),
    ];
    assert.ok(whole >= 2 && refused > 0, `${whole} whole, ${refused} refused`);
    assert.equal(upstreams[0]?.asked.length, 60, "a lack of room is no reason to ask another time");
    await until("the return of all bytes", async () => (await held(service)) === 0);
    const { json } = await service.get("/api/metrics/1");
    const { circuit_breaker_state: breaker, outcomes } =
      json.profiles[0].providers[0].transports[0];
    assert.deepEqual([breaker, outcomes.failed], ["closed", 0], "nobody's fault");
    // Alone in its request it is passed on while it arrives, and needs no room.
    assert.equal((await service.post("/rpc/1", batchOf(1)[0])).json.result.length, MB);
  },
);

test("a caller that uses up its share leaves that of another account alone", async (t) => {
  const it = await hostedFixture(
    t,
    { starting_grant_cu: 1_000_000 },
    { limits: { ...BOUND.limits, max_caller_bytes: 1.5 * MB } },
  );
  const [greedy, other] = [await it.anonymousKey(), await it.anonymousKey()];
  const waiting: (() => void)[] = [];
  it.premium.script(({ id }, reply) => {
    const { write, end } = reply.begin(`{"jsonrpc":"2.0","id":${id},"result":`);
    write(LONG);
    waiting.push(() => {
      write("}");
      end();
    });
  });
  const post = (key: string, items: number) =>
    it.service.post(`/rpc/k/${key}/ethereum`, batchOf(items));
  const first = post(greedy, 1);
  await until("its bytes", async () => (await held(it.service)) > 0.9 * MB);
  const refused = await post(greedy, 1);
  assert.deepEqual(countOf(refused.json), { whole: 0, refused: 1 });
  const second = post(other, 1);
  await until("the other's bytes", async () => (await held(it.service)) > 1.8 * MB);
  for (const end of waiting) end();
  assert.deepEqual(
    [countOf((await first).json), countOf((await second).json)],
    [
      { whole: 1, refused: 0 },
      { whole: 1, refused: 0 },
    ],
  );
  await until("the return of all bytes", async () => (await held(it.service)) === 0);
});

test(
  "an account's own provider takes no more memory than the account may have, over batches and " +
    "sockets",
  async (t) => {
    const it = await hostedFixture(t, { allow_private_providers: true }, BOUND);
    const mine = await scriptedUpstream((_, reply) => reply.result(LONG));
    t.after(() => mine.close());
    const { key, token, accountId } = await it.account();
    await it.manage(
      OPERATOR_TOKEN,
      "POST",
      `/api/v1/operator/accounts/${accountId}/custom-access`,
      {
        days: 1,
      },
    );
    mine.script((_, reply) => reply.result('"0x1"'));
    const written = await it.manage(token, "PUT", "/api/v1/profiles/mine", {
      chains: { ethereum: { providers: [{ name: "mine", url: mine.url }] } },
    });
    assert.equal(written.status, 200, written.text);
    mine.script((_, reply) => reply.result(LONG));
    const watch = watched(it.service);
    const path = `/rpc/profile/mine/fastest/1?key=${key}`;
    const batches = Array.from({ length: 8 }, async () =>
      countOf((await it.service.post(path, batchOf(4))).json),
    );
    const calls = await socketCalls(t, `${it.service.url.replace("http", "ws")}/ws${path}`, 8);
    const counts = [...(await Promise.all(batches)), countOf(calls)];
    const most = await watch.stop();
    assert.ok(most <= 3.2 * MB + 8.5 * MB, `${most} bytes held`);
    assert.ok(
      counts.some(({ refused }) => refused > 0) && counts.some(({ whole }) => whole > 0),
      JSON.stringify(counts),
    );
    await until("the return of all bytes", async () => (await held(it.service)) === 0);
  },
);

/** Sends calls over one socket and waits for all answers. */
async function socketCalls(t: TestContext, url: string, count: number): Promise<readonly Item[]> {
  const ws = new WebSocket(url);
  t.after(() => ws.terminate());
  const answers: Item[] = [];
  const all = new Promise<void>((resolve, reject) => {
    ws.on("message", (text: Buffer) => {
      answers.push(JSON.parse(text.toString()));
      if (answers.length === count) resolve();
    });
    ws.on("close", () => reject(new Error("closed")));
    ws.on("error", reject);
  });
  ws.on("open", () => {
    for (const call of batchOf(count)) ws.send(JSON.stringify(call));
  });
  await all;
  return answers;
}

test(
  "a message that arrives on a provider's socket is counted while it is not whole, and no more " +
    "once its connection is gone",
  async (t) => {
    const node = await socketUpstream();
    const service = await startService(configText([{ id: "a", ws_url: node.url }], BOUND));
    t.after(() => Promise.all([service.close(), node.close()]));
    node.script((asked, reply) => {
      if (asked.method !== "eth_getBlockReceipts") return reply.usual();
      const head = Buffer.from([0x81, 127, 0, 0, 0, 0, 0, 0x4c, 0x4b, 0x40]);
      reply.peer.raw(Buffer.concat([head, Buffer.alloc(2 * MB, "x")]));
    });
    const call = service.post("/rpc/1", batchOf(1)[0]);
    await until("its bytes", async () => (await held(service)) > 1.7 * MB);
    node.drop();
    assert.equal((await call).json.error.data.code, "unavailable");
    await until("the return of all bytes", async () => (await held(service)) === 0);
  },
);

test("answers of a provider's socket that come whole need room as well", async (t) => {
  const node = await socketUpstream();
  const service = await startService(configText([{ id: "a", ws_url: node.url }], BOUND));
  t.after(() => Promise.all([service.close(), node.close()]));
  node.script((asked, reply) =>
    asked.method === "eth_getBlockReceipts" ? reply.result(LONG) : reply.usual(),
  );
  const { whole, refused } = countOf((await service.post("/rpc/1", batchOf(6))).json);
  assert.deepEqual([whole, refused], [2, 4]);
  await until("the return of all bytes", async () => (await held(service)) === 0);
});

/** Ways in which a provider answers, none of them for long. */
function unsteady(random: () => number): Script {
  return ({ id }, reply) => {
    const size = Math.floor(random() * 800_000);
    const text = `{"jsonrpc":"2.0","id":${id},"result":"${"y".repeat(size)}"}`;
    const way = random();
    if (way < 0.5) return reply.body(text);
    if (way < 0.6) return reply.error('{"code":-32000,"message":"header not found"}');
    const half = reply.begin(text.slice(0, size / 2));
    if (way < 0.7) return void setTimeout(half.reset, random() * 5);
    if (way < 0.8) return void setTimeout(half.end, random() * 5);
    setTimeout(() => {
      half.write(text.slice(size / 2));
      half.end();
    }, random() * 10);
  };
}

for (const seed of namedSeeds(11, 12)) {
  test(
    "every byte goes back after failovers, broken answers, callers that leave and sockets that " +
      `close (seed ${seed})`,
    async (t) => {
      const random = seededRandom(seed);
      const { service } = await serviceFixture(
        t,
        [unsteady(random), unsteady(random), unsteady(random)],
        {
          extra: BOUND,
        },
      );
      const url = `${service.url.replace("http", "ws")}/ws/rpc/1`;
      const step = async (): Promise<void> => {
        const abort = new AbortController();
        if (random() < 0.4) setTimeout(() => abort.abort(), random() * 20).unref();
        if (random() < 0.5) {
          const body = JSON.stringify(
            random() < 0.7 ? batchOf(1 + Math.floor(random() * 8)) : batchOf(1)[0],
          );
          await fetch(`${service.url}/rpc/1`, { method: "POST", body, signal: abort.signal })
            .then((response) => response.text())
            .catch(() => {});
          return;
        }
        const ws = new WebSocket(url);
        ws.on("error", () => {});
        abort.signal.addEventListener("abort", () => ws.terminate());
        await new Promise<void>((resolve) => {
          let left = 4;
          ws.on("open", () => {
            for (let i = 0; i < 3; i++) ws.send(JSON.stringify(batchOf(6)[i]));
            ws.send(JSON.stringify(batchOf(5)));
          });
          ws.on("message", () => {
            left--;
            if (left === 0) ws.close();
          });
          ws.on("close", () => resolve());
        });
      };
      const workers = Array.from({ length: 6 }, async () => {
        for (let n = 0; n < 15; n++) await step();
      });
      const watch = watched(service);
      await Promise.all(workers);
      const most = await watch.stop();
      assert.ok(most > 100_000 && most < 12 * MB, `${most} bytes at most`);
      await until("the return of all bytes", async () => (await held(service)) === 0);
    },
  );
}

test(
  "items of a batch that are refused for want of room are not charged, and the answers to " +
    "writes are told without room",
  async (t) => {
    const bound = { limits: { ...BOUND.limits, max_caller_bytes: 200_000 } };
    const it = await hostedFixture(t, { starting_grant_cu: 1_000_000 }, bound);
    const text = JSON.stringify("x".repeat(30_000));
    it.premium.script((_, reply) => reply.result(text));
    const send = async (
      method: string,
    ): Promise<{ readonly told: number; readonly refused: number; readonly usedCu: number }> => {
      const key = await it.anonymousKey();
      const balance = async (): Promise<number> =>
        (await it.service.get(`/api/v1/agent/keys/${key}`)).json.balance_cu;
      const before = await balance();
      const items = Array.from({ length: 20 }, (_, id) => ({
        jsonrpc: "2.0",
        id,
        method,
        params: [`0x${id}`],
      }));
      const answers: readonly Item[] = (await it.service.post(`/rpc/k/${key}/ethereum`, items))
        .json;
      const told = answers.filter(({ result }) => result?.length === 30_000).length;
      for (const { error } of answers)
        if (error !== undefined) assert.equal(error.data.code, "unavailable");
      return { told, refused: answers.length - told, usedCu: before - (await balance()) };
    };
    const reads = await send("eth_getBlockByNumber");
    assert.ok(reads.told >= 5 && reads.refused >= 12, JSON.stringify(reads));
    const writes = await send("eth_sendRawTransactionSync");
    assert.deepEqual([writes.told, writes.refused], [20, 0]);
    const one = await it.anonymousKey();
    const cuOf = async (method: string): Promise<number> =>
      Number((await it.call(one, method)).headers.get("x-svc-cu"));
    assert.equal(reads.usedCu, reads.told * (await cuOf("eth_getBlockByNumber")));
    assert.equal(writes.usedCu, 20 * (await cuOf("eth_sendRawTransactionSync")));
    await until("the return of all bytes", async () => (await held(it.service)) === 0);
  },
);
