// Pay-per-call against payers and nodes who mean it badly: another rail's channel, top-ups by the
// dozen, promises far ahead, a node that stands still.
import assert from "node:assert/strict";
import { test } from "node:test";
import { ChainFailure } from "../../../src/payments/rails/chain.ts";
import type { EvmNode } from "../../../src/payments/rails/evm/node.ts";
import { Escrow } from "../../../src/payments/session/chain/escrow.ts";
import { syncWithChain } from "../../../src/payments/session/chain-sync.ts";
import { CredentialHandler } from "../../../src/payments/session/credential-handler.ts";
import type { Hex } from "../../../src/payments/session/descriptor.ts";
import { LiveChannels } from "../../../src/payments/session/live-channels.ts";
import type { Runtime } from "../../../src/runtime.ts";
import { simulatedWorld } from "../../fakes/runtime.ts";
import { eachStore } from "../../fakes/stores.ts";
import {
  type ChannelFixture,
  channelFixture,
  channelOf,
  type Life,
  openingOf,
  topUpOf,
  voucherOf,
} from "./session-fixture.ts";

const PRICE = 15n;
const DEPOSIT = 10n * PRICE;
const VALID_MS = 25_000;

/** A channel that has paid for one call, and promised `units` for it. */
async function opened(
  fixture: ChannelFixture,
  life: Life,
  units = PRICE,
  number = 1,
): Promise<void> {
  const payload = openingOf(number, {
    deposit: DEPOSIT,
    units,
    validUntilMs: fixture.runtime.wallMs() + VALID_MS,
  });
  const call = { units: PRICE, calls: 1, fingerprint: "first" };
  const taken = await fixture.run(
    life.counter.take({ payload, challengeId: "open", expired: false, call }),
  );
  assert.ok(taken.kind === "hold");
  assert.equal(
    (
      await fixture.run(
        taken.settle({ units: PRICE, cu: 3, status: 200, body: null, abandoned: false }),
      )
    ).kind,
    "bill",
  );
}

