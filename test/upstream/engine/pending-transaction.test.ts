// Raw transactions as a node tells them while they are pending: every type against viem's reading
// of the same bytes, and against what anvil tells of the same transaction in its pool.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import fc from "fast-check";
import {
  bytesToHex,
  type Hex,
  hexToBytes,
  keccak256,
  parseTransaction,
  serializeTransaction,
  type TransactionSerializable,
  toHex,
} from "viem";
import {
  pendingTransaction,
  readTransaction,
  rlpItemAt,
  rlpItems,
  rlpListOf,
} from "../../../src/core/rpc/signed-transaction.ts";
import { type AnvilNode, startAnvil } from "../../../src/devnet/anvil-process.ts";
import { realRuntime } from "../../../src/runtime.ts";
import { TransactionSenders } from "../../../src/upstream/engine/exchange/transaction-identity.ts";
import { ALICE } from "../../fakes/real-nodes.ts";

const BOB = "0x00000000000000000000000000000000000b0b01";
const CHAIN_ID = 31_337;
const KEY: Hex = `0x${"01".repeat(32)}`;
const GAS = { gas: 100_000n, to: BOB, value: 128n } as const;
const FEES = {
  ...GAS,
  chainId: CHAIN_ID,
  maxFeePerGas: 5_000_000_000n,
  maxPriorityFeePerGas: 1_000_000_000n,
} as const;
const VERSIONED_HASH: Hex = `0x01${"22".repeat(31)}`;

const KINDS: Readonly<Record<string, TransactionSerializable>> = {
  "before EIP-155": { ...GAS, type: "legacy", gasPrice: 5_000_000_000n },
  legacy: { ...GAS, type: "legacy", gasPrice: 5_000_000_000n, chainId: CHAIN_ID },
  "with an access list": {
    ...GAS,
    type: "eip2930",
    gasPrice: 5_000_000_000n,
    chainId: CHAIN_ID,
    accessList: [
      { address: BOB, storageKeys: [KEY, KEY] },
      { address: BOB, storageKeys: [] },
    ],
  },
  "fee market": { ...FEES, type: "eip1559", data: "0x00ff" },
  creation: { ...FEES, to: null, type: "eip1559", data: "0x5b5b", value: 0n },
};
const BLOBS = {
  ...FEES,
  type: "eip4844",
  maxFeePerBlobGas: 1_000_000_000n,
  blobVersionedHashes: [VERSIONED_HASH],
} as const;

const senders = new TransactionSenders();
let anvil: AnvilNode;

before(async () => {
  await senders.load();
  const args = ["--no-mining", "--hardfork", "prague", "--chain-id", String(CHAIN_ID)];
  const onCrash = (how: string): void => assert.fail(how);
  anvil = await startAnvil({ id: "pool", args, runtime: realRuntime, onCrash });
});
after(() => anvil.end());

/** The transaction as it is told here. */
function told(raw: Hex): Record<string, unknown> {
  const transaction = readTransaction(Buffer.from(hexToBytes(raw)));
  assert.ok(transaction !== null);
  const hash = keccak256(toHex(transaction.canonical));
  const sender = senders.senderOf(transaction);
  assert.equal(sender, ALICE.address.toLowerCase());
  return JSON.parse(pendingTransaction(transaction, { hash, sender }));
}

/**
 * What every node tells alike. Of a transaction with a highest price, go-ethereum tells that price
 * while it is pending, and anvil what it would pay in the next block.
 */
function comparable({ blockTimestamp: _, gasPrice, ...members }: Record<string, unknown>) {
  const told = "maxFeePerGas" in members ? members : { ...members, gasPrice };
  return Object.fromEntries(
    Object.entries(told).map(([name, value]) => [name, JSON.stringify(value).toLowerCase()]),
  );
}

for (const [name, transaction] of Object.entries(KINDS))
  test(`${name}: as anvil tells it`, async () => {
    const nonce = Number(await anvil.rpc("eth_getTransactionCount", ALICE.address, "pending"));
    const raw = await ALICE.signTransaction({ ...transaction, nonce });
    const hash = await anvil.rpc("eth_sendRawTransaction", raw);
    const theirs = await anvil.rpc("eth_getTransactionByHash", hash);
    assert.ok(typeof theirs === "object" && theirs !== null);
    const ours = comparable(told(raw));
    const expected = comparable({ ...theirs });
    for (const member of Object.keys(expected))
      assert.equal(ours[member], expected[member], member);
    const read = parseTransaction(raw);
    assert.equal(ours["nonce"], `"${toHex(read.nonce ?? 0)}"`);
  });

