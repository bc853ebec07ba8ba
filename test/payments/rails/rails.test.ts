// A kind of payment rail is a row of one table, from which documents derive. Its settings are the
// other place that knows it: both have to name the same kinds.
import assert from "node:assert/strict";
import { test } from "node:test";
import { payments } from "../../../src/config/hosted.ts";
import {
  openRail,
  RAIL_KINDS,
  type RailSettings,
  railTerms,
} from "../../../src/payments/rails/rails.ts";
import { simulatedWorld } from "../../fakes/runtime.ts";

const ADDRESS = `0x${"ab".repeat(20)}`;
const BASE = {
  rpcUrl: "http://secret@127.0.0.1:1/hush",
  chainId: 7,
  token: { address: ADDRESS, name: "USD", version: "1" },
  recipient: ADDRESS,
  confirmations: 0,
  local: false,
};
const WALLET_KEY = `0x${"11".repeat(32)}`;
const SETTINGS: Readonly<Record<RailSettings["kind"], RailSettings>> = {
  tempo: { ...BASE, kind: "tempo", modes: ["pull"] },
  evm: { ...BASE, kind: "evm", walletKey: WALLET_KEY, lowGasWei: 1n, maxGasWei: 1n },
  session: {
    ...BASE,
    kind: "session",
    walletKey: WALLET_KEY,
    escrow: null,
    depositN: 5n,
    settleN: 1n,
    settleMs: 1,
  },
};

test("settings and table name the same kinds of rails", () => {
  const { options } = payments.unwrap().shape.rails.unwrap().element;
  assert.deepEqual(
    options.map((option) => option.shape.kind.value),
    RAIL_KINDS,
  );
  assert.deepEqual(Object.keys(SETTINGS), RAIL_KINDS);
});

for (const settings of Object.values(SETTINGS)) {
  test(`the ${settings.kind} rail opens under the names that its row tells`, async () => {
    const terms = railTerms(settings);
    for (const offer of terms.offers) assert.match(offer, /^(mpp|x402):\w+(\/\w+)?$/);
    assert.ok(terms.offers.includes(`mpp:${terms.method}/${terms.intent}`));
    const rail = await openRail(settings, { runtime: simulatedWorld(1), realm: "svc" });
    assert.equal(rail?.method, terms.intent === "charge" ? terms.method : undefined);
    assert.equal(rail?.offer(1n).intent, terms.intent === "charge" ? "charge" : undefined);
    assert.equal(
      rail !== null && rail.x402Offer(1n, 1) !== null,
      terms.offers.some((offer) => offer.startsWith("x402:")),
    );
  });

  test(`nothing secret of the ${settings.kind} rail gets into documents`, () => {
    const text = (terms: object) =>
      JSON.stringify(terms, (_, value) => (typeof value === "bigint" ? String(value) : value));
    assert.doesNotMatch(text(railTerms(settings)), /hush|secret|1111/);
    assert.match(text(railTerms({ ...settings, local: true })), /127\.0\.0\.1:1/);
  });
}
