// The paywall's own bounds: what an address may cost the payment chains without paying, and that
// nobody else feels it.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Payments } from "../../../src/payments/payments.ts";
import { unavailable } from "../../../src/payments/refusal.ts";
import { createPaywall } from "../../../src/web/payment/paywall.ts";
import { simulatedWorld } from "../../fakes/runtime.ts";

const GIVEN = { protocol: "mpp", text: "Payment e30" } as const;
const REQUEST = { fingerprint: "f", digest: "d", resourceUrl: "" };

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
    const paywall = createPaywall({ runtime, payments: { take } as unknown as Payments });
    const from = async (address: string) => {
      const refused = await paywall.take(GIVEN, { request: REQUEST, address }, async () =>
        assert.fail("nothing is offered"),
      );
      return "fault" in refused ? refused.fault.code : refused.kind;
    };
    const codes: string[] = [];
    for (let index = 0; index < 200; index++) codes.push(await from("192.0.2.1"));
    assert.deepEqual([codes[0], codes.at(-1)], ["unavailable", "rate_limited"]);
    assert.ok(taken <= 60, `${taken} were looked at`);
    assert.equal(await from("192.0.2.2"), "unavailable");
    runtime.advance(2_000);
    assert.equal(
      await from("192.0.2.1"),
      "unavailable",
      "who comes back at its Retry-After is looked at",
    );
  },
);
