// What callers may know of routing: managed pools show aliases and no exclusions, everyone sees
// plain numbers, nobody sees an address or a secret.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Attempt, Channel } from "../../../src/core/provider/attempt.ts";
import type { Provider } from "../../../src/core/provider/profile.ts";
import type { AnswerSource } from "../../../src/core/routing/answer-source.ts";
import type { Plan } from "../../../src/core/routing/plan.ts";
import { evidenceOf as evidence } from "../../../src/web/rpc/answers/evidence.ts";
import type { Reply } from "../../../src/web/rpc/answers/reply.ts";
import { fakeProvider, fakeSet, verdict } from "../../fakes/providers.ts";

const SECRET = "s3cr3t-in-the-address";
const secretive = (index: number) =>
  fakeProvider(index, {
    url: `https://node/${SECRET}`,
    headers: { Authorization: `Bearer ${SECRET}` },
  });
const [a, b, c] = [secretive(0), secretive(1), secretive(2)] as const;

const on = (provider: Provider): Channel => ({ provider, transport: "http" });

const refused: Attempt = {
  provider: a,
  transport: "http",
  latencyMs: 12.345678,
  verdict: { ...verdict({ kind: "cooldown", ms: 1 }), category: "rate_limit" },
  code: 429,
};
const answered: Attempt = {
  provider: b,
  transport: "http",
  latencyMs: 20.5,
  verdict: null,
  code: null,
};

/** A reply of a provider, and how long it took. */
interface Given {
  readonly plan: Plan;
  readonly attempts: readonly Attempt[];
  readonly source: AnswerSource;
  readonly endToEndMs: number;
}

function input(
  managed: boolean,
  overrides: Partial<Given> = {},
): Given & { readonly managed: boolean } {
  return {
    managed,
    plan: { candidates: [on(a), on(b)], excluded: [{ provider: c, reason: "lagging" }] },
    attempts: [refused, answered],
    endToEndMs: 35,
    source: { kind: "provider", provider: b },
    ...overrides,
  };
}

function evidenceOf({ managed, plan, attempts, source, endToEndMs }: ReturnType<typeof input>) {
  const target = {
    strategy: "fastest",
    chain: fakeSet([]).chain,
    profile: { slug: managed ? "public" : "team", owner: null, managed, chains: new Map() },
    tracker: { health: () => ({ breaker: "closed" }), plan: () => plan },
    pin: null,
  };
  const traces = attempts.map((attempt) => ({ attempt }));
  const route = { request: {}, plan, traces, cacheUse: null, at: null, startedAtMs: 0 };
  const reply = { requestId: "req-1", transport: "http", target, route, source, billing: null };
  return evidence(reply as unknown as Reply, { runtime: { now: () => endToEndMs }, node: null });
}

test("the region of a provider is shown where it is stated, also in a managed pool", () => {
  const near = fakeProvider(1, { region: "eu-west" });
  const attempt = { ...answered, provider: near };
  const source = { kind: "provider", provider: near } as const;
  for (const managed of [true, false]) {
    const id = managed ? near.alias : near.id;
    const shown = evidenceOf(input(managed, { attempts: [refused, attempt], source }));
    assert.deepEqual(shown.selected_provider, { id, region: "eu-west" });
    assert.deepEqual(
      shown.attempts.map(({ region }) => region),
      [undefined, "eu-west"],
    );
  }
});

test("a shared request and waived lag are told; in a managed pool nothing of other callers", () => {
  const attempts = [refused, { ...answered, batched: 7 }];
  const plan = { candidates: [on(b)], excluded: [], lagWaived: true } as const;
  for (const managed of [true, false]) {
    const shown = evidenceOf(input(managed, { attempts, plan }));
    assert.deepEqual(
      shown.attempts.map(({ batched }) => batched),
      [undefined, managed ? undefined : 7],
    );
    assert.equal(shown.lag_waived, true);
  }
  assert.equal("lag_waived" in evidenceOf(input(false)), false);
});

test("an operator's profile shows ids, every attempt with its outcome, and who was left out and why", () => {
  assert.deepEqual(evidenceOf(input(false)), {
    version: "1.0",
    request_id: "req-1",
    strategy: "fastest",
    chain_id: 1,
    transport: "http",
    profile: "team",
    candidate_providers: ["p0", "p1"],
    selected_provider: { id: "p1" },
    upstream_latency_ms: 20.5,
    svc_overhead_ms: 2.154,
    end_to_end_latency_ms: 35,
    retries: 1,
    circuit_breaker_state: "closed",
    attempts: [
      {
        provider: "p0",
        transport: "http",
        outcome: "error",
        category: "rate_limit",
        code: 429,
        latency_ms: 12.346,
      },
      {
        provider: "p1",
        transport: "http",
        outcome: "success",
        category: null,
        code: null,
        latency_ms: 20.5,
      },
    ],
    excluded: [{ provider: "p2", reason: "lagging" }],
  });
});

test("an answer from a filter says that no provider was asked for it", () => {
  assert.equal(
    evidenceOf(input(false, { source: { kind: "shared", provider: null }, attempts: [] })).source,
    "shared",
  );
  assert.equal("source" in evidenceOf(input(false)), false);
});

test("an answer joined from parts names its first attempts, and retries are those that failed", () => {
  const attempts = [refused, ...Array.from({ length: 30 }, () => answered)];
  const shown = evidenceOf(
    input(false, { source: { kind: "merged", providers: [a, b] }, attempts }),
  );
  assert.deepEqual(
    [shown.source, shown.selected_provider, shown.upstream_calls, shown.retries],
    ["merged", null, 31, 1],
  );
  assert.equal(shown.attempts.length, 16);
  assert.equal("upstream_calls" in evidenceOf(input(false)), false);
});

test("a managed pool shows aliases everywhere and nobody who was left out", () => {
  const shown = evidenceOf(input(true));
  assert.deepEqual(shown.candidate_providers, ["a0", "a1"]);
  assert.deepEqual(shown.selected_provider, { id: "a1" });
  assert.deepEqual(
    shown.attempts.map((it) => it.provider),
    ["a0", "a1"],
  );
  assert.equal("excluded" in shown, false);
  assert.doesNotMatch(JSON.stringify(shown), /"p\d"/);
});

test("no address, header or secret of a provider is shown in either form", () => {
  for (const managed of [true, false])
    assert.doesNotMatch(
      JSON.stringify(evidenceOf(input(managed))),
      new RegExp(`${SECRET}|https?://|Bearer`),
    );
});

test("without an attempt there is no latency and no provider, and nothing is a made-up zero", () => {
  const shown = evidenceOf(
    input(false, {
      attempts: [],
      source: { kind: "none" },
      plan: { candidates: [], excluded: [] },
    }),
  );
  assert.deepEqual(
    [
      shown.upstream_latency_ms,
      shown.selected_provider,
      shown.circuit_breaker_state,
      shown.retries,
    ],
    [null, null, null, 0],
  );
  assert.deepEqual(
    [shown.svc_overhead_ms, shown.attempts, shown.candidate_providers],
    [35, [], []],
  );
});

test("clocks that disagree by a hair never make the overhead negative", () => {
  assert.equal(evidenceOf(input(false, { endToEndMs: 30 })).svc_overhead_ms, 0);
});
