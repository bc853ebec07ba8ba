// The paywall of calls that are paid one by one: what one address may send without paying, and what
// a paid call gives back of that.
import assert from "node:assert/strict";
import { test } from "node:test";
import { fault } from "../../../src/core/faults/rpc-fault.ts";
import type {
  CallBill,
  Hold,
  PricedCall,
  SessionRefusal,
  SessionTaken,
} from "../../../src/payments/session/sessions.ts";
import { CallPaywall } from "../../../src/web/payment/call-paywall.ts";
import { simulatedWorld } from "../../fakes/runtime.ts";

const PAYMENT = { protocol: "mpp", text: "Payment e30" } as const;
const MARK = { fingerprint: "f", channelHint: "0x1" };
const PRICE = { units: 10n, calls: 1 };
const CHALLENGES = 200;
const INVALID = 64;
const CREDENTIALS = 400;

const REQUIRED: SessionRefusal = {
  kind: "refusal",
  fault: fault("payment_required", "pay"),
  headers: ["WWW-Authenticate", "Payment"],
  isWrong: false,
};
const WRONG: SessionRefusal = {
  ...REQUIRED,
  fault: fault("payment_invalid", "made up"),
  isWrong: true,
};

function holdOf(chargedUnits: bigint): Hold {
  const bill: CallBill = {
    kind: "bill",
    cu: 1,
    chargedUnits,
    leftUnits: 0n,
    rateLimitStatus: { name: "channel", burst: 1, windowS: 1, remaining: 1, resetS: 1 },
    headers: [],
  };
  return { kind: "hold", release: () => {}, settle: async () => bill };
}

/** A paywall whose credentials come to what the test says. */
function paywallOf(taken: () => Promise<SessionTaken>) {
  const calls: (PricedCall | null)[] = [];
  const hints: (string | null)[] = [];
  const sessions: ConstructorParameters<typeof CallPaywall>[0] = {
    async challenge(call, hint) {
      calls.push(call);
      hints.push(hint);
      return REQUIRED;
    },
    take(_given, call) {
      calls.push(call);
      return taken();
    },
  };
  const runtime = simulatedWorld(1);
  return { paywall: new CallPaywall(sessions, runtime), calls, hints };
}

async function collected(paywall: CallPaywall, isPaying: boolean, address = "192.0.2.1") {
  const request = { payment: isPaying ? PAYMENT : null, mark: MARK, address };
  return paywall.collect(request, PRICE);
}

function codesOf(taken: readonly SessionTaken[]): readonly string[] {
  return taken.map((one) => (one.kind === "refusal" ? one.fault.code : one.kind));
}

function count(codes: readonly string[], code: string): number {
  return codes.filter((one) => one === code).length;
}

test("a request without a payment is told its own price, and its channel is named on", async () => {
  const { paywall, calls, hints } = paywallOf(async () => WRONG);
  assert.equal(await collected(paywall, false), REQUIRED);
  const empty = { payment: null, mark: { ...MARK, channelHint: null }, address: "192.0.2.1" };
  await paywall.collect(empty, null);
  assert.deepEqual(calls, [{ ...PRICE, fingerprint: "f" }, null]);
  assert.deepEqual(hints, ["0x1", null]);
});

test("challenges are bounded by address; a call that is paid for gives one back", async () => {
  const { paywall } = paywallOf(async () => holdOf(10n));
  for (let at = 0; at < CHALLENGES; at++) await collected(paywall, false);
  assert.deepEqual(codesOf([await collected(paywall, false)]), ["rate_limit_exceeded"]);
  assert.equal(await collected(paywall, false, "192.0.2.2"), REQUIRED);
  assert.equal((await collected(paywall, true)).kind, "hold");
  assert.equal(await collected(paywall, false), REQUIRED);
});

test("wrong credentials that come together are counted before any is checked", async () => {
  const checked = Promise.withResolvers<SessionTaken>();
  const { paywall, calls } = paywallOf(() => checked.promise);
  const flood = Array.from({ length: 500 }, () => collected(paywall, true));
  checked.resolve(WRONG);
  const codes = codesOf(await Promise.all(flood));
  assert.deepEqual(
    [calls.length, count(codes, "payment_invalid"), count(codes, "rate_limit_exceeded")],
    [INVALID, INVALID, 500 - INVALID],
  );
});

test("right credentials that pay for nothing are bounded; charged calls are not", async () => {
  const idle = paywallOf(async () => holdOf(0n));
  const paying = paywallOf(async () => holdOf(10n));
  const end = { units: 10n, cu: 1, status: 200, body: null, abandoned: false };
  const settled = async (paywall: CallPaywall): Promise<string> => {
    const taken = await collected(paywall, true);
    if (taken.kind !== "hold") return "refused";
    return (await taken.settle(end)).kind;
  };
  const ends = { idle: [] as string[], paying: [] as string[] };
  for (let at = 0; at < CREDENTIALS + 20; at++) {
    ends.idle.push(await settled(idle.paywall));
    ends.paying.push(await settled(paying.paywall));
  }
  assert.deepEqual([count(ends.idle, "bill"), count(ends.idle, "refused")], [CREDENTIALS, 20]);
  assert.equal(count(ends.paying, "bill"), CREDENTIALS + 20);
});

test("a store that does not answer makes no credential wrong", async () => {
  const { paywall, calls } = paywallOf(() => Promise.reject(new Error("no store")));
  for (let at = 0; at < 2 * INVALID; at++)
    await assert.rejects(collected(paywall, true), /no store/);
  assert.equal(calls.length, 2 * INVALID);
});
