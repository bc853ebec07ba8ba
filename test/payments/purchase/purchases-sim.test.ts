// Seeded simulations of payments whose process crashes and whose chain loses questions and answers,
// reorganises, forgets and is raced by strangers: money moved is money credited, nothing is
// credited twice, one who repeats gets the first result, and no nonce of the wallet is left out.
// `SVC_SEED` repeats a run.
import assert from "node:assert/strict";
import { test } from "node:test";
import { NANO_PER_UNIT, type Purpose } from "../../../src/core/billing/payment.ts";
import { audit } from "../../../src/hosted/audit/audit.ts";
import { createAnonymousKey } from "../../../src/hosted/keys/create.ts";
import type { PaidPurchase, PaymentHeaders } from "../../../src/payments/payments.ts";
import type { Store } from "../../../src/shared/store/store.ts";
import { seededRandom } from "../../fakes/runtime.ts";
import { chanceSeed, chanceSeeds, chosenSeed } from "../../fakes/seed.ts";
import { eachStore } from "../../fakes/stores.ts";
import { createAccount } from "../../hosted/accounts/account-fixture.ts";
import type { FakeOffers } from "../fake-protocol.ts";
import type { Fate } from "../mortal-process.ts";
import {
  bring,
  DEPTH,
  type How,
  type Life,
  offersFor,
  type PaymentFixture,
  paymentFixture,
  sign,
  type Wish,
} from "../payment-fixture.ts";

const UNITS = 250_000n;
const WAYS: readonly How[] = ["mpp", "x402", "pull", "push"];
/** A repeat of a request comes after this time. */
const REPEAT_MS = 1_000;
/** Of one request; far more than the longest wait for an end. */
const MAX_REPEATS = 400;
const RUNS = { sqlite: 16, postgres: 2 } as const;
const MOST_RUNS = 128;
const TROUBLES = [
  "paid",
  "payment_failed",
  "crash",
  "reorg",
  "front-run",
  "fees",
  "drained",
  "beneficiary_conflict",
  "forgotten",
];
/** On the server every so many-th point is tried. */
const STRIDE = { sqlite: 1, postgres: 23 } as const;

eachStore(({ engine, open }) => {
  test(
    "a crash at every call that leaves the process, before and after it: the payer's repeat gets " +
      `what was paid for, once (${engine})`,
    async (t) => {
      const store = await open(t);
      const start = chanceSeed();
      t.diagnostic(`seed ${start}`);
      let runs = 0;
      for (const how of WAYS) {
        for (let k = 1 + (start % STRIDE[engine]), more = true; more; k += STRIDE[engine]) {
          for (const when of ["crash before", "crash after"] as const) {
            const run = ++runs;
            const fixture = paymentFixture(store, start * 100_000 + run);
            const wish = await wishOf(fixture, {
              kind: (["credit_account", "create_key"] as const)[k % 2] ?? "create_key",
              run,
            });
            const fate: Fate = (call) => (call === k ? when : "fine");
            const first = await fixture.run(fixture.start({ fate }).catch(() => null));
            let life = first ?? (await fixture.start());
            const next = async (): Promise<Life> => {
              if (life.isDead()) life = await fixture.start();
              return life;
            };
            const buyer: Buyer = { fixture, wish, how, from: `0xa${run}`, next };
            fixture.chain.fund(buyer.from, UNITS);
            const result = await fixture.run(buy(buyer));
            more = first === null || first.isDead();
            life.kill();
            assert.equal(result?.kind, "paid", `${how}, ${when} ${k}`);
            await reckon(fixture, { buyers: [buyer], note: `${how}, ${when} ${k}` });
            if (!more) break;
          }
        }
      }
      t.diagnostic(`${runs} crashes`);
      assert.deepEqual(await audit(store), []);
    },
  );

  test(`many payers, a bad chain, crashes at random (${engine})`, async (t) => {
    const seen = new Map<string, number>();
    const missing = () =>
      engine === "sqlite" && chosenSeed() === null
        ? TROUBLES.filter((trouble) => !seen.has(trouble))
        : [];
    // Some troubles are rare, and chance may leave one out: runs go on until each was met.
    for (const [run, seed] of chanceSeeds(MOST_RUNS).entries()) {
      if (run >= RUNS[engine] && missing().length === 0) break;
      t.diagnostic(`seed ${seed}`);
      await storm(await open(t), seed, (what) => void seen.set(what, (seen.get(what) ?? 0) + 1));
    }
    t.diagnostic([...seen].map(([what, times]) => `${what} ${times}`).join(", "));
    assert.deepEqual(missing(), [], "never met");
  });
});

