// How a payment on a Tempo chain ends when something goes wrong on the way: what moved is found,
// what did not move is over at a known time, and trouble with the node is told as nothing else.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { keccak256 } from "viem";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { Secp256k1, Transaction } from "viem/tempo";
import { OTHER_PAYERS, PAYER } from "../../../../src/devnet/payments/wallets.ts";
import type { Rail } from "../../../../src/payments/rails/rail.ts";
import { type ChainFault, startChainProxy } from "../../../fakes/chain-proxy.ts";
import { memoFor } from "./memo.ts";
import {
  challengeOf,
  driven,
  OTHER_TOKEN,
  Purchase,
  presented,
  refusal,
  shown,
  signedTransaction,
  startTempoStage,
  step,
  stockPayment,
  strangePayment,
  type TempoStage,
  taken,
  transfer,
  UNITS,
} from "./tempo-fixture.ts";

const FAULTS: readonly ChainFault[] = ["drop", "lose", "status", "junk", "huge", "limit"];
const OPEN = { kind: "open", resend: false, replace: false };
const TO_SEND = { kind: "open", resend: true, replace: false };

/** A test on a chain of its own, whose clock it may turn. */
function onChain(title: string, run: (stage: TempoStage) => Promise<void>): void {
  test(title, async () => {
    const stage = await startTempoStage();
    try {
      await run(stage);
    } finally {
      await stage.close();
    }
  });
}

async function bought(stage: TempoStage): Promise<Purchase> {
  return new Purchase(
    await taken(
      stage.rail,
      presented(await stockPayment(stage, challengeOf(stage.rail), { account: stage.payer })),
    ),
  );
}

/** The same transaction, signed once more. */
async function signedAgain(raw: `0x${string}`): Promise<`0x${string}`> {
  const { z_TxEnvelopeTempo: Envelope } = Transaction;
  const envelope = Envelope.deserialize(raw as `0x76${string}`);
  const signature = Secp256k1.sign({
    payload: Envelope.getSignPayload(envelope),
    privateKey: PAYER.key,
    extraEntropy: true,
  });
  return Envelope.serialize({ ...envelope, signature: { type: "secp256k1", signature } } as never);
}

