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
  startTempoFixture,
  step,
  stockPayment,
  strangePayment,
  type TempoFixture,
  taken,
  transfer,
  UNITS,
} from "./tempo-fixture.ts";

const FAULTS: readonly ChainFault[] = ["drop", "lose", "status", "junk", "huge", "limit"];
const OPEN = { kind: "open", resend: false, replace: false };
const TO_SEND = { kind: "open", resend: true, replace: false };

/** A test on a chain of its own, whose clock it may turn. */
function onChain(title: string, run: (fixture: TempoFixture) => Promise<void>): void {
  test(title, async () => {
    const fixture = await startTempoFixture();
    try {
      await run(fixture);
    } finally {
      await fixture.close();
    }
  });
}

/** A purchase; its payment is valid for some 25 seconds of the clock, which stands still. */
async function bought(fixture: TempoFixture): Promise<Purchase> {
  const challenge = challengeOf(fixture.rail);
  const credential = await stockPayment(fixture, challenge, { account: fixture.payer });
  await fixture.stopClock();
  return new Purchase(await taken(fixture.rail, presented(credential)));
}

/** When the payment of a purchase ends, in seconds of the chain's clock. */
function endOf({ payment }: Purchase): number {
  return (payment.validUntilMs ?? 0) / 1_000;
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
    async (fixture) => {
      const rail = fixture.railWith({ confirmations: 2 });
      const purchase = await bought(fixture);
      assert.deepEqual(await step(rail, purchase), TO_SEND);
      assert.deepEqual(await step(rail, purchase), OPEN, "it waits at the node");
      for (const _ of [0, 1]) {
        await fixture.mine();
        assert.deepEqual(await rail.look(purchase), OPEN);
      }
      await fixture.mine();
      assert.equal((await rail.look(purchase)).kind, "settled");
    },
  );

  for (const confirmations of [0, 3]) {
    onChain(
      "a payment whose block was replaced is sent again and found paid once, with " +
        `${confirmations} blocks to follow`,
      async (fixture) => {
        const rail = fixture.railWith({ confirmations });
        const purchase = await bought(fixture);
        await step(rail, purchase);
        await fixture.mine();
        assert.equal((await rail.look(purchase)).kind, confirmations === 0 ? "settled" : "open");
        await fixture.rpc("anvil_reorg", 1, []);
        assert.equal(await fixture.received(), 0n);
        assert.deepEqual(await rail.look(purchase), TO_SEND);
        assert.equal((await driven(fixture, purchase, rail)).kind, "settled");
        assert.equal(await fixture.received(), UNITS);
      },
    );
  }

  onChain(
    "a payment that was never taken into a block is over when its time is up on the chain, and " +
      "not before",
    async (fixture) => {
      const purchase = await bought(fixture);
      const endS = endOf(purchase);
      await fixture.rpc("evm_mine", { timestamp: endS + 3 });
      assert.match(refusal(await fixture.rail.check(purchase.payment)), /^payment-expired/);
      assert.equal(
        (await fixture.rail.look(purchase)).kind,
        "open",
        "nodes behind one address may differ by some seconds in what they know",
      );
      await fixture.rpc("evm_mine", { timestamp: endS + 18 });
      const truth = await fixture.rail.look(purchase);
      assert.deepEqual(truth, {
        kind: "failed",
        reason: "the transaction was not taken into a block before it ended",
      });
      assert.equal(
        (await fixture.railWith({ confirmations: 3 }).look(purchase)).kind,
        "open",
        "the block that counts is older",
      );
      await fixture.rpc("evm_mine", { timestamp: endS + 100 });
      await fixture.rail.send({ txHash: "0x", raw: transactionOf(purchase), nonce: null });
      await fixture.mine();
      assert.equal(await fixture.received(), 0n);
    },
  );

  onChain(
    "of two signatures of one payment the chain takes one, and the payment is found paid " +
      "whichever it took",
    async (fixture) => {
      const purchase = await bought(fixture);
      const raw = await signedAgain(transactionOf(purchase));
      assert.notEqual(keccak256(raw), keccak256(transactionOf(purchase)));
      await fixture.rpc("eth_sendRawTransaction", raw);
      await fixture.mine();
      await step(fixture.rail, purchase);
      await fixture.mine();
      assert.equal(await fixture.received(), UNITS);
      assert.equal((await fixture.rail.look(purchase)).kind, "open");
      await fixture.rpc("evm_mine", { timestamp: endOf(purchase) + 40 });
      const truth = await fixture.rail.look(purchase);
      assert.ok(truth.kind === "settled");
      assert.equal(truth.txHash, keccak256(raw));
    },
  );

  onChain(
    "money that is gone between the check and the block lets the payment fail, with nothing moved",
    async (fixture) => {
      const account = privateKeyToAccount(generatePrivateKey());
      const give = [
        transfer(fixture, { to: account.address, units: UNITS }),
        transfer(fixture, { to: account.address, units: 10_000_000n, token: OTHER_TOKEN }),
      ];
      const [giver = fixture.payer] = OTHER_PAYERS.map((it) => privateKeyToAccount(it.key));
      await fixture.rpc(
        "eth_sendRawTransaction",
        await signedTransaction(fixture, give, {}, giver),
      );
      await fixture.mine();
      const challenge = challengeOf(fixture.rail);
      const fees = { feeToken: OTHER_TOKEN };
      const given = await strangePayment(fixture, {
        challenge,
        calls: [transfer(fixture, { memo: memoFor(challenge) })],
        over: fees,
        account,
      });
      await fixture.stopClock();
      const purchase = new Purchase(await taken(fixture.rail, given));
      assert.equal(await fixture.rail.check(purchase.payment), null);
      await fixture.rpc(
        "eth_sendRawTransaction",
        await signedTransaction(
          fixture,
          [transfer(fixture, { to: PAYER.address, units: 1n })],
          fees,
          account,
        ),
      );
      await fixture.mine();
      const truth = await driven(fixture, purchase);
      assert.deepEqual(truth, {
        kind: "failed",
        reason: "the transaction reverted: nothing was paid",
      });
      assert.equal(await fixture.received(), 0n);
      assert.match(
        refusal(await fixture.rail.check(purchase.payment)),
        /reverted: nothing was paid/,
      );
    },
  );

  onChain(
    "a transaction that was to be sent by the payer and never comes is over an hour after its " +
      "challenge",
    async (fixture) => {
      const challenge = challengeOf(fixture.rail, { expiresInS: 60 });
      const raw = await signedTransaction(fixture, [
        transfer(fixture, { memo: memoFor(challenge) }),
      ]);
      const purchase = new Purchase(
        await taken(fixture.rail, shown(challenge, { type: "hash", hash: keccak256(raw) })),
      );
      await fixture.rpc("evm_increaseTime", 3_600);
      await fixture.mine();
      assert.deepEqual(await fixture.rail.look(purchase), OPEN);
      await fixture.rpc("evm_increaseTime", 120);
      await fixture.mine();
      assert.deepEqual(await fixture.rail.look(purchase), {
        kind: "failed",
        reason: "the transaction is not on the chain",
      });
    },
  );

  onChain(
    "an answer that is lost after a payment was sent loses nothing and pays nothing twice",
    async (fixture) => {
      const purchase = await bought(fixture);
      fixture.proxy.fault = (method) => (method === "eth_sendRawTransaction" ? "lose" : "pass");
      await assert.rejects(step(fixture.rail, purchase), { name: "ChainFailure" });
      assert.equal(purchase.submissions.length, 1);
      assert.deepEqual(await fixture.rail.look(purchase), OPEN, "the node has it");
      const [submission] = purchase.submissions;
      assert.ok(submission !== undefined);
      await assert.rejects(fixture.rail.send(submission));
      await fixture.mine(2);
      assert.equal((await fixture.rail.look(purchase)).kind, "settled");
      assert.equal(await fixture.received(), UNITS);
    },
  );

  onChain(
    "whatever the node does to whichever question, it is trouble and never the payer's fault, " +
      "and no text holds its address",
    async (fixture) => {
      const purchase = await bought(fixture);
      const pushed = new Purchase(
        await taken(
          fixture.rail,
          shown(challengeOf(fixture.rail), { type: "hash", hash: `0x${"ab".repeat(32)}` }),
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
        const proxy = await startChainProxy(fixture.proxy.url);
        try {
          const rail = fixture.railWith({ rpcUrl: proxy.url });
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
      assert.equal((await driven(fixture, purchase)).kind, "settled");
    },
  );

  onChain(
    "a payment is not refused for what a rail cannot know before it has met its chain: another " +
      "chain, another token",
    async (fixture) => {
      const { payment } = await bought(fixture);
      const other = fixture.railWith({ chainId: 4_217 });
      await assert.rejects(other.network(), /serves chain 1337, but 4217 is configured/);
      await assert.rejects(other.check(payment), isTrouble);
      await assert.rejects(other.look(new Purchase(payment)), isTrouble);
      const none = fixture.railWith({
        token: { address: "0x20c0000000000000000000000000000000009999", name: "", version: "" },
      });
      await assert.rejects(none.network(), isTrouble);
      await assert.rejects(none.check(payment), isTrouble);
      assert.match(await fixture.rail.network(), /^0x[0-9a-f]{16}$/);
      assert.equal(await fixture.rail.wallet(), null);
    },
  );

  onChain("a token that is not in dollars is refused as a whole", async (fixture) => {
    const euro = await otherCurrency(fixture);
    await assert.rejects(
      fixture.railWith({ token: { address: euro, name: "", version: "" } }).network(),
      /is in EUR with 6 decimals; USD and 6 are needed/,
    );
  });
});

function isTrouble(error: unknown): boolean {
  assert.ok(error instanceof Error);
  assert.equal(error.name, "ChainFailure");
  assert.doesNotMatch(`${error.stack} ${error.cause}`, /127\.0\.0\.1|key-in-the-url/);
  return true;
}

function transactionOf({ payment }: Purchase): `0x${string}` {
  return JSON.parse(payment.material).raw;
}

/** Makes a TIP-20 token in euros. */
async function otherCurrency(fixture: TempoFixture): Promise<string> {
  const { Actions } = await import("viem/tempo");
  const { getTransactionReceipt } = await import("viem/actions");
  const hash = await Actions.token.create(fixture.client, {
    account: fixture.payer,
    name: "Euro",
    symbol: "EUR",
    currency: "EUR",
    admin: fixture.payer.address,
  } as never);
  await fixture.mine();
  const receipt = await getTransactionReceipt(fixture.client, { hash });
  return Actions.token.create.extractEvent(receipt.logs).args.token;
}
