// The matrix: every rail and way to pay × every question to its chain, lost, spoiled, late, or the
// last thing that a process does × every write to the store. Money moved is money credited, nothing
// is credited twice, and a repeated payment gets its first result and is never asked to pay again.
// The chains are real. Some points are tried in each run, at random; `SVC_MATRIX=all` tries all of
// them, and `SVC_SEED` repeats a run. Each rail has a test file of its own: they run side by
// side.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import type { PurposeKind } from "../../../src/core/billing/payment.ts";
import { openStore, type Store } from "../../../src/shared/store/store.ts";
import { chanceSeed } from "../../fakes/seed.ts";
import { newPlace } from "../../fakes/stores.ts";
import { type MatrixFixture, startMatrixFixture } from "./chain-fixture.ts";
import { assertRepeats, type Bought, checkBooks, reckon, totalsOf } from "./expected-books.ts";
import { buy, type Payer, railOf, WAYS, type Way, wishFor } from "./payers.ts";
import type { Fates, Life } from "./process-fixture.ts";

const SEED = chanceSeed();
const IS_ALL = process.env["SVC_MATRIX"] === "all";
/** Every so many-th point is tried. */
const STRIDE = { question: IS_ALL ? 1 : 43, write: IS_ALL ? 1 : 11 };
/** For so long a chain is not reached where its node is `gone`. */
const GONE_MS = 10_000;

/** Longer than an offer lasts. */
const OVER_MS = 400_000;

const QUESTION_FATES = [
  "drop",
  "lose",
  "cut",
  "late",
  "status",
  "junk",
  "limit",
  "gone",
  "die before",
  "die after",
] as const;
const WRITE_FATES = ["fail", "lose", "die before", "die after"] as const;
const PURPOSES: readonly PurposeKind[] = [
  "fund_key",
  "create_key",
  "credit_account",
  "custom_access",
];

/** Declares the tests of every way to pay by one rail. */
export function testPoints(rail: "tempo" | "evm"): void {
  const title = `payments by ${rail} on real chains, wherever a process ends (seed ${SEED})`;
  describe(title, {
    timeout: IS_ALL ? 7_200_000 : 600_000,
  }, () => {
    let fixture: MatrixFixture;
    let store: Store;
    let remove: () => Promise<void>;
    const all: Bought[] = [];
    let runs = 0;

    before(async () => {
      const { place, remove: removing } = await newPlace("sqlite");
      remove = removing;
      store = await openStore(place);
      fixture = await startMatrixFixture(store);
    });
    after(async () => {
      await fixture?.close();
      await store?.close();
      await remove?.();
    });

    for (const way of WAYS.filter((one) => railOf(one) === rail)) {
      it(`${way}: each question to the chain`, async (t) => {
        for (const [index, fate] of QUESTION_FATES.entries()) {
          const tried = await each(STRIDE.question, index, (at) =>
            isReached(way, { fates: asking(fate, at), note: `${way}, ${fate} at question ${at}` }),
          );
          t.diagnostic(`${fate}: ${tried}`);
        }
      });

      it(`${way}: each write to the store`, async (t) => {
        for (const [index, fate] of WRITE_FATES.entries()) {
          const fates = (at: number): Fates => ({
            write: (number) => (number === at ? fate : "fine"),
          });
          const tried = await each(STRIDE.write, index, (at) =>
            isReached(way, { fates: fates(at), note: `${way}, ${fate} at write ${at}` }),
          );
          t.diagnostic(`${fate}: ${tried}`);
        }
      });
    }

    it(
      "long after its offer is over every payment still has its first result, the books agree, and " +
        "no secret was logged",
      async () => {
        fixture.areBlocksMade = false;
        await fixture.pass(OVER_MS);
        const life = await fixture.run(fixture.start({ rails: ["tempo", "evm"] }));
        for (const it of all) await assertRepeats(fixture, life, it);
        await checkBooks(
          fixture,
          all.map(({ payer }) => payer.given),
        );
      },
    );

    function asking(fate: (typeof QUESTION_FATES)[number], at: number): Fates {
      let untilMs = Number.POSITIVE_INFINITY;
      return {
        question(number) {
          if (number === at) untilMs = fixture.runtime.now() + GONE_MS;
          if (fate !== "gone") return number === at ? fate : "pass";
          return number >= at && fixture.runtime.now() < untilMs ? "drop" : "pass";
        },
      };
    }

    /** One payment with these fates; whether it came as far as they are. */
    async function isReached(
      way: Way,
      { fates, note }: { readonly fates: Fates; readonly note: string },
    ): Promise<boolean> {
      const run = ++runs;
      let reached = false;
      const seen = watched(fates, () => {
        reached = true;
      });
      const rails = [railOf(way)];
      const wish = await wishFor(
        fixture,
        PURPOSES[run % PURPOSES.length] ?? "create_key",
        `${run}`,
      );
      const totals = await totalsOf(fixture);
      const first = await fixture.run(fixture.start({ rails, fates: seen }).catch(() => null));
      let life = first;
      const next = async (): Promise<Life> => {
        if (life === null || life.isDead()) life = await fixture.start({ rails });
        return life;
      };
      const payer: Payer = {
        fixture,
        wish,
        way,
        wallet: fixture.chains.payer,
        next,
        isPatient: run % 2 === 0,
      };
      const bought = await fixture.run(buy(payer));
      assert.equal(
        bought.kind,
        "paid",
        `${note}: ${bought.kind === "declined" ? bought.fault.message : ""}`,
      );
      life?.kill();
      const fresh = await fixture.run(fixture.start({ rails }));
      await reckon(fixture, { life: fresh, all: [{ payer, first: bought }], before: totals, note });
      fresh.kill();
      all.push({ payer, first: bought });
      return reached;
    }
  });
}

/**
 * How many points were tried: every so many-th, up to the first one that a payment does not come
 * to.
 */
async function each(
  stride: number,
  index: number,
  isReached: (at: number) => Promise<boolean>,
): Promise<number> {
  for (let at = 1 + ((SEED + index) % stride), tried = 1; ; at += stride, tried += 1)
    if (!(await isReached(at))) return tried;
}

/** The same fates; `onFate` hears when something happens. */
function watched({ question, write }: Fates, onFate: () => void): Fates {
  const hear = <F extends string>(fate: F): F => {
    if (fate !== "pass" && fate !== "fine") onFate();
    return fate;
  };
  return {
    ...(question === undefined ? {} : { question: (number, name) => hear(question(number, name)) }),
    ...(write === undefined ? {} : { write: (number, name) => hear(write(number, name)) }),
  };
}
