// Where a payment may stand in a request, that there is one and only one, and what it is bound to:
// a key in the path never leaves.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { BodyDigest } from "mppx";
import {
  type HeaderValues,
  type MarkedRequest,
  paymentOf,
  requestMark,
  withoutPayment,
} from "../../../src/web/payment/payment-headers.ts";

const MPP = { kind: "payment", given: { protocol: "mpp", text: "Payment abc-_1" } };
const X402 = { kind: "payment", given: { protocol: "x402", text: "abc+/1==" } };

describe("a payment in the headers of a request", () => {
  const rows: readonly (readonly [string, HeaderValues, unknown])[] = [
    ["no header at all", {}, null],
    ["another credential", { authorization: ["Bearer svc_mt_1"] }, null],
    ["a credential whose name begins alike", { authorization: ["Payments abc"] }, null],
    ["Authorization: Payment", { authorization: ["Payment abc-_1"] }, MPP],
    ["in any case, with any space", { authorization: ["pAyMeNt \t abc-_1 "] }, MPP],
    ["behind Bearer", { authorization: ["Bearer svc_mt_1, Payment abc-_1"] }, MPP],
    ["before Bearer", { authorization: ["Payment abc-_1,Bearer svc_mt_1"] }, MPP],
    [
      "in an Authorization of its own",
      { authorization: ["Bearer svc_mt_1", "Payment abc-_1"] },
      MPP,
    ],
    [
      "Payment-Authorization",
      { authorization: ["Bearer svc_mt_1"], "payment-authorization": ["Payment abc-_1"] },
      MPP,
    ],
    ["Payment-Authorization without the scheme", { "payment-authorization": ["abc-_1"] }, MPP],
    ["PAYMENT-SIGNATURE of MPP", { "payment-signature": ["Payment abc-_1"] }, MPP],
    ["PAYMENT-SIGNATURE", { "payment-signature": ["abc+/1=="] }, X402],
    [
      "the same one in two places",
      { authorization: ["Payment abc-_1"], "payment-signature": ["abc-_1"] },
      MPP,
    ],
    [
      "a scheme with nothing behind it",
      { authorization: ["Payment"] },
      { kind: "payment", given: { protocol: "mpp", text: "Payment " } },
    ],
    ["an empty header", { "payment-signature": [""] }, null],
  ];
  for (const [name, headers, expected] of rows)
    it(name, () => assert.deepEqual(paymentOf(headers), expected));

  const several: readonly HeaderValues[] = [
    { authorization: ["Payment a, Payment b"] },
    { authorization: ["Payment a", "Payment b"] },
    { authorization: ["Payment a"], "payment-signature": ["b"] },
    { "payment-signature": ["a", "b"] },
    { "payment-signature": ["a, b"] },
    { "payment-authorization": ["Payment a"], authorization: ["Payment b, Bearer c"] },
  ];
  for (const headers of several)
    it(`several are none: ${JSON.stringify(headers)}`, () =>
      assert.equal(paymentOf(headers)?.kind, "unclear"));

  it("one that is too long is not read", () => {
    assert.equal(paymentOf({ "payment-signature": ["a".repeat(16_384)] })?.kind, "payment");
    for (const text of ["a".repeat(16_385), `Payment ${"a".repeat(16_384)}`])
      assert.equal(paymentOf({ "payment-signature": [text] })?.kind, "unclear");
  });
});

it("what is left of an Authorization without its payments", () => {
  const rows = [
    [undefined, undefined],
    ["Bearer a", "Bearer a"],
    ["Payment a", undefined],
    ["Payment a, Bearer b", "Bearer b"],
    ["Bearer b , Payment a", "Bearer b"],
    ["Bearer payment", "Bearer payment"],
    ["Digest a=1, b=2", "Digest a=1, b=2"],
  ] as const;
  for (const [given, left] of rows) assert.equal(withoutPayment(given), left, given);
});

describe("the mark of a request", () => {
  const REQUEST: MarkedRequest = {
    method: "POST",
    url: "/api/v1/agent/keys",
    body: Buffer.from('{"a":1}'),
    credential: "",
    baseUrl: "https://rpc.example",
  };
  const fingerprint = (other: Partial<MarkedRequest>): string =>
    requestMark({ ...REQUEST, ...other }).fingerprint;

  it("differs with method, path, body and credential, and with nothing else: not with the query", () => {
    const others = [
      {},
      { method: "PUT" },
      { url: "/api/v1/agent/keys/" },
      { body: Buffer.from('{"a":2}') },
      { credential: "k" },
      { body: Buffer.from("") },
    ];
    assert.equal(new Set(others.map(fingerprint)).size, others.length);
    assert.equal(fingerprint({ baseUrl: "https://other.example" }), fingerprint({}));
    assert.equal(fingerprint({ url: "/api/v1/agent/keys?meta=body" }), fingerprint({}));
    assert.match(fingerprint({}), /^[\w-]{43}$/);
  });

  it("has the digest that stock libraries compute", () => {
    assert.equal(requestMark(REQUEST).digest, BodyDigest.compute('{"a":1}'));
    assert.equal(requestMark({ ...REQUEST, body: Buffer.from("") }).digest, BodyDigest.compute(""));
  });

  it("shows no key", () => {
    const rows = [
      ["/rpc/k/svc_ak_secret/load-balanced/ethereum", "/rpc/k/redacted/load-balanced/ethereum"],
      ["/rpc/k/secret", "/rpc/k/redacted"],
      ["/api/v1/agent/keys/secret/fund", "/api/v1/agent/keys/redacted/fund"],
      ["/rpc/svc_ak_secret/ethereum", "/rpc/redacted/ethereum"],
      ["/api/v1/accounts/acc_1/credit", "/api/v1/accounts/acc_1/credit"],
    ] as const;
    for (const [url, shown] of rows)
      assert.equal(requestMark({ ...REQUEST, url }).resourceUrl, `https://rpc.example${shown}`);
  });
});
