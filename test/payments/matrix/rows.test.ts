// What chains, payers and strangers do to payments that are under way, on real chains and with
// everything but HTTP in place: reorganizations below the depth, cancelled and carried out
// authorizations, money and gas that are gone, sendings that never arrive, many at once, other
// requests, other processes.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { openStore } from "../../../src/shared/store/store.ts";
import type { PaymentChains } from "../../fakes/payment-chains.ts";
import { newPlace } from "../../fakes/stores.ts";
import { markOf, orderOf, type Wish, wordOf } from "../payment-fixture.ts";
import { cancelling, carryingOut, moving } from "../rails/evm/signed-authorizations.ts";
import {
  type MatrixFixture,
  rememberChains,
  startMatrixChains,
  startMatrixFixture,
} from "./chain-fixture.ts";
import { type Bought, checkBooks, reckon, type Totals, totalsOf } from "./expected-books.ts";
import {
  bring,
  buy,
  type Payer,
  pause,
  railOf,
  signedPayment,
  tempoTransfer,
  WAYS,
  type Way,
  wishFor,
} from "./payers.ts";
import type { Life, LifeOptions } from "./process-fixture.ts";

const EVM_WAYS = ["evm by MPP", "evm by x402"] as const;
const PULLED = ["tempo pull", ...EVM_WAYS] as const;
const ETHER = `0x${(10n ** 18n).toString(16)}`;

/** One payer, one process, and what was booked and moved before. */
interface Situation {
  readonly fixture: MatrixFixture;
  readonly payer: Payer;
  readonly life: Life;
  readonly totals: Totals;
  /** Ends the process, and adds up with another one. */
  readonly reckon: (first: Bought["first"]) => Promise<void>;
}

let chains: PaymentChains;
before(async () => {
  chains = await startMatrixChains();
});
after(() => chains?.close());

/** A test with a store of its own, over chains that nobody has used. */
function row(
  way: Way,
  title: string,
  play: (situation: Situation) => Promise<void>,
  options: Partial<LifeOptions> = {},
): void {
  test(`${way}: ${title}`, async () => {
    const { place, remove } = await newPlace("sqlite");
    const store = await openStore(place);
    try {
      const restore = await rememberChains(chains);
      const fixture = await startMatrixFixture(store, chains);
      try {
        await play(await situationOf(fixture, way, options));
      } finally {
        await fixture.close();
        await restore();
      }
    } finally {
      await store.close();
      await remove();
    }
  });
}

async function situationOf(
  fixture: MatrixFixture,
  way: Way,
  options: Partial<LifeOptions>,
): Promise<Situation> {
  const rails = [railOf(way)];
  const life = await fixture.run(fixture.start({ rails, ...options }));
  const wish = await wishFor(fixture, "credit_account", way.replaceAll(" ", "_"));
  const payer: Payer = {
    fixture,
    wish,
    way,
    wallet: fixture.chains.payer,
    next: async () => life,
    isPatient: false,
  };
  const totals = await totalsOf(fixture);
  return {
    fixture,
    payer,
    life,
    totals,
    async reckon(first) {
      life.kill();
      const fresh = await fixture.run(fixture.start({ rails, ...options, fates: {} }));
      await reckon(fixture, { life: fresh, all: [{ payer, first }], before: totals, note: way });
      fresh.kill();
      await checkBooks(fixture, [payer.given]);
    },
  };
}

/** Lets time go by until something is true. */
async function when(
  { fixture }: Situation,
  what: string,
  isSo: () => Promise<boolean>,
): Promise<void> {
  const wait = async (): Promise<void> => {
    for (let looks = 0; looks < 1_000; looks += 1) {
      if (await isSo()) return;
      await pause(fixture, 100);
    }
    assert.fail(`${what} never comes`);
  };
  await fixture.run(wait());
}

function isUnderWay({ fixture }: Situation): () => Promise<boolean> {
  return async () =>
    (
      await fixture.store.db
        .selectFrom("purchase")
        .select("id")
        .where("state", "=", "submitted")
        .execute()
    ).length > 0;
}

async function movedIn({ fixture, totals }: Situation): Promise<bigint> {
  return (await fixture.received()) - totals.movedUnits;
}

/** Takes an offer up without bringing the payment. */
async function signIn({ fixture, payer, life }: Situation) {
  const challenge = await fixture.run(life.payments.challenge(orderOf(payer.wish)));
  const given = await signedPayment(fixture, payer.way, challenge?.headers ?? [], payer.wallet);
  assert.ok(given !== null);
  payer.given = given;
  return given;
}

/** Somebody's transaction to the token of the EVM chain, which goes before others. */
function deed({ fixture }: Situation, from: string, data: string): Promise<unknown> {
  const { evm } = fixture.chains;
  const fees = { maxFeePerGas: "0x2540be4000", maxPriorityFeePerGas: "0x12a05f2000" };
  return fixture.ask(evm, "eth_sendTransaction", {
    from,
    to: evm.token.address,
    data,
    gas: "0x30000",
    ...fees,
  });
}

