// Seeded simulations of pay-per-call whose process crashes and whose chain loses questions, answers
// and transactions: what came out of channels is what is booked, nobody pays for more than was
// delivered, and one who repeats a request that was charged gets its answer. `SVC_SEED` repeats
// a run.
import assert from "node:assert/strict";
import { test } from "node:test";
import { nanoOf } from "../../../src/core/billing/payment.ts";
import { audit } from "../../../src/hosted/audit/audit.ts";
import type { Store } from "../../../src/shared/store/store.ts";
import { seededRandom } from "../../fakes/runtime.ts";
import { chanceSeed, chanceSeeds } from "../../fakes/seed.ts";
import { eachStore } from "../../fakes/stores.ts";
import { Dead, type Fate } from "../mortal-process.ts";
import { Lost, rawOf } from "./fake-reserve.ts";
import {
  type ChannelFixture,
  channelFixture,
  channelOf,
  type Life,
  type LifeOptions,
  openingOf,
  topUpOf,
  voucherOf,
} from "./session-fixture.ts";

const PRICE = 15n;
const REPEAT_MS = 500;
const MAX_REPEATS = 400;
/** `SVC_MATRIX=all` tries every point on the embedded store, and plays more runs. */
const IS_ALL = process.env["SVC_MATRIX"] === "all";
/** Every so many-th point is tried, from one by chance on. */
const STRIDE = { sqlite: IS_ALL ? 1 : 3, postgres: 17 };
const RUNS = { sqlite: IS_ALL ? 40 : 2, postgres: 1 };
/** The same where processes see each other, and wait until one that was killed counts as ended. */
const RUNS_AMONG_OTHERS = { sqlite: IS_ALL ? 20 : 1, postgres: 1 };

eachStore(({ engine, open }) => {
  test(
    "a crash at every call that leaves the process, before and after it: opened once, charged " +
      `once, settled to the unit (${engine})`,
    async (t) => {
      const store = await open(t);
      const start = chanceSeed();
      t.diagnostic(`seed ${start}`);
      let runs = 0;
      for (let k = 1 + (start % STRIDE[engine]), more = true; more; k += STRIDE[engine]) {
        for (const when of ["crash before", "crash after"] as const) {
          const number = ++runs;
          const fixture = channelFixture(store, start + number);
          const payer = new Payer(fixture, number, {
            fate: (call) => (call === k ? when : "fine"),
            settleUnits: 3n * PRICE,
          });
          const note = `${when} ${k}`;
          await fixture.run(payer.open(10n * PRICE));
          for (let calls = 0; calls < 4; calls++) await fixture.run(payer.call());
          await fixture.run(payer.topUp(5n * PRICE));
          await fixture.pass(5_000);
          await fixture.run(payer.call());
          await fixture.run(payer.close());
          more = payer.isCrashed;
          await fixture.pass(2_000);
          await reckon(fixture, payer, note);
          payer.life.kill();
          if (!more) break;
        }
      }
      t.diagnostic(`${runs} runs`);
      assert.deepEqual(await audit(store), []);
    },
  );

  test(`many payers, a bad chain, crashes at random (${engine})`, async (t) => {
    for (const seed of chanceSeeds(RUNS[engine])) {
      t.diagnostic(`seed ${seed}`);
      await storm(await open(t), seed, false);
    }
  });

  test(`the same with two processes that take the calls of each channel (${engine})`, async (t) => {
    for (const seed of chanceSeeds(RUNS_AMONG_OTHERS[engine])) {
      t.diagnostic(`seed ${seed}`);
      await storm(await open(t), seed, true);
    }
  });
});

/** The processes that serve at one time. */
interface Lives {
  readonly lives: Life[];
  readonly pick: () => number;
}

/** Somebody who pays, and repeats every request until there is a result. */
class Payer {
  readonly #fixture: ChannelFixture;
  readonly #number: number;
  readonly #shared: Lives;
  readonly #options: LifeOptions & { readonly fate: Fate };
  isCrashed = false;
  promised = 0n;
  deposit = 0n;
  /** Executions that a provider delivered. */
  delivered = 0;
  /** Calls that were answered, and their answers. */
  readonly answers: {
    readonly payload: unknown;
    readonly fingerprint: string;
    readonly challengeId: string;
    readonly text: string;
  }[] = [];
  #requests = 0;

  constructor(
    fixture: ChannelFixture,
    number: number,
    options: LifeOptions & { readonly fate: Fate },
    shared?: Lives,
  ) {
    this.#fixture = fixture;
    this.#number = number;
    this.#options = options;
    this.#shared = shared ?? { lives: [fixture.start(options)], pick: () => 0 };
  }