test("a delegation (EIP-7702): as anvil tells it", async () => {
  const nonce = Number(await anvil.rpc("eth_getTransactionCount", ALICE.address, "pending"));
  const authorization = await ALICE.signAuthorization({
    contractAddress: BOB,
    chainId: CHAIN_ID,
    nonce: nonce + 1,
  });
  const raw = await ALICE.signTransaction({
    ...FEES,
    nonce,
    type: "eip7702",
    authorizationList: [authorization],
  });
  const hash = await anvil.rpc("eth_sendRawTransaction", raw);
  const theirs = await anvil.rpc("eth_getTransactionByHash", hash);
  assert.ok(typeof theirs === "object" && theirs !== null);
  const [ours, expected] = [comparable(told(raw)), comparable({ ...theirs })];
  for (const member of Object.keys(expected)) assert.equal(ours[member], expected[member], member);
});

test("a blob transaction is told alike with and without its blobs", async () => {
  const bare = await ALICE.signTransaction({ ...BLOBS, nonce: 1 });
  const { r, s, yParity } = parseTransaction(bare);
  assert.ok(r !== undefined && s !== undefined && yParity !== undefined);
  const blob = bytesToHex(new Uint8Array(131_072).fill(3));
  const [commitment, proof] = [bytesToHex(new Uint8Array(48)), bytesToHex(new Uint8Array(48))];
  const sidecars = [{ blob, commitment, proof }];
  const wrapped = serializeTransaction({ ...BLOBS, nonce: 1, sidecars }, { r, s, yParity });
  assert.deepEqual(told(wrapped), told(bare));
  const { maxFeePerBlobGas, blobVersionedHashes, type, gasPrice } = told(bare);
  assert.equal(gasPrice, toHex(FEES.maxFeePerGas));
  assert.deepEqual(
    { maxFeePerBlobGas, blobVersionedHashes, type },
    { maxFeePerBlobGas: "0x3b9aca00", blobVersionedHashes: [VERSIONED_HASH], type: "0x3" },
  );
});

test("members stand in the order of go-ethereum", async () => {
  const raw = await ALICE.signTransaction({ ...FEES, type: "eip1559", nonce: 0 });
  assert.equal(
    Object.keys(told(raw)).join(" "),
    "blockHash blockNumber from gas gasPrice maxFeePerGas maxPriorityFeePerGas hash input nonce " +
      "to transactionIndex value type accessList chainId v r s yParity",
  );
});

test("a type that is not known, and bytes that are cut or go on, are no transaction", async () => {
  const raw = Buffer.from(
    hexToBytes(await ALICE.signTransaction({ ...FEES, type: "eip1559", nonce: 0 })),
  );
  assert.notEqual(readTransaction(raw), null);
  for (const bytes of [
    Buffer.concat([Buffer.of(0x7e), raw.subarray(1)]),
    raw.subarray(0, -1),
    Buffer.concat([raw, Buffer.of(0)]),
    Buffer.alloc(0),
  ])
    assert.equal(readTransaction(bytes), null);
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), fc.nat(5), (bytes, first) => {
      readTransaction(Buffer.from(bytes));
      readTransaction(Buffer.from([first, ...bytes]));
    }),
    { numRuns: 2_000 },
  );
});

test("a list that was written is read again, however long", () => {
  for (const count of [0, 1, 55, 56, 300, 70_000]) {
    const items = Array.from({ length: count }, (_, n) => Buffer.of(n % 128));
    const list = rlpItemAt(rlpListOf(items), 0);
    assert.ok(list !== null);
    const read = rlpItems(list);
    if (count > 65_536) assert.equal(read, null, "so many are not read");
    else
      assert.deepEqual(
        read?.map(({ whole }) => Buffer.from(whole)),
        items,
      );
  }
});

test("numbers that are no signature have no sender", () => {
  const raw = serializeTransaction(
    { ...FEES, type: "eip1559", nonce: 0 },
    { r: `0x${"ff".repeat(32)}`, s: `0x${"ff".repeat(32)}`, yParity: 1 },
  );
  const transaction = readTransaction(Buffer.from(hexToBytes(raw)));
  assert.ok(transaction !== null);
  assert.equal(senders.senderOf(transaction), null);
});
