// What the EIP-3009 rail offers and which payments it reads as right: everything else is refused in
// words, without asking a chain and without a throw.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { Methods, Types } from "mppx/evm";
import type { Hex } from "viem";
import {
  OTHER_PAYERS,
  PAYER,
  RECIPIENT,
  SETTLEMENT,
} from "../../../../src/devnet/payments/wallets.ts";
import { nonceOf } from "../../../../src/payments/rails/evm/authorization.ts";
import { createEvmRail } from "../../../../src/payments/rails/evm/evm-rail.ts";
import type { PaymentCredential } from "../../../../src/payments/rails/rail.ts";
import type { EvmRailSettings } from "../../../../src/payments/rails/rail-kind.ts";
import { realRuntime } from "../../../../src/runtime.ts";
import {
  accepted,
  challengeFor,
  inSeconds,
  mppPayment,
  parseHex,
  randomNonce,
  refusal,
  x402Payment,
} from "./evm-fixture.ts";

const UNITS = 1_230_000n;
const OTHER = OTHER_PAYERS[0]?.address ?? PAYER.address;
const CURVE_ORDER = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;

const SETTINGS: EvmRailSettings = {
  kind: "evm",
  rpcUrl: "http://127.0.0.1:1",
  chainId: 31_337,
  token: {
    address: "0xaAaAaAaaAaAaAaaAaAAAAAAAAaaaAaAaAaaAaaAa",
    name: "Development Dollar",
    version: "1",
  },
  recipient: RECIPIENT.address.toLowerCase(),
  confirmations: 3,
  local: true,
  walletKey: SETTLEMENT.key,
  lowGasWei: 1n,
  maxGasWei: 1n,
};
const rail = createEvmRail(SETTINGS, { runtime: realRuntime });
const BASE = { key: PAYER.key, settings: SETTINGS, value: UNITS };

async function refused(presented: PaymentCredential | Promise<PaymentCredential>, units = UNITS) {
  return refusal(await rail.read(await presented, units));
}

describe("offers", () => {
  test("the request of the MPP challenge is the one that mppx writes", () => {
    const { chainId, token, recipient } = SETTINGS;
    const request = Methods.charge.schema.request.parse({
      amount: "1.23",
      chainId,
      currency: token.address,
      decimals: 6,
      recipient,
    });
    assert.deepEqual(rail.offer(UNITS), { method: "evm", intent: "charge", request });
  });

  test("the x402 entry names token, domain and a time that can be kept", () => {
    const entry = {
      scheme: "exact",
      network: "eip155:31337",
      amount: "1230000",
      asset: SETTINGS.token.address,
      payTo: RECIPIENT.address,
      maxTimeoutSeconds: 300,
      extra: { name: "Development Dollar", version: "1" },
    };
    assert.deepEqual(rail.x402Offer(UNITS, 300_000), entry);
    assert.equal(
      rail.x402Offer(UNITS, 1)?.maxTimeoutSeconds,
      90,
      "three times what settling needs",
    );
    assert.equal(rail.x402Offer(UNITS, 86_400_000)?.maxTimeoutSeconds, 3_600);
  });

  test("the nonce of a challenge is the one that mppx signs", () => {
    for (const challenge of [
      { id: "abc", realm: "svc.example" },
      { id: "", realm: "ü" },
    ])
      assert.equal(nonceOf(challenge), Types.challengeHash(challenge));
  });

  test("an x402 payment is for the rail of its chain and token, in any spelling of the address", () => {
    const offer = rail.x402Offer(UNITS, 300_000);
    assert.ok(offer !== null);
    assert.equal(
      rail.takesX402({ ...offer, asset: offer.asset.toLowerCase(), payTo: OTHER }),
      true,
    );
    assert.equal(rail.takesX402({ ...offer, network: "eip155:1" }), false);
    assert.equal(rail.takesX402({ ...offer, asset: OTHER }), false);
  });
});