/** Somebody who pays, and repeats until there is a result. */
interface Buyer {
  readonly fixture: PaymentFixture;
  readonly wish: Wish;
  readonly how: How;
  readonly from: string;
  /** The process that lives, started where there is none. */
  readonly next: () => Promise<Life>;
  given?: PaymentHeaders | undefined;
  result?: string;
}

/** Whatever a request comes to in the end; null = it was given up. */
async function buy(
  buyer: Buyer,
  see: (what: string) => void = () => {},
): Promise<PaidPurchase | { readonly kind: string } | null> {
  const { fixture } = buyer;
  for (let repeats = 0; repeats < MAX_REPEATS; repeats++) {
    const life = await buyer.next();
    try {
      buyer.given ??= signed(buyer, await offersFor(life, buyer.wish));
      if (buyer.given === undefined) throw new Error("its way of paying is not offered");
      if (buyer.how === "push") resend(fixture, buyer.given);
      const taken = await bring(life, buyer.given, buyer.wish);
      if (taken.kind === "paid") return taken;
      if (taken.kind === "declined" && taken.fault.code === "payment_invalid") {
        assert.equal(
          await isRecorded(fixture.store, buyer),
          false,
          "asked to pay after the payment was recorded",
        );
        return { kind: "payment_invalid" };
      }
      if (
        taken.kind === "declined" &&
        !["payment_pending", "unavailable", "rate_limited"].includes(taken.fault.code)
      )
        return { kind: taken.fault.code };
    } catch (error) {
      if (error instanceof assert.AssertionError && error.message !== "nothing is offered")
        throw error;
      see("no answer");
    }
    await new Promise<void>((resolve) => void fixture.runtime.after(REPEAT_MS, resolve));
  }
  throw new assert.AssertionError({ message: `no result after ${MAX_REPEATS} repeats` });
}

function signed({ fixture, how, from }: Buyer, offers: FakeOffers): PaymentHeaders | undefined {
  const isOffered =
    how === "x402"
      ? offers.x402.length > 0
      : (how === "mpp" ? "fake-auth" : "fake-tx") in offers.mpp;
  return isOffered ? sign(fixture, offers, { how, from, units: UNITS }) : undefined;
}

async function revived(fixture: PaymentFixture): Promise<Life> {
  for (let tries = 0; tries < 5; tries++) {
    const life = await fixture.start().catch(() => null);
    if (life !== null) return life;
  }
  throw new Error("it does not start");
}

/** A wallet sends its transaction again when a node has lost it. */
function resend(fixture: PaymentFixture, { text }: PaymentHeaders): void {
  fixture.chain.send(JSON.parse(text).payload.tx);
}

async function isRecorded(store: Store, { given, from }: Buyer): Promise<boolean> {
  const rows = await store.db
    .selectFrom("purchase")
    .select("offer_id")
    .where("payer", "=", from)
    .execute();
  return rows.some(({ offer_id }) => given?.text.includes(offer_id));
}

/**
 * All that is under way ends; then money moved is money credited, and every repeat gets its first
 * result from a process that remembers nothing.
 */
