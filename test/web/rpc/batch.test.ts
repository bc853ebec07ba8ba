// A batch over a router the test holds in its hand: order, bounds, cancelling, and room for
// answers, in every order the answers may come in.

import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { pino } from "pino";
import { type Interruption, isCharged } from "../../../src/core/billing/charging.ts";
import { readRequests } from "../../../src/core/rpc/envelope.ts";
import { methodTable } from "../../../src/core/rpc/method-table.ts";
import { Observer } from "../../../src/observe/observer.ts";
import type { RouteRequest } from "../../../src/upstream/engine/call-context.ts";
import type { Router } from "../../../src/upstream/engine/router.ts";
import { ProfileRegistry } from "../../../src/upstream/registry/profile-registry.ts";
import type { VoucherGrant } from "../../../src/web/payment/call-payment.ts";
import { runBatch } from "../../../src/web/rpc/calls/batch.ts";
import { TargetResolver } from "../../../src/web/rpc/target.ts";
import { viewOff } from "../../fakes/caller-view.ts";
import { NO_FILTERS } from "../../fakes/filters.ts";
import { resultOutcome } from "../../fakes/outcome.ts";
import { WHOLE_RANGES } from "../../fakes/providers.ts";
import { fakeRoutedCall } from "../../fakes/routed-call.ts";
import { simulatedWorld } from "../../fakes/runtime.ts";
import { configOf, configText } from "../../fakes/service.ts";

const config = configOf(configText([{ id: "a", url: "http://a.test" }]));
const runtime = simulatedWorld(1);
const observer = new Observer(pino({ level: "silent" }), runtime);
const resolver = new TargetResolver(
  new ProfileRegistry(config.chains, config.profiles, runtime, config.selection),
  observer,
);
const target = resolver.resolve(
  { url: "/rpc/1", defaultProfile: null, within: null, provider: undefined, strategy: undefined },
  null,
);
assert.ok(target.kind === "target");

/** A call that waits for the test to answer it. */
interface Waiting {
  readonly request: RouteRequest;
  readonly answer: (json: string) => void;
  cancelled: boolean;
}

interface Run {
  /** Calls under way, in order of their start. */
  readonly waiting: Waiting[];
  readonly started: () => number;
  /** The answer as text, "" where it has no body; null while there is none. */
  readonly body: () => string | null;
  /** The answer as it is written. */
  readonly pieces: () => readonly Buffer[];
  readonly cancel: (why: Interruption) => void;
  /** Ends this turn of the event loop. */
  readonly endTurn: () => void;
  /** Items that were charged. */
  readonly charged: readonly number[];
}

/** The grant of one item, which records its charge. */
function chargingGrant(index: number, charged: number[]): VoucherGrant {
  return {
    kind: "voucher",
    maxParts: undefined,
    settle(source) {
      if (isCharged(source)) charged.push(index);
      return null;
    },
    release: () => null,
  };
}

function run(
  items: readonly string[],
  concurrency: number,
  reserve: (bytes: number) => boolean = () => true,
): Run {
  const waiting: Waiting[] = [];
  let started = 0;
  let body: string | null = null;
  let written: readonly Buffer[] = [];
  const router: Pick<Router, "route"> = {
    route(request, done) {
      started++;
      const route = fakeRoutedCall({
        request,
        startedAtMs: runtime.now(),
        cancel() {
          one.cancelled = true;
          return { sent: true, countedAsTimeout: false };
        },
      });
      const one: Waiting = {
        request,
        cancelled: false,
        answer(json) {
          waiting.splice(waiting.indexOf(one), 1);
          done({ outcome: resultOutcome(json), source: route.source }, route);
        },
      };
      waiting.push(one);
      return route;
    },
  };
  const bytes = Buffer.from(`[${items.join(",")}]`);
  const envelopes = readRequests(bytes, 0, 1_000) ?? assert.fail("no JSON");
  assert.ok(target.kind === "target");
  const due: (() => void)[] = [];
  const parts = {
    runtime: { ...runtime, atTurnEnd: (run: () => void) => void due.push(run) },
    node: null,
    router,
    observer,
    resolver,
    admission: null,
    filters: NO_FILTERS,
    methods: () => methodTable([]),
    logs: () => WHOLE_RANGES,
    deadlineMs: () => 1_000,
  };
  const charged: number[] = [];
  let admitted = 0;
  const ways = {
    payment: {
      countsParts: false,
      partsOf: () => 1,
      admit: () => chargingGrant(admitted++, charged),
    },
    caller: { key: "test" },
    transport: "http" as const,
    subscriptionMethods: null,
    pacer: null,
    heard: () => {},
  };
  const cancel = runBatch(
    parts,
    {
      bytes,
      items: envelopes,
      target,
      view: viewOff(),
      requestId: "r",
      concurrency,
      room: { take: reserve, giveBack: () => {} },
      ...ways,
    },
    (pieces) => {
      assert.equal(body, null, "answered twice");
      written = pieces ?? [];
      body = pieces === null ? "" : Buffer.concat(pieces).toString();
    },
  );
  return {
    waiting,
    started: () => started,
    body: () => body,
    pieces: () => written,
    cancel,
    endTurn() {
      for (const run of due.splice(0)) run();
    },
    charged,
  };
}

const call = (n: number): string =>
  `{"jsonrpc":"2.0","id":${n},"method":"test_echo","params":[${n}]}`;
