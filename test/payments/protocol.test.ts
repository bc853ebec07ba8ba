// The protocol's headers against the stock libraries of both sides, and against whatever else a
// client may send.
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  decodePaymentRequiredHeader,
  decodePaymentResponseHeader,
  encodePaymentSignatureHeader,
} from "@x402/core/http";
import fc from "fast-check";
import { Challenge, Credential, Errors, Receipt } from "mppx";
import { Fetch } from "mppx/client";
import { type ChallengeParts, Protocol } from "../../src/payments/protocol.ts";
import type { ReadPayment } from "../../src/payments/protocol-credential.ts";
import { MAX_CREDENTIAL_CHARS } from "../../src/payments/protocol-credential.ts";
import { PROBLEMS, problemDetails } from "../../src/payments/protocol-problems.ts";
import type { BadPayment } from "../../src/payments/rails/rail.ts";

const REALM = "svc.example";
const SECRET = "a secret of this test, long enough to be one";
const TOKEN = "0x20c0000000000000000000000000000000000000";
const RECIPIENT = "0x14dC79964da2C08b23698B3D3cc7Ca32193d9955";
const DIGEST = "sha-256=:RBNvo1WzZ4oRRq0W9+hknpT7T8If536DEMBg9hyq/4o=:";
const FINGERPRINT = "b5Pw0Vm8Hn2gq8l2ZC9Yh8wYvZ8vVfH3m0y6v1r9a7Q";
const EXPIRES_AT_MS = Date.parse("2099-01-01T00:00:00.000Z");

const request = {
  amount: "100000",
  currency: TOKEN,
  recipient: RECIPIENT,
  methodDetails: { chainId: 1337 },
};
const x402Offer = {
  scheme: "exact",
  network: "eip155:31337",
  amount: "100000",
  asset: TOKEN,
  payTo: RECIPIENT,
  maxTimeoutSeconds: 60,
  extra: { name: "Dollar", version: "1" },
} as const;

const protocol = protocolWith({});

function protocolWith({
  realm = REALM,
  secret = SECRET,
  previousSecret = null as string | null,
}): Protocol {
  return new Protocol({ realm, secret, previousSecret });
}

function headersOf(over: Partial<ChallengeParts> = {}, from = protocol): Headers {
  const parts = {
    offers: [{ method: "tempo", intent: "charge", request }],
    x402: [],
    digest: DIGEST,
    fingerprint: FINGERPRINT,
    resourceUrl: "https://svc.example/api/v1/agent/key/fund",
    description: "Fund a key",
    expiresAtMs: EXPIRES_AT_MS,
    keepsAuthorization: false,
  };
  const list = from.challenge({ ...parts, ...over });
  const headers = new Headers();
  for (let at = 0; at < list.length; at += 2) headers.append(list[at] ?? "", list[at + 1] ?? "");
  return headers;
}

function challengeOf(over: Partial<ChallengeParts> = {}, from = protocol) {
  const [challenge] = Challenge.fromHeadersList(headersOf(over, from));
  assert.ok(challenge !== undefined);
  return challenge;
}

function credentialOf(over: Partial<ChallengeParts> = {}, from = protocol): string {
  return Credential.serialize({
    challenge: challengeOf(over, from),
    payload: { type: "hash", hash: "0x12" },
    source: "did:pkh:eip155:1337:0xabc",
  });
}

function wireOf(text: string): { challenge: Record<string, unknown>; [name: string]: unknown } {
  return JSON.parse(Buffer.from(text.replace("Payment ", ""), "base64url").toString());
}

function textOf(wire: unknown): string {
  return Buffer.from(typeof wire === "string" ? wire : JSON.stringify(wire)).toString("base64url");
}

function read(text: string, from = protocol): ReadPayment | BadPayment {
  return from.read({ protocol: "mpp", text });
}

function problemOf(text: string, from = protocol): string {
  const answer = read(text, from);
  return "kind" in answer ? answer.problem : "none";
}

