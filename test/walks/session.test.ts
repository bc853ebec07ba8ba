// Calls paid one by one, end to end: the real service, a local Tempo chain with the stand-in for
// channels, and mppx's own client with a wallet.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Mppx, tempo } from "mppx/client";
import { Session } from "mppx/tempo";
import { RECIPIENT, SESSION } from "../../src/devnet/payments/wallets.ts";
import {
  assertBooked,
  callOf,
  chainsOfFile,
  challengesOf,
  quiet,
  rowOf,
  sessionFixture,
  stockClient,
  until,
} from "./session-fixture.ts";

const chains = await chainsOfFile();

const PRICE = 15n;

test(
  "a stock client pays for 120 calls over one channel, is settled by amount while it calls, " +
    "closes, and money moved is money spent and booked",
  async (t) => {
    const fixture = await sessionFixture(t, chains, {
      provider: (it) => it.evm.rpcUrl,
      rail: { settleN: 500_000n },
    });
    const before = await chains.tempo.balanceOf(chains.payer.address);
    const { manager } = stockClient(chains, chains.payer);
    for (let call = 1; call <= 120; call++) {
      const response = await manager.fetch(
        fixture.url(),
        callOf(
          call % 2 === 0 ? "eth_gasPrice" : "eth_getBalance",
          call,
          call % 2 === 0 ? [] : [RECIPIENT.address, "latest"],
        ),
      );
      assert.equal(response.status, 200);
      assert.match(JSON.parse(await response.text()).result, /^0x[0-9a-f]+$/);
      assert.deepEqual(
        [response.receipt?.spent, response.receipt?.units],
        [String(PRICE * BigInt(call)), call],
      );
      assert.deepEqual(
        [response.headers.get("x-svc-cu"), response.headers.get("x-svc-usd")],
        ["3", "0.000015"],
      );
      assert.equal(response.headers.get("cache-control"), "private");
    }
    await until(
      () => /"kind":"settle"/.test(fixture.service().log()),
      "it is settled while it calls",
    );
    assert.match((await fixture.service().get("/metrics")).text, /^svc_session_channels 1$/m);
    const receipt = await manager.close();
    assert.equal(receipt?.spent, String(120n * PRICE));
    await quiet(fixture);
    const paid = before - (await chains.tempo.balanceOf(chains.payer.address));
    await fixture.read(async (store) => {
      const { settledUnits, spentUnits } = await assertBooked(store);
      assert.deepEqual([settledUnits, spentUnits], [120n * PRICE, 120n * PRICE]);
      const rows = await store.db
        .selectFrom("session_transaction")
        .select(["kind", "moved_units"])
        .where("state", "=", "done")
        .orderBy("created_at")
        .execute();
      assert.ok(rows.filter((it) => it.kind === "settle").length > 0);
      assert.equal(
        rows.reduce((sum, it) => sum + it.moved_units, 0n),
        120n * PRICE,
      );
      // What the payer is poorer by beyond that are the fees of opening.
      assert.ok(paid >= 120n * PRICE && paid < 120n * PRICE + 50_000n, String(paid));
    });
  },
);

test(
  "a price follows method and strategy; the challenge says it before, and nothing is asked of " +
    "a provider before it is paid",
  async (t) => {
    const fixture = await sessionFixture(t, chains);
    const amountOf = async (url: string, method: string): Promise<unknown> => {
      const response = await fetch(url, callOf(method));
      assert.equal(response.status, 402);
      assert.equal(response.headers.get("cache-control"), "no-store");
      assert.equal(JSON.parse(await response.text()).error.data.code, "payment_required");
      return challengesOf(response)[0]?.request["amount"];
    };
    const fastest = fixture.url().replace("load-balanced", "fastest");
    assert.equal(await amountOf(fixture.url(), "eth_blockNumber"), "5");
    assert.equal(await amountOf(fixture.url(), "eth_getLogs"), "75");
    assert.equal(await amountOf(fastest, "eth_getLogs"), "150");
    assert.equal(await amountOf(fastest, "debug_traceCall"), "500");
    assert.deepEqual(fixture.upstream.asked, []);
  },
);

test("a kept answer costs a voucher its share of the price that it was told before", async (t) => {
  const fixture = await sessionFixture(t, chains, {
    hosted: { cache_price: 0.4 },
    extra: { cache: {} },
  });
  const { manager } = stockClient(chains, chains.payer);
  const call = callOf("eth_getBlockTransactionCountByHash", 1, [`0x${"1".repeat(64)}`]);
  const paid: (string | null)[][] = [];
  for (let n = 0; n < 3; n++) {
    const { headers } = await manager.fetch(fixture.url(), call);
    paid.push(["x-svc-cu", "x-svc-usd"].map((name) => headers.get(name)));
  }
  // 3 CU, of which two fifths are 2 in whole units.
  const cached = ["2", "0.00001"];
  assert.deepEqual(paid, [["3", "0.000015"], cached, cached]);
  const { spent_units } = await rowOf(fixture, manager.channelId ?? "");
  assert.equal(spent_units, PRICE + 20n);
});

test("an empty request without a payment is told the declared amount", async (t) => {
  const fixture = await sessionFixture(t, chains);
  const response = await fetch(fixture.url(), { method: "POST" });
  assert.equal(response.status, 402);
  assert.equal(challengesOf(response)[0]?.request["amount"], "100");
});