describe("right payments", () => {
  test("are read alike from MPP and x402, with a key that every spelling has", async () => {
    const byMpp = await mppPayment(rail, {
      ...BASE,
      source: `did:pkh:eip155:31337:${PAYER.address.toLowerCase()}`,
    });
    const payment = await accepted(rail, byMpp, UNITS);
    const nonce = Types.challengeHash(byMpp.challenge);
    assert.equal(
      payment.key,
      `evm:31337:${SETTINGS.token.address}:${PAYER.address}:${nonce}`.toLowerCase(),
    );
    assert.deepEqual(
      { payer: payment.payer, units: payment.units, isSent: payment.isSent },
      { payer: PAYER.address, units: UNITS, isSent: false },
    );
    assert.ok(payment.validUntilMs !== null && payment.validUntilMs > Date.now());

    const byX402 = await x402Payment(rail, { ...BASE, nonce });
    assert.equal(
      (await accepted(rail, byX402, UNITS)).key,
      payment.key,
      "the same authorization by another protocol is the same payment",
    );
    const { authorization, signature } = byX402.payload as {
      authorization: Record<string, string>;
      signature: string;
    };
    const shouted = {
      ...byX402,
      payload: {
        authorization: {
          ...authorization,
          from: authorization["from"]?.toLowerCase(),
          to: authorization["to"]?.replace(/[a-f]/g, (it) => it.toUpperCase()),
          nonce: `0x${nonce.slice(2).toUpperCase()}`,
        },
        signature: `0x${signature.slice(2).toUpperCase()}`,
      },
    };
    assert.equal(rail.keyOf(shouted), payment.key);
    assert.equal((await accepted(rail, shouted, UNITS)).key, payment.key);
  });

  test("with a parity of 0 or 1 are kept as tokens take them", async () => {
    const presented = await x402Payment(rail, BASE);
    const { authorization, signature } = presented.payload as {
      authorization: unknown;
      signature: Hex;
    };
    const bare = {
      ...presented,
      payload: {
        authorization,
        signature: `${signature.slice(0, -2)}0${Number.parseInt(signature.slice(-2), 16) - 27}`,
      },
    };
    assert.equal(
      JSON.parse((await accepted(rail, bare, UNITS)).material).authorization.signature,
      signature,
    );
  });
});

describe("what the chain shows of a payment", () => {
  test("finds no MPP payment: its key is that of the challenge, whatever nonce is sent", async () => {
    const presented = await mppPayment(rail, BASE);
    const copied = { ...presented, challenge: challengeFor(rail, UNITS) };
    assert.notEqual(rail.keyOf(copied), rail.keyOf(presented));
    assert.match((await refused(copied)).reason, /nonce/);
  });
});

