// What chains, payers and strangers do to payments that are under way, on real chains and with
// everything but HTTP in place: reorganizations below the depth, cancelled and carried out
// authorizations, money and gas that are gone, sendings that never arrive, many at once, other
// requests, other processes.
import assert from "node:assert/strict";
import { test } from "node:test";
import { openStore } from "../../../src/store/store.ts";
import { newPlace } from "../../fakes/stores.ts";
import { markOf, orderOf, type Wish, wordOf } from "../payment-fixture.ts";
import { cancelling, carryingOut, moving } from "../rails/evm/signed-authorizations.ts";
import { type MatrixStage, startMatrixStage } from "./chain-fixture.ts";
import { type Bought, checkBooks, reckon, type Till, tillOf } from "./expected-books.ts";
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

/** One payer, one process, and what was true of the till before. */
interface Scene {
  readonly stage: MatrixStage;
  readonly payer: Payer;
  readonly life: Life;
  readonly till: Till;
  /** Ends the process, and adds up with another one. */
  readonly reckon: (first: Bought["first"]) => Promise<void>;
}

/** A test with chains and a store of its own. */
function row(
  way: Way,
  title: string,
  play: (scene: Scene) => Promise<void>,
  options: Partial<LifeOptions> = {},
): void {
  test(`${way}: ${title}`, async () => {
    const { place, remove } = await newPlace("sqlite");
    const store = await openStore(place);
    try {
      const stage = await startMatrixStage(store);
      try {
        await play(await sceneOf(stage, way, options));
      } finally {
        await stage.close();
      }
    } finally {
      await store.close();
      await remove();
    }
  });
}

async function sceneOf(
  stage: MatrixStage,
  way: Way,
  options: Partial<LifeOptions>,
): Promise<Scene> {
  const rails = [railOf(way)];
  const life = await stage.run(stage.start({ rails, ...options }));
  const wish = await wishFor(stage, "credit_account", way.replaceAll(" ", "_"));
  const payer: Payer = {
    stage,
    wish,
    way,
    wallet: stage.chains.payer,
    next: async () => life,
    isPatient: false,
  };
  const till = await tillOf(stage);
  return {
    stage,
    payer,
    life,
    till,
    async reckon(first) {
      life.kill();
      const fresh = await stage.run(stage.start({ rails, ...options, fates: {} }));
      await reckon(stage, { life: fresh, all: [{ payer, first }], before: till, note: way });
      fresh.kill();
      await checkBooks(stage, [payer.given]);
    },
  };
}

/** Lets time go by until something is true. */
async function when({ stage }: Scene, what: string, isSo: () => Promise<boolean>): Promise<void> {
  const wait = async (): Promise<void> => {
    for (let looks = 0; looks < 1_000; looks += 1) {
      if (await isSo()) return;
      await pause(stage, 100);
    }
    assert.fail(`${what} never comes`);
  };
  await stage.run(wait());
}

function isUnderWay({ stage }: Scene): () => Promise<boolean> {
  return async () =>
    (
      await stage.store.db
        .selectFrom("purchase")
        .select("id")
        .where("state", "=", "submitted")
        .execute()
    ).length > 0;
}

async function movedIn({ stage, till }: Scene): Promise<bigint> {
  return (await stage.received()) - till.movedUnits;
}

/** Takes an offer up without bringing the payment. */
async function signIn({ stage, payer, life }: Scene) {
  const challenge = await stage.run(life.payments.challenge(orderOf(payer.wish)));
  const given = await signedPayment(stage, payer.way, challenge?.headers ?? [], payer.wallet);
  assert.ok(given !== null);
  payer.given = given;
  return given;
}

/** Somebody's transaction to the token of the EVM chain, which goes before others. */
function deed({ stage }: Scene, from: string, data: string): Promise<unknown> {
  const { evm } = stage.chains;
  const fees = { maxFeePerGas: "0x2540be4000", maxPriorityFeePerGas: "0x12a05f2000" };
  return stage.ask(evm, "eth_sendTransaction", {
    from,
    to: evm.token.address,
    data,
    gas: "0x30000",
    ...fees,
  });
}

/** A payment that waits at a node which then loses it, while no block is made. */
async function lost(scene: Scene) {
  const { stage, payer } = scene;
  stage.areBlocksMade = false;
  const buying = buy(payer);
  await when(scene, "a payment under way", isUnderWay(scene));
  await stage.pass(200);
  await stage.ask(stage.chains[railOf(payer.way)], "anvil_dropAllTransactions");
  assert.ok(payer.given !== undefined);
  return { buying, given: payer.given };
}