test("a deposit that runs out is topped up by the stock client, and one that is asked to", async (t) => {
  const fixture = await sessionFixture(t, chains, { rail: { depositN: 45_000n } });
  const { manager } = stockClient(chains, chains.otherPayers[0] ?? chains.payer);
  for (let call = 1; call <= 7; call++)
    assert.equal(
      (await manager.fetch(fixture.url(), callOf("eth_gasPrice", call))).status,
      200,
      `call ${call}`,
    );
  await manager.topUp("0.001");
  assert.equal((await manager.fetch(fixture.url(), callOf("eth_gasPrice", 8))).status, 200);
  await manager.close();
  await fixture.read(async (store) => {
    const { spentUnits } = await assertBooked(store);
    assert.equal(spentUnits, 8n * PRICE);
    const ups = await store.db
      .selectFrom("session_transaction")
      .select("units")
      .where("kind", "=", "top_up")
      .where("state", "=", "done")
      .execute();
    assert.ok(ups.length >= 3, `${ups.length} top-ups`);
  });
});

test("concurrent calls over one channel are each paid for once, in any order of their ends", async (t) => {
  const fixture = await sessionFixture(t, chains);
  fixture.upstream.script(({ params }, reply) =>
    setTimeout(() => reply.result(`"${params}"`), Number(params) % 2 === 0 ? 60 : 5),
  );
  const { client, account } = stockClient(chains, chains.otherPayers[1] ?? chains.payer);
  const method = tempo.session({ account, getClient: () => client });
  const mppx = Mppx.create({ methods: [method], polyfill: false });
  assert.equal((await mppx.fetch(fixture.url(), callOf("eth_gasPrice", 1))).status, 200);
  const answers = await Promise.all(
    Array.from({ length: 24 }, (_, at) =>
      mppx
        .fetch(fixture.url(), callOf("eth_gasPrice", at + 2, [at + 2]))
        .then(async (it) => [it.status, JSON.parse(await it.text()).result]),
    ),
  );
  assert.deepEqual(
    answers,
    Array.from({ length: 24 }, (_, at) => [200, String(at + 2)]),
  );
  assert.equal(fixture.upstream.asked.length, 25);
  await fixture.read(async (store) => {
    const row = await store.db
      .selectFrom("session_channel")
      .select(["spent_units", "calls"])
      .executeTakeFirstOrThrow();
    assert.deepEqual([row.spent_units, row.calls], [25n * PRICE, 25n]);
  });
});

test(
  "where blocks have to follow, a channel counts after them; until then it is pending, and the " +
    "same opening is served later",
  async (t) => {
    const fixture = await sessionFixture(t, chains, { rail: { confirmations: 3 }, waitMs: 300 });
    let credential = "";
    const keep: typeof fetch = async (input, init) => {
      credential = new Headers(init?.headers).get("authorization") ?? credential;
      return fetch(input, init);
    };
    const { manager } = stockClient(chains, chains.payer, { fetch: keep });
    await chains.holdTempo(true);
    assert.equal((await manager.fetch(fixture.url(), callOf("eth_gasPrice"))).status, 503);
    const again = () =>
      fetch(fixture.url(), {
        ...callOf("eth_gasPrice"),
        headers: { "content-type": "application/json", authorization: credential },
      });
    for (let block = 0; block < 3; block++) {
      await chains.tempo.rpc("evm_mine");
      assert.equal((await again()).status, 503, `with ${block} blocks after it`);
    }
    assert.equal(fixture.upstream.asked.length, 0);
    await chains.holdTempo(false);
    await until(async () => (await again()).status === 200, "it is served");
    assert.equal(fixture.upstream.asked.length, 1);
  },
);

test(
  "a payer who tells the chain to give the deposit back is not served any more; what was spent " +
    "is taken out, the rest goes back",
  async (t) => {
    const fixture = await sessionFixture(t, chains);
    const { manager, client, account } = stockClient(chains, chains.payer);
    for (let call = 1; call <= 3; call++)
      assert.equal((await manager.fetch(fixture.url(), callOf("eth_gasPrice", call))).status, 200);
    const { state } = manager;
    assert.ok(state.status === "active");
    const before = await chains.tempo.balanceOf(SESSION.address);
    const feeToken = "0x20c0000000000000000000000000000000000000";
    const asked = await Session.Precompile.Chain.requestCloseOnChain(
      client,
      state.descriptor,
      undefined,
      { account, feeToken },
    );
    await until(
      async () => (await chains.tempo.rpc("eth_getTransactionReceipt", asked)) !== null,
      "a block has it",
    );
    // Some time before it would look anyway.
    fixture.pass(30_000);
    await until(
      async () => (await rowOf(fixture, state.channelId)).state === "closed",
      "it is closed",
    );
    const refused = await manager.fetch(fixture.url(), callOf("eth_gasPrice", 4));
    assert.equal(refused.status, 402);
    assert.equal(fixture.upstream.asked.length, 3);
    assert.ok((await chains.tempo.balanceOf(SESSION.address)) <= before + 3n * PRICE);
    await fixture.read(async (store) =>
      assert.equal((await assertBooked(store)).settledUnits, 3n * PRICE),
    );
  },
);