const note = (n: number): string => `{"jsonrpc":"2.0","method":"test_echo","params":[${n}]}`;
const local = (n: number): string => `{"jsonrpc":"2.0","id":${n},"method":"eth_chainId"}`;
const junk = (): string => "7";

const item = fc.constantFrom("call", "note", "local", "junk");
const WRITTEN = { call, note, local, junk } as const;

test(
  "answers stand in the order of the items whatever order they come in, and never more than " +
    "the bound are in flight",
  () => {
    fc.assert(
      fc.property(
        fc.array(item, { minLength: 1, maxLength: 30 }),
        fc.integer({ min: 1, max: 9 }),
        fc.infiniteStream(fc.nat()),
        (kinds, concurrency, choices) => {
          const { waiting, body, started, endTurn } = run(
            kinds.map((kind, n) => WRITTEN[kind](n)),
            concurrency,
          );
          while (waiting.length > 0) {
            assert.ok(waiting.length <= concurrency, `${waiting.length} in flight`);
            assert.equal(body(), null);
            const chosen = waiting[(choices.next().value ?? 0) % waiting.length];
            chosen?.answer(JSON.stringify(chosen.request.call.body.toString().length));
            if (waiting.length === 0 || (choices.next().value ?? 0) % 2 === 0) endTurn();
          }
          const remote = kinds.filter((kind) => kind === "call" || kind === "note").length;
          assert.equal(started(), remote, "each routed once");
          const answered = kinds.flatMap((kind, n) =>
            kind === "note" ? [] : [kind === "junk" ? null : n],
          );
          const text = body();
          assert.ok(text !== null, "not answered");
          if (answered.length === 0) assert.equal(text, "");
          else
            assert.deepEqual(
              (JSON.parse(text) as { id: unknown }[]).map((it) => it.id),
              answered,
            );
        },
      ),
      { numRuns: 500 },
    );
  },
);

test("the bound is used in full: as many as allowed start at once, and after each turn again", () => {
  const { waiting, started, endTurn } = run(
    Array.from({ length: 20 }, (_, n) => call(n)),
    8,
  );
  assert.deepEqual([waiting.length, started()], [8, 8]);
  for (let n = 0; n < 3; n++) waiting[0]?.answer("1");
  assert.deepEqual([waiting.length, started()], [5, 8]);
  endTurn();
  assert.deepEqual([waiting.length, started()], [8, 11]);
  for (let n = 0; n < 8; n++) waiting[0]?.answer("1");
  endTurn();
  assert.deepEqual([waiting.length, started()], [8, 19]);
});

test("many answers that come at once do not nest", () => {
  const { body } = run(
    Array.from({ length: 1_000 }, (_, n) => local(n)),
    1,
  );
  assert.equal((JSON.parse(body() ?? "[]") as unknown[]).length, 1_000);
});

test(
  "short answers are written together, long ones as they are, and every byte stands where it " +
    "belongs",
  () => {
    const long = JSON.stringify("x".repeat(10_000));
    const { waiting, body, pieces } = run(
      Array.from({ length: 900 }, (_, n) => call(n)),
      900,
    );
    for (let n = 0; n < 900; n++) waiting[0]?.answer(n % 300 === 150 ? long : `"${"y".repeat(n)}"`);
    const answers = JSON.parse(body() ?? "[]") as { id: number; result: string }[];
    for (const [n, { id, result }] of answers.entries())
      assert.deepEqual([id, result.length], [n, n % 300 === 150 ? 10_000 : n]);
    assert.equal(pieces().filter((it) => it.length > 10_000 && it.length < 10_100).length, 3);
    assert.ok(pieces().length < 30, `${pieces().length} pieces`);
    assert.ok(pieces().every((it) => it.length <= 65_536));
  },
);

test("no item may stream, so that the answer is one document", () => {
  const { waiting } = run([call(1), call(2)], 8);
  for (const { request } of waiting) assert.equal(request.mayStream, false);
});

test("a batch whose caller is gone ends what is in flight and starts nothing more", () => {
  const { waiting, started, cancel, endTurn, body, charged } = run(
    Array.from({ length: 20 }, (_, n) => call(n)),
    3,
  );
  waiting[1]?.answer("1");
  endTurn();
  waiting[0]?.answer("1");
  cancel("left");
  endTurn();
  assert.ok(waiting.every((it) => it.cancelled));
  assert.deepEqual([waiting.length, started(), body()], [2, 4, null]);
  assert.deepEqual(charged, [2, 3]);
});

test("a batch that the service cuts off charges nothing that was in flight", () => {
  const { waiting, cancel, charged } = run([call(1), call(2)], 8);
  cancel("cut");
  assert.ok(waiting.every((it) => it.cancelled));
  assert.deepEqual(charged, []);
});

test(
  "an answer without room becomes an error of that item alone; one as short as that error is " +
    "told",
  () => {
    const { waiting, body } = run([call(1), call(2), call(3)], 8, (bytes) => bytes < 10);
    waiting[0]?.answer("1");
    waiting[0]?.answer(JSON.stringify("x".repeat(2_000)));
    waiting[0]?.answer("3");
    const [first, second, third] = JSON.parse(body() ?? "[]") as {
      id: number;
      result?: unknown;
      error?: { data: { code: string } };
    }[];
    assert.deepEqual(
      [first?.result, second?.id, second?.error?.data.code, third?.result],
      [1, 2, "unavailable", 3],
    );
  },
);