test(
  "a stock client reads every offer of a challenge, and its answer is found to be to that " +
    "challenge, with what it was bound to",
  () => {
    const challenges = Challenge.fromHeadersList(
      headersOf({
        offers: [
          { method: "tempo", intent: "charge", request },
          { method: "evm", intent: "charge", request: { ...request, amount: "7" } },
        ],
      }),
    );
    assert.deepEqual(
      challenges.map((it) => [
        it.method,
        it.intent,
        it.request["amount"],
        it.realm,
        it.digest,
        it.expires,
      ]),
      [
        ["tempo", "charge", "100000", REALM, DIGEST, "2099-01-01T00:00:00.000Z"],
        ["evm", "charge", "7", REALM, DIGEST, "2099-01-01T00:00:00.000Z"],
      ],
    );
    for (const challenge of challenges) {
      const { id, realm, method, intent, expires } = challenge;
      const given = Credential.serialize({
        challenge,
        payload: { any: ["thing"] },
        source: "did:pkh:eip155:1337:0xabc",
      });
      assert.deepEqual(read(given), {
        protocol: "mpp",
        challenge: { id, realm, method, intent, request: challenge.request, expires },
        payload: { any: ["thing"] },
        source: "did:pkh:eip155:1337:0xabc",
        bound: { digest: DIGEST, fingerprint: FINGERPRINT },
      });
    }
  },
);

test("no two challenges have one id, even of one offer in one moment", () => {
  assert.equal(new Set(Array.from({ length: 200 }, () => challengeOf().id)).size, 200);
});

test(
  "a challenge of the previous secret is taken until its secret is forgotten; of another " +
    "secret or realm it is not",
  () => {
    const old = protocolWith({ secret: `${SECRET}, before` });
    const given = credentialOf({}, old);
    assert.equal(problemOf(given, protocolWith({ previousSecret: `${SECRET}, before` })), "none");
    assert.equal(problemOf(given), "invalid-challenge");
    assert.equal(
      problemOf(credentialOf({}, protocolWith({ realm: "other.example" }))),
      "invalid-challenge",
    );
  },
);

test("no part of a challenge can be changed, moved into another or left out", () => {
  const given = credentialOf({ keepsAuthorization: true });
  const { challenge } = wireOf(given);
  const other = wireOf(
    credentialOf({
      fingerprint: "another",
      digest: DIGEST.replace("RBN", "RBM"),
      expiresAtMs: EXPIRES_AT_MS + 1,
    }),
  ).challenge;
  const changed: Record<string, unknown>[] = [
    ...["id", "opaque", "digest", "expires"].map((name) => ({ ...challenge, [name]: other[name] })),
    {
      ...challenge,
      request: Buffer.from(JSON.stringify({ ...request, amount: "1" })).toString("base64url"),
    },
    { ...challenge, method: "evm" },
    { ...challenge, intent: "session" },
    { ...challenge, realm: "other.example" },
    { ...challenge, header: undefined },
    { ...challenge, header: "Authorization" },
    { ...challenge, opaque: undefined },
    { ...challenge, digest: undefined, expires: `${String(challenge["expires"])}|${DIGEST}` },
    { ...challenge, header: undefined, digest: `${DIGEST}|Payment-Authorization` },
  ];
  assert.equal(problemOf(given), "none");
  for (const it of changed)
    assert.notEqual(
      problemOf(textOf({ ...wireOf(given), challenge: it })),
      "none",
      JSON.stringify(it),
    );
});

test(
  "a stock client answers in Payment-Authorization where Authorization has to stay, and keeps " +
    "what stands there",
  async () => {
    const asked: Headers[] = [];
    const paying = Fetch.from({
      fetch: async (_, init) => {
        const headers = new Headers(init?.headers);
        asked.push(headers);
        return headers.has("payment-authorization")
          ? new Response("done")
          : new Response(null, { status: 402, headers: headersOf({ keepsAuthorization: true }) });
      },
      methods: [
        {
          name: "tempo",
          intent: "charge",
          createCredential: async ({ challenge }: { challenge: Challenge.Challenge }) =>
            Credential.serialize({ challenge, payload: {} }),
        },
      ] as never,
    });
    const answer = await paying("https://svc.example/rpc", {
      headers: { authorization: "Bearer svc_ak_x" },
    });
    assert.equal(await answer.text(), "done");
    const [, paid] = asked;
    assert.equal(paid?.get("authorization"), "Bearer svc_ak_x");
    assert.equal(problemOf(paid?.get("payment-authorization") ?? ""), "none");
  },
);