eachStore(({ engine, open }) => {
  test(
    "a channel of one rail is neither shown nor taken by another one, whose chain knows nothing " +
      `of it (${engine})`,
    async (t) => {
      const fixture = channelFixture(await open(t));
      const life = fixture.start();
      await opened(fixture, life);
      const { session } = life;
      const other = {
        ...session,
        terms: { ...session.terms, chainId: 4217 },
        live: new LiveChannels({ store: session.store, channels: session.channels }),
      };
      const size = { perSecond: 1, burst: 1 };
      const { reader } = life;
      const counter = new CredentialHandler(other, reader, size);
      assert.equal(await fixture.run(counter.remind(channelOf(1).id, PRICE)), null);
      const taken = await fixture.run(
        counter.take({
          payload: voucherOf(1, 2n * PRICE),
          challengeId: "c",
          expired: false,
          call: null,
        }),
      );
      assert.ok(taken.kind === "refused" && taken.snapshot === null);
      assert.match(taken.fault.message, /descriptor is not the one of this channel, chain/);
      life.kill();
    },
  );

  test(`however many top-ups are sent at one time, few are written down and waited for (${engine})`, async (t) => {
    const fixture = channelFixture(await open(t));
    let isLost = false;
    const life = fixture.start({
      fate: (_, name) => (isLost && name === "send" ? "lost request" : "fine"),
    });
    await opened(fixture, life);
    isLost = true;
    const nowMs = fixture.runtime.wallMs();
    const payloads = Array.from({ length: 20 }, (_, at) =>
      topUpOf(1, { units: 1n, validUntilMs: nowMs + VALID_MS + at }),
    );
    const all = payloads.map((payload) =>
      life.counter.take({ payload, challengeId: "c", expired: false, call: null }),
    );
    const kinds = (await fixture.run(Promise.all(all))).map((it) =>
      it.kind === "refused" ? it.fault.code : it.kind,
    );
    const { length } = await fixture.store.db
      .selectFrom("session_transaction")
      .select("tx_hash")
      .where("kind", "=", "top_up")
      .execute();
    assert.deepEqual(
      [
        length,
        kinds.filter((it) => it === "payment_pending").length,
        kinds.filter((it) => it === "rate_limit_exceeded").length,
      ],
      [7, 7, 13],
    );
    life.kill();
  });

  test(
    "a payer who loses the answers of many calls at one time gets each of them again, and is not " +
      `asked to pay once more (${engine})`,
    async (t) => {
      const fixture = channelFixture(await open(t));
      const life = fixture.start();
      await opened(fixture, life);
      const put = topUpOf(1, {
        units: 100n * PRICE,
        validUntilMs: fixture.runtime.wallMs() + VALID_MS,
      });
      assert.equal(
        (
          await fixture.run(
            life.counter.take({ payload: put, challengeId: "c", expired: false, call: null }),
          )
        ).kind,
        "managed",
      );
      const numbers = Array.from({ length: 32 }, (_, at) => BigInt(at + 2));
      const ask = (number: bigint) => {
        const call = { units: PRICE, calls: 1, fingerprint: `r${number}` };
        return fixture.run(
          life.counter.take({
            payload: voucherOf(1, number * PRICE),
            challengeId: "c",
            expired: false,
            call,
          }),
        );
      };
      const ends: (() => Promise<unknown>)[] = [];
      for (const number of numbers) {
        const hold = await ask(number);
        assert.ok(hold.kind === "hold");
        ends.push(() =>
          hold.settle({
            units: PRICE,
            cu: 3,
            status: 200,
            body: Buffer.from(`answer ${number}`),
            abandoned: false,
          }),
        );
      }
      await fixture.run(Promise.all(ends.map((end) => end())));
      for (const number of numbers) {
        const again = await ask(number);
        assert.equal(again.kind === "recorded" ? again.body : again.kind, `answer ${number}`);
      }
      life.kill();
    },
  );

  test(`many vouchers beyond the deposit at one time ask the chain once (${engine})`, async (t) => {
    const fixture = channelFixture(await open(t));
    let heads = 0;
    const fate = (_: number, name: string) => {
      if (name === "head") heads++;
      return "fine" as const;
    };
    const life = fixture.start({ fate });
    await opened(fixture, life);
    await fixture.pass(2_000);
    heads = 0;
    const all = Array.from({ length: 50 }, (_, at) =>
      life.counter.take({
        payload: voucherOf(1, DEPOSIT + 1n + BigInt(at)),
        challengeId: "c",
        expired: false,
        call: null,
      }),
    );
    const problems = (await fixture.run(Promise.all(all))).map(
      (it) => it.kind === "refused" && it.fault.details["problem"],
    );
    assert.deepEqual(
      [...new Set(problems)],
      ["https://paymentauth.org/problems/session/amount-exceeds-deposit"],
    );
    assert.ok(heads <= 3, `the chain was asked ${heads} times`);
    life.kill();
  });

  test(`a channel whose transaction the chain does not answer for holds up no other one (${engine})`, async (t) => {
    const fixture = channelFixture(await open(t));
    const life = fixture.start();
    const { escrow } = life.session;
    const { taken } = escrow;
    const silent = Promise.withResolvers<null>();
    let isSilent = false;
    Object.assign(escrow, {
      taken: (hash: Hex, id: Hex) =>
        isSilent && id === channelOf(1).id ? silent.promise : taken(hash, id),
    });
    await opened(fixture, life, PRICE, 1);
    await opened(fixture, life, PRICE, 2);
    isSilent = true;
    const lookAt = BigInt(Math.floor(fixture.runtime.wallMs()) + 3_000);
    await fixture.store.db
      .updateTable("session_channel")
      .set({ look_at: lookAt, owed_since: 0n })
      .execute();
    await fixture.pass(10_000);
    assert.equal(fixture.chain.paid.get(channelOf(2).id), PRICE);
    silent.resolve(null);
    life.kill();
  });

  test(
    "after the wallet was changed its channels are left alone and told of once; nothing is " +
      `signed for them (${engine})`,
    async (t) => {
      const fixture = channelFixture(await open(t));
      const first = fixture.start();
      await opened(fixture, first);
      first.kill();
      await fixture.store.db
        .updateTable("session_channel")
        .set({ look_at: 0n, owed_since: 0n })
        .execute();
      const operator: Hex = `0x${"9".repeat(40)}`;
      let signed = 0;
      const fate = (_: number, name: string) => {
        if (name === "sign") signed++;
        return "fine" as const;
      };
      const life = fixture.start({ fate, settleMs: 1_000, terms: { operator } });
      await fixture.pass(5_000);
      await fixture.store.db.updateTable("session_channel").set({ look_at: 0n }).execute();
      await fixture.pass(5_000);
      assert.equal(signed, 0);
      assert.equal(life.log().match(/it is left alone/g)?.length, 1);
      assert.match(life.log(), new RegExp(channelOf(1).id));
      life.kill();
    },
  );

  test(`a channel that is looked at in vain again and again is told of once (${engine})`, async (t) => {
    const fixture = channelFixture(await open(t));
    const life = fixture.start({ settleMs: 1_000 });
    const { settler } = life.session;
    Object.assign(settler, {
      sign: async () => ({ kind: "node_error", reverted: true, message: "" }),
    });
    await opened(fixture, life);
    await fixture.store.db.updateTable("session_channel").set({ look_at: 0n }).execute();
    await fixture.pass(120_000, 250);
    assert.equal(life.log().match(/several times in vain/g)?.length, 1);
    assert.equal(fixture.chain.paid.size, 0);
    life.kill();
  });

  test(
    "the end of a channel is looked for a bounded number of blocks at a time, and the next look " +
      `goes on there (${engine})`,
    async (t) => {
      const fixture = channelFixture(await open(t));
      const life = fixture.start();
      await opened(fixture, life);
      await life.watch.close();
      const { session } = life;
      const ranges: bigint[] = [];
      const end = 250_000n;
      const ended = async (_: Hex, from: bigint, to: bigint) => {
        ranges.push(to - from);
        return from <= end && end <= to ? { name: "ChannelClosed" as const, units: PRICE } : null;
      };
      Object.assign(session.escrow, { ended });
      const seen = {
        onChain: { deposit: 0n, settled: 0n, closeRequestedAtMs: null },
        head: { number: 300_000n, timeMs: 0 },
      };
      const looks: string[] = [];
      for (let look = 0; look < 3; look++) {
        const before = ranges.length;
        looks.push(
          await fixture.run(
            syncWithChain(session, channelOf(1).id, seen).then(
              (it) => it?.state ?? "none",
              () => "trouble",
            ),
          ),
        );
        assert.ok(ranges.length - before <= 20, "questions of one look");
      }
      assert.deepEqual(looks, ["trouble", "trouble", "closed"]);
      assert.ok(ranges.every((it) => it < 5_000n));
      life.kill();
    },
  );

  test(`a block number that was a lie does not keep later news of a channel out (${engine})`, async (t) => {
    const fixture = channelFixture(await open(t));
    const life = fixture.start();
    await opened(fixture, life);
    await life.watch.close();
    const news = { deposit: 2n * DEPOSIT, settled: 0n, closeRequestedAtMs: null };
    const id = channelOf(1).id;
    await fixture.run(
      syncWithChain(life.session, id, { onChain: news, head: { number: 10n ** 15n, timeMs: 0 } }),
    );
    const after = await fixture.run(
      syncWithChain(life.session, id, {
        onChain: { ...news, deposit: 3n * DEPOSIT },
        head: { number: 50n, timeMs: 0 },
      }),
    );
    assert.deepEqual([after?.deposit_units, after?.seen_block], [3n * DEPOSIT, 50n]);
    life.kill();
  });

  test(
    "a promise far ahead, of which nothing can be taken out yet, is not looked at every second " +
      `(${engine})`,
    async (t) => {
      const fixture = channelFixture(await open(t));
      let looks = 0;
      const fate = (_: number, name: string) => {
        if (name === "states") looks++;
        return "fine" as const;
      };
      const life = fixture.start({ fate, settleMs: 5_000 });
      await opened(fixture, life, DEPOSIT);
      await fixture.pass(60_000);
      looks = 0;
      await fixture.pass(120_000);
      assert.ok(looks > 0 && looks <= 6, `${looks} looks in 2 minutes`);
      life.kill();
    },
  );
});

