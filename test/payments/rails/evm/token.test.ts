// What the events of a token say of an authorization, and which of several transfers in one
// transaction is its own: each is credited once.
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  encodeAbiParameters,
  encodeErrorResult,
  type Hex,
  pad,
  toEventSelector,
  toHex,
} from "viem";
import type { Authorization } from "../../../../src/payments/rails/evm/authorization.ts";
import type { EvmLog, EvmReceipt } from "../../../../src/payments/rails/evm/node.ts";
import { revertReason, useIn } from "../../../../src/payments/rails/evm/token.ts";

const TOKEN: Hex = "0x00000000000000000000000000000000000000Aa";
const PAYER: Hex = "0x00000000000000000000000000000000000000B1";
const OTHER: Hex = "0x00000000000000000000000000000000000000b2";
const RECIPIENT: Hex = "0x00000000000000000000000000000000000000c3";

const AUTHORIZATION: Authorization = {
  from: PAYER,
  to: RECIPIENT,
  value: 5n,
  validAfter: 0n,
  validBefore: 1n,
  nonce: toHex(1n, { size: 32 }),
  signature: "0x",
};

const topicOf = (address: Hex): Hex => `0x${pad(address).slice(2).toLowerCase()}`;

type Event = Pick<EvmLog, "topics" | "data"> & { readonly address?: Hex };

const used = (nonce: bigint, from: Hex = PAYER): Event => ({
  topics: [
    toEventSelector("AuthorizationUsed(address,bytes32)"),
    topicOf(from),
    toHex(nonce, { size: 32 }),
  ],
  data: "0x",
});
const cancelled = (nonce: bigint): Event => ({
  ...used(nonce),
  topics: [
    toEventSelector("AuthorizationCanceled(address,bytes32)"),
    ...used(nonce).topics.slice(1),
  ],
});
const moved = (
  value: bigint,
  { from = PAYER, to = RECIPIENT }: { readonly from?: Hex; readonly to?: Hex } = {},
): Event => ({
  topics: [toEventSelector("Transfer(address,address,uint256)"), topicOf(from), pad(to)],
  data: toHex(value, { size: 32 }),
});

function receipt(events: readonly Event[], succeeded = true): EvmReceipt {
  const place = { txHash: "0x11", block: 7n, blockHash: "0x22" };
  return {
    ...place,
    succeeded,
    logs: events.map((it, index) => ({
      address: TOKEN.toLowerCase(),
      ...it,
      ...place,
      logIndex: 10 + index,
    })),
  };
}

function useOf(events: readonly Event[], succeeded = true): string {
  const use = useIn(receipt(events, succeeded), TOKEN, AUTHORIZATION);
  return use === null ? "nothing" : use.kind === "paid" ? `paid at ${use.logIndex}` : use.how;
}

test("the transfer that follows the use is the payment", () => {
  assert.equal(useOf([used(1n), moved(5n)]), "paid at 11");
  assert.equal(useOf([moved(5n), used(1n), moved(4n), moved(5n)]), "paid at 13");
});

test("of several authorizations of one payer in one transaction each has its own transfer", () => {
  assert.equal(
    useOf([used(2n), moved(5n), used(1n), moved(5n), used(3n), moved(5n)]),
    "paid at 13",
  );
  assert.equal(useOf([used(1n), moved(5n), used(2n), moved(5n)]), "paid at 11");
  assert.equal(
    useOf([used(1n), moved(4n), used(2n), moved(5n)]),
    "elsewhere",
    "the transfer of another one does not count",
  );
});

test("a token that moves the money first is understood", () => {
  assert.equal(useOf([moved(5n), used(1n)]), "paid at 10");
});

test("a transfer of another amount, from or to another address, or of another token pays nothing", () => {
  for (const other of [
    moved(4n),
    moved(6n),
    moved(5n, { to: OTHER }),
    moved(5n, { from: OTHER }),
    { ...moved(5n), address: OTHER },
  ])
    assert.equal(useOf([used(1n), other]), "elsewhere");
});

test("a cancelled authorization is told from a used one", () => {
  assert.equal(useOf([cancelled(1n), moved(5n)]), "cancelled");
});

test("a transaction that was reverted, or speaks of another nonce, payer or token, says nothing", () => {
  assert.equal(useOf([used(1n), moved(5n)], false), "nothing");
  assert.equal(useOf([used(2n), moved(5n)]), "nothing");
  assert.equal(useOf([used(1n, OTHER), moved(5n)]), "nothing");
  assert.equal(useOf([{ ...used(1n), address: OTHER }, moved(5n)]), "nothing");
  assert.equal(useOf([]), "nothing");
});

test("the words of a revert are shown short and printable, and their absence too", () => {
  const error = (text: string): Hex =>
    encodeErrorResult({
      abi: [{ type: "error", name: "Error", inputs: [{ name: "m", type: "string" }] }],
      args: [text],
    });
  assert.equal(revertReason(error("paused")), "paused");
  assert.equal(revertReason(error(`\u0000\u001b[31m${"é".repeat(300)}`))?.length, 120);
  assert.match(revertReason(error("\n\u0000ü")) ?? "", /^\?+$/);
  assert.equal(revertReason(encodeAbiParameters([{ type: "uint256" }], [1n])), null);
  for (const none of [null, "0x", "0x08c379a0", "0x08c379a0ff"])
    assert.equal(revertReason(none), null);
});
