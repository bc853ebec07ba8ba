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
  startTempoStage,
  type TempoStage,
  taken,
  transfer,
} from "./tempo-fixture.ts";

let stage: TempoStage;

before(async () => {
  stage = await startTempoStage();
});

after(() => stage.close());

test(
  "a transaction that waits behind a missing nonce is no payment for challenges that it does " +
    "not name",
  async () => {
    const other: Hex = "0x00000000000000000000000000000000000000aa";
    const raw = await signedTransaction(stage, [transfer(stage, { to: other })], {
      nonceKey: 0n,
      nonce: 7,
      validBefore: undefined,
    });
    await stage.rpc("eth_sendRawTransaction", raw);
    assert.ok(
      (await stage.rpc("eth_getTransactionByHash", keccak256(raw))) !== null,
      "the node has it",
    );
    for (let index = 0; index < 3; index++) {
      const payment = await taken(
        stage.rail,
        shown(challengeOf(stage.rail), { type: "hash", hash: keccak256(raw) }),
      );
      await assert.rejects(stage.rail.check(payment), { name: "ChainTrouble" });
    }
  },
);

test("one that names its challenge is taken while it waits, and for that challenge alone", async () => {
  const challenge = challengeOf(stage.rail);
  const raw = await signedTransaction(stage, [transfer(stage, { memo: memoFor(challenge) })]);
  await stage.rpc("eth_sendRawTransaction", raw);
  const payload = { type: "hash", hash: keccak256(raw) };
  assert.equal(await stage.rail.check(await taken(stage.rail, shown(challenge, payload))), null);
  await assert.rejects(
    stage.rail.check(await taken(stage.rail, shown(challengeOf(stage.rail), payload))),
    { name: "ChainTrouble" },
  );
});