  get id() {
    return channelOf(this.#number).id;
  }

  get life(): Life {
    const { lives, pick } = this.#shared;
    const at = pick();
    const life = lives[at];
    if (life !== undefined && !life.isDead()) return life;
    this.isCrashed = true;
    const fate: Fate = lives.length === 1 ? () => "fine" : this.#options.fate;
    const next = this.#fixture.start({ ...this.#options, fate });
    lives[at] = next;
    return next;
  }

  async open(deposit: bigint): Promise<string> {
    this.promised = PRICE;
    return this.#call(
      openingOf(this.#number, {
        deposit,
        units: PRICE,
        validUntilMs: this.#fixture.runtime.wallMs() + 25_000,
      }),
      (done) => {
        if (done) this.deposit = deposit;
      },
    );
  }

  async call(aheadUnits = 0n): Promise<string> {
    this.promised += PRICE + aheadUnits;
    return this.#call(voucherOf(this.#number, this.promised));
  }

  async topUp(units: bigint): Promise<string> {
    const result = await this.#until(
      topUpOf(this.#number, { units, validUntilMs: this.#fixture.runtime.wallMs() + 25_000 }),
      null,
    );
    if (result === "managed") this.deposit += units;
    return result;
  }

  async close(): Promise<string> {
    return this.#until(voucherOf(this.#number, this.promised, "close"), null);
  }

  /** The newest call once more, from a process that remembers nothing. */
  async repeat(): Promise<void> {
    const last = this.answers.at(-1);
    if (last === undefined) return;
    for (const life of this.#shared.lives) life.kill();
    const taken = await this.life.counter.take({
      ...last,
      expired: true,
      call: { units: PRICE, calls: 1, fingerprint: last.fingerprint },
    });
    assert.equal(
      taken.kind,
      "recorded",
      JSON.stringify(taken, (_, it) => (typeof it === "bigint" ? String(it) : it)),
    );
    assert.equal(taken.kind === "recorded" ? taken.body : "", last.text);
  }

  #call(payload: unknown, hear: (done: boolean) => void = () => {}): Promise<string> {
    const request = `request ${this.#number} ${++this.#requests}`;
    return this.#until(payload, request).then((result) => {
      hear(result === "answered");
      return result;
    });
  }

  async #until(payload: unknown, request: string | null): Promise<string> {
    const { runtime } = this.#fixture;
    const challengeId = `challenge ${this.#requests}`;
    for (let repeats = 0; repeats < MAX_REPEATS; repeats++) {
      const life = this.life;
      try {
        const result = await Promise.race([
          this.#once(life, { payload, request, challengeId }),
          life.end,
        ]);
        if (typeof result !== "string")
          this.answers.push({
            payload,
            fingerprint: request ?? "",
            challengeId,
            text: result.text,
          });
        if (result !== "again") return typeof result === "string" ? result : "answered";
      } catch (error) {
        if (!(error instanceof Dead || error instanceof Lost)) throw error;
      }
      await new Promise<void>((resolve) => void runtime.after(REPEAT_MS, resolve));
    }
    throw new Error(`no result after ${MAX_REPEATS} repeats`);
  }

  async #once(
    life: Life,
    {
      payload,
      request,
      challengeId,
    }: { readonly payload: unknown; readonly request: string | null; readonly challengeId: string },
  ): Promise<string | { readonly text: string }> {
    const call = request === null ? null : { units: PRICE, calls: 1, fingerprint: request };
    const taken = await life.counter.take({ payload, challengeId, expired: false, call });
    switch (taken.kind) {
      case "managed":
        return "managed";
      case "recorded":
        return { text: taken.body };
      case "refused":
        assert.notEqual(taken.fault.code, "internal");
        return ["payment_pending", "unavailable", "rate_limit_exceeded"].includes(taken.fault.code)
          ? "again"
          : taken.fault.code;
      case "hold": {
        await new Promise<void>((resolve) => void this.#fixture.runtime.after(10, resolve));
        if (life.isDead()) throw new Dead("the process has ended");
        const text = `answer ${++this.delivered} to ${request}`;
        const ended = await taken.settle({
          units: PRICE,
          cu: 3,
          status: 200,
          body: Buffer.from(text),
          abandoned: false,
        });
        if (ended.kind === "refused")
          return ended.fault.code === "unavailable" ? "again" : ended.fault.code;
        return { text: ended.kind === "recorded" ? ended.body : text };
      }
    }
  }
}

/**
 * The channel is closed; what came out is what was spent and booked, for as many calls as were
 * answered.
 */
