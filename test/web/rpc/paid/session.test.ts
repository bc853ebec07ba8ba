// How a request for paid calls ends, over a paywall and a router that the test holds in its hand:
// its hold ends once, charged by the table of charges, at whatever moment its caller leaves, the
// service cuts it, or a bug ends it.

import assert from "node:assert/strict";
import { test } from "node:test";
import { pino } from "pino";
import type { Interruption } from "../../../../src/core/billing/charging.ts";
import { tariffOf } from "../../../../src/core/billing/price.ts";
import type { AnswerSource } from "../../../../src/core/routing/answer-source.ts";
import { methodTable } from "../../../../src/core/rpc/method-table.ts";
import { Observer } from "../../../../src/observe/observer.ts";
import type { Hold, PaidCallEnd } from "../../../../src/payments/session/sessions.ts";
import type { Router } from "../../../../src/upstream/engine/router.ts";
import { ProfileRegistry } from "../../../../src/upstream/registry/profile-registry.ts";
import { trustedProxiesOf } from "../../../../src/web/http/client-address.ts";
import { KEYLESS } from "../../../../src/web/payment/call-payment.ts";
import type { CallPrice, PaidCall } from "../../../../src/web/payment/call-paywall.ts";
import { readDirectives } from "../../../../src/web/rpc/directives.ts";
import { serveSession } from "../../../../src/web/rpc/paid/session.ts";
import type { SessionAnswer } from "../../../../src/web/rpc/paid/session-calls.ts";
import { TargetResolver } from "../../../../src/web/rpc/target.ts";
import { viewOff } from "../../../fakes/caller-view.ts";
import { NO_FILTERS } from "../../../fakes/filters.ts";
import { resultOutcome } from "../../../fakes/outcome.ts";
import { WHOLE_RANGES } from "../../../fakes/providers.ts";
import { fakeRoutedCall } from "../../../fakes/routed-call.ts";
import { simulatedWorld } from "../../../fakes/runtime.ts";
import { configOf, configText } from "../../../fakes/service.ts";

const URL_PATH = "/rpc/session/load-balanced/ethereum";
const GAS_PRICE = '{"jsonrpc":"2.0","id":1,"method":"eth_gasPrice"}';
const FACTORS = { "load-balanced": 1, "latency-weighted": 1, fastest: 1, priority: 1, cheapest: 1 };

const config = configOf(configText([{ id: "a", url: "http://a.test" }]));
const runtime = simulatedWorld(1);
const observer = new Observer(pino({ level: "silent" }), runtime);
const registry = new ProfileRegistry(config.chains, config.profiles, runtime, config.selection);
const resolver = new TargetResolver(registry, observer);
const tariff = tariffOf({
  weights: {},
  notificationCu: 3,
  nanoPerCu: 5_000,
  cachePercent: 50,
  factors: FACTORS,
});