describe("wrong payments are refused, and say what to change", () => {
  const cases: Record<
    string,
    readonly [problem: string, reason: RegExp, () => Promise<PaymentCredential>]
  > = {
    "MPP: for another amount than the challenge says": [
      "payment-insufficient",
      /has to move 1230000/,
      async () =>
        mppPayment(rail, { ...BASE, value: UNITS - 1n, challenge: challengeFor(rail, UNITS) }),
    ],
    "MPP: for more than the challenge says": [
      "verification-failed",
      /exactly 1230000/,
      async () =>
        mppPayment(rail, { ...BASE, value: UNITS + 1n, challenge: challengeFor(rail, UNITS) }),
    ],
    "MPP: for a challenge of another amount": [
      "invalid-challenge",
      /fresh one/,
      async () => mppPayment(rail, { ...BASE, value: UNITS - 1n }),
    ],
    "MPP: for a challenge of another method": [
      "invalid-challenge",
      /fresh one/,
      async () =>
        mppPayment(rail, {
          ...BASE,
          challenge: { ...challengeFor(rail, UNITS), intent: "session" },
        }),
    ],
    "MPP: for a challenge whose request is no object of ours": [
      "invalid-challenge",
      /fresh one/,
      async () =>
        mppPayment(rail, {
          ...BASE,
          challenge: { ...challengeFor(rail, UNITS), request: { amount: 1 } },
        }),
    ],
    "MPP: for another challenge": [
      "verification-failed",
      /nonce/,
      async () => mppPayment(rail, { ...BASE, nonce: randomNonce() }),
    ],
    "MPP: to another recipient": [
      "verification-failed",
      /another address/,
      async () => mppPayment(rail, { ...BASE, to: OTHER }),
    ],
    "MPP: by another source": [
      "verification-failed",
      /source/,
      async () => mppPayment(rail, { ...BASE, source: `did:pkh:eip155:31337:${OTHER}` }),
    ],
    "MPP: by a source on another chain": [
      "verification-failed",
      /source/,
      async () => mppPayment(rail, { ...BASE, source: `did:pkh:eip155:1:${PAYER.address}` }),
    ],
    "MPP: of another type": [
      "invalid-payload",
      /EIP-3009/,
      async () => mppPayment(rail, { ...BASE, payload: { type: "hash" } }),
    ],
    "MPP: without a payload": [
      "invalid-payload",
      /EIP-3009/,
      async () => ({ ...(await mppPayment(rail, BASE)), payload: null }),
    ],
    "x402: for another amount": [
      "verification-failed",
      /accepted.amount/,
      async () => x402Payment(rail, { ...BASE, value: UNITS - 1n }),
    ],
    "x402: that signs less than it accepts": [
      "payment-insufficient",
      /has to move/,
      async () => x402Payment(rail, { ...BASE, value: 1n, accepted: { amount: `${UNITS}` } }),
    ],
    "x402: on another chain": [
      "verification-failed",
      /chain or token/,
      async () => x402Payment(rail, { ...BASE, accepted: { network: "eip155:1" } }),
    ],
    "x402: in another token": [
      "verification-failed",
      /chain or token/,
      async () => x402Payment(rail, { ...BASE, accepted: { asset: OTHER } }),
    ],
    "x402: that accepts another recipient": [
      "verification-failed",
      /payTo/,
      async () => x402Payment(rail, { ...BASE, accepted: { payTo: OTHER } }),
    ],
    "x402: that signs for another recipient": [
      "verification-failed",
      /another address/,
      async () => x402Payment(rail, { ...BASE, to: OTHER }),
    ],
    "x402: with another domain": [
      "verification-failed",
      /accepted.extra/,
      async () =>
        x402Payment(rail, { ...BASE, accepted: { extra: { name: "USD Coin", version: "2" } } }),
    ],
    "x402: by Permit2": [
      "invalid-payload",
      /Permit2/,
      async () => ({
        ...(await x402Payment(rail, BASE)),
        payload: { permit2Authorization: {}, signature: "0x" },
      }),
    ],
    "from the recipient": [
      "verification-failed",
      /recipient itself/,
      async () => x402Payment(rail, { ...BASE, key: RECIPIENT.key }),
    ],
    expired: [
      "payment-expired",
      /expired/,
      async () => x402Payment(rail, { ...BASE, validBefore: inSeconds(-1) }),
    ],
    "that expires before it can be settled": [
      "payment-expired",
      /more than 30 seconds/,
      async () => x402Payment(rail, { ...BASE, validBefore: inSeconds(29) }),
    ],
    "valid only later": [
      "verification-failed",
      /not valid yet/,
      async () => x402Payment(rail, { ...BASE, validAfter: inSeconds(60) }),
    ],
    "valid for too long": [
      "verification-failed",
      /more than 7200 seconds/,
      async () => x402Payment(rail, { ...BASE, validBefore: 2n ** 256n - 1n }),
    ],
    "signed by another account": [
      "verification-failed",
      /signature/,
      async () => x402Payment(rail, { ...BASE, from: OTHER }),
    ],
    "signed for another chain": [
      "verification-failed",
      /signature/,
      async () => mppPayment(rail, { ...BASE, domain: { chainId: 1 } }),
    ],
    "signed for another token": [
      "verification-failed",
      /signature/,
      async () => mppPayment(rail, { ...BASE, domain: { verifyingContract: parseHex(OTHER) } }),
    ],
    "signed for another version of the token": [
      "verification-failed",
      /signature/,
      async () => mppPayment(rail, { ...BASE, domain: { version: "2" } }),
    ],
  };
  for (const [name, [problem, reason, make]] of Object.entries(cases))
    test(name, async () => {
      const refusal = await refused(make());
      assert.equal(refusal.problem, problem, refusal.reason);
      assert.match(refusal.reason, reason);
    });

  test("a number above uint256 is none", async () => {
    const presented = await x402Payment(rail, BASE);
    const { authorization, signature } = presented.payload as {
      authorization: Record<string, string>;
      signature: Hex;
    };
    const huge = {
      ...presented,
      payload: { authorization: { ...authorization, validBefore: `${2n ** 256n}` }, signature },
    };
    assert.equal((await refused(huge)).problem, "invalid-payload");
  });

  test("a signature with the higher s, or in a short form, is refused though it is the payer's", async () => {
    const presented = await x402Payment(rail, BASE);
    const { authorization, signature } = presented.payload as {
      authorization: unknown;
      signature: Hex;
    };
    const s = CURVE_ORDER - BigInt(`0x${signature.slice(66, 130)}`);
    const twin = `${signature.slice(0, 66)}${s.toString(16).padStart(64, "0")}${signature.endsWith("1b") ? "1c" : "1b"}`;
    assert.match(
      (await refused({ ...presented, payload: { authorization, signature: twin } })).reason,
      /lower s/,
    );
    assert.equal(
      (
        await refused({
          ...presented,
          payload: { authorization, signature: signature.slice(0, 130) },
        })
      ).problem,
      "invalid-payload",
    );
  });
});

