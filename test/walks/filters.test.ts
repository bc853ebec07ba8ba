// Filters over the running service: created, polled and ended as geth does it, on whatever URL and
// connection of one caller, through the death of providers and reorganisations, by sockets and by
// polling; kept for a caller who did not get the answer; refused in the words of nodes.
import assert from "node:assert/strict";
import { connect } from "node:net";
import { test } from "node:test";
import { ADDRESSES, type ChainBlock, type FakeChain, wanted } from "../fakes/chain.ts";
import { configOf } from "../fakes/service.ts";
import { metaOf, until } from "../fakes/service-fixture.ts";
import { type Reach, type SocketFixture, socketFixture } from "../fakes/socket-fixture.ts";
import { call, open } from "../web/socket/socket-fixture.ts";

const FAST = { extra: { chains: { ethereum: { chain_id: 1, block_time_ms: 400 } } } };

/** What a poll brought. */
// biome-ignore lint/suspicious/noExplicitAny: tests look into changes of any shape
type Changes = any[];

class Filter {
  readonly id: string;
  readonly #fixture: SocketFixture;

  constructor(fixture: SocketFixture, id: string) {
    this.#fixture = fixture;
    this.id = id;
  }

  async poll(): Promise<Changes> {
    const { json } = await this.#fixture.call("eth_getFilterChanges", [this.id]);
    assert.ok(Array.isArray(json.result), JSON.stringify(json));
    return json.result;
  }

  /** Polls until so many changes have come. */
  async changes(count: number): Promise<Changes> {
    const all: Changes = [];
    await until(`${count} changes`, async () => {
      all.push(...(await this.poll()));
      return all.length >= count;
    });
    assert.equal(all.length, count);
    return all;
  }
}

async function create(
  fixture: SocketFixture,
  method: string,
  ...params: readonly unknown[]
): Promise<Filter> {
  const { json } = await fixture.call(method, params);
  assert.match(json.result ?? JSON.stringify(json), /^0x[1-9a-f][0-9a-f]{33}$/);
  return new Filter(fixture, json.result);
}

for (const reaches of [
  ["both", "both"],
  ["http", "http"],
] as readonly (readonly Reach[])[])
  test(
    "blocks and logs since the creation, once each, through a provider's death and a " +
      `reorganisation (${reaches.join(", ")})`,
    async (t) => {
      const fixture = await socketFixture(t, reaches, FAST);
      const { chain, nodes, mine } = fixture;
      await fixture.listening();
      mine();
      const [blocks, logs] = [
        await create(fixture, "eth_newBlockFilter"),
        await create(fixture, "eth_newFilter", {}),
      ];
      assert.deepEqual(
        [await blocks.poll(), await logs.poll()],
        [[], []],
        "what was before is not told",
      );
      const began = chain.tip();
      mine();
      mine();
      const first = chain.walk(began, chain.tip()).come;
      assert.deepEqual(await blocks.changes(2), hashesOf(first));
      assert.deepEqual(
        namesOf(await logs.changes(first.flatMap(logsOf).length)),
        first.flatMap(logsOf),
      );
      assert.deepEqual([await blocks.poll(), await logs.poll()], [[], []], "nothing is told twice");
      nodes[0]?.ws.refuse({ status: 503 });
      nodes[0]?.ws.drop();
      nodes[0]?.http.script((_, reply) => reply.reset());
      const alive = chain.tip();
      for (let n = 0; n < 3; n++) mine();
      const second = chain.walk(alive, chain.tip()).come;
      assert.deepEqual(await blocks.changes(3), hashesOf(second));
      assert.deepEqual(
        namesOf(await logs.changes(second.flatMap(logsOf).length)),
        second.flatMap(logsOf),
      );
      const tip = chain.tip();
      chain.reorg(2, 1);
      const { left, come } = chain.walk(tip, chain.tip());
      for (const node of nodes) node.follow();
      assert.deepEqual(await blocks.changes(come.length), hashesOf(come));
      // What a provider takes back itself keeps its order; what the service takes back is the
      // newest first.
      const gone = left
        .flatMap((it) => (reaches[0] === "http" ? logsOf(it).toReversed() : logsOf(it)))
        .map((name) => `-${name}`);
      const expected = [...gone, ...come.flatMap(logsOf)];
      assert.deepEqual(namesOf(await logs.changes(expected.length)), expected);
    },
  );

