// Requests of a socket beyond those in flight: they wait in the order of their arrival, bounded by
// bytes, by their deadlines and by the caller's rate, and leave nothing behind however they end.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { BATCH_DEADLINE_MS } from "../../../src/web/rpc/pacer.ts";
import { callsFixture, NOTHING_LEFT, numbered, type Told } from "./calls-fixture.ts";

const upTo = (count: number): readonly number[] => Array.from({ length: count }, (_, n) => n);
const idsOf = (told: readonly (Told | readonly Told[])[]): readonly unknown[] =>
  told.flat().map(({ id }) => id);

test("the 33rd request in flight waits, and starts when one ends; order is that of arrival", () => {
  const { send, held, routed, told, leftovers } = callsFixture();
  for (const id of upTo(100)) send(numbered(id));
  assert.deepEqual([routed, told()], [upTo(32), []]);
  held[7]?.answer();
  assert.deepEqual([routed, idsOf(told())], [upTo(33), [7]]);
  while (held.length > 0) held.at(-1)?.answer();
  assert.deepEqual(routed, upTo(100));
  assert.deepEqual(
    idsOf(told()).toSorted((a, b) => Number(a) - Number(b)),
    upTo(100),
  );
  assert.deepEqual(leftovers(), NOTHING_LEFT);
});

test("a thousand requests at once are all answered", () => {
  const { send, held, routed, told, leftovers } = callsFixture();
  for (const id of upTo(1_000)) send(numbered(id));
  assert.equal(held.length, 32);
  while (held.length > 0) held[0]?.answer();
  assert.deepEqual([routed, idsOf(told())], [upTo(1_000), upTo(1_000)]);
  assert.deepEqual(leftovers(), NOTHING_LEFT);
});

test("a batch and a notification wait like a call, and count as one request each", () => {
  const { send, held, routed, told } = callsFixture({ limits: { max_socket_requests: 1 } });
  send(numbered(1));
  send([numbered(2), numbered(3)]);
  send({ jsonrpc: "2.0", method: "eth_call", params: [4] });
  send(numbered(5, "eth_chainId"));
  assert.deepEqual(routed, [1]);
  held[0]?.answer();
  assert.deepEqual(routed, [1, 2, 3]);
  held[0]?.answer();
  assert.deepEqual(routed, [1, 2, 3]);
  held[0]?.answer();
  assert.deepEqual(routed, [1, 2, 3, 4]);
  assert.deepEqual(idsOf(told()), [1, 2, 3]);
  held[0]?.answer();
  assert.deepEqual(idsOf(told()), [1, 2, 3, 5]);
});

test("waiting requests that are answered at once leave the event loop its turns", async () => {
  const { send, held, told, leftovers } = callsFixture({ limits: { max_socket_requests: 1 } });
  send(numbered(0));
  for (const id of upTo(2_500).slice(1)) send(numbered(id, "eth_chainId"));
  held[0]?.answer();
  assert.equal(told().length, 1_001);
  for (let turn = 0; turn < 2; turn++) await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(idsOf(told()), upTo(2_500));
  assert.deepEqual(leftovers(), NOTHING_LEFT);
});

test("a higher limit after a reload lets no request overtake those that wait", () => {
  const { send, held, routed, limits } = callsFixture({ limits: { max_socket_requests: 1 } });
  for (const id of upTo(3)) send(numbered(id));
  limits.maxSocketRequests = 3;
  send(numbered(3));
  assert.deepEqual(routed, [0]);
  held[0]?.answer();
  assert.deepEqual(routed, upTo(4));
});

test("a request that waited past the deadline of its method is refused with its id, unsent", () => {
  const { send, held, routed, told, runtime, leftovers, calls } = callsFixture({
    limits: { max_socket_requests: 1 },
  });
  send(numbered(1));
  send(numbered(2));
  send(numbered(3, "eth_gasPrice"));
  send({ jsonrpc: "2.0", method: "eth_gasPrice", params: [4] });
  runtime.advance(990);
  assert.deepEqual(told(), []);
  runtime.advance(50);
  const [refused, ...others] = told();
  assert.ok(refused !== undefined && "id" in refused && others.length === 0);
  assert.deepEqual(
    [refused.id, refused.error?.code, refused.error?.data.code, refused.error?.data.retryable],
    [3, -32005, "rate_limit_exceeded", true],
  );
  held[0]?.answer();
  assert.deepEqual(routed, [1, 2]);
  send(numbered(5));
  runtime.advance(10_050);
  assert.deepEqual(idsOf(told()), [3, 1, 5]);
  calls.close("left");
  assert.deepEqual(leftovers(), NOTHING_LEFT);
});