describe("the end of a payment on a Tempo chain", () => {
  onChain(
    "a payment counts when the configured number of blocks follows its own",
    async (stage) => {
      const rail = stage.railWith({ confirmations: 2 });
      const purchase = await bought(stage);
      assert.deepEqual(await step(rail, purchase), TO_SEND);
      assert.deepEqual(await step(rail, purchase), OPEN, "it waits at the node");
      for (const _ of [0, 1]) {
        await stage.mine();
        assert.deepEqual(await rail.look(purchase), OPEN);
      }
      await stage.mine();
      assert.equal((await rail.look(purchase)).kind, "settled");
    },
  );

  for (const confirmations of [0, 3]) {
    onChain(
      "a payment whose block was replaced is sent again and found paid once, with " +
        `${confirmations} blocks to follow`,
      async (stage) => {
        const rail = stage.railWith({ confirmations });
        const purchase = await bought(stage);
        await step(rail, purchase);
        await stage.mine();
        assert.equal((await rail.look(purchase)).kind, confirmations === 0 ? "settled" : "open");
        await stage.rpc("anvil_reorg", 1, []);
        assert.equal(await stage.received(), 0n);
        assert.deepEqual(await rail.look(purchase), TO_SEND);
        assert.equal((await driven(stage, purchase, rail)).kind, "settled");
        assert.equal(await stage.received(), UNITS);
      },
    );
  }

  onChain(
    "a payment that was never taken into a block is over when its time is up on the chain, and " +
      "not before",
    async (stage) => {
      const purchase = await bought(stage);
      const endS = (purchase.payment.validUntilMs ?? 0) / 1_000;
      await stage.rpc("evm_mine", { timestamp: endS + 3 });
      assert.match(refusal(await stage.rail.check(purchase.payment)), /^payment-expired/);
      assert.equal(
        (await stage.rail.look(purchase)).kind,
        "open",
        "nodes behind one address may differ by some seconds in what they know",
      );
      await stage.rpc("evm_mine", { timestamp: endS + 18 });
      const truth = await stage.rail.look(purchase);
      assert.deepEqual(truth, {
        kind: "failed",
        reason: "the transaction was not taken into a block before it ended",
      });
      assert.equal(
        (await stage.railWith({ confirmations: 3 }).look(purchase)).kind,
        "open",
        "the block that counts is older",
      );
      await stage.rpc("evm_increaseTime", 100);
      await stage.rail.send({ txHash: "0x", raw: transactionOf(purchase), nonce: null });
      await stage.mine();
      assert.equal(await stage.received(), 0n);
    },
  );

  onChain(
    "of two signatures of one payment the chain takes one, and the payment is found paid " +
      "whichever it took",
    async (stage) => {
      const purchase = await bought(stage);
      const raw = await signedAgain(transactionOf(purchase));
      assert.notEqual(keccak256(raw), keccak256(transactionOf(purchase)));
      await stage.rpc("eth_sendRawTransaction", raw);
      await stage.mine();
      await step(stage.rail, purchase);
      await stage.mine();
      assert.equal(await stage.received(), UNITS);
      assert.equal((await stage.rail.look(purchase)).kind, "open");
      await stage.rpc("evm_increaseTime", 60);
      await stage.mine();
      const truth = await stage.rail.look(purchase);
      assert.ok(truth.kind === "settled");
      assert.equal(truth.txHash, keccak256(raw));
    },
  );

  onChain(
    "money that is gone between the check and the block lets the payment fail, with nothing moved",
    async (stage) => {
      const account = privateKeyToAccount(generatePrivateKey());
      const give = [
        transfer(stage, { to: account.address, units: UNITS }),
        transfer(stage, { to: account.address, units: 10_000_000n, token: OTHER_TOKEN }),
      ];
      const [giver = stage.payer] = OTHER_PAYERS.map((it) => privateKeyToAccount(it.key));
      await stage.rpc("eth_sendRawTransaction", await signedTransaction(stage, give, {}, giver));
      await stage.mine();
      const challenge = challengeOf(stage.rail);
      const fees = { feeToken: OTHER_TOKEN };
      const given = await strangePayment(stage, {
        challenge,
        calls: [transfer(stage, { memo: memoFor(challenge) })],
        over: fees,
        account,
      });
      const purchase = new Purchase(await taken(stage.rail, given));
      assert.equal(await stage.rail.check(purchase.payment), null);
      await stage.rpc(
        "eth_sendRawTransaction",
        await signedTransaction(
          stage,
          [transfer(stage, { to: PAYER.address, units: 1n })],
          fees,
          account,
        ),
      );
      await stage.mine();
      const truth = await driven(stage, purchase);
      assert.deepEqual(truth, {
        kind: "failed",
        reason: "the transaction reverted: nothing was paid",
      });
      assert.equal(await stage.received(), 0n);
      assert.match(refusal(await stage.rail.check(purchase.payment)), /reverted: nothing was paid/);
    },
  );

  onChain(
    "a transaction that was to be sent by the payer and never comes is over an hour after its " +
      "challenge",
    async (stage) => {
      const challenge = challengeOf(stage.rail, { expiresInS: 60 });
      const raw = await signedTransaction(stage, [transfer(stage, { memo: memoFor(challenge) })]);
      const purchase = new Purchase(
        await taken(stage.rail, shown(challenge, { type: "hash", hash: keccak256(raw) })),
      );
      await stage.rpc("evm_increaseTime", 3_600);
      await stage.mine();
      assert.deepEqual(await stage.rail.look(purchase), OPEN);
      await stage.rpc("evm_increaseTime", 120);
      await stage.mine();
      assert.deepEqual(await stage.rail.look(purchase), {
        kind: "failed",
        reason: "the transaction is not on the chain",
      });
    },
  );

  onChain(
    "an answer that is lost after a payment was sent loses nothing and pays nothing twice",
    async (stage) => {
      const purchase = await bought(stage);
      stage.proxy.fault = (method) => (method === "eth_sendRawTransaction" ? "lose" : "pass");
      await assert.rejects(step(stage.rail, purchase), { name: "ChainTrouble" });
      assert.equal(purchase.submissions.length, 1);
      assert.deepEqual(await stage.rail.look(purchase), OPEN, "the node has it");
      const [submission] = purchase.submissions;
      assert.ok(submission !== undefined);
      await assert.rejects(stage.rail.send(submission));
      await stage.mine(2);
      assert.equal((await stage.rail.look(purchase)).kind, "settled");
      assert.equal(await stage.received(), UNITS);
    },
  );

  onChain(
    "whatever the node does to whichever question, it is trouble and never the payer's fault, " +
      "and no text holds its address",
    async (stage) => {
      const purchase = await bought(stage);
      const pushed = new Purchase(
        await taken(
          stage.rail,
          shown(challengeOf(stage.rail), { type: "hash", hash: `0x${"ab".repeat(32)}` }),
        ),
      );
      const asks: readonly (readonly [string, (rail: Rail) => Promise<unknown>])[] = [
        ["check of a pull", (rail) => rail.check(purchase.payment)],
        ["check of a push", (rail) => rail.check(pushed.payment)],
        ["look at a pull", (rail) => rail.look(purchase)],
        ["look at a push", (rail) => rail.look(pushed)],
      ];
      // A proxy for each try: a question that the one before had left behind would count as one of
      // this.
      const tried = async (
        name: string,
        ask: (rail: Rail) => Promise<unknown>,
        fault: ChainFault,
        place: number,
      ): Promise<number> => {
        const proxy = await startChainProxy(stage.proxy.url);
        try {
          const rail = stage.railWith({ rpcUrl: proxy.url });
          await rail.check(purchase.payment);
          proxy.asked.length = 0;
          proxy.fault = () => (proxy.asked.length === place ? fault : "pass");
          if (fault === "pass") await ask(rail).catch(() => {});
          else await assert.rejects(ask(rail), isTrouble, `${name}, ${fault} at question ${place}`);
          return proxy.asked.length;
        } finally {
          await proxy.close();
        }
      };
      let faults = 0;
      for (const [name, ask] of asks) {
        const questions = await tried(name, ask, "pass", 0);
        for (const fault of FAULTS) {
          for (let place = 1; place <= questions; place += 1) {
            await tried(name, ask, fault, place);
            faults += 1;
          }
        }
      }
      assert.ok(faults > 60, `${faults} faults`);
      assert.equal((await driven(stage, purchase)).kind, "settled");
    },
  );

  onChain(
    "a payment is not refused for what a rail cannot know before it has met its chain: another " +
      "chain, another token",
    async (stage) => {
      const { payment } = await bought(stage);
      const other = stage.railWith({ chainId: 4_217 });
      await assert.rejects(other.network(), /serves chain 1337, but 4217 is configured/);
      await assert.rejects(other.check(payment), isTrouble);
      await assert.rejects(other.look(new Purchase(payment)), isTrouble);
      const none = stage.railWith({
        token: { address: "0x20c0000000000000000000000000000000009999", name: "", version: "" },
      });
      await assert.rejects(none.network(), isTrouble);
      await assert.rejects(none.check(payment), isTrouble);
      assert.match(await stage.rail.network(), /^0x[0-9a-f]{16}$/);
      assert.equal(await stage.rail.wallet(), null);
    },
  );

  onChain("a token that is not in dollars is refused as a whole", async (stage) => {
    const euro = await otherCurrency(stage);
    await assert.rejects(
      stage.railWith({ token: { address: euro, name: "", version: "" } }).network(),
      /is in EUR with 6 decimals; USD and 6 are needed/,
    );
  });
});

function isTrouble(error: unknown): boolean {
  assert.ok(error instanceof Error);
  assert.equal(error.name, "ChainTrouble");
  assert.doesNotMatch(`${error.stack} ${error.cause}`, /127\.0\.0\.1|key-in-the-url/);
  return true;
}

function transactionOf({ payment }: Purchase): `0x${string}` {
  return JSON.parse(payment.material).raw;
}

/** Makes a TIP-20 token in euros. */
async function otherCurrency(stage: TempoStage): Promise<string> {
  const { Actions } = await import("viem/tempo");
  const { getTransactionReceipt } = await import("viem/actions");
  const hash = await Actions.token.create(stage.client, {
    account: stage.payer,
    name: "Euro",
    symbol: "EUR",
    currency: "EUR",
    admin: stage.payer.address,
  } as never);
  await stage.mine();
  const receipt = await getTransactionReceipt(stage.client, { hash });
  return Actions.token.create.extractEvent(receipt.logs).args.token;
}