test(
  "the criteria are those of geth: bounds of live logs, addresses and topics, and refusals in " +
    "its codes",
  async (t) => {
    const fixture = await socketFixture(t, ["ws"]);
    const { chain, mine } = fixture;
    await fixture.listening();
    const next = chain.tip().number + 1;
    const hex = (n: number): string => `0x${n.toString(16)}`;
    const history = await create(fixture, "eth_newFilter", { fromBlock: "0x1" });
    const bounded = await create(fixture, "eth_newFilter", {
      fromBlock: hex(next + 1),
      toBlock: hex(next + 2),
    });
    for (let n = 0; n < 5; n++) mine();
    const blocks = Array.from(
      { length: 5 },
      (_, n) => chain.at(chain.tip(), next + n) ?? assert.fail("a block"),
    );
    assert.deepEqual(
      namesOf(await history.changes(blocks.flatMap(logsOf).length)),
      blocks.flatMap(logsOf),
      "changes start at the creation",
    );
    assert.deepEqual(
      namesOf(await bounded.changes(blocks.slice(1, 3).flatMap(logsOf).length)),
      blocks.slice(1, 3).flatMap(logsOf),
    );
    for (const criteria of [
      { blockHash: `0x${"1".repeat(64)}` },
      { fromBlock: "pending" },
      { fromBlock: "0x5", toBlock: "0x4" },
      { address: "0x1" },
      "latest",
    ]) {
      const { json } = await fixture.call("eth_newFilter", [criteria]);
      assert.deepEqual(
        [json.error.code, json.error.data.code],
        [-32602, "invalid_field"],
        JSON.stringify(criteria),
      );
    }
  },
);

test(
  "an id that is unknown, ended or another's is not found; uninstalling tells whether there " +
    "was a filter",
  async (t) => {
    const fixture = await socketFixture(t, ["ws"]);
    await fixture.listening();
    const { id } = await create(fixture, "eth_newBlockFilter");
    for (const unknown of ["0x1", `0x1${"0".repeat(33)}`, "", 7, null]) {
      for (const method of ["eth_getFilterChanges", "eth_getFilterLogs"]) {
        const { json, status } = await fixture.call(method, [unknown]);
        assert.deepEqual(
          [status, json.error.code, json.error.message],
          [200, -32000, "filter not found"],
        );
      }
      assert.equal((await fixture.call("eth_uninstallFilter", [unknown])).json.result, false);
    }
    assert.equal(
      (await fixture.call("eth_getFilterLogs", [id])).json.error.message,
      "filter not found",
      "only filters of logs have logs",
    );
    assert.equal((await fixture.call("eth_uninstallFilter", [id])).json.result, true);
    assert.equal((await fixture.call("eth_uninstallFilter", [id])).json.result, false);
    assert.equal(
      (await fixture.call("eth_getFilterChanges", [id])).json.error.message,
      "filter not found",
    );
  },
);

