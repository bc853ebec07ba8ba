// A new configuration while filters are open: they go on at the providers that are configured now,
// with what is configured of them, and at no other one.
import assert from "node:assert/strict";
import { test } from "node:test";
import { configOf } from "../fakes/service.ts";
import { until } from "../fakes/service-fixture.ts";
import { type SocketFixture, type SocketNode, socketFixture } from "../fakes/socket-fixture.ts";

const FAST = { extra: { chains: { ethereum: { chain_id: 1, block_time_ms: 400 } } } };
const NEWEST = "eth_getBlockByNumber";

function reload(
  { service, text }: SocketFixture,
  ids: readonly string[],
  settings?: Parameters<SocketFixture["text"]>[1],
): void {
  assert.equal(service.app.reload(configOf(text(ids, settings))), null);
}

async function ask(fixture: SocketFixture, method: string, ...params: readonly unknown[]) {
  return (await fixture.call(method, params)).json;
}

/** Polls until so many changes have come, and not one more. */
async function changes(
  fixture: SocketFixture,
  id: string,
  count: number,
): Promise<readonly string[]> {
  const all: string[] = [];
  await until(`${count} changes`, async () => {
    all.push(...(await ask(fixture, "eth_getFilterChanges", id)).result);
    return all.length >= count;
  });
  assert.equal(all.length, count);
  return all;
}

function askedFor(node: SocketNode | undefined, method = NEWEST) {
  return node?.http.asked.filter((it) => it.method === method) ?? [];
}

test(
  "a filter whose provider is removed goes on at the one that has come, without a gap, and the " +
    "removed one is asked nothing more",
  async (t) => {
    const fixture = await socketFixture(t, ["http", "http"], FAST);
    const [a, b] = fixture.nodes;
    reload(fixture, ["a"]);
    const id = (await ask(fixture, "eth_newBlockFilter")).result;
    const first = fixture.mine();
    assert.deepEqual(await changes(fixture, id, 1), [first.hash]);
    const blocks = [fixture.mine("b"), fixture.mine("b")];
    reload(fixture, ["b"]);
    const asked = a?.http.asked.length;
    blocks.push(fixture.mine("b"));
    assert.deepEqual(
      await changes(fixture, id, 3),
      blocks.map((it) => it.hash),
    );
    assert.equal(a?.http.asked.length, asked);
    assert.ok(askedFor(b).length > 0);
  },
);

test("a filter that is polled goes on with the headers that its provider has now", async (t) => {
  const withKey = (key: string) => ({ ...FAST, providers: [{ headers: { "x-key": key } }] });
  const fixture = await socketFixture(t, ["http"], withKey("one"));
  const [a] = fixture.nodes;
  const id = (await ask(fixture, "eth_newBlockFilter")).result;
  const keys = () => askedFor(a).map((it) => it.headers["x-key"]);
  assert.deepEqual([...new Set(keys())], ["one"]);
  reload(fixture, ["a"], withKey("two"));
  const before = keys().length;
  const block = fixture.mine();
  assert.deepEqual(await changes(fixture, id, 1), [block.hash]);
  assert.deepEqual([...new Set(keys().slice(before))], ["two"]);
});

test(
  "a filter that is being created when its providers are removed is created at the one that " +
    "has come, and those removed are asked no more",
  async (t) => {
    const fixture = await socketFixture(t, ["http", "http", "http"], FAST);
    const [a, , c] = fixture.nodes;
    reload(fixture, ["a", "c"]);
    let answerLate = (): void => {};
    a?.http.script((asked, reply) => {
      if (asked.method !== NEWEST) return a.saneHttp(asked, reply);
      answerLate = () => a.saneHttp(asked, reply);
    });
    const creating = ask(fixture, "eth_newBlockFilter");
    await until("the first provider is asked", () => askedFor(a).length === 1);
    reload(fixture, ["b"]);
    const id = (await creating).result;
    answerLate();
    const block = fixture.mine("b");
    assert.deepEqual(await changes(fixture, id, 1), [block.hash]);
    assert.deepEqual([askedFor(a).length, askedFor(c).length], [1, 0]);
  },
);

test("filters of a profile and of a pinned provider that go end, and say so at the next poll", async (t) => {
  const fixture = await socketFixture(t, ["http", "http"], FAST);
  const pinned = await fixture.service.post("/rpc/provider/a/1", {
    jsonrpc: "2.0",
    id: 1,
    method: "eth_newBlockFilter",
    params: [],
  });
  assert.match(pinned.json.result, /^0x/);
  reload(fixture, ["b"]);
  for (const method of ["eth_getFilterChanges", "eth_getFilterLogs"])
    assert.equal(
      (await ask(fixture, method, pinned.json.result)).error.message,
      "filter not found",
    );
});
