// The matrix: every rail and way to pay × every question to its chain, lost, spoiled, late, or the last thing that a process does × every write to the store.
// Money moved is money credited, nothing is credited twice, and whoever repeats a payment gets its first result and is never asked to pay again. The chains
// are real. Some points are tried in each run, at random; `SVC_MATRIX=all` tries all of them, and `SVC_SIM_SEED` repeats a run.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import type { PurposeKind } from "../../../src/core/payment.ts";
import { openStore, type Store } from "../../../src/hosted/store.ts";
import { newPlace } from "../../fakes/stores.ts";
import { buy, type Payer, railOf, WAYS, type Way, wishFor } from "./matrix-payers.ts";
import { checkBooks, reckon, tillOf } from "./matrix-reckoning.ts";
import { type Fates, type Life, type MatrixStage, type QuestionFate, startMatrixStage, type WriteFate } from "./matrix-stage.ts";

const SEED = Number(process.env["SVC_SIM_SEED"] ?? Date.now() % 1_000_000);
/** Every so many-th point is tried. */
const STRIDE = process.env["SVC_MATRIX"] === "all" ? 1 : 7;

const QUESTION_FATES = ["drop", "lose", "cut", "late", "status", "junk", "limit", "die before", "die after"] as const satisfies readonly QuestionFate[];
const WRITE_FATES = ["fail", "lose", "die before", "die after"] as const satisfies readonly WriteFate[];
const PURPOSES: readonly PurposeKind[] = ["fund_key", "create_key", "credit_account", "custom_access"];

describe(`payments on real chains, whatever is lost and wherever a process ends (seed ${SEED})`, { timeout: 600_000 }, () => {
  let stage: MatrixStage;
  let store: Store;
  let remove: () => Promise<void>;
  const payers: Payer[] = [];
  let runs = 0;

  before(async () => {
    const { place, remove: removing } = await newPlace("sqlite");
    remove = removing;
    store = await openStore(place);
    stage = await startMatrixStage(store);
  });
  after(async () => {
    await stage?.close();
    await store?.close();
    await remove?.();
  });

  for (const way of WAYS)
    for (const [what, fates] of [
      [
        "question to the chain",
        QUESTION_FATES.map((fate) => [fate, (at: number): Fates => ({ question: (number) => (number === at ? fate : "pass") })] as const),
      ],
      ["write to the store", WRITE_FATES.map((fate) => [fate, (at: number): Fates => ({ write: (number) => (number === at ? fate : "fine") })] as const)],
    ] as const)
      it(`${way}: each ${what}`, async (t) => {
        let tried = 0;
        for (const [index, [fate, fatesAt]] of fates.entries())
          for (let at = 1 + ((SEED + index) % STRIDE), more = true; more; at += STRIDE) {
            more = await isReached(way, { fates: fatesAt(at), at, note: `${way}, ${fate} at ${what} ${at}` });
            tried += 1;
          }
        t.diagnostic(`${tried} payments`);
        await checkBooks(
          stage,
          payers.map((payer) => payer.given),
        );
      });

  /** One payment with these fates; whether it came as far as they are. */
  async function isReached(way: Way, { fates, at, note }: { readonly fates: Fates; readonly at: number; readonly note: string }): Promise<boolean> {
    const run = ++runs;
    const rails = [railOf(way)];
    const wish = await wishFor(stage, PURPOSES[run % PURPOSES.length] ?? "create_key", `${run}`);
    const till = await tillOf(stage);
    const first = await stage.run(stage.start({ rails, fates }).catch(() => null));
    let life = first;
    const next = async (): Promise<Life> => {
      if (life === null || life.isDead()) life = await stage.start({ rails });
      return life;
    };
    const payer: Payer = { stage, wish, way, wallet: stage.chains.payer, next, isPatient: run % 2 === 0 };
    payers.push(payer);
    const bought = await stage.run(buy(payer));
    assert.equal(bought.kind, "paid", `${note}: ${bought.kind === "unpaid" ? bought.fault.message : ""}`);
    life?.kill();
    const fresh = await stage.run(stage.start({ rails }));
    await reckon(stage, { life: fresh, all: [{ payer, first: bought }], before: till, note });
    fresh.kill();
    const reached = Math.max(first?.questions() ?? 0, 0);
    return fates.question === undefined ? (first?.writes() ?? at) >= at : first === null || reached >= at;
  }
});
