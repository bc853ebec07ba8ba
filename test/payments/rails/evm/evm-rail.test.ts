// The EIP-3009 rail on a real chain with a real token: whatever happens to a payment on the way,
// what the rail says is what the money did.
import assert from "node:assert/strict";
import { after, before, beforeEach, describe, test } from "node:test";
import {
  createPublicClient,
  createWalletClient,
  encodeFunctionData,
  type Hex,
  http,
  parseAbi,
  parseTransaction,
} from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { createEvmRail } from "../../../../src/payments/rails/evm/evm-rail.ts";
import type { Rail } from "../../../../src/payments/rails/rail.ts";
import type { EvmRailSettings } from "../../../../src/payments/rails/rail-kind.ts";
import type { Runtime } from "../../../../src/runtime.ts";
import { startChainProxy } from "../../../fakes/chain-proxy.ts";
import { patientWorld } from "../../patient-world.ts";
import {
  accepted,
  type EvmFixture,
  inSeconds,
  mppPayment,
  Purchase,
  parseHex,
  randomNonce,
  refusal,
  signed,
  startEvmFixture,
  step,
  write,
  x402Payment,
} from "./evm-fixture.ts";

const UNITS = 2_500_000n;
const TOKEN = parseAbi([
  "function transferWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, bytes signature)",
  "function cancelAuthorization(address authorizer, bytes32 nonce, uint8 v, bytes32 r, bytes32 s)",
  "function transfer(address to, uint256 value) returns (bool)",
]);

let fixture: EvmFixture;
let snapshot: unknown;

before(async () => {
  fixture = await startEvmFixture();
  snapshot = await fixture.chains.evm.rpc("evm_snapshot");
});

after(() => fixture.close());

beforeEach(async () => {
  fixture.proxy.fault = () => "pass";
  fixture.proxy.asked.length = 0;
  await fixture.chains.evm.rpc("evm_revert", snapshot);
  snapshot = await fixture.chains.evm.rpc("evm_snapshot");
  // A raised base fee of the test before outlives the snapshot.
  await fixture.chains.evm.rpc("anvil_setNextBlockBaseFeePerGas", "0x3b9aca00");
});

function railWith(changes: Partial<EvmRailSettings> = {}, runtime: Runtime = patientWorld): Rail {
  return createEvmRail({ ...fixture.settings, ...changes }, { runtime });
}

async function bought(
  rail: Rail,
  changes: Partial<Parameters<typeof mppPayment>[1]> = {},
): Promise<Purchase> {
  const { payer } = fixture.chains;
  return new Purchase(
    await accepted(
      rail,
      await mppPayment(rail, {
        key: payer.key,
        settings: fixture.settings,
        value: UNITS,
        ...changes,
      }),
      UNITS,
    ),
  );
}

function received(): Promise<bigint> {
  return fixture.chains.evm.balanceOf(fixture.chains.recipient.address);
}

/** Somebody else's transaction to the token; it is in the next block. */
async function bySomebody(
  data: Hex,
  key: Hex = fixture.chains.otherPayers[0]?.key ?? "0x",
): Promise<Hex> {
  const account = privateKeyToAccount(key);
  const client = createWalletClient({ account, transport: http(fixture.chains.evm.rpcUrl) });
  const { token, chainId } = fixture.chains.evm;
  const chain = {
    id: chainId,
    name: "test",
    nativeCurrency: { name: "E", symbol: "E", decimals: 18 },
    rpcUrls: { default: { http: [] } },
  };
  return client.sendTransaction({ to: parseHex(token.address), data, gas: 200_000n, chain });
}

async function carriedOut(parts: {
  readonly key: Hex;
  readonly nonce: Hex;
  readonly value: bigint;
  readonly to?: string;
}): Promise<Hex> {
  const { authorization: it, signature } = await signed({ ...parts, settings: fixture.settings });
  return encodeFunctionData({
    abi: TOKEN,
    functionName: "transferWithAuthorization",
    args: [
      parseHex(it.from),
      parseHex(it.to),
      BigInt(it.value),
      BigInt(it.validAfter),
      BigInt(it.validBefore),
      it.nonce,
      signature,
    ],
  });
}

