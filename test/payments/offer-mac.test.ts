// Marks of x402 offers: an offer is known again only as it was made, for the request and the time
// it was made for, by a holder of the secret.
import assert from "node:assert/strict";
import { createHmac, hkdfSync } from "node:crypto";
import { test } from "node:test";
import { OfferMacs } from "../../src/payments/offer-mac.ts";
import type { X402Offer } from "../../src/payments/rails/rail.ts";

const OFFER: X402Offer = {
  scheme: "exact",
  network: "eip155:31337",
  amount: "100000",
  asset: "0xAbCdef0000000000000000000000000000000001",
  payTo: "0xAbCdef0000000000000000000000000000000002",
  maxTimeoutSeconds: 300,
  extra: { name: "Dollar", version: "2" },
};
const NOW_MS = 1_790_000_000_000;

test("an offer comes back with its time and for its request, in any case of its addresses", () => {
  const marks = new OfferMacs("secret one", null);
  const offer = marks.signed(OFFER, "request", NOW_MS);
  assert.deepEqual(
    { ...offer, extra: { ...offer.extra, offer: undefined } },
    { ...OFFER, extra: { ...OFFER.extra, offer: undefined } },
  );
  const mark = marks.read({
    ...offer,
    asset: offer.asset.toLowerCase(),
    payTo: offer.payTo.toUpperCase(),
  });
  assert.equal(mark?.expiresAtMs, NOW_MS);
  assert.equal(mark?.isFor("request"), true);
  assert.equal(mark?.isFor("another"), false);
  assert.notEqual(
    marks.read(marks.signed(OFFER, "request", NOW_MS))?.id,
    mark?.id,
    "no two offers are the same",
  );
});

test("a changed offer or mark is none of ours", () => {
  const marks = new OfferMacs("secret one", null);
  const offer = marks.signed(OFFER, "request", NOW_MS);
  const text = String(offer.extra["offer"]);
  const [id, expires, mac, requestMac] = text.split(".");
  const changed: readonly X402Offer[] = [
    { ...offer, amount: "1" },
    { ...offer, payTo: "0xAbCdef0000000000000000000000000000000003" },
    { ...offer, asset: offer.payTo },
    { ...offer, network: "eip155:1" },
    ...[
      undefined,
      null,
      5,
      "",
      "....",
      `${text}.`,
      `${id}.${expires}.${mac}`.slice(0, -1),
      `x${text}`,
      `${id}.zzzzzzzzz.${mac}.${requestMac}`,
    ].map((it) => ({
      ...offer,
      extra: { ...offer.extra, offer: it },
    })),
  ];
  for (const it of changed) assert.equal(marks.read(it), null, JSON.stringify(it));
  assert.equal(
    marks.read({ ...offer, extra: { offer: `${id}.${expires}.${mac}.${mac}` } })?.isFor("request"),
    false,
  );
});

test("offers of the secret before are known, those of other secrets are not", () => {
  const old = new OfferMacs("secret one", null).signed(OFFER, "request", NOW_MS);
  assert.equal(new OfferMacs("secret two", "secret one").read(old)?.isFor("request"), true);
  assert.equal(new OfferMacs("secret two", null).read(old), null);
});

test("the mark has the form that every release since 0.1.0 writes and reads", () => {
  const secret = "a secret that two releases share, 32 bytes";
  const key = Buffer.from(hkdfSync("sha256", secret, "", "svc payment offers", 32));
  const { scheme, network, amount, asset, payTo } = OFFER;
  const mac = (id: string, expires: string, fingerprint: string | null): string => {
    const addresses = [asset.toLowerCase(), payTo.toLowerCase()];
    const text = JSON.stringify([id, expires, scheme, network, amount, ...addresses, fingerprint]);
    return createHmac("sha256", key).update(text).digest().subarray(0, 16).toString("base64url");
  };
  const markOf = (id: string, expires: string): string =>
    [id, expires, mac(id, expires, null), mac(id, expires, "request")].join(".");
  const macs = new OfferMacs(secret, null);
  const [id = "", expires = ""] = String(
    macs.signed(OFFER, "request", NOW_MS).extra["offer"],
  ).split(".");
  assert.equal(Number.parseInt(expires, 36), NOW_MS);
  const written = macs.signed(OFFER, "request", NOW_MS).extra["offer"];
  assert.equal(written, markOf(...(String(written).split(".", 2) as [string, string])));
  const offer = { ...OFFER, extra: { ...OFFER.extra, offer: markOf(id, expires) } };
  const read = macs.read(offer);
  assert.deepEqual([read?.id, read?.expiresAtMs, read?.isFor("request")], [id, NOW_MS, true]);
});