test("a node that is suddenly far above all that was seen is believed only after minutes", async () => {
  const runtime = simulatedWorld(1);
  let height = 7n;
  const escrow = escrowAt(runtime, () => height);
  assert.equal((await escrow.head()).number, 7n);
  height = 10n ** 15n;
  await assert.rejects(escrow.head(), ChainFailure);
  height = 8n;
  assert.equal((await escrow.head()).number, 8n, "one lie stops nobody");
  height = 10n ** 15n;
  await assert.rejects(escrow.head(), ChainFailure);
  runtime.advance(181_000);
  assert.equal((await escrow.head()).number, height);
});

test("a node that stands still is trouble: what it says of a deposit is not believed", async () => {
  const runtime = simulatedWorld(1);
  let height = 7n;
  const escrow = escrowAt(runtime, () => height);
  assert.equal((await escrow.head()).number, 7n);
  runtime.advance(120_000);
  assert.equal((await escrow.head()).number, 7n);
  runtime.advance(200_000);
  await assert.rejects(escrow.head(), ChainFailure);
  await assert.rejects(escrow.head(), ChainFailure);
  height = 8n;
  assert.equal((await escrow.head()).number, 8n);
});

/** A contract whose node tells of no more than its newest block. */
function escrowAt(runtime: Runtime, height: () => bigint) {
  const node = {
    head: async () => ({
      number: height(),
      hash: `0x${"1".repeat(64)}`,
      timeS: 1n,
      baseFeeWei: null,
    }),
  } as unknown as EvmNode;
  const terms = {
    chainId: 1,
    escrow: "0x0",
    token: "0x0",
    recipient: "0x0",
    operator: "0x0",
    depositUnits: 1n,
  } as const;
  return new Escrow({ node, terms, confirmations: 0, runtime });
}
