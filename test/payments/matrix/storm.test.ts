// Many payers at once on real chains that lose, delay and reorganize, with strangers who carry
// authorizations out, a store that fails, and processes that end, all at random: money moved is
// money credited, once, and every repeat gets its first result. `SVC_SEED` repeats a storm as
// far as real nodes allow; `SVC_MATRIX=all` plays more of them.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { PurposeKind } from "../../../src/core/billing/payment.ts";
import { openStore } from "../../../src/shared/store/store.ts";
import { seededRandom } from "../../fakes/runtime.ts";
import { chanceSeed } from "../../fakes/seed.ts";
import { newPlace } from "../../fakes/stores.ts";
import { wordOf } from "../payment-fixture.ts";
import { carryingOut, nonceIn } from "../rails/evm/signed-authorizations.ts";
import { type MatrixFixture, startMatrixFixture } from "./chain-fixture.ts";
import { type Bought, checkBooks, reckon, totalsOf } from "./expected-books.ts";
import { buy, type Payer, pause, railOf, WAYS, wishFor } from "./payers.ts";
import { DEPTH, type Fates, type Life } from "./process-fixture.ts";

const SEED = chanceSeed();
const STORMS = process.env["SVC_MATRIX"] === "all" ? 40 : 3;
const PAYERS = 12;
const STORM_MS = 60_000;
const WEATHER_MS = 2_500;
const RAILS = ["tempo", "evm"] as const;
const PURPOSES: readonly PurposeKind[] = [
  "fund_key",
  "create_key",
  "credit_account",
  "custom_access",
];
const QUESTION_FATES = ["drop", "lose", "cut", "late", "status", "junk", "limit"] as const;

test(`many payers in storms over real chains (seeds from ${SEED})`, async (t) => {
  const seen = new Map<string, number>();
  for (let index = 0; index < STORMS; index += 1) {
    const { place, remove } = await newPlace("sqlite");
    const store = await openStore(place);
    try {
      const fixture = await startMatrixFixture(store);
      try {
        await storm(
          fixture,
          SEED + index,
          (what) => void seen.set(what, (seen.get(what) ?? 0) + 1),
        );
      } finally {
        await fixture.close();
      }
    } finally {
      await store.close();
      await remove();
    }
  }
  t.diagnostic([...seen].map(([what, times]) => `${what} ${times}`).join(", "));
  for (const what of ["paid", "death", "reorganization"])
    assert.ok((seen.get(what) ?? 0) > 0, `${what} was never seen`);
});

async function storm(
  fixture: MatrixFixture,
  seed: number,
  see: (what: string) => void,
): Promise<void> {
  const random = seededRandom(seed);
  const pick = <T>(list: readonly T[]): T =>
    list[Math.floor(random() * list.length)] ?? assert.fail("nothing to pick");
  const endMs = fixture.runtime.now() + STORM_MS;
  const isOver = (): boolean => fixture.runtime.now() >= endMs;
  const dying = <F>(fate: F): F => {
    see("death");
    return fate;
  };
  const fates: Fates = {
    question: () => {
      const chance = isOver() ? 1 : random();
      if (chance < 0.008) return dying(chance < 0.004 ? "die before" : "die after");
      return chance < 0.06 ? pick(QUESTION_FATES) : "pass";
    },
    write: () => {
      const chance = isOver() ? 1 : random();
      if (chance < 0.02) return dying(chance < 0.01 ? "die before" : "die after");
      return chance < 0.05 ? pick(["fail", "lose"]) : "fine";
    },
  };
  const next = survivors(() => fixture.start({ rails: RAILS, fates }));
  const totals = await totalsOf(fixture);
  const payers: Payer[] = [];
  for (let index = 0; index < PAYERS; index += 1) {
    const wish = await wishFor(fixture, pick(PURPOSES), `${index}`);
    payers.push({
      fixture,
      wish,
      way: pick(WAYS),
      wallet: pick([fixture.chains.payer, ...fixture.chains.otherPayers]),
      next,
      isPatient: random() < 0.5,
    });
  }
  const all = payers.map(async (payer): Promise<Bought> => {
    await pause(fixture, random() * STORM_MS);
    return { payer, first: await buy(payer, { mayExpire: payer.way !== "tempo push" }) };
  });
  void weather(fixture, { payers, pick, isOver, see });
  const bought = await fixture.run(Promise.all(all));
  for (const { first } of bought) see(wordOf(first));
  (await fixture.run(next())).kill();
  const fresh = await fixture.run(fixture.start({ rails: RAILS }));
  await reckon(fixture, { life: fresh, all: bought, before: totals, note: `seed ${seed}` });
  fresh.kill();
  await checkBooks(
    fixture,
    payers.map(({ given }) => given),
  );
}

/** The process that lives; where there is none, the first who asks starts one. */
function survivors(start: () => Promise<Life>): () => Promise<Life> {
  let starting: Promise<Life | null> = Promise.resolve(null);
  const next = async (): Promise<Life> => {
    const before = starting;
    const life = await before;
    if (life !== null && !life.isDead()) return life;
    if (starting === before) starting = start().catch(() => null);
    return next();
  };
  return next;
}

interface Weather {
  readonly payers: readonly Payer[];
  readonly pick: <T>(list: readonly T[]) => T;
  readonly isOver: () => boolean;
  readonly see: (what: string) => void;
}

async function weather(
  fixture: MatrixFixture,
  { payers, pick, isOver, see }: Weather,
): Promise<void> {
  const { evm, otherPayers, payer } = fixture.chains;
  for (; !isOver(); await pause(fixture, WEATHER_MS)) {
    const { given, way } = pick(payers);
    switch (pick(["reorganization", "forgotten", "stranger", "calm"])) {
      case "reorganization":
        see("reorganization");
        await fixture.ask(evm, "anvil_reorg", pick([1, DEPTH]), []);
        break;
      case "forgotten":
        see("forgotten");
        await fixture.ask(evm, "anvil_dropAllTransactions");
        break;
      case "stranger":
        // Nobody else can know it before it was sent.
        if (
          given === undefined ||
          railOf(way) !== "evm" ||
          !(await isSent(fixture, nonceIn(given)))
        )
          break;
        see("stranger");
        await fixture.ask(evm, "eth_sendTransaction", {
          from: (otherPayers[0] ?? payer).address,
          to: evm.token.address,
          data: carryingOut(given),
          gas: "0x30000",
        });
        break;
      case "calm":
        break;
    }
  }
}

async function isSent({ store }: MatrixFixture, nonce: string): Promise<boolean> {
  const query = store.db
    .selectFrom("purchase")
    .select("id")
    .where("payment_key", "like", `evm:%:${nonce}`)
    .where("state", "!=", "accepted");
  return (await query.executeTakeFirst()) !== undefined;
}