async function reckon(
  fixture: PaymentFixture,
  { buyers, note }: { readonly buyers: readonly Buyer[]; readonly note: string },
): Promise<void> {
  const { store, chain } = fixture;
  const life = await revived(fixture);
  for (let passed = 0; passed < 400_000; passed += 5_000) {
    await fixture.pass(passed === 0 ? 1_000 : 5_000);
    const open = await store.db
      .selectFrom("purchase")
      .select("id")
      .where("network", "=", chain.network)
      .where("ended_at", "is", null)
      .execute();
    const unpassed = await store.db
      .selectFrom("purchase_submission")
      .select("nonce")
      .where("wallet_id", "like", `%${chain.network}`)
      .where("passed_at", "is", null)
      .execute();
    if (open.length === 0 && unpassed.length === 0) break;
    assert.ok(
      passed < 390_000,
      `${note}: ${open.length} purchases and ${unpassed.length} nonces stay open`,
    );
  }
  const purchases = await store.db
    .selectFrom("purchase")
    .selectAll()
    .where("network", "=", chain.network)
    .execute();
  const settled = purchases.filter(({ state }) => state === "settled");
  const credited = settled.reduce((sum, it) => sum + it.amount_n, 0n);
  assert.equal(
    credited,
    chain.received() * NANO_PER_UNIT,
    `${note}: money credited is money moved`,
  );
  for (const { id, amount_n } of settled) {
    const lines = store.db
      .selectFrom("ledger_entry")
      .innerJoin("ledger_tx", "ledger_tx.id", "ledger_entry.tx_id")
      .where("idem_key", "=", `purchase:${id}`);
    const [line, ...more] = await lines.select("amount_n").where("book", "=", "payments").execute();
    assert.deepEqual([line?.amount_n, more.length], [-amount_n, 0], `${note}: once`);
  }
  const wallet = await store.db
    .selectFrom("settlement_wallet")
    .selectAll()
    .where("id", "like", `%${chain.network}`)
    .executeTakeFirst();
  if (wallet !== undefined)
    assert.equal(chain.at(0).state.walletNonce, wallet.next_nonce, `${note}: every nonce was used`);
  for (const buyer of buyers) {
    if (buyer.result === undefined || buyer.given === undefined) continue;
    const again = await fixture.run(bring(life, buyer.given, buyer.wish));
    assert.equal(
      again.kind === "paid" ? textOf(again) : again.kind === "declined" ? again.fault.code : "",
      buyer.result,
      `${note}: the first result again`,
    );
  }
  life.kill();
}

function textOf({ purchase, fulfilment }: PaidPurchase): string {
  return JSON.stringify({ purchase, fulfilment }, (_, it) =>
    typeof it === "bigint" ? `${it}` : it,
  );
}

async function wishOf(
  fixture: PaymentFixture,
  { kind, run }: { readonly kind: Purpose["kind"]; readonly run: number },
): Promise<Wish> {
  const accountId = `acc_${run}`;
  const request = `request ${run}`;
  const wish = (purpose: Purpose): Wish => ({ purpose, units: UNITS, request });
  switch (kind) {
    case "create_key":
      return wish({ kind, name: `key ${run}` });
    case "fund_key": {
      const key = await createAnonymousKey(fixture.store, { name: "", grantN: 0n }, 1);
      return wish({ kind, accountId: key.accountId, keyId: key.id });
    }
    case "credit_account":
      await createAccount(fixture.store, accountId);
      return wish({ kind, accountId });
    case "custom_access":
      await createAccount(fixture.store, accountId);
      return wish({ kind, accountId, keyId: "key_x", days: 2 });
  }
}

const BUYERS = 8;
const KINDS: readonly Purpose["kind"][] = [
  "create_key",
  "fund_key",
  "credit_account",
  "custom_access",
];
const STORM_MS = 40_000;

