// Log subscriptions with fromBlock and toBlock, as stock clients send them: numbers bound the live
// logs, and share the upstream of those without.
import assert from "node:assert/strict";
import { test } from "node:test";
import { wanted } from "../fakes/chain.ts";
import { socketFixture, subscribe, told } from "../fakes/socket-fixture.ts";
import { call } from "../web/socket/socket-fixture.ts";

test(
  "the bounds that geth's client always sends change nothing; numbers leave out the logs of " +
    "other blocks, over one upstream",
  async (t) => {
    const { chain, nodes, open, mine, listening } = await socketFixture(t, ["ws"]);
    await listening();
    const [everything, usual, some] = [await open(), await open(), await open()];
    const first = chain.tip().number + 1;
    const hex = (n: number): string => `0x${n.toString(16)}`;
    const ids = [
      await subscribe(everything, "logs", {}),
      await subscribe(usual, "logs", {
        address: null,
        topics: null,
        fromBlock: "0x0",
        toBlock: "latest",
      }),
      await subscribe(some, "logs", { fromBlock: hex(first + 2), toBlock: hex(first + 5) }),
    ] as const;
    assert.equal(nodes[0]?.ws.subscriptions("logs"), 1, "one upstream for all of them");
    for (let n = 0; n < 12; n++) mine();
    const logs = (from: number, to: number) =>
      Array.from({ length: to - from + 1 }, (_, n) => chain.at(chain.tip(), from + n)).flatMap(
        (it) => (it === undefined ? [] : wanted(it, {}).map((log) => `${it.hash} ${log.index}`)),
      );
    const all = logs(first, first + 11);
    const bounded = logs(first + 2, first + 5);
    assert.ok(bounded.length > 0 && bounded.length < all.length);
    const names = (results: readonly { readonly blockHash: string; readonly logIndex: string }[]) =>
      results.map((it) => `${it.blockHash} ${Number(it.logIndex)}`);
    assert.deepEqual(names(await told(everything, ids[0], all.length)), all);
    assert.deepEqual(names(await told(usual, ids[1], all.length)), all);
    assert.deepEqual(names(await told(some, ids[2], bounded.length)), bounded);
    some.send(call("end", "eth_blockNumber"));
    assert.equal((await some.next()).id, "end", "nothing else was told");
  },
);

test("bounds that no live log can meet, or that geth refuses, are refused in words", async (t) => {
  const { open } = await socketFixture(t, ["ws"]);
  const client = await open();
  for (const option of [
    { fromBlock: "pending" },
    { toBlock: "pending" },
    { fromBlock: "0x6", toBlock: "0x5" },
    { blockHash: `0x${"1".repeat(64)}` },
  ]) {
    client.send(call(1, "eth_subscribe", ["logs", option]));
    const { error } = await client.next();
    assert.equal(error.code, -32602, JSON.stringify(option));
    assert.equal(error.data.code, "invalid_field");
  }
});
