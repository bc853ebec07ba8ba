// Several processes that take the calls of one channel, over the fake chain, on both engines: what
// one holds no other gives away, and one that was killed keeps nobody waiting for long.
import assert from "node:assert/strict";
import { test } from "node:test";
import { audit } from "../../../src/hosted/audit/audit.ts";
import type { VoucherHold } from "../../../src/payments/session/voucher-acceptor.ts";
import { eachStore } from "../../fakes/stores.ts";
import {
  type ChannelFixture,
  channelFixture,
  channelOf,
  type Life,
  openingOf,
  voucherOf,
} from "./session-fixture.ts";

const PRICE = 15n;
const AMONG_OTHERS = { amongOthers: true } as const;

type Taken = Awaited<ReturnType<Life["counter"]["take"]>>;

/** A payer who repeats a request as long as it is told to. */
async function take(fixture: ChannelFixture, life: Life, asked: Asked): Promise<Taken> {
  const { number = 1, units, request, payload = voucherOf(number, units) } = asked;
  for (let tries = 0; ; tries++) {
    const taken = await life.counter.take({
      payload,
      challengeId: request,
      expired: false,
      call: { units: PRICE, calls: 1, fingerprint: request },
    });
    if (!(taken.kind === "refused" && taken.fault.code === "unavailable") || tries > 60)
      return taken;
    await new Promise<void>((resolve) => void fixture.runtime.after(500, resolve));
  }
}

interface Asked {
  readonly number?: number;
  /** What the voucher promises. */
  readonly units: bigint;
  readonly request: string;
  readonly payload?: unknown;
}

function settle(hold: VoucherHold, text: string) {
  return hold.settle({
    units: PRICE,
    cu: 3,
    status: 200,
    body: Buffer.from(text),
    abandoned: false,
  });
}

function isHold(taken: Taken): VoucherHold {
  assert.ok(taken.kind === "hold", taken.kind === "refused" ? taken.fault.message : taken.kind);
  return taken;
}

async function pay(fixture: ChannelFixture, life: Life, asked: Asked): Promise<string> {
  const taken = await take(fixture, life, asked);
  if (taken.kind !== "hold") return taken.kind === "refused" ? taken.fault.code : taken.kind;
  return (await settle(taken, asked.request)).kind;
}

/** Brings a voucher once and charges its call; no time goes by. */
async function takeOnce(life: Life, { units, request }: Asked) {
  const taken = await life.counter.take({
    payload: voucherOf(1, units),
    challengeId: request,
    expired: false,
    call: { units: PRICE, calls: 1, fingerprint: request },
  });
  return settle(isHold(taken), request);
}

async function open(fixture: ChannelFixture, life: Life, number = 1): Promise<void> {
  const validUntilMs = fixture.runtime.wallMs() + 25_000;
  const payload = openingOf(number, { deposit: 100n * PRICE, units: PRICE, validUntilMs });
  const asked = { number, units: PRICE, request: "open", payload };
  assert.equal(await fixture.run(pay(fixture, life, asked)), "bill");
}

function spentOf(fixture: ChannelFixture): Promise<bigint> {
  return fixture.store.db
    .selectFrom("session_channel")
    .select("spent_units")
    .where("id", "=", channelOf(1).id)
    .executeTakeFirstOrThrow()
    .then((row) => row.spent_units);
}

function holdsOf(fixture: ChannelFixture) {
  return fixture.store.db.selectFrom("session_hold").selectAll().execute();
}

function lives(fixture: ChannelFixture, count: number): readonly Life[] {
  return Array.from({ length: count }, () => fixture.start(AMONG_OTHERS));
}