/** A payment that waits at a node which then loses it, while no block is made. */
async function lost(situation: Situation) {
  const { fixture, payer } = situation;
  fixture.areBlocksMade = false;
  const buying = buy(payer);
  await when(situation, "a payment under way", isUnderWay(situation));
  await fixture.pass(200);
  const chain = fixture.chains[railOf(payer.way)];
  // One that arrived after this would not be lost.
  await when(situation, "a transaction in the pool", async () => {
    const { pending } = Object(await fixture.ask(chain, "txpool_status"));
    return Number(pending) > 0;
  });
  await fixture.ask(chain, "anvil_dropAllTransactions");
  assert.ok(payer.given !== undefined);
  return { buying, given: payer.given };
}

/** Makes blocks again, the first one at once: before anything is sent again. */
async function goOn({ fixture }: Situation): Promise<void> {
  await fixture.block();
  fixture.areBlocksMade = true;
}

for (const way of WAYS)
  row(
    way,
    "a reorganization below the depth takes the payment away, and it is credited once all the same",
    async (situation) => {
      const { fixture, payer } = situation;
      const buying = buy(payer);
      await when(situation, "a transfer", async () => (await movedIn(situation)) > 0n);
      // It has been seen in a block, and that is not deep enough.
      await fixture.pass(1_100);
      await fixture.ask(fixture.chains[railOf(way)], "anvil_reorg", 3, []);
      assert.deepEqual([await movedIn(situation), await isUnderWay(situation)()], [0n, true]);
      await fixture.pass(1_000);
      // A wallet sends again what its node has lost.
      const sent = payer.given?.sent ?? null;
      if (sent !== null) await fixture.ask(fixture.chains.tempo, "eth_sendRawTransaction", sent);
      const first = await fixture.run(buying);
      assert.equal(first.kind, "paid");
      await situation.reckon(first);
    },
    { confirmations: 3 },
  );

for (const way of EVM_WAYS) {
  row(
    way,
    "an authorization that is cancelled while it is under way is a failed payment, and no " +
      "nonce of the wallet is left out",
    async (situation) => {
      const { fixture, payer } = situation;
      const { buying, given } = await lost(situation);
      await deed(
        situation,
        fixture.chains.payer.address,
        await cancelling(fixture.chains.evm, payer.wallet, given),
      );
      await goOn(situation);
      const first = await fixture.run(buying);
      assert.equal(wordOf(first), "payment_failed");
      await situation.reckon(first);
    },
  );

  row(way, "an authorization that a stranger carries out is paid, once", async (situation) => {
    const { fixture } = situation;
    const { buying, given } = await lost(situation);
    const [stranger = fixture.chains.payer] = fixture.chains.otherPayers;
    const hash = await deed(situation, stranger.address, carryingOut(given));
    await goOn(situation);
    const first = await fixture.run(buying);
    assert.equal(first.kind === "paid" && first.purchase.txHash, hash);
    await situation.reckon(first);
  });

  row(
    way,
    "an authorization that a stranger has carried out before it was brought is paid all the same",
    async (situation) => {
      const { fixture, payer } = situation;
      const given = await signIn(situation);
      const [stranger = payer.wallet] = fixture.chains.otherPayers;
      await deed(situation, stranger.address, carryingOut(given));
      await fixture.pass(2_000);
      const first = await fixture.run(buy(payer));
      assert.equal(first.kind, "paid");
      await situation.reckon(first);
    },
  );

  for (const isBack of [true, false])
    row(
      way,
      "money that is gone when the payment arrives " +
        `${isBack ? "and comes back in time is paid" : "for good is a failed payment"}`,
      async (situation) => {
        const { fixture } = situation;
        const { payer, otherPayers, evm } = fixture.chains;
        const [other = payer] = otherPayers;
        const { buying } = await lost(situation);
        const all = await evm.balanceOf(payer.address);
        await deed(situation, payer.address, moving(other.address, all));
        await goOn(situation);
        await fixture.pass(10_000);
        assert.equal(await movedIn(situation), 0n);
        if (isBack) await deed(situation, other.address, moving(payer.address, all));
        const first = await fixture.run(buying);
        assert.equal(wordOf(first), isBack ? "paid" : "payment_failed");
        await situation.reckon(first);
      },
    );

  row(
    way,
    "a wallet without gas makes no offer and takes no payment; one that was signed before is " +
      "taken when it has gas again",
    async (situation) => {
      const { fixture, life, payer } = situation;
      const { evm, settlement } = fixture.chains;
      const given = await signIn(situation);
      await fixture.ask(evm, "anvil_setBalance", settlement.address, "0x0");
      const refused = await fixture.run(bring(life, given, payer.wish));
      assert.deepEqual(refused.kind === "declined" && [refused.fault.code, refused.purchaseId], [
        "unavailable",
        null,
      ]);
      await fixture.pass(20_000);
      assert.equal(await fixture.run(life.payments.challenge(orderOf(payer.wish))), null);
      const { wallets } = life.payments.gauges();
      assert.deepEqual(wallets, [{ chainId: evm.chainId, low: true, empty: true }]);
      await fixture.ask(evm, "anvil_setBalance", settlement.address, ETHER);
      const first = await fixture.run(buy(payer));
      assert.equal(first.kind, "paid");
      await situation.reckon(first);
    },
  );

  row(way, "gas that is gone after the payment was recorded delays it", async (situation) => {
    const { fixture } = situation;
    const { evm, settlement } = fixture.chains;
    const { buying } = await lost(situation);
    await fixture.ask(evm, "anvil_setBalance", settlement.address, "0x0");
    await goOn(situation);
    await fixture.pass(20_000);
    assert.equal(await movedIn(situation), 0n);
    await fixture.ask(evm, "anvil_setBalance", settlement.address, ETHER);
    const first = await fixture.run(buying);
    assert.equal(first.kind, "paid");
    await situation.reckon(first);
  });
}

