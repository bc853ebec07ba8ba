// The limits of the paywall by address: what an address may cost the payment chains without paying,
// and that other addresses do not feel it.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Order, PaymentDeclined, Payments } from "../../../src/payments/payments.ts";
import { invalid, unavailable } from "../../../src/payments/refusal.ts";
import { PurchasePaywall } from "../../../src/web/payment/purchase-paywall.ts";
import { simulatedWorld } from "../../fakes/runtime.ts";

const PAYMENT = { protocol: "mpp", text: "Payment e30" } as const;
const MARK = { fingerprint: "f", digest: "d", resourceUrl: "" };
const ORDER: Order = {
  purpose: { kind: "create_key", name: "" },
  amountN: 1_000_000n,
  request: MARK,
  description: "A key",
  keepsAuthorization: false,
};

/** A paywall over payments whose fate the test decides. */
function paywallOf(runtime: ReturnType<typeof simulatedWorld>, payments: Partial<Payments>) {
  return new PurchasePaywall({ runtime, payments: payments as Payments });
}

async function codeOf(paywall: PurchasePaywall, address: string): Promise<string> {
  const request = { payment: PAYMENT, mark: MARK, address };
  const refused = await paywall.collect(request, async () => ORDER);
  return "fault" in refused ? refused.fault.code : refused.kind;
}

test(
  "payments of which the chain cannot say anything are bounded by address too: each of them " +
    "asks it",
  async () => {
    const runtime = simulatedWorld(1);
    let taken = 0;
    const take = async () => {
      taken++;
      return unavailable("the payment's chain cannot be asked right now");
    };
    const paywall = paywallOf(runtime, { take });
    const codes: string[] = [];
    for (let index = 0; index < 200; index++) codes.push(await codeOf(paywall, "192.0.2.1"));
    assert.deepEqual([codes[0], codes.at(-1)], ["unavailable", "rate_limited"]);
    assert.ok(taken <= 60, `${taken} were looked at`);
    assert.equal(await codeOf(paywall, "192.0.2.2"), "unavailable");
    runtime.advance(2_000);
    assert.equal(
      await codeOf(paywall, "192.0.2.1"),
      "unavailable",
      "a payer who comes back at its Retry-After is looked at",
    );
  },
);

test("wrong payments that come together are bounded like those that come one by one", async () => {
  const runtime = simulatedWorld(1);
  let taken = 0;
  const looked = Promise.withResolvers<PaymentDeclined>();
  const take = () => {
    taken++;
    return looked.promise;
  };
  const challenge = async () => ({ headers: ["WWW-Authenticate", "Payment"] });
  const paywall = paywallOf(runtime, { take, challenge });
  const flood = Array.from({ length: 1_000 }, () => codeOf(paywall, "192.0.2.1"));
  const other = codeOf(paywall, "192.0.2.2");
  looked.resolve(invalid({ problem: "verification-failed", reason: "made up" }));
  const codes = await Promise.all(flood);
  assert.equal(taken, 64 + 1);
  assert.equal(codes.filter((code) => code === "payment_invalid").length, 64);
  assert.equal(codes.filter((code) => code === "rate_limited").length, 1_000 - 64);
  assert.equal(await other, "payment_invalid");
  runtime.advance(2_000);
  const later = Array.from({ length: 10 }, () => codeOf(paywall, "192.0.2.1"));
  const admitted = (await Promise.all(later)).filter((code) => code === "payment_invalid");
  assert.equal(admitted.length, 1, "one in two seconds from then on, also of those together");
});

test("valid payments count against no address, in any number", async () => {
  const runtime = simulatedWorld(1);
  let taken = 0;
  const take = async (): Promise<PaymentDeclined> => {
    taken++;
    if (taken % 2 === 0) throw new Error("the store does not answer");
    return { ...unavailable("it is settling"), purchaseId: "pur_1" };
  };
  const paywall = paywallOf(runtime, { take });
  for (let index = 0; index < 500; index++)
    await codeOf(paywall, "192.0.2.1").catch((error: unknown) => assert.ok(error instanceof Error));
  assert.equal(taken, 500);
});

test("the price of a request is asked once, and not before a payment needs it", async () => {
  const runtime = simulatedWorld(1);
  let priced = 0;
  const price = async () => {
    priced++;
    return ORDER;
  };
  const challenge = async () => ({ headers: ["WWW-Authenticate", "Payment"] });
  const settling = { ...unavailable("it is settling"), purchaseId: "pur_1" };
  const recorded = paywallOf(runtime, { take: async () => settling, challenge });
  const request = { payment: PAYMENT, mark: MARK, address: "192.0.2.1" };
  await recorded.collect<never>(request, price);
  assert.equal(priced, 0);
  const take: Payments["take"] = async (_given, _mark, order) => {
    await order();
    return invalid({ problem: "verification-failed", reason: "made up" });
  };
  const wrong = await paywallOf(runtime, { take, challenge }).collect<never>(request, price);
  assert.deepEqual([priced, wrong.kind], [1, "payment_refusal"]);
  assert.ok(wrong.kind === "payment_refusal" && wrong.headers.length > 0);
});