test("reading stops while what is in flight and waits fills the socket, and goes on afterwards", () => {
  const { send, held, state, budget } = callsFixture({
    limits: { max_socket_requests: 1, max_socket_bytes: 11_000 },
  });
  const large = (id: number) => ({ ...numbered(id), more: "x".repeat(4_000) });
  send(large(1));
  send(large(2));
  assert.equal(state.isFull, false);
  send(large(3));
  assert.deepEqual([state.isFull, budget.used > 12_000], [true, true]);
  held[0]?.answer();
  assert.equal(state.isFull, false);
  // Small ones count for the memory that their records take.
  for (const id of upTo(10)) send(numbered(id));
  assert.equal(state.isFull, true);
  while (held.length > 0) held[0]?.answer();
  assert.deepEqual([state.isFull, budget.used], [false, 0]);
});

test("what waits counts in the share of its caller, beyond which a request is refused", () => {
  const { send, held, told, leftovers } = callsFixture({
    limits: { max_socket_requests: 1, max_caller_bytes: 5_000 },
  });
  for (const id of upTo(8)) send(numbered(id));
  const refused = told().flat();
  assert.deepEqual(idsOf(refused), [5, 6, 7]);
  assert.ok(refused.every(({ error }) => error?.data.code === "unavailable"));
  while (held.length > 0) held[0]?.answer();
  assert.deepEqual(idsOf(told().slice(3)), [0, 1, 2, 3, 4]);
  assert.deepEqual(leftovers(), NOTHING_LEFT);
});

test("a client that does not read its answers has no waiting request started", () => {
  const { send, held, routed, connection, calls } = callsFixture({
    limits: { max_socket_requests: 2 },
  });
  for (const id of upTo(5)) send(numbered(id));
  connection.isBehind = true;
  while (held.length > 0) held[0]?.answer();
  send(numbered(5));
  assert.deepEqual(routed, [0, 1]);
  connection.isBehind = false;
  calls.resume();
  while (held.length > 0) held[0]?.answer();
  assert.deepEqual(routed, upTo(6));
});

for (const rate of [undefined, { perSecond: 10, burst: 40 }])
  test(`closing a socket ends what waits, with ${rate === undefined ? "no" : "a"} rate`, () => {
    const { send, calls, held, leftovers, grants, runtime, routed } = callsFixture(
      rate === undefined ? {} : { rate },
    );
    for (const id of upTo(60)) send(id % 7 === 0 ? [numbered(id)] : numbered(id));
    while (held.length > 20) held[0]?.answer();
    const started = routed.length;
    const cancelled = [...held];
    calls.close("left");
    assert.ok(cancelled.every(({ isCancelled }) => isCancelled));
    assert.deepEqual([leftovers(), grants.given - grants.ended], [NOTHING_LEFT, 0]);
    runtime.advance(60_000);
    assert.equal(routed.length, started);
  });

test("a stopping service refuses what waits at once, and finishes what is in flight", () => {
  const { send, calls, held, told, activity, leftovers } = callsFixture();
  for (const id of upTo(40)) send(numbered(id));
  activity.draining = true;
  calls.refuseWaiting();
  assert.deepEqual(
    told()
      .flat()
      .map(({ id, error }) => [id, error?.data.code]),
    upTo(8).map((n) => [32 + n, "unavailable"]),
  );
  while (held.length > 0) held[0]?.answer();
  assert.deepEqual(idsOf(told().slice(8)), upTo(32));
  assert.deepEqual(leftovers(), NOTHING_LEFT);
});

test("a thousand requests over the caller's rate are paced, all answered, in order", () => {
  const { send, state, runtime, routed, routedAtMs, told, leftovers, batches } = callsFixture({
    rate: { perSecond: 100, burst: 200 },
  });
  state.isEchoing = true;
  const startMs = runtime.now();
  for (const id of upTo(1_000)) send(numbered(id, "eth_gasPrice"));
  assert.deepEqual([routed.length, batches.size], [200, 1]);
  runtime.advance(8_100);
  assert.deepEqual([routed, idsOf(told())], [upTo(1_000), upTo(1_000)]);
  assert.ok(told().every((it) => "result" in it));
  for (const [n, atMs] of routedAtMs.entries())
    assert.ok(atMs - startMs >= (n - 200) * 10 - 1, `request ${n} was ahead of the rate`);
  assert.deepEqual(leftovers(), NOTHING_LEFT);
});

test("what the rate has not admitted within the deadline of a batch is refused one by one", () => {
  const { send, state, runtime, told, leftovers } = callsFixture({
    rate: { perSecond: 1, burst: 10 },
  });
  state.isEchoing = true;
  for (const id of upTo(60)) send(numbered(id));
  runtime.advance(15_000);
  for (const id of upTo(60)) send(numbered(100 + id));
  runtime.advance(BATCH_DEADLINE_MS - 15_000 - 100);
  assert.ok(told().every((it) => "result" in it));
  runtime.advance(200);
  const refused = told()
    .flat()
    .filter(({ error }) => error !== undefined);
  // Ten at once and one a second; those that came later may still wait.
  assert.ok(refused.length >= 20 && refused.length <= 21, `${refused.length} refused`);
  assert.ok(refused.every(({ id }) => Number(id) >= 39 && Number(id) < 60));
  for (const { error } of refused) {
    assert.deepEqual([error?.code, error?.data.code], [-32005, "rate_limit_exceeded"]);
    assert.ok((error?.data.retry_after_ms ?? 0) > 0);
  }
  runtime.advance(15_000);
  assert.equal(told().length, 120);
  assert.deepEqual(leftovers(), NOTHING_LEFT);
});