test(
  "a filter is polled on any URL form and over a socket, also in batches; its logs are asked " +
    "of providers as eth_getLogs",
  async (t) => {
    const fixture = await socketFixture(t, ["both", "both"]);
    const { chain, mine, nodes, service } = fixture;
    await fixture.listening();
    const { id } = await create(fixture, "eth_newFilter", { fromBlock: "0x1", topics: [null] });
    const poll = async (path: string): Promise<Changes> =>
      (await service.post(path, call(1, "eth_getFilterChanges", [id]))).json.result;
    const told: Changes = [];
    const paths = [
      "/rpc/1",
      "/rpc/fastest/ethereum",
      "/rpc/profile/team/mainnet",
      "/rpc/profile/team/latency-weighted/1",
    ];
    for (const path of paths) {
      mine();
      mine();
      await until(
        "changes",
        async () =>
          told.push(...(await poll(path))) > 0 &&
          told.some((it) => it.blockHash === newestWithLogs(chain)),
      );
    }
    const client = await open(t, service.port, "/ws/rpc/1");
    const before = chain.tip();
    for (let n = 0; n < 3; n++) mine();
    const come = chain.walk(before, chain.tip()).come.flatMap(logsOf);
    const socket: Changes = [];
    await until("changes over a socket", async () => {
      client.send([call(2, "eth_getFilterChanges", [id]), call(3, "eth_getFilterChanges", [id])]);
      for (const { result } of await client.next()) socket.push(...result);
      return socket.length >= come.length;
    });
    assert.deepEqual(namesOf(socket), come);
    const asked = nodes[0]?.http.asked.length;
    const logs = await fixture.call("eth_getFilterLogs", [id]);
    assert.deepEqual(metaOf(logs)["selected_provider"], { id: "a" });
    const [request] = nodes[0]?.http.asked.slice(asked) ?? [];
    assert.deepEqual(
      [request?.method, request?.params],
      ["eth_getLogs", [{ fromBlock: "0x1", topics: [null] }]],
    );
    const created = await service.post("/rpc/1?include_meta=body", call(4, "eth_newBlockFilter"));
    assert.deepEqual(
      ["source" in created.json.svc_meta, created.json.svc_meta.attempts.length > 0],
      [false, true],
    );
    const polled = await service.post(
      "/rpc/1?include_meta=body",
      call(5, "eth_getFilterChanges", [created.json.result]),
    );
    assert.deepEqual(
      [
        polled.json.svc_meta.source,
        polled.json.svc_meta.selected_provider,
        polled.json.svc_meta.attempts,
      ],
      ["shared", null, []],
    );
  },
);

test("a pinned filter stays with its provider, wherever it is polled", async (t) => {
  const fixture = await socketFixture(t, ["both", "both"]);
  await fixture.listening();
  const { json } = await fixture.service.post(
    "/rpc/profile/team/priority/1?provider=b",
    call(1, "eth_newFilter", [{}]),
  );
  const filter = new Filter(fixture, json.result);
  fixture.mine("a");
  assert.deepEqual(await filter.poll(), []);
  const asked = (): number => {
    const { http, ws } = fixture.nodes[1] ?? assert.fail();
    return [...http.asked, ...ws.asked].filter((it) => it.method === "eth_getLogs").length;
  };
  const before = asked();
  assert.deepEqual(
    metaOf(await fixture.call("eth_getFilterLogs", [filter.id]))["selected_provider"],
    { id: "b" },
  );
  assert.equal(asked(), before + 1);
});

test(
  "pending transactions are told by their hashes, and a chain that nobody tells them of " +
    "refuses the method",
  async (t) => {
    const fixture = await socketFixture(t, ["ws"]);
    await fixture.listening();
    const filter = await create(fixture, "eth_newPendingTransactionFilter");
    const hashes = ["1", "2", "3"].map((it) => `0x${it.repeat(64)}`);
    for (const hash of [...hashes, ...hashes])
      fixture.nodes[0]?.ws.notify("newPendingTransactions", `"${hash}"`);
    assert.deepEqual(await filter.changes(3), hashes);
    const polled = await socketFixture(t, ["http"]);
    const { json } = await polled.call("eth_newPendingTransactionFilter");
    assert.deepEqual([json.error.code, json.error.data.code], [-32601, "filter_unsupported"]);
    const refusing = await socketFixture(t, ["ws"]);
    refusing.nodes[0]?.ws.script((asked, reply) =>
      asked.method === "eth_subscribe" && JSON.stringify(asked.params).includes("Pending")
        ? reply.error('{"code":-32601,"message":"no such subscription"}')
        : (refusing.nodes[0]?.sane(asked, reply) ?? undefined),
    );
    assert.equal((await refusing.call("eth_newPendingTransactionFilter")).json.error.code, -32601);
  },
);