eachStore(({ engine, open: openStore }) => {
  const say = (title: string): string => `${title} (${engine})`;

  test(
    say("one voucher shown to four processes at once buys one call, whatever each asks for"),
    async (t) => {
      const fixture = channelFixture(await openStore(t));
      const all = lives(fixture, 4);
      const [first] = all;
      assert.ok(first !== undefined);
      await open(fixture, first);
      const taken = await fixture.run(
        Promise.all(
          all.map((life, at) =>
            take(fixture, life, { units: 2n * PRICE, request: `request ${at}` }),
          ),
        ),
      );
      const holds = taken.flatMap((one) => (one.kind === "hold" ? [one] : []));
      assert.equal(holds.length, 1, taken.map(({ kind }) => kind).join());
      for (const one of taken)
        if (one.kind === "refused") assert.equal(one.fault.code, "payment_invalid");
      for (const hold of holds) await fixture.run(settle(hold, "answer"));
      assert.equal(await spentOf(fixture), 2n * PRICE);
      for (const life of all) life.kill();
    },
  );

  test(
    say("the same request at four processes at once is made once, and all hear its answer"),
    async (t) => {
      const fixture = channelFixture(await openStore(t));
      const all = lives(fixture, 4);
      const [first] = all;
      assert.ok(first !== undefined);
      await open(fixture, first);
      let made = 0;
      const answers = await fixture.run(
        Promise.all(
          all.map(async (life) => {
            const taken = await take(fixture, life, { units: 2n * PRICE, request: "same" });
            if (taken.kind === "recorded") return taken.body;
            const hold = isHold(taken);
            made++;
            await new Promise<void>((resolve) => void fixture.runtime.after(700, resolve));
            return (await settle(hold, "the answer")).kind === "bill" ? "the answer" : "nothing";
          }),
        ),
      );
      assert.deepEqual([made, new Set(answers)], [1, new Set(["the answer"])]);
      assert.equal(await spentOf(fixture), 2n * PRICE);
      for (const life of all) life.kill();
    },
  );

  test(
    say(
      "calls under way at two processes are all charged, though each voucher is one price above " +
        "the one before",
    ),
    async (t) => {
      const fixture = channelFixture(await openStore(t));
      const [one, other] = lives(fixture, 2);
      assert.ok(one !== undefined && other !== undefined);
      await open(fixture, one);
      const holds: VoucherHold[] = [];
      for (let call = 2n; call <= 9n; call++) {
        const life = call % 3n === 0n ? one : other;
        const asked = { units: call * PRICE, request: `call ${call}` };
        holds.push(isHold(await fixture.run(take(fixture, life, asked))));
      }
      assert.ok((await holdsOf(fixture)).length > 0, "the processes see what others hold");
      const ended = await fixture.run(
        Promise.all(holds.toReversed().map((hold, at) => settle(hold, `answer ${at}`))),
      );
      assert.deepEqual(new Set(ended.map(({ kind }) => kind)), new Set(["bill"]));
      assert.equal(await spentOf(fixture), 9n * PRICE);
      await fixture.until(async () => (await holdsOf(fixture)).length === 0);
      one.kill();
      other.kill();
    },
  );

  test(
    say("any process takes the next call at once, however often payers change between them"),
    async (t) => {
      const fixture = channelFixture(await openStore(t));
      const all = lives(fixture, 2);
      const [one, other] = all;
      assert.ok(one !== undefined && other !== undefined);
      await open(fixture, one);
      // Both have read the chain before.
      for (const [at, life] of all.entries()) {
        const units = BigInt(2 + at) * PRICE;
        assert.equal(
          await fixture.run(pay(fixture, life, { units, request: `read ${at}` })),
          "bill",
        );
      }
      const beganMs = fixture.runtime.now();
      for (let call = 4n; call <= 23n; call++) {
        const asked = { units: call * PRICE, request: `call ${call}` };
        const settled = await takeOnce(call % 2n === 0n ? one : other, asked);
        assert.equal(settled.kind, "bill");
      }
      assert.equal(fixture.runtime.now(), beganMs, "nobody waited for anything but the store");
      assert.equal(await spentOf(fixture), 23n * PRICE);
      one.kill();
      other.kill();
    },
  );

  test(
    say("a hold whose call has ended is removed later if the store fails just then"),
    async (t) => {
      const fixture = channelFixture(await openStore(t));
      let isDown = false;
      const fate = (_: number, name: string) =>
        isDown && name === "transaction" ? ("lost request" as const) : ("fine" as const);
      const life = fixture.start({ ...AMONG_OTHERS, fate });
      await open(fixture, life);
      const asked = { units: 2n * PRICE, request: "slow" };
      const hold = isHold(await fixture.run(take(fixture, life, asked)));
      isDown = true;
      hold.release();
      await fixture.pass(3_000);
      assert.equal((await holdsOf(fixture)).length, 1);
      isDown = false;
      await fixture.until(async () => (await holdsOf(fixture)).length === 0);
      life.kill();
    },
  );

  test(
    say(
      "a process that is killed with calls under way keeps the next one waiting for seconds, and " +
        "nothing that was acknowledged is lost",
    ),
    async (t) => {
      const fixture = channelFixture(await openStore(t));
      const [one, other] = lives(fixture, 2);
      assert.ok(one !== undefined && other !== undefined);
      await open(fixture, one);
      isHold(await fixture.run(take(fixture, one, { units: 2n * PRICE, request: "lost" })));
      one.kill();
      const beganMs = fixture.runtime.now();
      const next = { units: 2n * PRICE, request: "next" };
      assert.equal(await fixture.run(pay(fixture, other, next)), "bill");
      assert.ok(fixture.runtime.now() - beganMs < 10_000, "within seconds");
      // Both take calls when the second one is killed, so that its hold is written.
      const third = fixture.start(AMONG_OTHERS);
      await fixture.pass(2_000);
      assert.equal(
        await fixture.run(pay(fixture, third, { units: 3n * PRICE, request: "third" })),
        "bill",
      );
      isHold(await fixture.run(take(fixture, other, { units: 4n * PRICE, request: "lost too" })));
      other.kill();
      // Nobody is asked to promise more for the sake of a call that ended with its process.
      assert.equal(
        await fixture.run(pay(fixture, third, { units: 4n * PRICE, request: "lost too" })),
        "bill",
      );
      const fourth = fixture.start(AMONG_OTHERS);
      await fixture.pass(2_000);
      assert.equal(
        await fixture.run(pay(fixture, fourth, { units: 5n * PRICE, request: "fifth" })),
        "bill",
      );
      assert.equal(await spentOf(fixture), 5n * PRICE);
      third.kill();
      fourth.kill();
      assert.deepEqual(await audit(fixture.store), []);
    },
  );

  test(say("a close waits for calls that another process has under way"), async (t) => {
    const fixture = channelFixture(await openStore(t));
    const [one, other] = lives(fixture, 2);
    assert.ok(one !== undefined && other !== undefined);
    await open(fixture, one);
    const hold = isHold(
      await fixture.run(take(fixture, one, { units: 2n * PRICE, request: "slow" })),
    );
    const settled = new Promise<string>((resolve) => {
      fixture.runtime.after(
        2_000,
        () => void settle(hold, "late").then((end) => resolve(end.kind)),
      );
    });
    const closed = other.counter.take({
      payload: voucherOf(1, 2n * PRICE, "close"),
      challengeId: "close",
      expired: false,
      call: null,
    });
    const [end, result] = await fixture.run(Promise.all([settled, closed]));
    assert.deepEqual([end, result.kind], ["bill", "managed"]);
    assert.equal(fixture.chain.paid.get(channelOf(1).id), 2n * PRICE);
    one.kill();
    other.kill();
  });
});