/** The call that is in a presented MPP or x402 payment. */
function callOf(purchase: Purchase): Hex {
  const { authorization: it } = JSON.parse(purchase.payment.material);
  return encodeFunctionData({
    abi: TOKEN,
    functionName: "transferWithAuthorization",
    args: [
      it.from,
      it.to,
      BigInt(it.value),
      BigInt(it.validAfter),
      BigInt(it.validBefore),
      it.nonce,
      it.signature,
    ],
  });
}

async function cancelled(purchase: Purchase): Promise<Hex> {
  const { authorization } = JSON.parse(purchase.payment.material);
  const { token, chainId } = fixture.chains.evm;
  const signature = await privateKeyToAccount(fixture.chains.payer.key).signTypedData({
    domain: {
      name: token.name,
      version: token.version,
      chainId,
      verifyingContract: parseHex(token.address),
    },
    types: {
      CancelAuthorization: [
        { name: "authorizer", type: "address" },
        { name: "nonce", type: "bytes32" },
      ],
    },
    primaryType: "CancelAuthorization",
    message: { authorizer: authorization.from, nonce: authorization.nonce },
  });
  const args = [
    authorization.from,
    authorization.nonce,
    Number.parseInt(signature.slice(130), 16),
    parseHex(signature.slice(0, 66)),
    `0x${signature.slice(66, 130)}`,
  ] as const;
  return encodeFunctionData({ abi: TOKEN, functionName: "cancelAuthorization", args });
}

const OPEN = { kind: "open", resend: false, replace: false };
const RESEND = { kind: "open", resend: true, replace: false };

describe("a payment that goes well", () => {
  for (const by of ["mpp", "x402"] as const)
    test(`settles by ${by} and moves exactly its amount, named by its transfer`, async () => {
      const rail = railWith();
      const parts = { key: fixture.chains.payer.key, settings: fixture.settings, value: UNITS };
      const presented =
        by === "mpp" ? await mppPayment(rail, parts) : await x402Payment(rail, parts);
      const payment = await accepted(rail, presented, UNITS);
      assert.equal(payment.key, rail.keyOf(presented));
      assert.equal(await rail.check(payment), null);
      const purchase = new Purchase(payment);
      assert.deepEqual(await step(rail, purchase), OPEN);
      assert.deepEqual(await rail.look(purchase), OPEN, "waits for a block");
      await fixture.mine();
      const truth = await rail.look(purchase);
      assert.equal(truth.kind, "settled");
      assert.equal(truth.kind === "settled" && truth.txHash, purchase.submissions[0]?.txHash);
      const client = createPublicClient({ transport: http(fixture.chains.evm.rpcUrl) });
      const receipt = await client.getTransactionReceipt({
        hash: parseHex(purchase.submissions[0]?.txHash ?? ""),
      });
      const log = receipt.logs.find(
        (it) => truth.kind === "settled" && it.logIndex === truth.logIndex,
      );
      assert.equal(BigInt(log?.data ?? 0), UNITS, "the log that it names is the transfer");
      assert.equal(await received(), UNITS);
    });

  test("is settled only as deep as configured", async () => {
    const rail = railWith({ confirmations: 3 });
    const purchase = await bought(rail);
    await step(rail, purchase);
    for (let blocks = 1; blocks <= 3; blocks += 1) {
      await fixture.mine();
      assert.deepEqual(await rail.look(purchase), OPEN, `after ${blocks} blocks`);
    }
    await fixture.mine();
    assert.equal((await rail.look(purchase)).kind, "settled");
  });

  test("sent twice, or asked for again and again, moves its money once", async () => {
    const rail = railWith();
    const purchase = await bought(rail);
    await step(rail, purchase);
    for (const submission of [...purchase.submissions, ...purchase.submissions])
      await rail.send(submission);
    await fixture.mine();
    const truth = await rail.look(purchase);
    for (const submission of purchase.submissions) await rail.send(submission);
    await fixture.mine(2);
    assert.deepEqual(await rail.look(purchase), truth);
    assert.equal(await received(), UNITS);
  });

  test("has one network mark, which is that of its first block", async () => {
    const rail = railWith();
    assert.match(await rail.network(), /^0x[0-9a-f]{16}$/);
    assert.equal(await rail.network(), await railWith().network());
  });
});