async function reckon(fixture: ChannelFixture, payer: Payer, note: string): Promise<void> {
  const row = await fixture.store.db
    .selectFrom("session_channel")
    .selectAll()
    .where("id", "=", payer.id)
    .executeTakeFirst();
  assert.ok(row !== undefined, note);
  assert.equal(
    row.state,
    "closed",
    `${note}: ${JSON.stringify(row, (_, it) => (typeof it === "bigint" ? String(it) : it))}`,
  );
  assert.equal(
    row.spent_units,
    PRICE * BigInt(payer.answers.length),
    `${note}: charged for what was answered`,
  );
  assert.equal(row.settled_units, row.spent_units, note);
  assert.equal(
    fixture.chain.paid.get(payer.id) ?? 0n,
    row.settled_units,
    `${note}: moved and settled`,
  );
  assert.equal(
    await bookedN(fixture.store, payer.id),
    nanoOf(row.settled_units),
    `${note}: booked`,
  );
  const moved = await fixture.store.db
    .selectFrom("session_transaction")
    .select("moved_units")
    .where("channel_id", "=", payer.id)
    .execute();
  assert.equal(
    moved.reduce((sum, it) => sum + it.moved_units, 0n),
    row.settled_units,
    `${note}: by transaction`,
  );
}

async function bookedN(store: Store, id: string): Promise<bigint> {
  const rows = await store.db
    .selectFrom("ledger_entry")
    .innerJoin("ledger_tx", "ledger_tx.id", "ledger_entry.tx_id")
    .select("amount_n")
    .where("book", "=", "revenue")
    .where("idem_key", "like", `session:${id}:%`)
    .execute();
  return rows.reduce((sum, it) => sum + it.amount_n, 0n);
}

const TROUBLE = ["lost request", "lost answer", "crash before", "crash after"] as const;

async function storm(store: Store, seed: number, amongOthers: boolean): Promise<void> {
  const fixture = channelFixture(store, seed);
  const random = seededRandom(seed);
  let calm = false;
  const fate: Fate = () =>
    calm || random() > 0.06 ? "fine" : (TROUBLE[Math.floor(random() * TROUBLE.length)] ?? "fine");
  const options = { fate, settleUnits: 4n * PRICE, amongOthers };
  const shared: Lives = {
    lives: [fixture.start(options), fixture.start(options)],
    pick: () => (random() < 0.5 ? 0 : 1),
  };
  const payers = Array.from({ length: 5 }, (_, at) => new Payer(fixture, 1 + at, options, shared));
  const forgetful = (): void => {
    if (!calm && random() < 0.05) fixture.chain.forget();
    fixture.runtime.after(700, forgetful);
  };
  forgetful();
  const results = await fixture.run(
    Promise.all(payers.map((payer) => live(payer, fixture, random))),
  );
  calm = true;
  for (const [at, payer] of payers.entries()) {
    if (results[at] === "never opened") continue;
    // The payer's wish, or the payer's wish told to the chain: both end at the same.
    if (random() < 0.5)
      fixture.chain.send(
        rawOf({
          kind: "request_close",
          channel: payer.id,
          validUntilMs: fixture.runtime.wallMs() + 60_000,
        }),
      );
    else await fixture.run(payer.close());
  }
  // A channel of which nothing is owed is looked at every ten minutes.
  await fixture.pass(610_000, 250);
  const isOver = async (): Promise<boolean> => {
    const { db } = store;
    const open = await db
      .selectFrom("session_channel")
      .select("id")
      .where("ended_at", "is", null)
      .execute();
    const sent = await db
      .selectFrom("session_transaction")
      .select("tx_hash")
      .where("ended_at", "is", null)
      .execute();
    return open.length + sent.length === 0;
  };
  await fixture.until(isOver);
  for (const [at, payer] of payers.entries())
    if (results[at] !== "never opened")
      await reckon(fixture, payer, `seed ${seed}, payer ${at + 1}`);
  for (const [at, payer] of payers.entries())
    if (results[at] !== "never opened") await fixture.run(payer.repeat());
  for (const life of shared.lives) life.kill();
  assert.deepEqual(await audit(store), []);
}

/** A payer's day. */
async function live(payer: Payer, fixture: ChannelFixture, random: () => number): Promise<string> {
  const opened = await payer.open(30n * PRICE);
  if (opened !== "answered") {
    assert.equal(opened, "payment_failed");
    return "never opened";
  }
  for (let calls = 0; calls < 12; calls++) {
    await new Promise<void>((resolve) => void fixture.runtime.after(random() * 4_000, resolve));
    const result =
      random() < 0.15 ? await payer.topUp(2n * PRICE) : await payer.call(random() < 0.2 ? 7n : 0n);
    assert.ok(["answered", "managed", "payment_failed"].includes(result), result);
  }
  return "done";
}