async function storm(store: Store, seed: number, see: (what: string) => void): Promise<void> {
  const random = seededRandom(seed);
  const fixture = paymentFixture(store, seed);
  const pick = <T>(list: readonly T[]): T => {
    const it = list[Math.floor(random() * list.length)];
    if (it === undefined) throw new Error("nothing to pick");
    return it;
  };
  let isCalm = false;
  const fate: Fate = () => {
    const chance = random();
    if (isCalm || chance > 0.1) return "fine";
    return chance < 0.045
      ? "lost request"
      : chance < 0.09
        ? "lost answer"
        : chance < 0.095
          ? "crash before"
          : "crash after";
  };
  let life: Promise<Life> | null = null;
  const next = async (): Promise<Life> => {
    const before = life;
    const now = await before;
    if (now !== null && !now.isDead()) return now;
    if (life !== before) return next();
    see("crash");
    life = fixture.start({ fate }).catch(() => revived(fixture));
    return life;
  };
  const buyers: Buyer[] = [];
  for (let index = 0; index < BUYERS; index++) {
    const wish = await wishOf(fixture, { kind: pick(KINDS), run: index });
    buyers.push({ fixture, wish, how: pick(WAYS), from: `0xa${index}`, next });
    fixture.chain.fund(`0xa${index}`, UNITS);
  }
  const calm = (): void => {
    isCalm = true;
    fixture.chain.baseFee = 10;
  };
  fixture.runtime.after(STORM_MS, calm);
  const weather = (): void => {
    if (isCalm) return;
    trouble(fixture, { buyers, random, pick, see });
    fixture.runtime.after(700, weather);
  };
  weather();
  await fixture.run(
    Promise.all(
      buyers.map(async (buyer) => {
        await new Promise<void>(
          (resolve) => void fixture.runtime.after(random() * STORM_MS, resolve),
        );
        const result = await buy(buyer, see);
        buyer.result =
          result !== null && "purchase" in result ? textOf(result) : (result?.kind ?? "");
        see(result?.kind ?? "");
      }),
    ),
  );
  calm();
  (await next()).kill();
  // Beneficiaries that were gone come back: repeats would change what happened first.
  await reckon(fixture, {
    buyers: buyers.filter(({ result }) => result !== "payment_invalid"),
    note: `seed ${seed}`,
  });
  assert.deepEqual(await audit(store), []);
}

interface Weather {
  readonly buyers: readonly Buyer[];
  readonly random: () => number;
  readonly pick: <T>(list: readonly T[]) => T;
  readonly see: (what: string) => void;
}

function trouble(fixture: PaymentFixture, { buyers, random, pick, see }: Weather): void {
  const { chain, store } = fixture;
  const buyer = pick(buyers);
  switch (pick(["reorg", "forgotten", "front-run", "fees", "drained", "gone", "none"])) {
    case "reorg":
      see("reorg");
      return chain.reorg(1 + Math.floor(random() * (DEPTH - 1)), random() < 0.5);
    case "forgotten":
      see("forgotten");
      return chain.forgetPool();
    case "front-run":
      // Anyone who sees an authorization in the pool can carry it out.
      for (const authorization of buyers.map(
        ({ given }) => given && JSON.parse(given.text).payload.authorization,
      )) {
        if (authorization === undefined || !chain.waiting(authorization)) continue;
        see("front-run");
        chain.send({ kind: "stranger", authorization, salt: random() });
      }
      return;
    case "fees":
      see("fees");
      chain.baseFee = pick([10, 12, 15, 25]);
      return;
    case "drained":
      if (random() < 0.5) return;
      see("drained");
      return chain.fund(buyer.from, random() < 0.5 ? UNITS : -chain.balance(buyer.from));
    case "gone":
      if (buyer.wish.purpose.kind !== "fund_key") return;
      return void store.db
        .updateTable("api_key")
        .set({ revoked_at: 1n })
        .where("id", "=", buyer.wish.purpose.keyId)
        .execute();
    case "none":
      return;
  }
}