describe("somebody else", () => {
  test(
    "who carries the authorization out first does not keep it from being credited, and the " +
      "purchase of that transfer is named once",
    async () => {
      const rail = railWith({ confirmations: 1 });
      const purchase = await bought(rail);
      await step(rail, purchase);
      await fixture.chains.evm.rpc("anvil_dropAllTransactions");
      const hash = await bySomebody(callOf(purchase));
      await fixture.mine();
      assert.deepEqual(await rail.look(purchase), OPEN, "not deep enough");
      await rail.send(purchase.submissions[0] ?? { txHash: "", raw: null, nonce: null });
      await fixture.mine(2);
      const truth = await rail.look(purchase);
      assert.equal(truth.kind === "settled" && truth.txHash, hash);
      assert.equal(await received(), UNITS);
      assert.equal(
        (await rail.wallet())?.nonce,
        1n,
        "our own transaction was sent all the same: no gap",
      );
    },
  );

  for (const by of ["mpp", "x402"] as const)
    test(`who carried it out before we heard of it: the money is there, and it is taken (${by})`, async () => {
      const rail = railWith();
      const parts = { key: fixture.chains.payer.key, settings: fixture.settings, value: UNITS };
      const purchase = new Purchase(
        await accepted(
          rail,
          by === "mpp" ? await mppPayment(rail, parts) : await x402Payment(rail, parts),
          UNITS,
        ),
      );
      const hash = await bySomebody(callOf(purchase));
      await fixture.mine(3);
      assert.equal(await rail.check(purchase.payment), null);
      const truth = await rail.look(purchase);
      assert.equal(truth.kind === "settled" && truth.txHash, hash);
    });

  test(
    "whose own payment used the nonce elsewhere: refused before, failed after, and only at the " +
      "depth",
    async () => {
      const rail = railWith({ confirmations: 2 });
      const nonce = randomNonce();
      const purchase = new Purchase(
        await accepted(
          rail,
          await x402Payment(rail, {
            key: fixture.chains.payer.key,
            settings: fixture.settings,
            value: UNITS,
            nonce,
          }),
          UNITS,
        ),
      );
      const elsewhere = fixture.chains.otherPayers[1]?.address ?? "";
      await bySomebody(
        await carriedOut({ key: fixture.chains.payer.key, nonce, value: UNITS, to: elsewhere }),
      );
      await fixture.mine();
      assert.match(refusal(await rail.check(purchase.payment)).reason, /spent the nonce/);
      assert.deepEqual(await rail.look(purchase), OPEN);
      await fixture.mine(2);
      const truth = await rail.look(purchase);
      assert.match(truth.kind === "failed" ? truth.reason : truth.kind, /spent the nonce/);
      assert.equal(await received(), 0n);
    },
  );

  test("a node without the event gives no verdict on a purchase, whatever the token says", async () => {
    const rail = railWith();
    const purchase = await bought(rail);
    await bySomebody(callOf(purchase));
    await fixture.mine();
    const { material } = purchase.payment;
    const later = new Purchase({
      ...purchase.payment,
      material: JSON.stringify({ ...JSON.parse(material), readAtMs: Date.now() + 7_200_000 }),
    });
    await fixture.mine(501);
    await assert.rejects(rail.look(later), /keep its logs/);
    assert.match(refusal(await rail.check(later.payment)).reason, /before this offer/);
    assert.equal(
      (await rail.look(purchase)).kind,
      "settled",
      "it is found where its time is right",
    );
  });

  test("a smaller payment under the same nonce to us does not buy the larger one", async () => {
    const rail = railWith();
    const nonce = randomNonce();
    const purchase = new Purchase(
      await accepted(
        rail,
        await x402Payment(rail, {
          key: fixture.chains.payer.key,
          settings: fixture.settings,
          value: UNITS,
          nonce,
        }),
        UNITS,
      ),
    );
    await bySomebody(await carriedOut({ key: fixture.chains.payer.key, nonce, value: 1n }));
    await fixture.mine();
    assert.equal(refusal(await rail.check(purchase.payment)).problem, "verification-failed");
    assert.equal((await rail.look(purchase)).kind, "failed");
  });

  test("the payer who cancels: refused before, failed after, and only at the depth", async () => {
    const rail = railWith({ confirmations: 1 });
    const purchase = await bought(rail);
    await bySomebody(await cancelled(purchase));
    await fixture.mine();
    assert.match(refusal(await rail.check(purchase.payment)).reason, /cancelled/);
    assert.deepEqual(await rail.look(purchase), OPEN);
    await fixture.mine();
    const truth = await rail.look(purchase);
    assert.match(truth.kind === "failed" ? truth.reason : truth.kind, /cancelled/);
    assert.equal(await received(), 0n);
  });
});