test("a socket waits for its rate beside one batch of its account; a third is refused", () => {
  const { send, state, told, batches, keyContext, leftovers, runtime } = callsFixture({
    rate: { perSecond: 10, burst: 1 },
  });
  assert.ok(keyContext !== null);
  state.isEchoing = true;
  const leave = [1, 2].map((n) =>
    batches.enter(keyContext.account, { aloneMs: () => n, latestMs: () => n }),
  );
  send(numbered(1));
  send(numbered(2));
  assert.deepEqual(
    told()
      .flat()
      .map(({ error }) => error?.data.code ?? "ok"),
    ["ok", "rate_limit_exceeded"],
  );
  leave[0]?.();
  send(numbered(3));
  assert.equal(told().length, 2);
  runtime.advance(200);
  assert.deepEqual(idsOf(told()), [1, 2, 3]);
  leave[1]?.();
  assert.deepEqual(leftovers(), NOTHING_LEFT);
});

test("the place among the waiting batches of the account is free when the last request gives up", () => {
  const { send, held, told, batches, runtime, calls, leftovers } = callsFixture({
    limits: { max_socket_requests: 1 },
    rate: { perSecond: 1, burst: 1 },
  });
  send(numbered(1));
  held[0]?.answer();
  send(numbered(2));
  send(numbered(3));
  runtime.advance(1_100);
  assert.deepEqual([held.length, batches.size], [1, 1]);
  runtime.advance(BATCH_DEADLINE_MS);
  assert.deepEqual([idsOf(told()), batches.size], [[1, 3], 0]);
  calls.close("left");
  assert.deepEqual(leftovers(), NOTHING_LEFT);
});

const step = fc.oneof(
  { weight: 5, arbitrary: fc.constant("call" as const) },
  { weight: 1, arbitrary: fc.constant("short" as const) },
  { weight: 1, arbitrary: fc.constant("note" as const) },
  { weight: 1, arbitrary: fc.constant("local" as const) },
  { weight: 1, arbitrary: fc.constant("batch" as const) },
  { weight: 4, arbitrary: fc.nat(50).map((n) => ({ answer: n })) },
  { weight: 1, arbitrary: fc.nat(4_000).map((n) => ({ advance: n })) },
);

test("whatever comes and ends in whatever order: one answer each, started in order, nothing left", () => {
  const shape = fc.record({
    inFlight: fc.integer({ min: 1, max: 4 }),
    rate: fc.option(fc.record({ perSecond: fc.integer({ min: 1, max: 50 }), burst: fc.nat(9) }), {
      nil: undefined,
    }),
    steps: fc.array(step, { maxLength: 120 }),
    isCut: fc.boolean(),
  });
  fc.assert(
    fc.property(shape, ({ inFlight, rate, steps, isCut }) => {
      const it = callsFixture({
        limits: { max_socket_requests: inFlight, max_socket_bytes: 8_000 },
        ...(rate === undefined ? {} : { rate: { ...rate, burst: rate.burst + 1 } }),
      });
      const expected: number[] = [];
      let id = 0;
      for (const one of steps) {
        if (typeof one === "object" && "advance" in one) it.runtime.advance(one.advance);
        else if (typeof one === "object") it.held[one.answer % it.held.length]?.answer();
        else if (one === "note") it.send({ jsonrpc: "2.0", method: "eth_call", params: [++id] });
        else {
          expected.push(++id);
          const method = one === "short" ? "eth_gasPrice" : "eth_call";
          const request = numbered(id, one === "local" ? "eth_chainId" : method);
          // Items of a batch wait for tokens within it, beside the requests behind it.
          it.send(one === "batch" && rate === undefined ? [request] : request);
        }
        assert.ok(it.held.length <= inFlight);
      }
      if (isCut) it.calls.close("left");
      for (let n = 0; n < 1_000 && (it.held.length > 0 || it.activity.active > 0); n++) {
        it.held[0]?.answer();
        it.runtime.advance(100);
      }
      const told = idsOf(it.told());
      assert.equal(new Set(told).size, told.length);
      if (!isCut)
        assert.deepEqual(
          told.toSorted((a, b) => Number(a) - Number(b)),
          expected,
        );
      assert.deepEqual(
        it.routed,
        it.routed.toSorted((a, b) => Number(a) - Number(b)),
      );
      assert.deepEqual([it.leftovers(), it.state.isFull], [NOTHING_LEFT, false]);
      assert.deepEqual([it.state.closed, it.grants.given - it.grants.ended], [null, 0]);
    }),
    { numRuns: 300 },
  );
});
