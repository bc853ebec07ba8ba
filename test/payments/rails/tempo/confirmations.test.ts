// Payments by push that wait in no block yet, on a real chain: only what shows that it pays is
// taken, since what waits may wait for ever.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type Hex, keccak256 } from "viem";
import { memoFor } from "./memo.ts";
import {
  challengeOf,
  shown,
  signedTransaction,
  startTempoFixture,
  type TempoFixture,
  taken,
  transfer,
} from "./tempo-fixture.ts";

let fixture: TempoFixture;

before(async () => {
  fixture = await startTempoFixture();
});

after(() => fixture.close());

test(
  "a transaction that waits behind a missing nonce is no payment for challenges that it does " +
    "not name",
  async () => {
    const other: Hex = "0x00000000000000000000000000000000000000aa";
    const raw = await signedTransaction(fixture, [transfer(fixture, { to: other })], {
      nonceKey: 0n,
      nonce: 7,
      validBefore: undefined,
    });
    await fixture.rpc("eth_sendRawTransaction", raw);
    assert.ok(
      (await fixture.rpc("eth_getTransactionByHash", keccak256(raw))) !== null,
      "the node has it",
    );
    for (let index = 0; index < 3; index++) {
      const payment = await taken(
        fixture.rail,
        shown(challengeOf(fixture.rail), { type: "hash", hash: keccak256(raw) }),
      );
      await assert.rejects(fixture.rail.check(payment), { name: "ChainFailure" });
    }
  },
);

test("one that names its challenge is taken while it waits, and for that challenge alone", async () => {
  const challenge = challengeOf(fixture.rail);
  const raw = await signedTransaction(fixture, [transfer(fixture, { memo: memoFor(challenge) })]);
  await fixture.rpc("eth_sendRawTransaction", raw);
  const payload = { type: "hash", hash: keccak256(raw) };
  assert.equal(
    await fixture.rail.check(await taken(fixture.rail, shown(challenge, payload))),
    null,
  );
  await assert.rejects(
    fixture.rail.check(await taken(fixture.rail, shown(challengeOf(fixture.rail), payload))),
    { name: "ChainFailure" },
  );
});