for (const way of ["tempo pull", "tempo push"] as const)
  row(
    way,
    "a transaction that is reverted, since the money is gone, is a failed payment",
    async (situation) => {
      const { fixture, payer } = situation;
      const { tempo, otherPayers } = fixture.chains;
      const [other = payer.wallet] = otherPayers;
      const { buying, given } = await lost(situation);
      const all = await tempo.balanceOf(payer.wallet.address);
      await fixture.ask(
        tempo,
        "eth_sendRawTransaction",
        await tempoTransfer(fixture, payer.wallet, { units: all, to: other.address }),
      );
      await goOn(situation);
      if (given.sent !== null) await fixture.ask(tempo, "eth_sendRawTransaction", given.sent);
      const first = await fixture.run(buying);
      assert.equal(wordOf(first), "payment_failed");
      assert.match(first.kind === "declined" ? first.fault.message : "", /reverted/);
      await situation.reckon(first);
    },
  );

for (const way of PULLED)
  row(
    way,
    "a payment that never reaches its chain fails when its time is up, and nothing has moved",
    async (situation) => {
      const first = await situation.fixture.run(buy(situation.payer));
      assert.equal(wordOf(first), "payment_failed");
      assert.equal(await movedIn(situation), 0n);
      await situation.reckon(first);
    },
    { fates: { question: (_, name) => (name === "eth_sendRawTransaction" ? "drop" : "pass") } },
  );

for (const way of WAYS) {
  row(
    way,
    "brought ten times at once to two processes, it is one purchase with one result",
    async (situation) => {
      const { fixture, payer, life } = situation;
      const other = await fixture.run(fixture.start({ rails: [railOf(way)], node: "other" }));
      await signIn(situation);
      const many = Array.from({ length: 10 }, (_, index) =>
        buy({ ...payer, next: async () => (index % 2 === 0 ? life : other) }),
      );
      const results = await fixture.run(Promise.all(many));
      const seen = results.map((result) =>
        result.kind === "paid"
          ? `${result.purchase.id} ${result.headers.join(" ")}`
          : wordOf(result),
      );
      assert.equal(new Set(seen).size, 1, seen.join("\n"));
      other.kill();
      const [first] = results;
      assert.ok(first?.kind === "paid");
      await situation.reckon(first);
    },
  );

  row(
    way,
    "with another path, body or amount it is refused before it is recorded, and a conflict " +
      "afterwards",
    async (situation) => {
      const { fixture, payer, life } = situation;
      const { wish } = payer;
      const given = await signIn(situation);
      const others: readonly Wish[] = [
        { ...wish, request: "another path or body" },
        { ...wish, request: "another amount", units: wish.units * 2n },
      ];
      const codes = async () =>
        Promise.all(
          others.map(async (other) => wordOf(await fixture.run(bring(life, given, other)))),
        );
      assert.deepEqual(await codes(), ["payment_invalid", "payment_invalid"]);
      const recorded = fixture.store.db
        .selectFrom("purchase")
        .select("id")
        .where("fingerprint", "=", markOf(wish.request).fingerprint);
      assert.equal((await recorded.execute()).length, 0);
      const first = await fixture.run(buy(payer));
      assert.deepEqual(await codes(), ["payment_conflict", "payment_conflict"]);
      assert.equal(first.kind, "paid");
      await situation.reckon(first);
    },
  );

  row(
    way,
    "a process that lives on takes over what another one had when it died",
    async (situation) => {
      const { fixture, life } = situation;
      const heir = await fixture.run(fixture.start({ rails: [railOf(way)], node: "heir" }));
      const payer: Payer = { ...situation.payer, next: async () => (life.isDead() ? heir : life) };
      // By push nothing is sent here: it dies while the chain has not taken the payment yet.
      fixture.areBlocksMade = way !== "tempo push";
      const buying = buy(payer);
      if (way === "tempo push") {
        await when(situation, "a payment under way", isUnderWay(situation));
        life.kill();
        await goOn(situation);
      }
      const first = await fixture.run(buying);
      assert.equal(life.isDead(), true);
      heir.kill();
      assert.equal(first.kind, "paid");
      if (payer.given !== undefined) situation.payer.given = payer.given;
      await situation.reckon(first);
    },
    {
      node: "dying",
      fates: { question: (_, name) => (name === "eth_sendRawTransaction" ? "die after" : "pass") },
    },
  );
}