test("the stock x402 library reads the offers, and its payment is read back as it was written", () => {
  const header = headersOf({ offers: [], x402: [x402Offer] }).get("payment-required") ?? "";
  const required = decodePaymentRequiredHeader(header);
  assert.deepEqual(required.accepts, [x402Offer]);
  assert.deepEqual(required.resource, {
    url: "https://svc.example/api/v1/agent/key/fund",
    description: "Fund a key",
    mimeType: "application/json",
  });
  const payload = { signature: "0x12", authorization: { from: RECIPIENT } };
  const text = encodePaymentSignatureHeader({
    x402Version: 2,
    accepted: x402Offer,
    payload,
    resource: required.resource,
  });
  assert.deepEqual(protocol.read({ protocol: "x402", text }), {
    protocol: "x402",
    accepted: x402Offer,
    payload,
    bound: null,
  });
});

test("what a credential is, is decided by what it says, not by the header that it came in", () => {
  const mpp = protocol.read({ protocol: "x402", text: credentialOf() });
  assert.ok("protocol" in mpp && mpp.protocol === "mpp");
  assert.equal(
    problemOf(textOf({ ...wireOf(credentialOf()), x402Version: 2, accepted: x402Offer })),
    "malformed-credential",
  );
  for (const accepted of [
    { ...x402Offer, scheme: "upto" },
    { ...x402Offer, network: "solana:1" },
    { ...x402Offer, amount: "-1" },
    { ...x402Offer, payTo: 5 },
    null,
  ]) {
    assert.equal(
      problemOf(textOf({ x402Version: 2, accepted, payload: {} })),
      "malformed-credential",
    );
  }
  for (const [field, wrong] of [
    ["payload", "0x12"],
    ["payload", null],
    ["resource", { url: "" }],
    ["extensions", []],
  ] as const) {
    const form = { x402Version: 2, accepted: x402Offer, payload: {}, [field]: wrong };
    const answer = protocol.read({ protocol: "x402", text: textOf(form) });
    assert.ok("kind" in answer && answer.problem === "malformed-credential");
    assert.ok(answer.reason.includes(`\`${field}\``), answer.reason);
  }
});

test(
  "huge, deep, truncated, repeated and mistyped input is refused with a reason and never " +
    "thrown at",
  () => {
    const given = credentialOf();
    const wire = wireOf(given);
    const json = JSON.stringify(wire);
    const refused = [
      "",
      "Payment",
      "Payment ",
      "Bearer abc",
      "%%%",
      textOf("null"),
      textOf("[]"),
      textOf("{"),
      textOf('"x"'),
      textOf({ challenge: wire.challenge, payload: "x".repeat(MAX_CREDENTIAL_CHARS) }),
      textOf(
        `{"challenge":${JSON.stringify(wire.challenge)},"payload":${"[".repeat(5_000)}${"]".repeat(5_000)}}`,
      ),
      textOf(json.replace('"payload":', '"payload":1,"payload":')),
      textOf(json.replace('"challenge":{', '"challenge":{"realm":"svc.example",')),
      textOf(json.replace('"payload":', '"challenge":{},"payload":')),
      Buffer.concat([Buffer.from('{"a":"'), Buffer.from([0xff, 0xfe]), Buffer.from('"}')]).toString(
        "base64",
      ),
      ...["id", "realm", "method", "intent", "request"].flatMap((name) =>
        [null, 1, "", {}, []].map((it) =>
          textOf({ ...wire, challenge: { ...wire.challenge, [name]: it } }),
        ),
      ),
      textOf({
        ...wire,
        challenge: { ...wire.challenge, request: textOf('{"amount":"1","amount":"100000"}') },
      }),
      textOf({ ...wire, source: 5 }),
    ];
    for (const text of refused)
      assert.match(
        problemOf(text),
        /^(malformed-credential|invalid-challenge)$/,
        text.slice(0, 80),
      );
    for (let end = 8; end < given.length - 1; end += 7)
      assert.equal(problemOf(given.slice(0, end)), "malformed-credential");
  },
);

