// Signed Tempo transactions as bytes: whatever is changed in one, it is refused or is another
// payer's, and no bytes are thrown at.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { fromRlp, getAbiItem, type Hex, toEventSelector, toFunctionSelector, toRlp } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { Abis, Account, Transaction } from "viem/tempo";
import { OTHER_PAYERS, PAYER, RECIPIENT } from "../../../../src/devnet/payments/wallets.ts";
import { type EvmLog, topicOf } from "../../../../src/payments/rails/evm/node.ts";
import { hashOf, parseTransaction } from "../../../../src/payments/rails/tempo/transaction.ts";
import {
  memoOfCalls,
  paidBy,
  TRANSFER_WITH_MEMO,
} from "../../../../src/payments/rails/tempo/transfer.ts";
import { memoFor } from "./memo.ts";

const TOKEN = "0x20c0000000000000000000000000000000000000";
const challenge = { id: "an-id", realm: "svc.test" };
const due = {
  token: TOKEN,
  recipient: RECIPIENT.address.toLowerCase(),
  units: 7n,
  challengeId: challenge.id,
  realm: challenge.realm,
};
const word = (value: string): string => value.padStart(64, "0");
const data: Hex = `0x95777d59${word(RECIPIENT.address.slice(2))}${word("7")}${memoFor(challenge).slice(2)}`;

const request = {
  type: "tempo",
  calls: [{ to: TOKEN, data }],
  chainId: 1337,
  gas: 100_000n,
  maxFeePerGas: 20_000_000_000n,
  nonceKey: 2n ** 256n - 1n,
  nonce: 0,
  validBefore: 1_900_000_000,
  feeToken: TOKEN,
};

function signed(over: Record<string, unknown> = {}): Promise<Hex> {
  return privateKeyToAccount(PAYER.key).signTransaction({ ...request, ...over } as never, {
    serializer: Transaction.serialize as never,
  });
}

test("the numbers that events and calls are known by are those of the chain's own interfaces", () => {
  const selector = (abi: unknown, name: string): string =>
    toFunctionSelector(getAbiItem({ abi: abi as typeof Abis.tip20, name: name as "transfer" }));
  assert.equal(
    toEventSelector(getAbiItem({ abi: Abis.tip20, name: "TransferWithMemo" })),
    TRANSFER_WITH_MEMO,
  );
  const call = (to: string, text: string) => ({ to, data: text });
  const swap = [
    call(TOKEN, selector(Abis.tip20, "approve")),
    call("0x", selector(Abis.stablecoinDex, "swapExactAmountOut")),
  ];
  const beside = call(TOKEN, `${selector(Abis.tip20, "transfer")}${word("1")}${word("1")}`);
  assert.deepEqual(memoOfCalls([...swap, beside, call(TOKEN, data)], due), {
    memo: memoFor(challenge),
  });
  assert.ok(data.startsWith(selector(Abis.tip20, "transferWithMemo")));
});

test("a transaction says who pays what, from when and until when", async () => {
  const read = parseTransaction(await signed({ validAfter: 5 }));
  assert.ok(!("wrong" in read));
  assert.equal(read.payer, PAYER.address.toLowerCase());
  assert.deepEqual(
    [read.chainId, read.nonceKey, read.nonce, read.validAfterS, read.validBeforeS, read.accessKey],
    [1337, 2n ** 256n - 1n, 0n, 5, 1_900_000_000, null],
  );
  assert.deepEqual(memoOfCalls(read.calls, due), { memo: memoFor(challenge) });
  assert.equal(read.hash, hashOf(read.raw));
});

test(
  "numbers too large for others to read, a fee payer's place and foreign authorizations are " +
    "refused",
  async () => {
    const raw = await signed();
    const parts = fromRlp(`0x${raw.slice(4)}`, "hex") as Hex[];
    const withPart = (at: number, part: unknown): Hex =>
      `0x76${toRlp(parts.map((it, place) => (place === at ? part : it)) as Hex[]).slice(2)}`;
    for (const [at, part, reason] of [
      [11, "0x00", /without a fee payer/],
      [11, PAYER.address, /without a fee payer/],
      [11, ["0x", `0x${"11".repeat(32)}`, `0x${"11".repeat(32)}`], /without a fee payer/],
      [0, "0xffffffffffffffffff", /no signed Tempo transaction/],
      [8, "0xffffffffffffffffff", /no signed Tempo transaction/],
    ] as const) {
      const read = parseTransaction(withPart(at, part));
      assert.ok("wrong" in read, `part ${at}`);
      assert.match(read.wrong, reason);
    }
    const { z_TxEnvelopeTempo: Envelope } = Transaction;
    const envelope = Envelope.deserialize(raw as `0x76${string}`);
    const authorizationList = [
      { address: TOKEN, chainId: 1337, nonce: 0n, signature: envelope.signature },
    ];
    const more = await signed({ authorizationList });
    assert.notEqual(more, raw);
    const read = parseTransaction(more);
    assert.ok("wrong" in read);
    assert.match(read.wrong, /does more than pay/);
  },
);

test("a changed transaction is refused, the same, or another payer's", async () => {
  const account = Account.fromP256(OTHER_PAYERS[0]?.key ?? "0x");
  const p256 = await account.signTransaction(request as never, {
    serializer: Transaction.serialize as never,
  });
  const both = [await signed(), p256];
  fc.assert(
    fc.property(
      fc.constantFrom(...both),
      fc.nat(),
      fc.uint8Array({ maxLength: 4 }),
      fc.nat(3),
      (raw, seed, bytes, cut) => {
        const at = 2 + 2 * (seed % (raw.length / 2 - 1));
        const changed =
          raw.slice(0, at) + Buffer.from(bytes).toString("hex") + raw.slice(at + 2 * cut);
        const read = parseTransaction(changed);
        if ("wrong" in read) return;
        const whole = parseTransaction(raw);
        assert.ok(!("wrong" in whole));
        assert.ok(read.hash === whole.hash || read.payer !== whole.payer, changed);
      },
    ),
    { numRuns: 600 },
  );
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => {
      const given = `0x76${Buffer.from(bytes).toString("hex")}`;
      assert.ok("wrong" in parseTransaction(given));
      hashOf(given);
    }),
    { numRuns: 600 },
  );
});

test("an event counts only from the token, to the recipient, of the amount, with the memo", () => {
  const right: EvmLog = {
    address: TOKEN,
    txHash: "0x1",
    block: 1n,
    blockHash: "0x2",
    topics: [
      TRANSFER_WITH_MEMO,
      topicOf(PAYER.address),
      topicOf(RECIPIENT.address),
      memoFor(challenge),
    ],
    data: `0x${word("7")}`,
    logIndex: 4,
  };
  const [event, from, to, memo] = right.topics as [Hex, Hex, Hex, Hex];
  assert.deepEqual(paidBy([right], due), right);
  for (const wrong of [
    { ...right, address: RECIPIENT.address.toLowerCase() },
    { ...right, data: `0x${word("8")}` },
    { ...right, topics: [event, to, from, memo] },
    { ...right, topics: [event, from, to, memoFor({ ...challenge, id: "another" })] },
    { ...right, topics: [event, from, to] },
    {
      ...right,
      topics: [
        "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef",
        from,
        to,
        memo,
      ],
    },
    { ...right, topics: [] },
  ] satisfies readonly EvmLog[]) {
    assert.equal(paidBy([wrong], due), null);
    assert.deepEqual(paidBy([wrong, right], due), right);
  }
});