describe("a payment that the chain would not carry out", () => {
  test("is refused where the payer holds too little, with what to do", async () => {
    const rail = railWith();
    const poor: Hex = "0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d";
    const purchase = await bought(rail, { key: poor });
    assert.equal(refusal(await rail.check(purchase.payment)).problem, "payment-insufficient");
  });

  test("is refused with the token's own words where it reverts", async () => {
    const rail = railWith({}, { ...patientWorld, wallMs: () => Date.now() - 3_600_000 });
    const purchase = await bought(rail, { validBefore: inSeconds(-3_000) });
    assert.match(
      refusal(await rail.check(purchase.payment)).reason,
      /\("DEVUSD: authorization is expired"\)/,
    );
  });

  test("fails once it has expired at the depth, and not before: its money may have come back", async () => {
    const rail = railWith({ confirmations: 2 });
    const purchase = await bought(rail, { validBefore: inSeconds(200) });
    await step(rail, purchase);
    const { payer, otherPayers, evm } = fixture.chains;
    const all = await evm.balanceOf(payer.address);
    await evm.rpc("anvil_dropAllTransactions");
    await bySomebody(
      encodeFunctionData({
        abi: TOKEN,
        functionName: "transfer",
        args: [parseHex(otherPayers[0]?.address ?? ""), all],
      }),
      payer.key,
    );
    await fixture.mine();
    await rail.send(purchase.submissions[0] ?? { txHash: "", raw: null, nonce: null });
    await fixture.mine();
    assert.deepEqual(await rail.look(purchase), RESEND, "our transaction was reverted");
    await fixture.mine(5);
    assert.deepEqual(await rail.look(purchase), RESEND);
    await evm.rpc("evm_increaseTime", 6_000);
    await fixture.mine();
    assert.deepEqual(
      await rail.look(purchase),
      RESEND,
      "the newest block alone has passed the time",
    );
    await fixture.mine(2);
    assert.equal((await rail.look(purchase)).kind, "failed");
    assert.equal(await received(), 0n);
  });

  test("that was reverted once is settled when anybody carries it out later", async () => {
    const rail = railWith();
    const purchase = await bought(rail);
    await step(rail, purchase);
    const { payer, otherPayers, evm } = fixture.chains;
    const other = otherPayers[0] ?? payer;
    const all = await evm.balanceOf(payer.address);
    await evm.rpc("anvil_dropAllTransactions");
    await bySomebody(
      encodeFunctionData({ abi: TOKEN, functionName: "transfer", args: [other.address, all] }),
      payer.key,
    );
    await fixture.mine();
    await rail.send(purchase.submissions[0] ?? { txHash: "", raw: null, nonce: null });
    await fixture.mine();
    assert.deepEqual(await rail.look(purchase), RESEND);
    await bySomebody(
      encodeFunctionData({ abi: TOKEN, functionName: "transfer", args: [payer.address, all] }),
      other.key,
    );
    await fixture.mine();
    const hash = await bySomebody(callOf(purchase));
    await fixture.mine();
    const truth = await rail.look(purchase);
    assert.equal(truth.kind === "settled" && truth.txHash, hash);
  });

  test("costs no gas to find out: no transaction is drafted", async () => {
    const rail = railWith();
    const purchase = await bought(rail);
    const { payer, otherPayers, evm } = fixture.chains;
    const all = await evm.balanceOf(payer.address);
    await bySomebody(
      encodeFunctionData({
        abi: TOKEN,
        functionName: "transfer",
        args: [parseHex(otherPayers[0]?.address ?? ""), all],
      }),
      payer.key,
    );
    await fixture.mine();
    assert.equal(await rail.draft(purchase), null);
  });

  test("never sent, it fails when its time has passed", async () => {
    const rail = railWith();
    const purchase = await bought(rail);
    assert.deepEqual(await rail.look(purchase), OPEN);
    await fixture.chains.evm.rpc("evm_increaseTime", 6_000);
    await fixture.mine();
    assert.equal((await rail.look(purchase)).kind, "failed");
  });
});