test("an answer that does not reach its caller is kept for the next poll", async (t) => {
  const fixture = await socketFixture(t, ["ws"]);
  const { mine, chain, service } = fixture;
  await fixture.listening();
  const [filter, twin] = [
    await create(fixture, "eth_newFilter", {}),
    await create(fixture, "eth_newFilter", {}),
  ];
  const began = chain.tip();
  for (let n = 0; n < 3; n++) mine();
  const come = chain.walk(began, chain.tip()).come.flatMap(logsOf);
  await twin.changes(come.length);
  // Far more than a connection that is never read can take.
  fixture.nodes[0]?.ws.script((asked, reply) => {
    if (asked.method === "eth_gasPrice") return reply.result(`"${"x".repeat(1_000_000)}"`);
    return fixture.nodes[0]?.sane(asked, reply);
  });
  const body = JSON.stringify(
    Array.from({ length: 40 }, (_, n) =>
      n === 0 ? call(n, "eth_getFilterChanges", [filter.id]) : call(n),
    ),
  );
  const socket = connect(service.port, "127.0.0.1");
  socket.pause();
  socket.write(
    `POST /rpc/1 HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: ` +
      `${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
  await until("the batch", () => (fixture.nodes[0]?.ws.count("eth_gasPrice") ?? 0) >= 39);
  assert.deepEqual(await filter.poll(), [], "it is on its way to the first caller");
  socket.destroy();
  assert.deepEqual(namesOf(await filter.changes(come.length)), come);
});

test("a socket that goes before the answer to its batch takes no changes with it", async (t) => {
  const fixture = await socketFixture(t, ["ws"]);
  const { mine, chain, service, nodes } = fixture;
  await fixture.listening();
  const [filter, twin] = [
    await create(fixture, "eth_newBlockFilter"),
    await create(fixture, "eth_newBlockFilter"),
  ];
  mine();
  assert.deepEqual(await twin.changes(1), [chain.tip().hash]);
  nodes[0]?.ws.script((asked, reply) =>
    asked.method === "eth_gasPrice" ? undefined : nodes[0]?.sane(asked, reply),
  );
  const client = await open(t, service.port, "/ws/rpc/1");
  client.send([call(1, "eth_getFilterChanges", [filter.id]), call(2, "eth_gasPrice")]);
  await until("the batch", () => nodes[0]?.ws.count("eth_gasPrice") === 1);
  assert.deepEqual(await filter.poll(), []);
  client.ws.terminate();
  assert.deepEqual(await filter.changes(1), [chain.tip().hash]);
});

test(
  "a reload without its profile ends a filter; /metrics tells how many there are and why they " +
    "ended",
  async (t) => {
    const fixture = await socketFixture(t, ["ws"]);
    await fixture.listening();
    const filter = await create(fixture, "eth_newBlockFilter");
    await create(fixture, "eth_newFilter", {});
    const text = async (): Promise<string> => (await fixture.service.get("/metrics")).text;
    assert.match(await text(), /svc_filters\{profile="team",chain="ethereum",kind="blocks"\} 1\n/);
    assert.equal(
      fixture.service.app.reload(configOf(fixture.text(["a"], { slug: "other" }))),
      null,
    );
    await until("the end", async () =>
      /svc_filters_ended_total\{profile="team",chain="ethereum",reason="lost"\} 2\n/.test(
        await text(),
      ),
    );
    assert.match(
      (
        await fixture.service.post(
          "/rpc/profile/other/1",
          call(1, "eth_getFilterChanges", [filter.id]),
        )
      ).text,
      /filter not found/,
    );
  },
);

test("filters are bounded for each caller and in sum", async (t) => {
  const fixture = await socketFixture(t, ["ws"], {
    extra: { limits: { max_caller_filters: 3, max_filters: 5 } },
  });
  await fixture.listening();
  const filters = [
    await create(fixture, "eth_newBlockFilter"),
    await create(fixture, "eth_newBlockFilter"),
    await create(fixture, "eth_newFilter", {}),
  ];
  const { json } = await fixture.call("eth_newBlockFilter");
  assert.deepEqual([json.error.code, json.error.data.code], [-32005, "rate_limit_exceeded"]);
  await fixture.call("eth_uninstallFilter", [filters[0]?.id]);
  await create(fixture, "eth_newBlockFilter");
});

function hashesOf(blocks: readonly ChainBlock[]): readonly string[] {
  return blocks.map((it) => it.hash);
}

function logsOf(block: ChainBlock): readonly string[] {
  return wanted(block, {}).map((it) => `${block.hash} ${it.index}`);
}

function namesOf(changes: Changes): readonly string[] {
  return changes.map(
    (it) => `${it.removed === true ? "-" : ""}${it.blockHash} ${Number(it.logIndex)}`,
  );
}

function newestWithLogs(chain: FakeChain): string {
  let block: ChainBlock | undefined = chain.tip();
  while (block !== undefined && block.logs.length === 0) block = chain.byHash(block.parentHash);
  return block?.hash ?? "";
}

test(
  "log filters count for one caller, whether it has them over a socket or over HTTP, from any " +
    "address of its IPv6 network",
  async (t) => {
    const set = {
      limits: { max_keyless_log_filters: 1 },
      server: { port: 0, trusted_proxies: ["127.0.0.1"] },
    };
    const fixture = await socketFixture(t, ["both"], { extra: { ...FAST.extra, ...set } });
    await fixture.listening();
    const [mine, other] = [
      { "x-forwarded-for": "2001:db8:7:7::1" },
      { "x-forwarded-for": "2001:db8:7:8::1" },
    ];
    const client = await open(t, fixture.service.port, "/ws/rpc/1", { headers: mine });
    client.send(call(1, "eth_subscribe", ["logs", { address: ADDRESSES[0] }]));
    assert.equal(typeof (await client.next()).result, "string");
    const create = async (
      headers: Record<string, string>,
      address: string | undefined,
    ): Promise<string> => {
      const { json } = await fixture.service.post(
        "/rpc/1",
        call(2, "eth_newFilter", [{ address }]),
        headers,
      );
      return json.error?.data.code ?? "created";
    };
    const again = { "x-forwarded-for": "2001:db8:7:7:ffff::2" };
    assert.deepEqual(
      [
        await create(again, ADDRESSES[1]),
        await create(again, ADDRESSES[0]),
        await create(other, ADDRESSES[1]),
      ],
      ["rate_limit_exceeded", "created", "created"],
    );
  },
);

test(
  "a filter on a chain without sockets whose providers fail for a moment is told to come again, " +
    "and opens then",
  async (t) => {
    const fixture = await socketFixture(t, ["http", "http"], FAST);
    for (const { http, saneHttp } of fixture.nodes)
      http.script((request, reply) =>
        request.method === "eth_getBlockByNumber"
          ? reply.error('{"code":-32603,"message":"Internal error"}', 200)
          : saneHttp(request, reply),
      );
    const { json } = await fixture.call("eth_newBlockFilter");
    const { code, reason, retryable, retry_after_ms: waitMs } = json.error.data;
    assert.deepEqual(
      [code, reason, retryable],
      ["unavailable", "all_providers_failed", true],
      JSON.stringify(json),
    );
    assert.ok(waitMs >= 250 && waitMs <= 1_000, `${waitMs} ms`);
    for (const { http, saneHttp } of fixture.nodes) http.script(saneHttp);
    await create(fixture, "eth_newBlockFilter");
  },
);