/** Starts a request. Its payment is taken once the test says so, its calls end likewise. */
function sessionFixture(body: string, failing: Error | null = null, fromCache = false) {
  const target = resolver.resolve(
    { url: URL_PATH, defaultProfile: null, within: null, provider: undefined, strategy: undefined },
    null,
  );
  assert.ok(target.kind === "target");
  const taken = Promise.withResolvers<void>();
  const prices: (CallPrice | null)[] = [];
  const ends: (PaidCallEnd | "released")[] = [];
  const running: (() => void)[] = [];
  const heard: (SessionAnswer | "failed")[] = [];
  const hold: Hold = {
    kind: "hold",
    release: () => void ends.push("released"),
    async settle(end) {
      ends.push(end);
      const rateLimitStatus = { name: "channel", burst: 1, windowS: 1, remaining: 1, resetS: 1 };
      const { cu, units: chargedUnits } = end;
      return { kind: "bill", cu, chargedUnits, leftUnits: 0n, rateLimitStatus, headers: [] };
    },
  };
  const [provider] = target.tracker.set.providers;
  assert.ok(provider !== undefined);
  const source: AnswerSource = { kind: fromCache ? "cache" : "provider", provider };
  const router: Pick<Router, "route"> = {
    route(request, done) {
      if (failing !== null) throw failing;
      const route = fakeRoutedCall({
        request,
        startedAtMs: runtime.now(),
        cancel: () => ({ sent: true, countedAsTimeout: false }),
      });
      running.push(() => done({ outcome: resultOutcome('"0x1"'), source }, route));
      return route;
    },
  };
  const cancel = serveSession(
    {
      runtime,
      node: null,
      router,
      observer,
      resolver,
      admission: null,
      filters: NO_FILTERS,
      methods: () => methodTable([]),
      logs: () => WHOLE_RANGES,
      deadlineMs: () => 1_000,
      limits: config.limits,
      proxies: trustedProxiesOf([]),
      payPerCall: {
        tariff,
        paywall: {
          async collect(_request, price): Promise<PaidCall> {
            prices.push(price);
            await taken.promise;
            return hold;
          },
        },
      },
    },
    {
      exchange: {
        requestId: "req-1",
        connection: {},
        url: URL_PATH,
        address: "192.0.2.1",
        payment: { kind: "payment", given: { protocol: "mpp", text: "Payment e30" } },
        header: () => undefined,
        directives: readDirectives(URL_PATH, () => undefined),
      } as never,
      message: {
        bytes: Buffer.from(body),
        target,
        payment: KEYLESS,
        caller: { key: "test" },
        requestId: "req-1",
        view: viewOff(),
        transport: "http",
        subscriptionMethods: null,
        room: { take: () => true, giveBack: () => {} },
      },
    },
    { answered: (answer) => heard.push(answer), failed: () => heard.push("failed") },
  );
  const settle = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));
  return {
    prices,
    ends,
    running,
    heard,
    /** The payment is taken: the calls begin. */
    async take() {
      taken.resolve();
      await settle();
    },
    /** The next call that was begun is answered. */
    async answer() {
      running.shift()?.();
      await settle();
    },
    async end(why: Interruption) {
      cancel(why);
      await settle();
    },
  };
}

const batchOf = (count: number): string => `[${Array(count).fill(GAS_PRICE).join(",")}]`;
const unitsOf = ({ prices }: { readonly prices: readonly (CallPrice | null)[] }): bigint =>
  prices[0]?.units ?? 0n;

test("a delivered call is charged its price, once, and is answered after that", async () => {
  const request = sessionFixture(GAS_PRICE);
  await request.take();
  await request.answer();
  const [end] = request.ends;
  assert.ok(request.ends.length === 1 && typeof end === "object");
  assert.deepEqual([end.units, end.status, end.abandoned], [unitsOf(request), 200, false]);
  assert.ok(end.units > 0n);
  await request.end("left");
  assert.equal(request.ends.length, 1, "a caller that leaves with its answer pays no second time");
  assert.equal(request.heard.length, 1);
});

test("a kept answer is charged its share of the price that was held, and tells it", async () => {
  const request = sessionFixture(batchOf(2), null, true);
  await request.take();
  await request.answer();
  await request.answer();
  const [end] = request.ends;
  assert.ok(typeof end === "object");
  // eth_gasPrice: 3 CU, of which a half is 2: 10 base units in place of 15.
  assert.deepEqual([unitsOf(request), end.units, end.cu], [30n, 20n, 4]);
});

test("a caller that leaves while its payment is taken pays nothing, and nothing is sent", async () => {
  const request = sessionFixture(GAS_PRICE);
  await request.end("left");
  await request.take();
  assert.deepEqual([request.ends, request.running.length], [["released"], 0]);
  assert.deepEqual(request.heard, []);
});

for (const [why, share] of [
  ["left", 3n],
  ["cut", 0n],
] as const) {
  test(`a batch of three that ends early (${why}) with one answer is charged for ${share}`, async () => {
    const request = sessionFixture(batchOf(3));
    await request.take();
    await request.answer();
    await request.end(why);
    const expected = (unitsOf(request) / 3n) * share;
    const charged = request.ends.map((end) => (end === "released" ? 0n : end.units));
    assert.deepEqual(charged, [expected]);
    const [end] = request.ends;
    assert.equal(end === "released" || end?.abandoned === true, true);
    assert.deepEqual(request.heard, []);
  });
}

test("a bug while the calls begin releases the hold, and costs its caller nothing", async () => {
  for (const body of [GAS_PRICE, batchOf(3)]) {
    const request = sessionFixture(body, new Error("a bug"));
    await request.take();
    assert.deepEqual([request.ends, request.heard], [["released"], ["failed"]], body);
  }
});