describe("a reorganization", () => {
  test("below the depth takes nothing: the payment is open again, is sent again, and settles once", async () => {
    const rail = railWith({ confirmations: 3 });
    const purchase = await bought(rail);
    await step(rail, purchase);
    await fixture.mine(2);
    assert.deepEqual(await rail.look(purchase), OPEN);
    await fixture.chains.evm.rpc("anvil_reorg", 2, []);
    assert.equal(await received(), 0n, "the payment is gone from the chain");
    assert.deepEqual(await step(rail, purchase), RESEND);
    await fixture.mine();
    assert.deepEqual(await rail.look(purchase), OPEN);
    await fixture.mine(3);
    assert.equal((await rail.look(purchase)).kind, "settled");
    assert.equal(await received(), UNITS);
  });

  test("that puts another's transaction in place of ours is followed", async () => {
    const rail = railWith({ confirmations: 2 });
    const purchase = await bought(rail);
    await step(rail, purchase);
    await fixture.mine();
    await fixture.chains.evm.rpc("anvil_reorg", 1, []);
    const hash = await bySomebody(callOf(purchase));
    await fixture.mine(3);
    const truth = await rail.look(purchase);
    assert.equal(truth.kind === "settled" && truth.txHash, hash);
  });
});

describe("the settlement wallet", () => {
  test("without gas takes no payment, says so, and is known to be empty", async () => {
    const rail = railWith();
    const purchase = await bought(rail);
    await fixture.chains.evm.rpc("anvil_setBalance", fixture.chains.settlement.address, "0x1000");
    await assert.rejects(rail.check(purchase.payment), /send it gas/);
    assert.equal(await rail.draft(purchase), null);
    const wallet = await rail.wallet();
    assert.deepEqual(
      wallet && { low: wallet.low, empty: wallet.empty, balanceWei: wallet.balanceWei },
      { low: true, empty: true, balanceWei: 4096n },
    );
  });

  test("emptied after a transaction was written: it is sent until there is gas, and settles", async () => {
    const rail = railWith();
    const purchase = await bought(rail);
    await write(rail, purchase);
    await fixture.chains.evm.rpc("anvil_setBalance", fixture.chains.settlement.address, "0x0");
    assert.deepEqual(await step(rail, purchase), RESEND);
    await fixture.mine();
    assert.deepEqual(await rail.look(purchase), RESEND);
    await fixture.chains.evm.rpc(
      "anvil_setBalance",
      fixture.chains.settlement.address,
      `0x${(10n ** 18n).toString(16)}`,
    );
    await step(rail, purchase);
    await fixture.mine();
    assert.equal((await rail.look(purchase)).kind, "settled");
  });

  test("is low below the configured amount and not above it", async () => {
    const { address } = fixture.chains.settlement;
    await fixture.chains.evm.rpc("anvil_setBalance", address, `0x${(10n ** 17n).toString(16)}`);
    assert.equal((await railWith({ lowGasWei: 10n ** 17n }).wallet())?.low, false);
    assert.equal((await railWith({ lowGasWei: 10n ** 17n + 1n }).wallet())?.low, true);
    assert.equal((await railWith().wallet())?.id, `31337:${address.toLowerCase()}`);
  });

  test(
    "pays no more gas for a settlement than it may: what costs more is not offered, not taken " +
      "and not sent until it costs less",
    async () => {
      const mostWei = 120_000n * 20n * 10n ** 9n;
      const rail = railWith({ maxGasWei: mostWei });
      const baseFee = async (gwei: bigint) => {
        await fixture.chains.evm.rpc(
          "anvil_setNextBlockBaseFeePerGas",
          `0x${(gwei * 10n ** 9n).toString(16)}`,
        );
        await fixture.mine();
      };
      await baseFee(18n);
      const purchase = await bought(rail);
      assert.equal(await rail.check(purchase.payment), null);
      await baseFee(40n);
      assert.deepEqual([(await rail.wallet())?.dear, (await rail.wallet())?.empty], [true, false]);
      await assert.rejects(rail.check(purchase.payment), { name: "ChainFailure" });
      assert.deepEqual(await step(rail, purchase), OPEN);
      assert.equal(purchase.submissions.length, 0);
      await baseFee(18n);
      assert.equal((await rail.wallet())?.dear, false);
      await step(rail, purchase);
      const sent = parseTransaction(parseHex(purchase.submissions[0]?.raw ?? ""));
      assert.ok(
        (sent.gas ?? 0n) * (sent.maxFeePerGas ?? 0n) <= mostWei,
        "twice the base fee would be more",
      );
      // What was sent is not raised above it either.
      await baseFee(40n);
      await step(rail, purchase);
      assert.equal(purchase.submissions.length, 1);
      await baseFee(10n);
      // The node may have dropped it meanwhile.
      await step(rail, purchase);
      await fixture.mine();
      assert.equal((await rail.look(purchase)).kind, "settled");
      assert.equal(await received(), UNITS);
    },
  );

  test("tells its nonce as of the depth", async () => {
    const rail = railWith({ confirmations: 1 });
    const purchase = await bought(rail);
    await step(rail, purchase);
    await fixture.mine();
    assert.equal((await rail.wallet())?.nonce, 0n);
    await fixture.mine();
    assert.equal((await rail.wallet())?.nonce, 1n);
  });

  test(
    "raises its fee by an eighth at least where the base fee has outgrown it, under the same " +
      "nonce, and one of them settles",
    async () => {
      const rail = railWith();
      const { rpc } = fixture.chains.evm;
      const purchase = await bought(rail);
      await step(rail, purchase);
      await rpc("anvil_setNextBlockBaseFeePerGas", `0x${(50n * 10n ** 9n).toString(16)}`);
      await fixture.mine();
      const truth = await step(rail, purchase);
      assert.equal(truth.kind === "open" && truth.replace, true);
      const [first, second] = purchase.submissions.map((it) =>
        parseTransaction(parseHex(it.raw ?? "")),
      );
      assert.equal(purchase.submissions.length, 2);
      assert.equal(first?.nonce, second?.nonce);
      assert.ok((second?.maxFeePerGas ?? 0n) * 8n >= (first?.maxFeePerGas ?? 0n) * 9n);
      assert.ok(
        (second?.maxPriorityFeePerGas ?? 0n) * 8n >= (first?.maxPriorityFeePerGas ?? 0n) * 9n,
      );
      await fixture.mine();
      const end = await rail.look(purchase);
      assert.equal(end.kind === "settled" && end.txHash, purchase.submissions[1]?.txHash);
      assert.equal(await received(), UNITS);
    },
  );

  test("raises its fee where its next transaction has waited for more than a minute", async () => {
    let laterMs = 0;
    const rail = railWith({}, { ...patientWorld, now: () => performance.now() + laterMs });
    const purchase = await bought(rail);
    await step(rail, purchase);
    assert.deepEqual(await rail.look(purchase), OPEN);
    laterMs = 61_000;
    const truth = await step(rail, purchase);
    assert.deepEqual(truth, { kind: "open", resend: false, replace: true });
    await fixture.mine();
    const end = await rail.look(purchase);
    assert.equal(end.kind === "settled" && end.txHash, purchase.submissions[1]?.txHash);
  });

  test(
    "whose nonce another transaction took: the payment is sent once more under the next one, and " +
      "settles",
    async () => {
      const rail = railWith();
      const purchase = await bought(rail);
      await write(rail, purchase);
      await bySomebody("0x", fixture.chains.settlement.key);
      await fixture.mine();
      assert.deepEqual(await rail.look(purchase), RESEND);
      assert.equal((await rail.wallet())?.nonce, 1n, "which tells that the place is taken");
      const again = await write(rail, purchase);
      assert.equal(again.nonce, 1n);
      await rail.send(again);
      await fixture.mine();
      const truth = await rail.look(purchase);
      assert.equal(truth.kind === "settled" && truth.txHash, again.txHash);
      assert.equal(await received(), UNITS);
    },
  );

  test(
    "gives back the nonce of a payment that would be reverted by now: the same is sent for a " +
      "higher fee",
    async () => {
      const rail = railWith();
      const purchase = await bought(rail);
      const first = await write(rail, purchase);
      await bySomebody(callOf(purchase));
      await fixture.mine();
      const second = await write(rail, purchase);
      assert.equal(second.nonce, first.nonce);
      await rail.send(second);
      await fixture.mine();
      assert.equal((await rail.wallet())?.nonce, 1n);
      assert.equal(await received(), UNITS);
    },
  );
});