test("a changed credential is refused or still answers the very same challenge", () => {
  const given = credentialOf();
  const wire = wireOf(given);
  const whole = read(given);
  assert.ok("protocol" in whole && whole.protocol === "mpp");
  const json = JSON.stringify(wire);
  const names = fc.constantFrom(...Object.keys(wire.challenge));
  const cut = fc.tuple(fc.nat(json.length), fc.nat(20), fc.string({ maxLength: 20 }));
  fc.assert(
    fc.property(
      fc.oneof(
        fc
          .tuple(names, fc.jsonValue())
          .map(([name, value]) =>
            textOf({ ...wire, challenge: { ...wire.challenge, [name]: value } }),
          ),
        cut.map(([at, length, text]) => textOf(json.slice(0, at) + text + json.slice(at + length))),
        fc
          .tuple(fc.nat(given.length), fc.string({ maxLength: 3 }))
          .map(([at, text]) => given.slice(0, at) + text + given.slice(at + 1)),
        fc.jsonValue().map(textOf),
        fc.string({ maxLength: 200 }),
      ),
      (text) => {
        const answer = read(text);
        if ("kind" in answer)
          return assert.ok(answer.reason.length > 0 && answer.problem in PROBLEMS);
        assert.ok(answer.protocol === "mpp");
        assert.deepEqual([answer.challenge, answer.bound], [whole.challenge, whole.bound]);
      },
    ),
    { numRuns: 2_000 },
  );
});

test("a description of any characters is a legal header that a stock client reads", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary", maxLength: 300 }), (description) => {
      const challenge = challengeOf({ description, x402: [x402Offer] });
      assert.equal(problemOf(Credential.serialize({ challenge, payload: {} })), "none");
    }),
    { numRuns: 200 },
  );
});

test("receipts are those of both protocols", () => {
  const txHash = `0x${"ab".repeat(32)}`;
  const parts = {
    purchaseId: "pur_1",
    method: "tempo",
    txHash,
    network: "eip155:1337",
    payer: RECIPIENT,
    atMs: 1_700_000_000_000,
  };
  const [mppName, mpp = ""] = protocol.receipt({ ...parts, protocol: "mpp" });
  assert.equal(mppName, "Payment-Receipt");
  assert.deepEqual(Receipt.deserialize(mpp), {
    method: "tempo",
    reference: txHash,
    status: "success",
    timestamp: "2023-11-14T22:13:20.000Z",
    externalId: "pur_1",
    network: "eip155:1337",
  });
  const [x402Name, x402 = ""] = protocol.receipt({ ...parts, protocol: "x402" });
  assert.equal(x402Name, "PAYMENT-RESPONSE");
  assert.deepEqual(decodePaymentResponseHeader(x402), {
    success: true,
    transaction: txHash,
    network: "eip155:1337",
    payer: RECIPIENT,
    extra: { purchaseId: "pur_1" },
  });
});

test("problem types are those of the stock library", () => {
  const stock = Object.values(Errors).flatMap((it) => {
    try {
      const { type, title } = new (it as new (options: object) => Errors.PaymentError)({});
      return [`${type} ${title}`];
    } catch {
      return [];
    }
  });
  for (const code of Object.keys(PROBLEMS)) {
    const { type, title } = problemDetails(code);
    assert.ok(stock.includes(`${type} ${title}`), `${type} ${title}`);
  }
  assert.deepEqual(problemDetails("no such code"), problemDetails("verification-failed"));
});
