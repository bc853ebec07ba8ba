// Vouchers, calls and channels one by one, over the fake chain, on both engines: what pays for
// what, what is charged, and who is told what.
import assert from "node:assert/strict";
import { test } from "node:test";
import { audit } from "../../../src/hosted/audit/audit.ts";
import { MAX_KEPT_BYTES } from "../../../src/payments/session/call-record.ts";
import {
  TransactionRecord,
  writtenOf,
} from "../../../src/payments/session/chain/transaction-record.ts";
import { SEALED_CHANNELS } from "../../../src/payments/session/channel-record.ts";
import { LiveChannels } from "../../../src/payments/session/live-channels.ts";
import { openSessions } from "../../../src/payments/session/open.ts";
import type { VoucherHold } from "../../../src/payments/session/voucher-acceptor.ts";
import { Sealer } from "../../../src/secrets/sealer.ts";
import { reseal } from "../../../src/shared/nodes/resealing.ts";
import { ALONE } from "../../fakes/jobs.ts";
import { simulatedWorld } from "../../fakes/runtime.ts";
import { eachStore } from "../../fakes/stores.ts";
import { GRACE_MS, rawOf, signatureOf } from "./fake-reserve.ts";
import {
  type ChannelFixture,
  channelFixture,
  channelOf,
  type Life,
  openingOf,
  presenceAlone,
  SECRET,
  topUpOf,
  voucherOf,
} from "./session-fixture.ts";

const PRICE = 15n;
const DEPOSIT = 10n * PRICE;
const VALID_MS = 25_000;

interface Ask {
  readonly request?: string;
  readonly challengeId?: string;
  readonly expired?: boolean;
  readonly units?: bigint;
  readonly calls?: number;
  readonly tokens?: number;
}

/** Brings a credential for a call. */
function take(
  life: Life,
  payload: unknown,
  {
    request = "r",
    challengeId = "c",
    expired = false,
    units = PRICE,
    calls = 1,
    tokens = calls,
  }: Ask = {},
) {
  return life.counter.take({
    payload,
    challengeId,
    expired,
    call: { units, calls, tokens, fingerprint: request },
  });
}

/** Brings one for nothing else. */
function manage(life: Life, payload: unknown, challengeId = "c") {
  return life.counter.take({ payload, challengeId, expired: false, call: null });
}

async function holdOf(life: Life, payload: unknown, ask: Ask = {}): Promise<VoucherHold> {
  const taken = await take(life, payload, ask);
  assert.equal(taken.kind, "hold", taken.kind === "refused" ? taken.fault.message : taken.kind);
  assert.ok(taken.kind === "hold");
  return taken;
}

async function pay(life: Life, payload: unknown, ask: Ask & { readonly body?: string } = {}) {
  const hold = await holdOf(life, payload, ask);
  return hold.settle({
    units: ask.units ?? PRICE,
    cu: 3,
    status: 200,
    body: Buffer.from(ask.body ?? "answer"),
    abandoned: false,
  });
}

function codeOf(it: { readonly kind: string; readonly fault?: { readonly code: string } }): string {
  return it.fault?.code ?? it.kind;
}

function problemOf(it: {
  readonly kind: string;
  readonly fault?: { readonly details: Readonly<Record<string, unknown>> };
}): unknown {
  return it.fault?.details["problem"];
}

const PROBLEM = "https://paymentauth.org/problems/";

/** A channel that is open, and has paid for one call. */
async function opened(
  fixture: ChannelFixture,
  life: Life,
  number: number,
  deposit = DEPOSIT,
): Promise<void> {
  const payload = openingOf(number, {
    deposit,
    units: PRICE,
    validUntilMs: fixture.runtime.wallMs() + VALID_MS,
  });
  assert.equal(
    (await fixture.run(pay(life, payload, { request: "first", challengeId: `open ${number}` })))
      .kind,
    "bill",
  );
}

function rowOf(fixture: ChannelFixture, number: number) {
  return fixture.store.db
    .selectFrom("session_channel")
    .selectAll()
    .where("id", "=", channelOf(number).id)
    .executeTakeFirstOrThrow();
}