describe("a chain that cannot be asked", () => {
  const faults = ["drop", "lose", "status", "junk", "limit"] as const;

  test(
    "is never told as a bad payment: each question of check, draft and look throws, whatever way " +
      "it fails",
    async () => {
      const first = railWith({ confirmations: 1 });
      const purchase = await bought(first);
      const fresh = await bought(first);
      await step(first, purchase);
      const acts: Readonly<Record<string, (rail: Rail) => Promise<unknown>>> = {
        check: (rail) => rail.check(fresh.payment),
        draft: (rail) => rail.draft(fresh),
        replace: (rail) => rail.draft(purchase),
        "look while it waits": (rail) => rail.look(purchase),
        "look when it is there": (rail) => fixture.mine().then(() => rail.look(purchase)),
        wallet: (rail) => rail.wallet(),
      };
      for (const [name, act] of Object.entries(acts)) {
        // A proxy for each: a question that a try before had left behind would count as one of
        // this.
        const proxy = await startChainProxy(fixture.proxy.url);
        try {
          const rail = railWith({ confirmations: 1, rpcUrl: proxy.url });
          await rail.network();
          proxy.asked.length = 0;
          await act(rail);
          for (const question of new Set(proxy.asked))
            for (const fault of faults) {
              // A node that answers that it cannot say is asked for something else, or goes
              // without.
              if (fault === "limit" && /PriorityFee|TransactionCount/.test(question)) continue;
              proxy.fault = (it) => (it === question ? fault : "pass");
              await assert.rejects(
                act(rail),
                { name: "ChainFailure" },
                `${name}: ${question} ${fault}`,
              );
            }
        } finally {
          await proxy.close();
        }
      }
    },
  );

  test("loses the answer to a transaction: it has been sent, and is found", async () => {
    const rail = railWith();
    const purchase = await bought(rail);
    fixture.proxy.fault = (method) => (method === "eth_sendRawTransaction" ? "lose" : "pass");
    await assert.rejects(step(rail, purchase), { name: "ChainFailure" });
    assert.equal(purchase.submissions.length, 1);
    await fixture.mine();
    assert.equal((await rail.look(purchase)).kind, "settled");
    assert.equal(await received(), UNITS);
  });

  test("loses the transaction: it is asked for again, and settles once", async () => {
    const rail = railWith();
    const purchase = await bought(rail);
    fixture.proxy.fault = (method, count) =>
      method === "eth_sendRawTransaction" && count === 1 ? "drop" : "pass";
    await assert.rejects(step(rail, purchase), { name: "ChainFailure" });
    assert.deepEqual(await step(rail, purchase), RESEND);
    await fixture.mine();
    assert.equal((await rail.look(purchase)).kind, "settled");
    assert.equal(await received(), UNITS);
  });

  test("has no secret in any error", async () => {
    const rail = railWith({ rpcUrl: "http://127.0.0.1:1/secret-path" });
    const purchase = await bought(railWith());
    for (const act of [
      () => rail.check(purchase.payment),
      () => rail.draft(purchase),
      () => rail.look(purchase),
      () => rail.network(),
      () => rail.wallet(),
    ])
      await assert.rejects(act(), (error: Error) => {
        const { signature } = JSON.parse(purchase.payment.material).authorization;
        const text = `${error.stack} ${JSON.stringify(error)} ${error.cause}`;
        return (
          !text.includes("secret-path") &&
          !text.includes(signature) &&
          !text.includes(fixture.settings.walletKey.slice(2))
        );
      });
  });
});

describe("wrong settings", () => {
  test("a node of another chain is refused, with both numbers", async () => {
    const purchase = await bought(railWith());
    await assert.rejects(railWith({ chainId: 31_338 }).check(purchase.payment), /31337.*31338/);
  });

  test(
    "a token with another domain, or that is none, is found before anybody is told of a bad " +
      "signature",
    async () => {
      await assert.rejects(
        railWith({ token: { ...fixture.settings.token, version: "2" } }).network(),
        /another EIP-712 domain/,
      );
      await assert.rejects(
        railWith({
          token: { ...fixture.settings.token, address: fixture.chains.payer.address },
        }).network(),
        { name: "ChainFailure" },
      );
    },
  );
});