/** Makes blocks again, the first one at once: before anything is sent again. */
async function goOn({ stage }: Scene): Promise<void> {
  await stage.block();
  stage.areBlocksMade = true;
}

for (const way of WAYS)
  row(
    way,
    "a reorganization below the depth takes the payment away, and it is credited once all the same",
    async (scene) => {
      const { stage, payer } = scene;
      const buying = buy(payer);
      await when(scene, "a transfer", async () => (await movedIn(scene)) > 0n);
      // It has been seen in a block, and that is not deep enough.
      await stage.pass(1_100);
      await stage.ask(stage.chains[railOf(way)], "anvil_reorg", 3, []);
      assert.deepEqual([await movedIn(scene), await isUnderWay(scene)()], [0n, true]);
      await stage.pass(1_000);
      // A wallet sends again what its node has lost.
      const sent = payer.given?.sent ?? null;
      if (sent !== null) await stage.ask(stage.chains.tempo, "eth_sendRawTransaction", sent);
      const first = await stage.run(buying);
      assert.equal(first.kind, "paid");
      await scene.reckon(first);
    },
    { confirmations: 3 },
  );

for (const way of EVM_WAYS) {
  row(
    way,
    "an authorization that is cancelled while it is under way is a failed payment, and no " +
      "nonce of the wallet is left out",
    async (scene) => {
      const { stage, payer } = scene;
      const { buying, given } = await lost(scene);
      await deed(
        scene,
        stage.chains.payer.address,
        await cancelling(stage.chains.evm, payer.wallet, given),
      );
      await goOn(scene);
      const first = await stage.run(buying);
      assert.equal(wordOf(first), "payment_failed");
      await scene.reckon(first);
    },
  );

  row(way, "an authorization that a stranger carries out is paid, once", async (scene) => {
    const { stage } = scene;
    const { buying, given } = await lost(scene);
    const [stranger = stage.chains.payer] = stage.chains.otherPayers;
    const hash = await deed(scene, stranger.address, carryingOut(given));
    await goOn(scene);
    const first = await stage.run(buying);
    assert.equal(first.kind === "paid" && first.purchase.txHash, hash);
    await scene.reckon(first);
  });

  row(
    way,
    "an authorization that a stranger has carried out before it was brought is paid all the same",
    async (scene) => {
      const { stage, payer } = scene;
      const given = await signIn(scene);
      const [stranger = payer.wallet] = stage.chains.otherPayers;
      await deed(scene, stranger.address, carryingOut(given));
      await stage.pass(2_000);
      const first = await stage.run(buy(payer));
      assert.equal(first.kind, "paid");
      await scene.reckon(first);
    },
  );

  for (const isBack of [true, false])
    row(
      way,
      "money that is gone when the payment arrives " +
        `${isBack ? "and comes back in time is paid" : "for good is a failed payment"}`,
      async (scene) => {
        const { stage } = scene;
        const { payer, otherPayers, evm } = stage.chains;
        const [other = payer] = otherPayers;
        const { buying } = await lost(scene);
        const all = await evm.balanceOf(payer.address);
        await deed(scene, payer.address, moving(other.address, all));
        await goOn(scene);
        await stage.pass(10_000);
        assert.equal(await movedIn(scene), 0n);
        if (isBack) await deed(scene, other.address, moving(payer.address, all));
        const first = await stage.run(buying);
        assert.equal(wordOf(first), isBack ? "paid" : "payment_failed");
        await scene.reckon(first);
      },
    );

  row(
    way,
    "a wallet without gas makes no offer and takes no payment; one that was signed before is " +
      "taken when it has gas again",
    async (scene) => {
      const { stage, life, payer } = scene;
      const { evm, settlement } = stage.chains;
      const given = await signIn(scene);
      await stage.ask(evm, "anvil_setBalance", settlement.address, "0x0");
      const refused = await stage.run(bring(life, given, payer.wish));
      assert.deepEqual(refused.kind === "unpaid" && [refused.fault.code, refused.purchaseId], [
        "unavailable",
        null,
      ]);
      await stage.pass(20_000);
      assert.equal(await stage.run(life.payments.challenge(orderOf(payer.wish))), null);
      const { wallets } = life.payments.gauges();
      assert.deepEqual(wallets, [{ chainId: evm.chainId, low: true, empty: true }]);
      await stage.ask(evm, "anvil_setBalance", settlement.address, ETHER);
      const first = await stage.run(buy(payer));
      assert.equal(first.kind, "paid");
      await scene.reckon(first);
    },
  );

  row(way, "gas that is gone after the payment was recorded delays it", async (scene) => {
    const { stage } = scene;
    const { evm, settlement } = stage.chains;
    const { buying } = await lost(scene);
    await stage.ask(evm, "anvil_setBalance", settlement.address, "0x0");
    await goOn(scene);
    await stage.pass(20_000);
    assert.equal(await movedIn(scene), 0n);
    await stage.ask(evm, "anvil_setBalance", settlement.address, ETHER);
    const first = await stage.run(buying);
    assert.equal(first.kind, "paid");
    await scene.reckon(first);
  });
}