eachStore(({ engine, open }) => {
  const say = (title: string): string => `${title} (${engine})`;

  test(
    say(
      "the same request again is answered from the record by any process, and after its " +
        "channel is closed",
    ),
    async (t) => {
      const fixture = channelFixture(await open(t));
      const life = fixture.start();
      await opened(fixture, life, 1);
      await fixture.run(
        pay(life, voucherOf(1, 2n * PRICE), { request: "two", body: "second answer" }),
      );
      const again = await fixture.run(take(life, voucherOf(1, 2n * PRICE), { request: "two" }));
      assert.deepEqual(
        [
          again.kind,
          again.kind === "recorded" && again.body,
          again.kind === "recorded" && again.bill.chargedUnits,
        ],
        ["recorded", "second answer", PRICE],
      );
      life.kill();
      const next = fixture.start();
      assert.equal(
        (await fixture.run(take(next, voucherOf(1, 2n * PRICE), { request: "two", expired: true })))
          .kind,
        "recorded",
      );
      assert.equal(
        (await fixture.run(manage(next, voucherOf(1, 2n * PRICE, "close")))).kind,
        "managed",
      );
      assert.equal(
        (await fixture.run(take(next, voucherOf(1, 2n * PRICE), { request: "two" }))).kind,
        "recorded",
      );
      assert.equal(
        codeOf(await fixture.run(take(next, voucherOf(1, 3n * PRICE), { request: "three" }))),
        "payment_invalid",
      );
      assert.equal((await rowOf(fixture, 1)).spent_units, 2n * PRICE);
      next.kill();
    },
  );

  test(
    say("equal requests at one time are made once; another request needs another voucher"),
    async (t) => {
      const fixture = channelFixture(await open(t));
      const life = fixture.start();
      await opened(fixture, life, 1);
      const voucher = voucherOf(1, 2n * PRICE);
      const hold = await fixture.run(holdOf(life, voucher, { request: "two" }));
      const others = [
        take(life, voucher, { request: "two" }),
        take(life, voucher, { request: "two" }),
      ];
      assert.equal(
        problemOf(await fixture.run(take(life, voucher, { request: "other" }))),
        `${PROBLEM}session/insufficient-balance`,
      );
      await fixture.run(
        hold.settle({
          units: PRICE,
          cu: 3,
          status: 200,
          body: Buffer.from("once"),
          abandoned: false,
        }),
      );
      for (const it of await fixture.run(Promise.all(others)))
        assert.equal(it.kind === "recorded" && it.body, "once");
      assert.equal((await rowOf(fixture, 1)).calls, 2n);
      life.kill();
    },
  );

  test(
    say("a call that was not delivered is not charged, and its voucher pays for the next one"),
    async (t) => {
      const fixture = channelFixture(await open(t));
      const life = fixture.start();
      await opened(fixture, life, 1);
      const voucher = voucherOf(1, 2n * PRICE);
      (await fixture.run(holdOf(life, voucher, { request: "gone" }))).release();
      const failed = await (await fixture.run(holdOf(life, voucher, { request: "failed" }))).settle(
        {
          units: 0n,
          cu: 3,
          status: 200,
          body: null,
          abandoned: false,
        },
      );
      assert.equal(failed.kind === "bill" && failed.chargedUnits, 0n);
      assert.equal((await rowOf(fixture, 1)).spent_units, PRICE);
      const bill = await fixture.run(pay(life, voucher, { request: "third" }));
      assert.equal(bill.kind === "bill" && bill.leftUnits, DEPOSIT - 2n * PRICE);
      life.kill();
    },
  );

  test(
    say(
      "what calls under way hold is not there for others, and what a batch does not deliver is " +
        "not charged",
    ),
    async (t) => {
      const fixture = channelFixture(await open(t));
      const life = fixture.start();
      await opened(fixture, life, 1);
      const ahead = voucherOf(1, 4n * PRICE);
      const holds = [
        await fixture.run(holdOf(life, ahead, { request: "a" })),
        await fixture.run(holdOf(life, ahead, { request: "b", units: 2n * PRICE })),
      ];
      const refused = await fixture.run(take(life, ahead, { request: "d" }));
      assert.equal(refused.kind === "refused" && refused.snapshot?.requiredUnits, 5n * PRICE);
      for (const hold of holds)
        await fixture.run(
          hold.settle({ units: PRICE, cu: 3, status: 200, body: null, abandoned: false }),
        );
      assert.equal((await rowOf(fixture, 1)).spent_units, 3n * PRICE);
      assert.equal((await fixture.run(pay(life, ahead, { request: "d" }))).kind, "bill");
      life.kill();
    },
  );

  test(
    say(
      "one who promises ahead may make the same call again with another challenge, and pays for it",
    ),
    async (t) => {
      const fixture = channelFixture(await open(t));
      const life = fixture.start();
      await opened(fixture, life, 1);
      const ahead = voucherOf(1, 3n * PRICE);
      await fixture.run(pay(life, ahead, { challengeId: "c1", body: "old" }));
      assert.equal((await fixture.run(take(life, ahead, { challengeId: "c1" }))).kind, "recorded");
      assert.equal(
        (await fixture.run(pay(life, ahead, { challengeId: "c2", body: "new" }))).kind,
        "bill",
      );
      const last = await fixture.run(take(life, ahead, { challengeId: "c3" }));
      assert.equal(
        last.kind === "recorded" && last.body,
        "new",
        "the voucher pays for no more: its newest answer",
      );
      assert.equal((await rowOf(fixture, 1)).spent_units, 3n * PRICE);
      life.kill();
    },
  );

  test(
    say("an answer that is too long to be kept is made again for nothing, once, and takes a token"),
    async (t) => {
      const fixture = channelFixture(await open(t));
      const life = fixture.start({ perSecond: 1 });
      await opened(fixture, life, 1);
      await fixture.pass(2_000);
      const voucher = voucherOf(1, 2n * PRICE);
      const body = "x".repeat(MAX_KEPT_BYTES + 1);
      await fixture.run(pay(life, voucher, { body }));
      assert.equal(codeOf(await fixture.run(take(life, voucher))), "rate_limit_exceeded");
      await fixture.pass(2_000);
      const bill = await fixture.run(pay(life, voucher, { body }));
      assert.equal(bill.kind === "bill" && bill.chargedUnits, 0n);
      await fixture.pass(2_000);
      assert.equal(codeOf(await fixture.run(take(life, voucher))), "payment_conflict");
      assert.equal((await rowOf(fixture, 1)).spent_units, 2n * PRICE);
      life.kill();
    },
  );

  test(
    say(
      "two instances: one request is charged once, and a stale instance charges nothing that " +
        "its voucher does not pay for",
    ),
    async (t) => {
      const fixture = channelFixture(await open(t));
      const lives = [fixture.start(), fixture.start()] as const;
      await opened(fixture, lives[0], 1);
      const ahead = voucherOf(1, 5n * PRICE);
      // Both read the channel before either charges.
      const holds = [
        await fixture.run(holdOf(lives[0], ahead)),
        await fixture.run(holdOf(lives[1], ahead)),
      ];
      const first = await fixture.run(
        holds[0]?.settle({
          units: PRICE,
          cu: 3,
          status: 200,
          body: Buffer.from("one"),
          abandoned: false,
        }) ?? Promise.reject(),
      );
      const second = await fixture.run(
        holds[1]?.settle({
          units: PRICE,
          cu: 3,
          status: 200,
          body: Buffer.from("two"),
          abandoned: false,
        }) ?? Promise.reject(),
      );
      assert.equal(first.kind, "bill");
      assert.equal(second.kind === "recorded" && second.body, "one");
      await opened(fixture, lives[0], 2);
      const exact = voucherOf(2, 2n * PRICE);
      const stale = [
        await fixture.run(holdOf(lives[0], exact, { request: "x" })),
        await fixture.run(holdOf(lives[1], exact, { request: "y" })),
      ];
      assert.equal(
        (
          await fixture.run(
            stale[0]?.settle({ units: PRICE, cu: 3, status: 200, body: null, abandoned: false }) ??
              Promise.reject(),
          )
        ).kind,
        "bill",
      );
      assert.equal(
        codeOf(
          await fixture.run(
            stale[1]?.settle({ units: PRICE, cu: 3, status: 200, body: null, abandoned: false }) ??
              Promise.reject(),
          ),
        ),
        "payment_invalid",
      );
      assert.deepEqual(
        [(await rowOf(fixture, 1)).spent_units, (await rowOf(fixture, 2)).spent_units],
        [2n * PRICE, 2n * PRICE],
      );
      for (const life of lives) life.kill();
    },
  );

  test(
    say("a call that ends after another instance began to close the channel is not charged"),
    async (t) => {
      const fixture = channelFixture(await open(t));
      const lives = [fixture.start(), fixture.start()] as const;
      await opened(fixture, lives[0], 1);
      const hold = await fixture.run(holdOf(lives[0], voucherOf(1, 2n * PRICE)));
      assert.equal(
        (await fixture.run(manage(lives[1], voucherOf(1, 2n * PRICE, "close")))).kind,
        "managed",
      );
      assert.equal(
        codeOf(
          await fixture.run(
            hold.settle({ units: PRICE, cu: 3, status: 200, body: null, abandoned: false }),
          ),
        ),
        "payment_invalid",
      );
      assert.equal(fixture.chain.paid.get(channelOf(1).id), PRICE);
      for (const life of lives) life.kill();
    },
  );

  test(
    say(
      "wrong vouchers: other signer, other channel, other descriptor, too low, above the " +
        "deposit, challenge over; none moves anything",
    ),
    async (t) => {
      const fixture = channelFixture(await open(t));
      const life = fixture.start();
      await opened(fixture, life, 1);
      const right = voucherOf(1, 2n * PRICE) as { descriptor: object };
      const wrong: readonly [string, unknown, string, Ask?][] = [
        ["forged", { ...right, signature: signatureOf("0xabc", 1n) }, "session/invalid-signature"],
        [
          "signed for less",
          { ...right, signature: signatureOf(channelOf(1).id, PRICE) },
          "session/invalid-signature",
        ],
        ["no channel", voucherOf(7, PRICE), "session/channel-not-found"],
        [
          "another channel's id",
          { ...right, channelId: channelOf(7).id },
          "session/channel-not-found",
        ],
        [
          "another payee",
          { ...right, descriptor: { ...right.descriptor, payee: `0x${"9".repeat(40)}` } },
          "verification-failed",
        ],
        [
          "an operator",
          { ...right, descriptor: { ...right.descriptor, operator: `0x${"9".repeat(40)}` } },
          "verification-failed",
        ],
        ["too low", voucherOf(1, 2n * PRICE - 1n), "session/insufficient-balance"],
        ["above the deposit", voucherOf(1, DEPOSIT + 1n), "session/amount-exceeds-deposit"],
        ["challenge over", voucherOf(1, 2n * PRICE), "payment-expired", { expired: true }],
        ["no payload", { action: "voucher" }, "invalid-payload"],
        ["beyond 96 bits", { ...right, cumulativeAmount: String(1n << 96n) }, "invalid-payload"],
        ["nothing", null, "invalid-payload"],
      ];
      for (const [name, payload, problem, ask] of wrong) {
        const taken = await fixture.run(take(life, payload, ask));
        assert.deepEqual(
          [codeOf(taken), problemOf(taken)],
          ["payment_invalid", PROBLEM + problem],
          name,
        );
      }
      assert.equal((await rowOf(fixture, 1)).spent_units, PRICE);
      assert.equal((await fixture.run(pay(life, right))).kind, "bill");
      life.kill();
    },
  );

  test(
    say(
      "a voucher above the deposit pays once more was put in, and a top-up that is sent twice " +
        "puts in once",
    ),
    async (t) => {
      const fixture = channelFixture(await open(t));
      const life = fixture.start();
      await opened(fixture, life, 1, PRICE);
      const voucher = voucherOf(1, 2n * PRICE);
      const refused = await fixture.run(take(life, voucher));
      assert.equal(refused.kind === "refused" && refused.snapshot?.record.deposit_units, PRICE);
      const payload = topUpOf(1, {
        units: 3n * PRICE,
        validUntilMs: fixture.runtime.wallMs() + VALID_MS,
      });
      const both = await fixture.run(Promise.all([manage(life, payload), manage(life, payload)]));
      assert.deepEqual(
        both.map((it) => it.kind),
        ["managed", "managed"],
      );
      assert.equal((await fixture.run(manage(life, payload))).kind, "managed");
      assert.equal((await rowOf(fixture, 1)).deposit_units, 4n * PRICE);
      assert.equal((await fixture.run(pay(life, voucher))).kind, "bill");
      life.kill();
    },
  );

  test(
    say(
      "an opening that no block takes has failed, one who asks again hears so, and nothing was " +
        "asked to be paid meanwhile",
    ),
    async (t) => {
      const fixture = channelFixture(await open(t));
      const life = fixture.start({
        fate: (_, name) => (name === "send" ? "lost request" : "fine"),
      });
      const payload = openingOf(1, {
        deposit: DEPOSIT,
        units: PRICE,
        validUntilMs: fixture.runtime.wallMs() + VALID_MS,
      });
      assert.equal(codeOf(await fixture.run(take(life, payload))), "payment_pending");
      await fixture.until(async () => (await rowOf(fixture, 1)).state === "failed");
      assert.equal(codeOf(await fixture.run(take(life, payload))), "payment_failed");
      life.kill();
      const next = fixture.start();
      assert.equal(
        codeOf(await fixture.run(take(next, payload, { expired: true }))),
        "payment_failed",
      );
      assert.equal((await rowOf(fixture, 1)).state, "failed");
      next.kill();
    },
  );

  test(
    say(
      "an opening that would revert, or whose voucher does not pay for its call, is never written",
    ),
    async (t) => {
      const fixture = channelFixture(await open(t));
      const life = fixture.start();
      const validUntilMs = fixture.runtime.wallMs() + VALID_MS;
      fixture.chain.opened.add(channelOf(1).id);
      assert.equal(
        codeOf(
          await fixture.run(
            take(life, openingOf(1, { deposit: DEPOSIT, units: PRICE, validUntilMs })),
          ),
        ),
        "payment_invalid",
      );
      assert.equal(
        codeOf(
          await fixture.run(
            take(life, openingOf(2, { deposit: DEPOSIT, units: PRICE - 1n, validUntilMs })),
          ),
        ),
        "payment_invalid",
      );
      assert.equal(
        codeOf(
          await fixture.run(
            take(life, openingOf(3, { deposit: PRICE - 1n, units: PRICE, validUntilMs })),
          ),
        ),
        "payment_invalid",
      );
      const forged = {
        ...(openingOf(4, { deposit: DEPOSIT, units: PRICE, validUntilMs }) as object),
        signature: "0x00",
      };
      assert.equal(codeOf(await fixture.run(take(life, forged))), "payment_invalid");
      assert.equal(
        codeOf(
          await fixture.run(
            take(life, openingOf(5, { deposit: DEPOSIT, units: PRICE, validUntilMs }), {
              expired: true,
            }),
          ),
        ),
        "payment_invalid",
      );
      assert.deepEqual(
        await fixture.store.db.selectFrom("session_channel").select("id").execute(),
        [],
      );
      life.kill();
    },
  );

  test(
    say(
      "a chain that cannot be asked: nothing is opened, calls are served for a minute, then " +
        "refused, and served again when it can",
    ),
    async (t) => {
      const fixture = channelFixture(await open(t));
      let down = false;
      const life = fixture.start({
        fate: (_, name) => (down && name !== "transaction" ? "lost request" : "fine"),
      });
      await opened(fixture, life, 1);
      down = true;
      const validUntilMs = fixture.runtime.wallMs() + VALID_MS;
      assert.equal(
        codeOf(
          await fixture.run(
            take(life, openingOf(2, { deposit: DEPOSIT, units: PRICE, validUntilMs })),
          ),
        ),
        "unavailable",
      );
      assert.equal((await fixture.run(pay(life, voucherOf(1, 2n * PRICE)))).kind, "bill");
      assert.equal(
        codeOf(await fixture.run(manage(life, voucherOf(1, 2n * PRICE, "close")))),
        "unavailable",
      );
      await fixture.pass(65_000, 250);
      assert.equal(
        codeOf(await fixture.run(take(life, voucherOf(1, 3n * PRICE), { request: "three" }))),
        "unavailable",
      );
      await fixture.until(() => life.watch.chainDown);
      down = false;
      assert.equal(
        (await fixture.run(pay(life, voucherOf(1, 3n * PRICE), { request: "three" }))).kind,
        "bill",
      );
      await fixture.until(() => !life.watch.chainDown);
      assert.equal(life.log().match(/cannot be asked/g)?.length, 1, "it is told once");
      life.kill();
    },
  );

  test(
    say("what is owed is taken out by amount and by age, never more than was spent"),
    async (t) => {
      const fixture = channelFixture(await open(t));
      const life = fixture.start({ settleUnits: 3n * PRICE, settleMs: 120_000 });
      await opened(fixture, life, 1);
      await fixture.run(pay(life, voucherOf(1, 2n * PRICE), { request: "2" }));
      await fixture.pass(5_000);
      assert.equal(fixture.chain.paid.get(channelOf(1).id), undefined);
      await fixture.run(pay(life, voucherOf(1, 3n * PRICE + 7n), { request: "3" }));
      await fixture.until(() => fixture.chain.paid.has(channelOf(1).id));
      assert.equal(
        fixture.chain.paid.get(channelOf(1).id),
        2n * PRICE,
        "a voucher that promises more is not used",
      );
      await fixture.run(pay(life, voucherOf(1, 4n * PRICE + 7n), { request: "4" }));
      await fixture.until(async () => (await rowOf(fixture, 1)).settled_units > 2n * PRICE);
      assert.equal(
        fixture.chain.paid.get(channelOf(1).id),
        3n * PRICE + 7n,
        "by age, up to the voucher before the last one",
      );
      assert.equal((await rowOf(fixture, 1)).settled_units, 3n * PRICE + 7n);
      life.kill();
      assert.deepEqual(await audit(fixture.store), []);
    },
  );

  test(
    say(
      "a payer who wants the deposit back is not served any more, and the channel is closed " +
        "long before the deposit can be withdrawn",
    ),
    async (t) => {
      const fixture = channelFixture(await open(t));
      const life = fixture.start();
      await opened(fixture, life, 1);
      await fixture.run(pay(life, voucherOf(1, 2n * PRICE), { request: "2" }));
      fixture.chain.send(
        rawOf({
          kind: "request_close",
          channel: channelOf(1).id,
          validUntilMs: fixture.runtime.wallMs() + VALID_MS,
        }),
      );
      await fixture.until(async () => (await rowOf(fixture, 1)).close_requested_at !== null);
      assert.equal(
        codeOf(await fixture.run(take(life, voucherOf(1, 3n * PRICE), { request: "3" }))),
        "payment_invalid",
      );
      await fixture.until(async () => (await rowOf(fixture, 1)).state === "closed");
      assert.equal(fixture.chain.paid.get(channelOf(1).id), 2n * PRICE);
      life.kill();
      assert.deepEqual(await audit(fixture.store), []);
    },
  );

  test(say("a top-up withdraws the request to return the deposit"), async (t) => {
    const fixture = channelFixture(await open(t));
    const life = fixture.start();
    await opened(fixture, life, 1);
    fixture.chain.send(
      rawOf({
        kind: "request_close",
        channel: channelOf(1).id,
        validUntilMs: fixture.runtime.wallMs() + VALID_MS,
      }),
    );
    await fixture.pass(1_100);
    const payload = topUpOf(1, { units: PRICE, validUntilMs: fixture.runtime.wallMs() + VALID_MS });
    assert.equal((await fixture.run(manage(life, payload))).kind, "managed");
    assert.equal(
      (await fixture.run(pay(life, voucherOf(1, 2n * PRICE), { request: "2" }))).kind,
      "bill",
    );
    life.kill();
  });

  test(
    say(
      "a deposit that was withdrawn while nobody watched: what came out is booked, what is " +
        "lost is told",
    ),
    async (t) => {
      const fixture = channelFixture(await open(t));
      const first = fixture.start({ settleUnits: 2n * PRICE });
      await opened(fixture, first, 1);
      await fixture.run(pay(first, voucherOf(1, 2n * PRICE), { request: "2" }));
      await fixture.pass(5_000);
      await fixture.run(pay(first, voucherOf(1, 3n * PRICE), { request: "3" }));
      first.kill();
      const validUntilMs = fixture.runtime.wallMs() + 2 * GRACE_MS;
      fixture.chain.send(rawOf({ kind: "request_close", channel: channelOf(1).id, validUntilMs }));
      await fixture.pass(GRACE_MS + 2_000, 1_000);
      fixture.chain.send(rawOf({ kind: "withdraw", channel: channelOf(1).id, validUntilMs }));
      await fixture.pass(2_000);
      const life = fixture.start();
      await fixture.until(async () => (await rowOf(fixture, 1)).state === "closed");
      const row = await rowOf(fixture, 1);
      assert.deepEqual(
        [row.state, row.settled_units, row.spent_units],
        ["closed", 2n * PRICE, 3n * PRICE],
      );
      assert.match(life.log(), /withdrawn before all/);
      assert.deepEqual(await audit(fixture.store), []);
      life.kill();
    },
  );

  test(say("money that somebody else took out for us is booked as well"), async (t) => {
    const fixture = channelFixture(await open(t));
    const life = fixture.start();
    await opened(fixture, life, 1);
    await fixture.run(pay(life, voucherOf(1, 2n * PRICE), { request: "2" }));
    const { id } = channelOf(1);
    fixture.chain.send(
      rawOf({
        kind: "settle",
        channel: id,
        units: String(PRICE),
        signature: signatureOf(id, PRICE),
        validUntilMs: fixture.runtime.wallMs() + VALID_MS,
      }),
    );
    await fixture.until(async () => (await rowOf(fixture, 1)).settled_units > 0n);
    assert.equal((await rowOf(fixture, 1)).settled_units, PRICE);
    assert.deepEqual(await audit(fixture.store), []);
    life.kill();
  });

  test(
    say(
      "a close waits for calls under way and takes out what they cost; one that would wait too " +
        "long leaves the channel as it is",
    ),
    async (t) => {
      const fixture = channelFixture(await open(t));
      const life = fixture.start({ waitMs: 2_000 });
      await opened(fixture, life, 1);
      const hold = await fixture.run(holdOf(life, voucherOf(1, 2n * PRICE), { request: "slow" }));
      assert.equal(
        codeOf(await fixture.run(manage(life, voucherOf(1, 2n * PRICE, "close")))),
        "unavailable",
      );
      assert.equal(
        (await fixture.run(pay(life, voucherOf(1, 3n * PRICE), { request: "3" }))).kind,
        "bill",
        "it goes on",
      );
      const closing = manage(life, voucherOf(1, 3n * PRICE, "close"));
      await fixture.pass(200);
      assert.equal(
        codeOf(await fixture.run(take(life, voucherOf(1, 4n * PRICE), { request: "4" }))),
        "unavailable",
        "one who calls meanwhile opens no other channel",
      );
      await fixture.run(
        hold.settle({ units: PRICE, cu: 3, status: 200, body: null, abandoned: false }),
      );
      assert.equal((await fixture.run(closing)).kind, "managed");
      assert.equal(fixture.chain.paid.get(channelOf(1).id), 3n * PRICE);
      life.kill();
    },
  );

  test(
    say("a batch takes a token for each call or none, and one that can never pass is told so"),
    async (t) => {
      const fixture = channelFixture(await open(t));
      const life = fixture.start({ perSecond: 4 });
      await opened(fixture, life, 1);
      await fixture.pass(5_000);
      const ahead = voucherOf(1, 9n * PRICE);
      const large = await fixture.run(take(life, ahead, { request: "large", calls: 5 }));
      assert.equal(codeOf(large), "invalid_request");
      const ranges = await fixture.run(
        take(life, ahead, { request: "ranges", calls: 2, tokens: 5 }),
      );
      assert.equal(codeOf(ranges), "invalid_request");
      await fixture.run(pay(life, ahead, { request: "two", calls: 2 }));
      const empty = await fixture.run(take(life, ahead, { request: "four", calls: 4 }));
      assert.equal(codeOf(empty), "rate_limit_exceeded");
      assert.equal(
        (await fixture.run(pay(life, ahead, { request: "two more", calls: 2 }))).kind,
        "bill",
        "what was refused took nothing",
      );
      await fixture.pass(5_000);
      const range = await fixture.run(pay(life, ahead, { request: "range", tokens: 50 }));
      assert.equal(range.kind, "bill", "one call in more parts than there are tokens takes all");
      const next = await fixture.run(take(life, ahead, { request: "next" }));
      assert.equal(codeOf(next), "rate_limit_exceeded");
      life.kill();
    },
  );

  test(
    say(
      "a channel has a bucket, and memory holds a bounded number of channels but none too few " +
        "that are in use",
    ),
    async (t) => {
      const fixture = channelFixture(await open(t));
      const life = fixture.start({ perSecond: 2 });
      await opened(fixture, life, 1);
      await opened(fixture, life, 2);
      const ahead = voucherOf(1, 6n * PRICE);
      await fixture.run(pay(life, ahead, { request: "b", calls: 1 }));
      const codes = await fixture.run(
        Promise.all(
          ["c", "d", "e"].map(async (request) => codeOf(await take(life, ahead, { request }))),
        ),
      );
      assert.ok(codes.includes("rate_limit_exceeded"), codes.join());
      const live = new LiveChannels({
        store: fixture.store,
        channels: life.session.channels,
        maxChannels: 1,
      });
      const one = await live.find(channelOf(1).id);
      assert.ok(one !== null && one !== "full");
      one.entering = 1;
      assert.equal(await live.find(channelOf(2).id), "full");
      one.entering = 0;
      assert.notEqual(await live.find(channelOf(2).id), "full");
      assert.equal(live.size, 1);
      life.kill();
    },
  );

  test(
    say(
      "channels are sealed anew when the secret changes; one that was sealed with an unknown " +
        "one stops no other",
    ),
    async (t) => {
      const fixture = channelFixture(await open(t));
      const first = fixture.start();
      await opened(fixture, first, 1);
      await opened(fixture, first, 2);
      first.kill();
      const next = "another secret of 32 bytes, for tests";
      const sealer = new Sealer(next, SECRET);
      assert.equal(await reseal(fixture.store, sealer, SEALED_CHANNELS), 2);
      assert.equal(await reseal(fixture.store, sealer, SEALED_CHANNELS), 0);
      await fixture.store.db
        .updateTable("session_channel")
        .set({ vouchers: "v1.0.0", look_at: 0n })
        .where("id", "=", channelOf(2).id)
        .execute();
      const life = fixture.start({ secret: next, settleMs: 60_000 });
      assert.equal(
        (await fixture.run(pay(life, voucherOf(1, 2n * PRICE), { request: "2" }))).kind,
        "bill",
      );
      await fixture.until(
        () => fixture.chain.paid.has(channelOf(1).id) && /cannot be read/.test(life.log()),
      );
      assert.equal(fixture.chain.paid.get(channelOf(1).id), 2n * PRICE);
      // A transaction that a killed process leaves open would hold up the next test for a minute.
      await fixture.run(life.watch.close());
      life.kill();
    },
  );

  test(
    say(
      "an open channel that no known secret opens stops the start: its money could not be " +
        "collected; one that has ended does not",
    ),
    async (t) => {
      const fixture = channelFixture(await open(t));
      const first = fixture.start();
      await opened(fixture, first, 1);
      first.kill();
      const { db } = fixture.store;
      const bytes = { hash: "0x11", raw: "0x22", units: PRICE, validUntilMs: 1 } as const;
      const settlement = writtenOf(channelOf(1).id, "settle", bytes);
      await fixture.store.transaction((tx) =>
        new TransactionRecord(new Sealer(SECRET, null)).insert(tx, settlement, 1),
      );
      const written = () =>
        db.selectFrom("session_transaction").selectAll().where("ended_at", "is", null).execute();
      const [pending] = await written();
      assert.ok(pending !== undefined);
      const runtime = simulatedWorld(1);
      const start = (previousSecret: string) =>
        openSessions({
          runtime,
          store: fixture.store,
          claims: ALONE,
          log: { info() {}, warn() {}, error() {} },
          rails: [],
          realm: "svc.test",
          secret: "another secret of 32 bytes, for tests",
          previousSecret,
          offerMs: 60_000,
          waitMs: 1_000,
          rateLimitSize: { perSecond: 1, burst: 1 },
          process: { presence: presenceAlone(runtime), heartbeatMs: 1_000 },
        });
      const before = await db.selectFrom("session_channel").selectAll().execute();
      await assert.rejects(start("a wrong secret of 32 bytes, for tests"), /another secret/);
      assert.deepEqual(await db.selectFrom("session_channel").selectAll().execute(), before);
      await (await start(SECRET)).close();
      const now = await db.selectFrom("session_channel").selectAll().execute();
      const present = new Sealer("another secret of 32 bytes, for tests", null);
      assert.ok(now.every(({ vouchers }) => present.isCurrent(vouchers)));
      assert.ok((await written()).every(({ raw }) => present.isCurrent(raw)));
      await db
        .updateTable("session_transaction")
        .set({ raw: pending.raw })
        .where("ended_at", "is", null)
        .execute();
      await assert.rejects(start("a wrong secret of 32 bytes, for tests"), /transaction/);
      await db
        .updateTable("session_channel")
        .set({ state: "closed", ended_at: 1n, vouchers: before[0]?.vouchers ?? "" })
        .execute();
      assert.ok((await written()).length > 0);
      await (await start("a wrong secret of 32 bytes, for tests")).close();
    },
  );

  test(say("answers are forgotten after an hour"), async (t) => {
    const fixture = channelFixture(await open(t));
    const life = fixture.start();
    await opened(fixture, life, 1);
    await fixture.pass(3_600_000, 60_000);
    await fixture.until(
      async () =>
        (await fixture.store.db.selectFrom("session_call").select("position").execute()).length ===
        0,
    );
    life.kill();
  });
});
