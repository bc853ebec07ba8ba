// The hash of a raw transaction against viem's: every type, blobs wrapped and not, and nothing for
// what is no raw transaction.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import {
  bytesToHex,
  type Hex,
  keccak256,
  parseGwei,
  serializeTransaction,
  type TransactionSerializable,
} from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { newCall } from "../../../src/core/rpc/call.ts";
import { rawTransactionIn } from "../../../src/core/rpc/transaction-call.ts";
import { hashOfTransaction } from "../../../src/upstream/engine/exchange/transaction-identity.ts";

const account = privateKeyToAccount(
  "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80",
);
const TO = "0x00000000000000000000000000000000000b0b01";
const GAS = { gas: 21_000n, nonce: 7, to: TO, value: 10n ** 18n } as const;
const FEES = {
  ...GAS,
  chainId: 1,
  maxFeePerGas: parseGwei("30"),
  maxPriorityFeePerGas: parseGwei("1"),
} as const;
const STORAGE_KEY: Hex = `0x${"01".repeat(32)}`;
const VERSIONED_HASH: Hex = `0x01${"22".repeat(31)}`;

const hashIn = (params: string): string | null => {
  const raw = rawTransactionIn(newCall("eth_sendRawTransaction", params));
  return raw === null ? null : hashOfTransaction(raw);
};
const hashOf = (raw: string): string | null => hashIn(`["${raw}"]`);

const KINDS: Readonly<Record<string, TransactionSerializable>> = {
  "a legacy transaction before EIP-155": { ...GAS, type: "legacy", gasPrice: 1n },
  "a legacy transaction": { ...GAS, type: "legacy", gasPrice: 1n, chainId: 1 },
  "an access-list transaction": {
    ...GAS,
    type: "eip2930",
    gasPrice: 1n,
    chainId: 1,
    accessList: [{ address: TO, storageKeys: [STORAGE_KEY] }],
  },
  "a fee-market transaction": { ...FEES, type: "eip1559" },
  "a contract creation of 100 KB": {
    ...FEES,
    type: "eip1559",
    data: bytesToHex(new Uint8Array(100_000).fill(0x5b)),
  },
  "a blob transaction without its blobs": {
    ...FEES,
    type: "eip4844",
    maxFeePerBlobGas: 1n,
    blobVersionedHashes: [VERSIONED_HASH],
  },
};

test("the hash of every type of transaction is viem's", async () => {
  for (const [name, transaction] of Object.entries(KINDS)) {
    const raw = await account.signTransaction(transaction);
    assert.equal(hashOf(raw), keccak256(raw), name);
  }
});

test("the hash of a delegation (EIP-7702) is viem's", async () => {
  const authorization = await account.signAuthorization({
    contractAddress: TO,
    chainId: 1,
    nonce: 1,
  });
  const raw = await account.signTransaction({
    ...FEES,
    type: "eip7702",
    authorizationList: [authorization],
  });
  assert.equal(hashOf(raw), keccak256(raw));
});

test("blobs that travel with a transaction are not part of its hash, however many", async () => {
  for (const count of [1, 2, 6]) {
    const blobVersionedHashes = Array.from({ length: count }, () => VERSIONED_HASH);
    const blob = bytesToHex(new Uint8Array(131_072).fill(3));
    const sidecars = blobVersionedHashes.map(() => ({
      blob,
      commitment: bytesToHex(new Uint8Array(48)),
      proof: bytesToHex(new Uint8Array(48)),
    }));
    const transaction = {
      ...FEES,
      type: "eip4844",
      maxFeePerBlobGas: 1n,
      blobVersionedHashes,
    } as const;
    const bare = await account.signTransaction(transaction);
    const signature = { r: STORAGE_KEY, s: STORAGE_KEY, yParity: 1 };
    const wrapped = serializeTransaction({ ...transaction, sidecars }, signature);
    assert.equal(
      hashOf(wrapped),
      keccak256(serializeTransaction(transaction, signature)),
      `${count} blobs`,
    );
    assert.equal(hashOf(bare), keccak256(bare));
  }
});

test("upper-case hex is the same transaction", async () => {
  const raw = await account.signTransaction({ ...FEES, type: "eip1559" });
  assert.equal(hashOf(`0x${raw.slice(2).toUpperCase()}`), keccak256(raw));
});

test("what is no raw transaction has no hash, and nothing makes it throw", () => {
  for (const raw of ["", "0x", "0x0", "0xzz", "02f8", "0x02f8 ", " 0x02f8", "0x02f"])
    assert.equal(hashOf(raw), null, raw);
  const params = fc.oneof(
    fc.json(),
    fc
      .uint8Array({ minLength: 1, maxLength: 80 })
      .map((bytes) => `["${bytesToHex(Uint8Array.of(3, ...bytes))}"]`),
  );
  fc.assert(
    fc.property(params, (text) => {
      const hash = hashIn(text);
      assert.ok(hash === null || /^0x[0-9a-f]{64}$/.test(hash));
    }),
    { numRuns: 1_000 },
  );
  for (const none of ["[]", "{}", "null", "[null]", "[1]", '[["0x02f8"]]', '"0x02f8"'])
    assert.equal(hashIn(none), null, none);
});