describe("arbitrary input", () => {
  test("changed bytes of a signature are never taken", async () => {
    const presented = await x402Payment(rail, BASE);
    const { authorization, signature } = presented.payload as {
      authorization: unknown;
      signature: Hex;
    };
    await fc.assert(
      fc.asyncProperty(
        fc.nat({ max: 64 }),
        fc.integer({ min: 1, max: 255 }),
        async (at, change) => {
          const bytes = Buffer.from(signature.slice(2), "hex");
          bytes[at] = (bytes[at] ?? 0) ^ change;
          const answer = await rail.read(
            { ...presented, payload: { authorization, signature: `0x${bytes.toString("hex")}` } },
            UNITS,
          );
          // 27 and 0 are two spellings of one parity.
          assert.ok(
            "kind" in answer || (at === 64 && [0, 1].includes(bytes[64] ?? 9)),
            `byte ${at} by ${change}`,
          );
        },
      ),
      { numRuns: 60 },
    );
  });

  test("junk is refused and has no key, and nothing throws", async () => {
    const presented = await x402Payment(rail, BASE);
    const good = presented.payload as { authorization: Record<string, string>; signature: string };
    // Zero, however it is written, is the `validAfter` that was signed.
    const junk = fc.jsonValue().filter((it) => typeof it !== "string" || !/^0+$/.test(it));
    const anything = fc.oneof(junk, fc.object(), fc.constant(undefined), fc.bigInt());
    const field = fc.constantFrom(...Object.keys(good.authorization));
    await fc.assert(
      fc.asyncProperty(anything, field, fc.boolean(), async (value, name, inside) => {
        const payload = inside
          ? { ...good, authorization: { ...good.authorization, [name]: value } }
          : value;
        for (const it of [
          { ...presented, payload },
          { protocol: "mpp", challenge: challengeFor(rail, UNITS), payload, source: null },
        ] as const) {
          assert.ok("kind" in (await rail.read(it, UNITS)));
          assert.doesNotThrow(() => rail.keyOf(it));
        }
      }),
      { numRuns: 200 },
    );
    assert.equal(rail.keyOf({ ...presented, payload: { authorization: { from: "0x1" } } }), null);
  });
});
