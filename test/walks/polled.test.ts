// Subscriptions where no provider has a socket, or none of those that have one: heads and logs are
// polled over HTTP, and nobody notices but by the clock.
import assert from "node:assert/strict";
import { test } from "node:test";
import { type ChainBlock, type FakeChain, headerText, wanted } from "../fakes/chain.ts";
import { socketFixture, subscribe, subscriptionsOf, told } from "../fakes/socket-fixture.ts";

const FAST = { extra: { chains: { ethereum: { chain_id: 1, block_time_ms: 400 } } } };

test(
  "heads and logs come by polling in the shape of pushed ones, reorganisations too, and go on " +
    "at another provider without a gap",
  async (t) => {
    const { service, chain, nodes, open, mine } = await socketFixture(t, ["http", "http"], FAST);
    const [heads, logs] = [await open(), await open()];
    const [headsId, logsId] = [
      await subscribe(heads, "newHeads"),
      await subscribe(logs, "logs", {}),
    ];
    const began = chain.tip();
    mine();
    mine();
    assert.deepEqual(await told(heads, headsId, 2), textsOf(chain, began));
    nodes[0]?.http.script((_, reply) => reply.reset());
    const before = chain.tip();
    for (let n = 0; n < 3; n++) mine();
    assert.deepEqual(await told(heads, headsId, 3), textsOf(chain, before));
    const first = between(chain, began, chain.tip());
    const { left, come } = replaced(chain, 2);
    for (const it of nodes) it.follow();
    assert.deepEqual(await told(heads, headsId, come.length), come.map(headOf));
    const inTurn = [
      ...first.flatMap(logsOf),
      ...left.flatMap((it) => logsOf(it).toReversed()).map((it) => `-${it}`),
      ...come.flatMap(logsOf),
    ];
    const names = (await told(logs, logsId, inTurn.length)).map(
      (it) => `${it.removed === true ? "-" : ""}${it.blockHash} ${Number(it.logIndex)}`,
    );
    assert.deepEqual(names, inTurn);
    const { failovers, streams } = await subscriptionsOf(service);
    assert.ok(failovers.lost >= 1);
    assert.deepEqual(
      new Set(streams.map((it: { provider: string }) => it.provider)),
      new Set(["b"]),
    );
  },
);

test("a stream whose only socket dies is polled", async (t) => {
  const { service, chain, nodes, open, mine, listening } = await socketFixture(
    t,
    ["ws", "http"],
    FAST,
  );
  await listening();
  const client = await open();
  const id = await subscribe(client, "newHeads");
  const [first] = nodes;
  assert.ok(first !== undefined);
  first.ws.refuse({ status: 503 });
  first.ws.drop();
  const began = chain.tip();
  for (let n = 0; n < 4; n++) mine();
  assert.deepEqual(await told(client, id, 4), textsOf(chain, began));
  assert.equal((await subscriptionsOf(service)).streams[0].provider, "b");
});

function replaced(
  chain: FakeChain,
  depth: number,
): { readonly left: readonly ChainBlock[]; readonly come: readonly ChainBlock[] } {
  const tip = chain.tip();
  chain.reorg(depth, 1);
  return chain.walk(tip, chain.tip());
}

function between(chain: FakeChain, from: ChainBlock, to: ChainBlock): readonly ChainBlock[] {
  return chain.walk(from, to).come;
}

function textsOf(chain: FakeChain, from: ChainBlock): readonly unknown[] {
  return between(chain, from, chain.tip()).map(headOf);
}

function headOf(block: ChainBlock): unknown {
  return JSON.parse(headerText(block));
}

function logsOf(block: ChainBlock): readonly string[] {
  return wanted(block, {}).map((it) => `${block.hash} ${it.index}`);
}
