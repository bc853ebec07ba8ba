// The Tempo rail on a real Tempo node: payments of the stock client in both modes and of every kind
// of wallet are found paid exactly once, and nothing else is.
import assert from "node:assert/strict";
import { after, before, beforeEach, describe, test } from "node:test";
import { keccak256 } from "viem";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { sendTransaction } from "viem/actions";
import { Account, Actions } from "viem/tempo";
import { OTHER_PAYERS, PAYER, RECIPIENT } from "../../../../src/devnet/payments/wallets.ts";
import { memoFor } from "./memo.ts";
import {
  challengeOf,
  driven,
  nowS,
  Purchase,
  presented,
  protocol,
  refusal,
  shown,
  signedTransaction,
  startTempoFixture,
  step,
  stockPayment,
  strangePayment,
  type TempoFixture,
  TOKEN,
  taken,
  transactionIn,
  transfer,
  UNITS,
} from "./tempo-fixture.ts";

describe("the Tempo rail", () => {
  let fixture: TempoFixture;
  before(async () => {
    fixture = await startTempoFixture();
  });
  after(() => fixture.close());
  beforeEach(async () => {
    fixture.proxy.fault = () => "pass";
    // The chain's clock goes on with its blocks only.
    await fixture.mine();
  });

  test(
    "a pull payment of the stock client is taken, sent and found paid: exactly its amount has " +
      "moved, and its key stays the same",
    async () => {
      const { rail } = fixture;
      const received = await fixture.received();
      const given = presented(
        await stockPayment(fixture, challengeOf(rail), { account: fixture.payer }),
      );
      const payment = await taken(rail, given);
      assert.deepEqual(
        [payment.units, payment.payer, payment.isSent],
        [UNITS, PAYER.address.toLowerCase(), false],
      );
      assert.equal(payment.key, rail.keyOf(given));
      assert.ok(payment.validUntilMs !== null && payment.validUntilMs <= Date.now() + 26_000);
      assert.equal(await rail.check(payment), null);
      const purchase = new Purchase(payment);
      const truth = await driven(fixture, purchase);
      assert.ok(truth.kind === "settled");
      assert.equal(truth.txHash, purchase.submissions[0]?.txHash);
      assert.equal((await fixture.received()) - received, UNITS);
      assert.deepEqual(await rail.look(purchase), truth);
      // Sent again, and shown again: nothing moves, and the chain is still asked for the same
      // payment.
      for (const it of purchase.submissions) await rail.send(it);
      await fixture.mine(2);
      assert.equal((await fixture.received()) - received, UNITS);
      assert.equal((await taken(rail, given)).key, payment.key);
      assert.equal(await rail.check(payment), null);
    },
  );

  test("a push payment of the stock client is found paid, each time it is shown", async () => {
    const { rail } = fixture;
    const received = await fixture.received();
    const paying = stockPayment(fixture, challengeOf(rail), {
      account: fixture.payer,
      mode: "push",
    });
    const given = presented(await minedMeanwhile(paying));
    const payment = await taken(rail, given);
    assert.deepEqual(
      [payment.units, payment.payer, payment.isSent, payment.validUntilMs],
      [UNITS, PAYER.address.toLowerCase(), true, null],
    );
    assert.equal(payment.key, rail.keyOf(given));
    assert.equal(await rail.check(payment), null);
    const purchase = new Purchase(payment);
    const draft = await rail.draft(purchase);
    assert.equal((await draft?.sign(null))?.raw, null);
    const truth = await driven(fixture, purchase);
    assert.ok(truth.kind === "settled");
    assert.equal((await fixture.received()) - received, UNITS);
  });

  test("one transaction has one key: in another encoding, and shown by its hash after it was sent", async () => {
    const { rail } = fixture;
    const challenge = challengeOf(rail);
    const given = presented(await stockPayment(fixture, challenge, { account: fixture.payer }));
    const raw = transactionIn(given);
    const parity = raw.endsWith("1c") ? "01" : "00";
    const key = (await taken(rail, given)).key;
    for (const signature of [
      raw.slice(0, -2) + parity,
      `0x${raw.slice(2).toUpperCase()}`,
      `${raw}00`,
    ]) {
      const other = shown(challenge, { type: "transaction", signature });
      assert.equal(rail.keyOf(other), key);
      const payment = await taken(rail, other);
      assert.equal(payment.key, key);
      // What is sent is the form that nodes hash.
      assert.equal((await (await rail.draft(new Purchase(payment)))?.sign(null))?.raw, raw);
    }
    assert.equal(rail.keyOf(shown(challenge, { type: "hash", hash: keccak256(raw) })), key);
    assert.equal(
      rail.keyOf(
        shown(challenge, { type: "hash", hash: `0x${keccak256(raw).slice(2).toUpperCase()}` }),
      ),
      key,
    );
  });

  test(
    "the other signature that the curve allows is refused, as nodes refuse it: it would give one " +
      "payment two hashes",
    async () => {
      const { rail } = fixture;
      const order = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;
      const challenge = challengeOf(rail);
      const raw = transactionIn(
        presented(await stockPayment(fixture, challenge, { account: fixture.payer })),
      );
      const s = (order - BigInt(`0x${raw.slice(-66, -2)}`)).toString(16).padStart(64, "0");
      const high = `${raw.slice(0, -66)}${s}${raw.endsWith("1c") ? "1b" : "1c"}`;
      assert.match(
        refusal(await rail.read(shown(challenge, { type: "transaction", signature: high }), UNITS)),
        /signature is not right/,
      );
      await assert.rejects(fixture.rpc("eth_sendRawTransaction", high));
    },
  );

  test(
    "a wallet with a P-256 key pays; with a byte changed its signature is refused before " +
      "anything is asked",
    async () => {
      const { rail } = fixture;
      const account = Account.fromP256(generatePrivateKey());
      await fund(account.address);
      const challenge = challengeOf(rail);
      const given = presented(await stockPayment(fixture, challenge, { account }));
      const payment = await taken(rail, given);
      assert.equal(payment.payer, account.address.toLowerCase());
      const raw = transactionIn(given);
      const at = raw.length - 2 * 100;
      const forged = raw.slice(0, at) + (raw[at] === "0" ? "1" : "0") + raw.slice(at + 1);
      assert.match(
        refusal(
          await rail.read(shown(challenge, { type: "transaction", signature: forged }), UNITS),
        ),
        /signature is not right/,
      );
      assert.equal(await rail.check(payment), null);
      assert.equal((await driven(fixture, new Purchase(payment))).kind, "settled");
    },
  );

  test(
    "an access key pays for its account, also in the transaction that brings its leave; without " +
      "leave it does not",
    async () => {
      const { rail } = fixture;
      const root = Account.fromSecp256k1(OTHER_PAYERS[0]?.key ?? "0x");
      const account = Account.fromP256(generatePrivateKey(), { access: root });
      const without = await taken(
        rail,
        presented(await stockPayment(fixture, challengeOf(rail), { account })),
      );
      assert.match(refusal(await rail.check(without)), /has no leave of its account/);

      const leave = { expiry: nowS() + 3_600, chainId: 1337n };
      const keyAuthorization = await root.signKeyAuthorization(account, leave);
      const challenge = challengeOf(rail);
      const first = await strangePayment(fixture, {
        challenge,
        calls: [transfer(fixture, { memo: memoFor(challenge) })],
        over: { keyAuthorization },
        account,
      });
      const payment = await taken(rail, first);
      assert.equal(payment.payer, root.address.toLowerCase());
      assert.equal(await rail.check(payment), null);
      assert.equal((await driven(fixture, new Purchase(payment))).kind, "settled");

      const again = await taken(
        rail,
        presented(await stockPayment(fixture, challengeOf(rail), { account })),
      );
      assert.equal(await rail.check(again), null);
      assert.equal((await driven(fixture, new Purchase(again))).kind, "settled");

      // Leave that somebody else has signed, in the name of an account with money.
      const thief = Account.fromSecp256k1(generatePrivateKey());
      const stolen = Account.fromP256(generatePrivateKey(), { access: root });
      const forged = { ...(await thief.signKeyAuthorization(stolen, leave)) };
      const last = challengeOf(rail);
      const bad = await strangePayment(fixture, {
        challenge: last,
        calls: [transfer(fixture, { memo: memoFor(last) })],
        over: { keyAuthorization: forged },
        account: stolen,
      });
      assert.match(refusal(await rail.read(bad, UNITS)), /signature is not right/);
    },
  );

  test("a transaction may pay others beside and swap in front, and nothing else", async () => {
    const { rail } = fixture;
    const challenge = challengeOf(rail);
    const paying = transfer(fixture, { memo: memoFor(challenge) });
    const tip = transfer(fixture, { units: 5n, to: OTHER_PAYERS[1]?.address ?? "0x" });
    const swap = [
      { to: "0x20c0000000000000000000000000000000000001", data: `0x095ea7b3${"0".repeat(128)}` },
      { to: "0xdec0000000000000000000000000000000000000", data: `0xf0122b75${"0".repeat(256)}` },
    ] as const;
    const payment = await taken(
      rail,
      await strangePayment(fixture, { challenge, calls: [tip, paying] }),
    );
    assert.equal(await rail.check(payment), null);
    const truth = await driven(fixture, new Purchase(payment));
    assert.ok(truth.kind === "settled");
    // The local chain has nobody to swap with.
    await taken(rail, await strangePayment(fixture, { challenge, calls: [...swap, paying] }));
    for (const calls of [
      [paying, ...swap],
      [swap[0], paying],
      [paying, { to: RECIPIENT.address, data: "0x12345678" }],
      [paying, { to: RECIPIENT.address }],
    ] as const) {
      assert.match(
        refusal(await rail.read(await strangePayment(fixture, { challenge, calls }), UNITS)),
        /does more than pay/,
      );
    }
  });

  test("what does not pay exactly the offer is refused, and says what to change", async () => {
    const { rail } = fixture;
    const challenge = challengeOf(rail);
    const memo = memoFor(challenge);
    const other = challengeOf(rail);
    const cases: readonly (readonly [RegExp, Parameters<typeof strangePayment>[1]])[] = [
      [
        /exactly 100000 base units/,
        { challenge, calls: [transfer(fixture, { memo, units: UNITS - 1n })] },
      ],
      [
        /exactly 100000 base units/,
        { challenge, calls: [transfer(fixture, { memo, units: UNITS + 1n })] },
      ],
      [
        /has no transfer of/,
        { challenge, calls: [transfer(fixture, { memo, to: PAYER.address })] },
      ],
      [
        /has no transfer of/,
        {
          challenge,
          calls: [transfer(fixture, { memo, token: "0x20c0000000000000000000000000000000000001" })],
        },
      ],
      [/has to be a `transferWithMemo`/, { challenge, calls: [transfer(fixture)] }],
      [
        /has to be a `transferWithMemo`/,
        {
          challenge,
          calls: [
            {
              ...transfer(fixture),
              data: `0x${(transfer(fixture).data ?? "0x").slice(2)}${memo.slice(2)}`,
            },
          ],
        },
      ],
      [/memo does not belong/, { challenge, calls: [transfer(fixture, { memo: memoFor(other) })] }],
      [
        /memo does not belong/,
        {
          challenge,
          calls: [transfer(fixture, { memo: memoFor({ ...challenge, realm: "other.test" }) })],
        },
      ],
      [
        /memo does not belong/,
        { challenge, calls: [transfer(fixture, { memo: `0x${"11".repeat(32)}` })] },
      ],
      [
        /more than once/,
        { challenge, calls: [transfer(fixture, { memo }), transfer(fixture, { memo })] },
      ],
      [
        /more than once/,
        { challenge, calls: [transfer(fixture, { memo }), transfer(fixture, { units: 1n })] },
      ],
      [
        /is for chain 1338/,
        { challenge, calls: [transfer(fixture, { memo })], over: { chainId: 1338 } },
      ],
      [
        /valid for ever/,
        { challenge, calls: [transfer(fixture, { memo })], over: { validBefore: undefined } },
      ],
      [
        /longer than its challenge/,
        { challenge, calls: [transfer(fixture, { memo })], over: { validBefore: nowS() + 900 } },
      ],
      [
        /without a fee payer/,
        { challenge, calls: [transfer(fixture, { memo })], over: { feePayer: true } },
      ],
    ];
    for (const [reason, it] of cases)
      assert.match(refusal(await rail.read(await strangePayment(fixture, it), UNITS)), reason);
  });

  test("what the chain would not carry out now is refused by the check, with the reason", async () => {
    const { rail } = fixture;
    const poor = privateKeyToAccount(generatePrivateKey());
    const cases: readonly (readonly [RegExp, Record<string, unknown>, typeof poor?])[] = [
      [/payment-expired/, { validBefore: nowS() - 5 }],
      [/payment-expired/, { validBefore: nowS() + 2 }],
      [/not valid yet/, { validAfter: nowS() + 20 }],
      [/within 30 seconds/, { validBefore: nowS() + 200 }],
      [/too little gas/, { gas: 30_000n }],
      [/nonce 7/, { nonceKey: 0n, nonce: 7, validBefore: nowS() + 20 }],
      [/payment-insufficient: The payer cannot pay the transaction's fee/, {}, poor],
    ];
    for (const [reason, over, account] of cases) {
      const challenge = challengeOf(rail);
      const given = await strangePayment(fixture, {
        challenge,
        calls: [transfer(fixture, { memo: memoFor(challenge) })],
        over,
        ...(account === undefined ? {} : { account }),
      });
      assert.match(refusal(await rail.check(await taken(rail, given))), reason);
    }
    const much = 2n ** 80n;
    const challenge = challengeOf(rail, { units: much });
    const given = await strangePayment(fixture, {
      challenge,
      calls: [transfer(fixture, { memo: memoFor(challenge), units: much })],
    });
    assert.match(
      refusal(await rail.check(await taken(rail, given, much))),
      /payment-insufficient: The payer holds less/,
    );
  });

  test("what is no payment of this rail is refused and never thrown at", async () => {
    const { rail } = fixture;
    const challenge = challengeOf(rail);
    const raw = transactionIn(
      presented(await stockPayment(fixture, challenge, { account: fixture.payer })),
    );
    const unsigned = `${raw.slice(0, 4)}c0`;
    const payloads = [
      null,
      5,
      {},
      { type: "proof", signature: "0x12" },
      { type: "hash", hash: "0x12" },
      { type: "hash" },
      { type: "transaction", signature: 5 },
      ...[
        "",
        "0x",
        "0x76",
        "0x76c0",
        unsigned,
        `0x78${raw.slice(4)}`,
        `0x02${raw.slice(4)}`,
        raw.slice(0, -2),
        `0x76${"c1".repeat(3_000)}`,
        `0x76${"00".repeat(5_000)}`,
      ].map((signature) => ({
        type: "transaction",
        signature,
      })),
    ];
    for (const payload of payloads)
      assert.match(refusal(await rail.read(shown(challenge, payload), UNITS)), /^invalid-payload/);
    const hash = keccak256(raw);
    for (const source of [
      "did:pkh:eip155:1:0x14dC79964da2C08b23698B3D3cc7Ca32193d9955",
      "did:key:z6Mk",
      "x",
    ]) {
      assert.match(
        refusal(await rail.read(shown(challenge, { type: "hash", hash }, source), UNITS)),
        /^invalid-payload/,
      );
    }
    const x402 = { protocol: "x402", accepted: {} as never, payload: {} } as const;
    assert.match(refusal(await rail.read(x402, UNITS)), /^method-unsupported/);
    assert.deepEqual(
      [
        rail.keyOf(x402),
        rail.keyOf(shown(challenge, {})),
        rail.takesX402({} as never),
        rail.x402Offer(UNITS, 1),
      ],
      [null, null, false, null],
    );
    assert.match(
      refusal(
        await fixture
          .railWith({ modes: ["pull"] })
          .read(shown(challenge, { type: "hash", hash }), UNITS),
      ),
      /not taken here/,
    );
    assert.match(
      refusal(
        await fixture
          .railWith({ modes: ["push"] })
          .read(shown(challenge, { type: "transaction", signature: raw }), UNITS),
      ),
      /not taken here/,
    );
  });

  test("a challenge of another amount, token, recipient or chain does not fit any more", async () => {
    const { rail } = fixture;
    const given = presented(
      await stockPayment(fixture, challengeOf(rail), { account: fixture.payer }),
    );
    assert.match(refusal(await rail.read(given, UNITS + 1n)), /^invalid-challenge/);
    for (const over of [
      { recipient: PAYER.address },
      { token: { address: "0x20c0000000000000000000000000000000000001", name: "", version: "" } },
      { chainId: 1338 },
    ]) {
      assert.match(refusal(await fixture.railWith(over).read(given, UNITS)), /^invalid-challenge/);
    }
  });

  test(
    "an ordinary transaction without an end is taken with its account's next nonce, and ends " +
      "when another one uses that up",
    async () => {
      const { rail } = fixture;
      const account = privateKeyToAccount(generatePrivateKey());
      await fund(account.address);
      const paying = async () => {
        const challenge = challengeOf(rail);
        const over = {
          nonceKey: 0n,
          nonce: Number(await fixture.rpc("eth_getTransactionCount", account.address, "latest")),
          validBefore: undefined,
        };
        return taken(
          rail,
          await strangePayment(fixture, {
            challenge,
            calls: [transfer(fixture, { memo: memoFor(challenge) })],
            over,
            account,
          }),
        );
      };
      const payment = await paying();
      assert.equal(payment.validUntilMs, null);
      assert.equal(await rail.check(payment), null);
      assert.equal((await driven(fixture, new Purchase(payment))).kind, "settled");

      const never = new Purchase(await paying());
      assert.equal(await rail.check(never.payment), null);
      const nonce = Number(await fixture.rpc("eth_getTransactionCount", account.address, "latest"));
      await fixture.rpc(
        "eth_sendRawTransaction",
        await signedTransaction(
          fixture,
          [transfer(fixture, { units: 1n })],
          { nonceKey: 0n, nonce, validBefore: undefined },
          account,
        ),
      );
      await fixture.mine();
      // Nodes behind one address may differ by some blocks in what they know.
      assert.deepEqual(await rail.look(never), { kind: "open", resend: true, replace: false });
      await fixture.mine(10);
      const truth = await rail.look(never);
      assert.ok(truth.kind === "failed");
      assert.match(truth.reason, /has used the nonce/);
    },
  );

  test("a payment that the payer has sent itself before it showed it is found paid", async () => {
    const { rail } = fixture;
    const given = presented(
      await stockPayment(fixture, challengeOf(rail), { account: fixture.payer }),
    );
    const payment = await taken(rail, given);
    await fixture.rpc("eth_sendRawTransaction", transactionIn(given));
    await fixture.mine();
    assert.equal(await rail.check(payment), null);
    assert.equal((await step(rail, new Purchase(payment))).kind, "settled");
  });

  test(
    "a hash pays only for the challenge that its transfer names: not for another one, not with a " +
      "revert, not by another transfer",
    async () => {
      const { rail } = fixture;
      const challenge = challengeOf(rail);
      const send = async (calls: Parameters<typeof signedTransaction>[1]) => {
        const raw = await signedTransaction(fixture, calls);
        await fixture.rpc("eth_sendRawTransaction", raw);
        await fixture.mine();
        return { type: "hash", hash: keccak256(raw) };
      };
      const memo = memoFor(challenge);
      const wrong = [
        await send([transfer(fixture, { memo: memoFor(challengeOf(rail)) })]),
        await send([transfer(fixture)]),
        await send([transfer(fixture, { memo, units: UNITS - 1n })]),
        await send([transfer(fixture, { memo, to: OTHER_PAYERS[0]?.address ?? "0x" })]),
        await send([
          transfer(fixture, { memo, token: "0x20c0000000000000000000000000000000000001" }),
        ]),
        await send([transfer(fixture, { memo, units: 2n ** 100n })]),
      ];
      for (const payload of wrong) {
        const payment = await taken(rail, shown(challenge, payload));
        assert.match(
          refusal(await rail.check(payment)),
          /^verification-failed: The transaction (has no|reverted)/,
        );
        assert.equal((await rail.look(new Purchase(payment))).kind, "failed");
      }
      const right = await taken(
        rail,
        shown(
          challenge,
          await send([transfer(fixture, { units: 3n }), transfer(fixture, { memo })]),
        ),
      );
      assert.equal(await rail.check(right), null);
      const truth = await rail.look(new Purchase(right));
      assert.ok(
        truth.kind === "settled" && truth.logIndex > 1,
        "the transfer that was meant, not the first of its transaction",
      );
    },
  );

  test(
    "a hash that the node does not know yet is trouble and no refusal: a client that is refused " +
      "would pay once more",
    async () => {
      const { rail } = fixture;
      const challenge = challengeOf(rail);
      const raw = await signedTransaction(fixture, [
        transfer(fixture, { memo: memoFor(challenge) }),
      ]);
      const payment = await taken(rail, shown(challenge, { type: "hash", hash: keccak256(raw) }));
      await assert.rejects(rail.check(payment), { name: "ChainFailure" });
      await fixture.rpc("eth_sendRawTransaction", raw);
      assert.equal(await rail.check(payment), null);
      assert.deepEqual(await rail.look(new Purchase(payment)), {
        kind: "open",
        resend: false,
        replace: false,
      });
      await fixture.mine();
      assert.equal((await rail.look(new Purchase(payment))).kind, "settled");
    },
  );

  test("a challenge that is read by the rail is one that the protocol has found to be ours", async () => {
    const { rail } = fixture;
    const text = await stockPayment(fixture, challengeOf(rail), { account: fixture.payer });
    const json = JSON.parse(Buffer.from(text.slice("Payment ".length), "base64url").toString());
    const cheap = Buffer.from(JSON.stringify({ ...rail.offer(1n).request })).toString("base64url");
    const forged = Buffer.from(
      JSON.stringify({ ...json, challenge: { ...json.challenge, request: cheap } }),
    ).toString("base64url");
    const answer = protocol.read({ protocol: "mpp", text: forged });
    assert.ok("kind" in answer && answer.problem === "invalid-challenge");
  });

  /** Mines until a promise is settled. */
  async function minedMeanwhile<T>(promise: Promise<T>): Promise<T> {
    let isOver = false;
    const over = promise.finally(() => {
      isOver = true;
    });
    while (!isOver) {
      await fixture.mine();
      await new Promise((resolve) => setImmediate(resolve));
    }
    return over;
  }

  async function fund(to: `0x${string}`, amount = 10_000_000n): Promise<void> {
    const call = Actions.token.transfer.call(fixture.client, { amount, to, token: TOKEN });
    const sending = sendTransaction(fixture.client, {
      account: fixture.payer,
      calls: [call],
      feeToken: TOKEN,
      nonceKey: "expiring",
    } as never);
    await sending;
    await fixture.mine();
  }
});