for (const way of ["tempo pull", "tempo push"] as const)
  row(
    way,
    "a transaction that is reverted, since the money is gone, is a failed payment",
    async (scene) => {
      const { stage, payer } = scene;
      const { tempo, otherPayers } = stage.chains;
      const [other = payer.wallet] = otherPayers;
      const { buying, given } = await lost(scene);
      const all = await tempo.balanceOf(payer.wallet.address);
      await stage.ask(
        tempo,
        "eth_sendRawTransaction",
        await tempoTransfer(stage, payer.wallet, { units: all, to: other.address }),
      );
      await goOn(scene);
      if (given.sent !== null) await stage.ask(tempo, "eth_sendRawTransaction", given.sent);
      const first = await stage.run(buying);
      assert.equal(wordOf(first), "payment_failed");
      assert.match(first.kind === "unpaid" ? first.fault.message : "", /reverted/);
      await scene.reckon(first);
    },
  );

for (const way of PULLED)
  row(
    way,
    "a payment that never reaches its chain fails when its time is up, and nothing has moved",
    async (scene) => {
      const first = await scene.stage.run(buy(scene.payer));
      assert.equal(wordOf(first), "payment_failed");
      assert.equal(await movedIn(scene), 0n);
      await scene.reckon(first);
    },
    { fates: { question: (_, name) => (name === "eth_sendRawTransaction" ? "drop" : "pass") } },
  );

for (const way of WAYS) {
  row(
    way,
    "brought ten times at once to two processes, it is one purchase with one result",
    async (scene) => {
      const { stage, payer, life } = scene;
      const other = await stage.run(stage.start({ rails: [railOf(way)], node: "other" }));
      await signIn(scene);
      const many = Array.from({ length: 10 }, (_, index) =>
        buy({ ...payer, next: async () => (index % 2 === 0 ? life : other) }),
      );
      const results = await stage.run(Promise.all(many));
      const seen = results.map((result) =>
        result.kind === "paid"
          ? `${result.purchase.id} ${result.headers.join(" ")}`
          : wordOf(result),
      );
      assert.equal(new Set(seen).size, 1, seen.join("\n"));
      other.kill();
      const [first] = results;
      assert.ok(first?.kind === "paid");
      await scene.reckon(first);
    },
  );

  row(
    way,
    "with another path, body or amount it is refused before it is recorded, and a conflict " +
      "afterwards",
    async (scene) => {
      const { stage, payer, life } = scene;
      const { wish } = payer;
      const given = await signIn(scene);
      const others: readonly Wish[] = [
        { ...wish, request: "another path or body" },
        { ...wish, request: "another amount", units: wish.units * 2n },
      ];
      const codes = async () =>
        Promise.all(
          others.map(async (other) => wordOf(await stage.run(bring(life, given, other)))),
        );
      assert.deepEqual(await codes(), ["payment_invalid", "payment_invalid"]);
      const recorded = stage.store.db
        .selectFrom("purchase")
        .select("id")
        .where("fingerprint", "=", markOf(wish.request).fingerprint);
      assert.equal((await recorded.execute()).length, 0);
      const first = await stage.run(buy(payer));
      assert.deepEqual(await codes(), ["payment_conflict", "payment_conflict"]);
      assert.equal(first.kind, "paid");
      await scene.reckon(first);
    },
  );

  row(
    way,
    "a process that lives on takes over what another one had when it died",
    async (scene) => {
      const { stage, life } = scene;
      const heir = await stage.run(stage.start({ rails: [railOf(way)], node: "heir" }));
      const payer: Payer = { ...scene.payer, next: async () => (life.isDead() ? heir : life) };
      // By push nothing is sent here: it dies while the chain has not taken the payment yet.
      stage.areBlocksMade = way !== "tempo push";
      const buying = buy(payer);
      if (way === "tempo push") {
        await when(scene, "a payment under way", isUnderWay(scene));
        life.kill();
        await goOn(scene);
      }
      const first = await stage.run(buying);
      assert.equal(life.isDead(), true);
      heir.kill();
      assert.equal(first.kind, "paid");
      if (payer.given !== undefined) scene.payer.given = payer.given;
      await scene.reckon(first);
    },
    {
      node: "dying",
      fates: { question: (_, name) => (name === "eth_sendRawTransaction" ? "die after" : "pass") },
    },
  );
}
