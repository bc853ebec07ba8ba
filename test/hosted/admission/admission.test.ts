// The gate: who is served how, who pays, and that every hold ends as a charge or is given back.
// Credit is scripted here; the real one has tests of its own.
import assert from "node:assert/strict";
import { test } from "node:test";
import { customServiceTiers, LAPSED } from "../../../src/core/billing/access.ts";
import { tariffOf } from "../../../src/core/billing/price.ts";
import { type LimitSharing, SharedLimit } from "../../../src/core/billing/shared-limit.ts";
import { byStrategy } from "../../../src/core/routing/strategy.ts";
import { methodOf } from "../../../src/core/rpc/method.ts";
import {
  Admission,
  type AdmissionParts,
  type AdmissionRequest,
  type AdmissionSettings,
  type Refusal,
  type Wait,
} from "../../../src/hosted/admission/admission.ts";
import type { Grant } from "../../../src/hosted/admission/grant.ts";
import { Wallet } from "../../../src/hosted/credit/wallet.ts";
import type { KeyCache } from "../../../src/hosted/keys/key-cache.ts";
import { type KeyContext, type SocketEnd, UNBOUND } from "../../../src/hosted/keys/key-context.ts";
import type { OwnProfiles } from "../../../src/hosted/profiles/custom-access.ts";
import type { Contact } from "../../../src/shared/changes/contact.ts";
import { simulatedWorld } from "../../fakes/runtime.ts";

const DAY_MS = 86_400_000;
const SETTINGS: AdmissionSettings = {
  keyless: false,
  tariff: tariffOf({
    factors: byStrategy(({ factor }) => factor),
    nanoPerCu: 5_000,
    cachePercent: 100,
    notificationCu: 3,
    weights: {},
  }),
  buckets: {
    managed: { perSecond: 100, burst: 200 },
    reduced: { perSecond: 30, burst: 60 },
    public: { perSecond: 30, burst: 60 },
    custom: { perSecond: 2, burst: 2 },
  },
  freeCuPerMonth: 100,
  fallbackMs: 30 * DAY_MS,
};

interface Purse {
  availableN: number;
  state: Wallet["state"];
  exhaustedAtMs: number | null;
  wasEmpty: boolean;
  /** Nothing is held any more, whatever there is. */
  isStopped: boolean;
  freeUsedCu: number | null;
  freeHeldCu: number;
  cachedCu: number;
  readonly settled: {
    readonly method: string;
    readonly cu: number;
    readonly chargeN: number;
    readonly freeCu: number;
  }[];
}

interface Fixture {
  readonly admission: Admission;
  readonly runtime: ReturnType<typeof simulatedWorld>;
  readonly purse: Purse;
  readonly keyContext: KeyContext;
  readonly closed: SocketEnd[];
  /** Has rate limits shared with other nodes from now on. */
  share(sharing: LimitSharing): void;
  ask(want?: Partial<AdmissionRequest>, waits?: number): Grant | Refusal | Wait;
}

function createFixture(
  availableN: number,
  about: Partial<KeyContext> = {},
  payer: Partial<KeyContext["account"]> = {},
  cachePercent = 100,
): Fixture {
  const runtime = simulatedWorld(1);
  const purse: Purse = {
    availableN,
    state: availableN > 0 ? "open" : "empty",
    exhaustedAtMs: null,
    wasEmpty: false,
    isStopped: false,
    freeUsedCu: 0,
    freeHeldCu: 0,
    cachedCu: 0,
    settled: [],
  };
  const wallet = Object.defineProperties(new Wallet("acc_1", { nowMs: 0, isKept: true }), {
    availableN: { get: () => purse.availableN },
    state: { get: () => purse.state },
    exhaustedAtMs: { get: () => purse.exhaustedAtMs },
    wasEmpty: { get: () => purse.wasEmpty },
  });
  const credit: AdmissionParts["credit"] = {
    wallet: () => wallet,
    hold(_, amountN) {
      if (purse.availableN < amountN || purse.isStopped) return false;
      purse.availableN -= amountN;
      return true;
    },
    holdFree(_, cu) {
      purse.freeHeldCu += cu;
    },
    release(_, amountN, freeCu = 0) {
      purse.availableN += amountN;
      purse.freeHeldCu -= freeCu;
    },
    settle(_, { method, cu, heldN, chargeN, freeCu, heldFreeCu = freeCu, isCached = false }) {
      purse.availableN += heldN - chargeN;
      purse.freeHeldCu -= heldFreeCu;
      if (isCached) purse.cachedCu += cu;
      purse.freeUsedCu = (purse.freeUsedCu ?? 0) + freeCu;
      purse.settled.push({ method, cu, chargeN, freeCu });
    },
    refilled: () => () => {},
    estimateN: () => purse.availableN,
    freeUsedCu: () => (purse.freeUsedCu === null ? null : purse.freeUsedCu + purse.freeHeldCu),
  };
  const closed: SocketEnd[] = [];
  const keyContext: KeyContext = {
    kind: "key",
    keyId: "key_1",
    account: { id: "acc_1", kind: "account", paid: null, own: null, fullAtMs: null, ...payer },
    defaultProfile: "premium",
    consistency: null,
    bounds: UNBOUND,
    openSockets: new Set([
      { profile: "premium", custom: false, close: (reason: SocketEnd) => void closed.push(reason) },
    ]),
    checked: 0,
    ...about,
  };
  let contact: Contact = "heard";
  const keyCache: AdmissionParts["keyCache"] & Pick<KeyCache, "setContact"> = {
    identify: () => null,
    find: () => () => {},
    setContact(next) {
      contact = next;
    },
    get contact() {
      return contact;
    },
    eachWithSockets: (run) => run(keyContext),
    addSocket: () => () => {},
  };
  const profiles = { prepare: () => () => {}, touch: () => {} };
  const parts = {
    runtime,
    settings: { ...SETTINGS, tariff: { ...SETTINGS.tariff, cachePercent } },
    credit,
    keyCache,
    profiles,
    sharing: noSharing(),
  };
  const admission = new Admission(parts);
  const share: Fixture["share"] = (sharing) => {
    parts.sharing = sharing;
  };
  const ask: Fixture["ask"] = (want = {}, waits = 0) =>
    admission.admit(
      keyContext,
      { profile: "premium", method: methodOf("eth_call"), strategy: "fastest", ...want },
      waits,
    );
  return { admission, runtime, purse, keyContext, closed, ask, share };
}

function noSharing(): LimitSharing | null {
  return null;
}

function granted(it: Grant | Refusal | Wait): Grant {
  assert.ok(it.kind === "grant", it.kind);
  return it;
}

function refused(it: Grant | Refusal | Wait): string {
  assert.ok(it.kind === "refusal", it.kind);
  return it.fault.code;
}

test("with credit: premium, the strategy that was asked for, its price held and then charged", () => {
  const { purse, ask } = createFixture(1_000_000);
  const grant = granted(ask());
  assert.deepEqual(
    [grant.service.access, grant.service.fallback, grant.strategy, grant.cu, grant.heldN],
    ["premium", null, "fastest", 6, 30_000],
  );
  assert.equal(purse.availableN, 970_000);
  assert.equal(grant.settle({ kind: "provider" }).chargeN, 30_000);
  assert.deepEqual(purse.settled, [{ method: "eth_call", cu: 6, chargeN: 30_000, freeCu: 0 }]);
});

test("a kept answer costs its share of the price, of which the whole was held", () => {
  const { purse, ask } = createFixture(1_000_000, {}, {}, 25);
  const grant = granted(ask());
  assert.deepEqual([grant.heldN, purse.availableN], [30_000, 970_000]);
  const expected = grant.chargeFor({ kind: "cache" });
  assert.deepEqual([expected.cu, expected.chargeN, purse.settled], [2, 10_000, []]);
  assert.deepEqual(grant.settle({ kind: "cache" }), expected);
  assert.deepEqual([purse.availableN, purse.cachedCu], [990_000, 2]);
  for (const kind of ["provider", "shared", "merged"] as const) {
    const full = granted(ask()).settle({ kind });
    assert.deepEqual([full.cu, full.chargeN, purse.cachedCu], [6, 30_000, 2], kind);
  }
});

test("at no price a kept answer is free, and a caller without credit for a call is refused it", () => {
  const { purse, ask } = createFixture(30_000, {}, {}, 0);
  assert.deepEqual(granted(ask()).settle({ kind: "cache" }).chargeN, 0);
  assert.deepEqual(purse.settled, [{ method: "eth_call", cu: 0, chargeN: 0, freeCu: 0 }]);
  assert.equal(purse.availableN, 30_000);
  purse.availableN = 29_999;
  purse.state = "empty";
  purse.freeUsedCu = SETTINGS.freeCuPerMonth;
  assert.equal(refused(ask()), "balance_exhausted");
});

test("of the free allowance a kept answer takes its share, and the rest of what was held returns", () => {
  const { purse, ask } = createFixture(0, {}, {}, 50);
  const grant = granted(ask());
  assert.equal(grant.service.funding, "free");
  assert.deepEqual([grant.cu, purse.freeHeldCu], [3, 3]);
  const { cu, chargeN } = grant.settle({ kind: "cache" });
  assert.deepEqual([cu, chargeN, purse.freeHeldCu, purse.freeUsedCu], [2, 0, 0, 2]);
});

test("what no provider delivered costs nothing and is not counted", () => {
  const { purse, ask } = createFixture(1_000_000);
  assert.equal(granted(ask()).release().chargeN, 0);
  for (const kind of ["none", "local"] as const)
    assert.equal(granted(ask()).settle({ kind }).chargeN, 0);
  assert.deepEqual([purse.availableN, purse.settled], [1_000_000, []]);
});

test(
  "who has paid before is served on public providers for thirty days after the balance ran " +
    "out, at no charge and load-balanced",
  () => {
    const { runtime, purse, ask } = createFixture(
      0,
      {},
      { paid: { exhaustedAtMs: null, fundedN: 0 }, kind: "anonymous" },
    );
    const grant = granted(ask());
    assert.deepEqual(
      [
        grant.service.access,
        grant.service.fallback,
        grant.service.profile,
        grant.strategy,
        grant.cu,
        grant.heldN,
      ],
      ["public", "payment", "public", "load-balanced", 3, 0],
    );
    grant.settle({ kind: "provider" });
    assert.deepEqual(purse.settled, [{ method: "eth_call", cu: 3, chargeN: 0, freeCu: 0 }]);
    runtime.jump(30 * DAY_MS - 1);
    granted(ask());
    runtime.jump(1);
    assert.equal(refused(ask()), "balance_exhausted");
  },
);

test(
  "the thirty days run from when the store says that the balance ran out, whenever a call " +
    "comes after that",
  () => {
    const { runtime, purse, ask } = createFixture(
      0,
      {},
      { paid: { exhaustedAtMs: null, fundedN: 0 } },
    );
    purse.freeUsedCu = 100;
    purse.exhaustedAtMs = runtime.wallMs();
    runtime.jump(30 * DAY_MS - 1);
    assert.equal(granted(ask()).service.funding, "payment");
    runtime.jump(1);
    assert.equal(refused(ask()), "balance_exhausted");
    // What was taken for the moment before the store had answered gives way to it.
    const late = createFixture(0, {}, { paid: { exhaustedAtMs: null, fundedN: 0 } });
    late.purse.freeUsedCu = 100;
    granted(late.ask());
    late.purse.exhaustedAtMs = late.runtime.wallMs() - 30 * DAY_MS;
    assert.equal(refused(late.ask()), "balance_exhausted");
  },
);

test(
  "an account that never paid uses its free allowance to the last unit and not further; an " +
    "anonymous key has none",
  () => {
    const { purse, ask } = createFixture(0);
    for (let i = 0; i < 33; i++) {
      const grant = granted(ask());
      assert.deepEqual([grant.service.access, grant.service.fallback], ["public", "free"]);
      grant.settle({ kind: "provider" });
    }
    assert.equal(purse.freeUsedCu, 99);
    assert.equal(refused(ask()), "balance_exhausted");
    granted(ask({ method: methodOf("eth_blockNumber") }));
    assert.equal(refused(createFixture(0, {}, { kind: "anonymous" }).ask()), "balance_exhausted");
  },
);

test("who asks for public uses the allowance before the balance, and pays when it is used up", () => {
  const { purse, ask } = createFixture(100_000);
  purse.freeUsedCu = 98;
  const grant = granted(ask({ profile: "public" }));
  assert.deepEqual(
    [grant.service.access, grant.service.fallback, grant.strategy, grant.heldN],
    ["public", null, "load-balanced", 15_000],
  );
  grant.settle({ kind: "provider" });
  assert.equal(granted(ask({ profile: "public", method: methodOf("eth_blockNumber") })).heldN, 0);
});

test(
  "a balance that the store has yet to tell is waited for once, and once more where others used " +
    "what came of it; then it is unavailable, never exhausted",
  () => {
    const { purse, ask } = createFixture(0);
    for (const state of ["unknown", "unreachable"] as const) {
      purse.state = state;
      assert.equal(ask().kind, "wait");
      assert.equal(refused(ask({}, 1)), "unavailable");
    }
    purse.state = "open";
    assert.deepEqual([ask().kind, ask({}, 1).kind], ["wait", "wait"]);
    assert.equal(refused(ask({}, 2)), "unavailable");
    purse.state = "empty";
    purse.freeUsedCu = null;
    assert.equal(ask().kind, "wait");
  },
);

test(
  "an account that had nothing left when the store fell silent is served what is free, and is " +
    "never told that its balance is exhausted",
  () => {
    const { admission, purse, ask } = createFixture(0);
    Object.assign(purse, { state: "unreachable", wasEmpty: true });
    const grant = granted(ask());
    assert.deepEqual([grant.service.fallback, grant.heldN], ["free", 0]);
    grant.settle({ kind: "provider" });
    assert.equal(admission.meter(grant, 1), null);
    assert.equal(purse.settled.at(-1)?.freeCu, 3, "notifications as well");
    purse.freeUsedCu = 100;
    assert.deepEqual([ask().kind, refused(ask({}, 1))], ["wait", "unavailable"]);
    assert.equal(admission.meter(grant, 1), null, "owed");
    // All that was left is leased here, and may not be spent any more: that is paid traffic.
    Object.assign(purse, { freeUsedCu: 0, availableN: 100_000, isStopped: true });
    assert.deepEqual([ask().kind, refused(ask({}, 1))], ["wait", "unavailable"]);
  },
);

test("a call that waited for a token while others used up the credit waits for credit as well", () => {
  const price = 30_000;
  const { runtime, purse, ask, share } = createFixture(price);
  const limits: SharedLimit[] = [];
  const waiting: (() => void)[] = [];
  const sharing: LimitSharing = {
    nodes: 3,
    begin(scope, size, start) {
      const limit = new SharedLimit(scope, size, sharing, start);
      limits.push(limit);
      return limit;
    },
    due: () => {},
    wait(_, run) {
      waiting.push(run);
      return () => {};
    },
  };
  share(sharing);
  const first = ask();
  assert.ok(first.kind === "wait");
  assert.equal(purse.availableN, price, "nothing is held meanwhile");
  const outcomes: (Grant | Refusal | Wait)[] = [];
  first.refilled(() => void outcomes.push(ask({}, 1)));
  purse.availableN = 0;
  limits[0]?.answer({ granted: 5, waitMs: 0, debt: 5 }, runtime.now());
  for (const run of waiting.splice(0)) run();
  assert.deepEqual(
    outcomes.map(({ kind }) => kind),
    ["wait"],
  );
  purse.availableN = price;
  granted(ask({}, 2)).release();
});

test(
  "the bucket of the access binds: 200 at once with premium, 60 without; a refusal costs " +
    "nothing and says how long to wait",
  () => {
    const premium = createFixture(1e9);
    for (let i = 0; i < 200; i++) granted(premium.ask());
    const left = premium.purse.availableN;
    const no = premium.ask();
    assert.equal(refused(no), "rate_limit_exceeded");
    assert.ok(
      no.kind === "refusal" &&
        no.fault.retryAfterMs === 10 &&
        no.limit?.rateLimit.name === "managed",
    );
    assert.equal(premium.purse.availableN, left);
    premium.runtime.advance(10);
    granted(premium.ask());
    const free = createFixture(0, {}, { paid: { exhaustedAtMs: null, fundedN: 0 } });
    for (let i = 0; i < 60; i++) granted(free.ask());
    assert.equal(refused(free.ask()), "rate_limit_exceeded");
    granted(free.ask({ profile: "public" }));
  },
);

test("what is told of a bucket is what it does: quota, window, remaining, reset", () => {
  const { admission, keyContext, ask } = createFixture(1e9);
  const { rateLimit } = granted(ask()).service;
  assert.deepEqual(admission.rateLimitStatus(keyContext, rateLimit), {
    name: "managed",
    burst: 200,
    windowS: 2,
    remaining: 199,
    resetS: 1,
  });
});

test(
  "a revoked key, one that was rotated out and one that may not use a profile are refused " +
    "before anything is taken",
  () => {
    const revoked = createFixture(1e9, { bounds: { ...UNBOUND, revoked: true } });
    assert.equal(refused(revoked.ask()), "key_revoked");
    const rotated = createFixture(1e9, { bounds: { ...UNBOUND, validUntilMs: 0 } });
    assert.equal(refused(rotated.ask()), "key_revoked");
    const scoped = createFixture(1e9, {
      bounds: { ...UNBOUND, allowed: ["public"] },
      defaultProfile: "public",
    });
    assert.equal(refused(scoped.ask()), "forbidden");
    assert.equal(granted(scoped.ask({ profile: "public" })).service.access, "public");
    assert.equal(refused(createFixture(1e9).ask({ profile: "team" })), "forbidden");
    for (const it of [revoked, rotated]) assert.equal(it.purse.availableN, 1e9);
  },
);

test(
  "notifications are charged at their weight and the factor of their strategy; when nothing " +
    "pays any more it is told",
  () => {
    const { admission, purse, ask } = createFixture(100_000, {}, { kind: "anonymous" });
    const grant = granted(ask({ method: methodOf("eth_subscribe") }));
    grant.settle({ kind: "provider" });
    purse.availableN = 60_000;
    assert.equal(admission.meter(grant, 2), null);
    assert.equal(purse.availableN, 0);
    assert.deepEqual(purse.settled.at(-1), {
      method: "notification",
      cu: 12,
      chargeN: 60_000,
      freeCu: 0,
    });
    purse.state = "empty";
    assert.equal(admission.meter(grant, 1), "balance_exhausted");
  },
);

test(
  "notifications while credit is being fetched are delivered and owed, charged with the next, " +
    "and end when too many are owed",
  () => {
    const { admission, purse, ask } = createFixture(100_000, {}, { kind: "anonymous" });
    const grant = granted(ask({ method: methodOf("eth_subscribe"), strategy: "load-balanced" }));
    grant.settle({ kind: "provider" });
    purse.availableN = 0;
    purse.state = "unreachable";
    for (let n = 0; n < 10; n++) assert.equal(admission.meter(grant, 1), null);
    purse.availableN = 1_000_000;
    purse.state = "open";
    assert.equal(admission.meter(grant, 1), null);
    assert.deepEqual(purse.settled.at(-1), {
      method: "notification",
      cu: 33,
      chargeN: 165_000,
      freeCu: 0,
    });
    purse.availableN = 0;
    purse.state = "unreachable";
    const ends = Array.from({ length: 101 }, () => admission.meter(grant, 1));
    assert.deepEqual(
      [ends.slice(0, 100).every((it) => it === null), ends[100]],
      [true, "unavailable"],
    );
  },
);

test(
  "calls under way hold their part of the free allowance: together they get no more than there " +
    "is",
  () => {
    const { purse, ask } = createFixture(0);
    const logs = { method: methodOf("eth_getLogs") };
    const grants = Array.from({ length: 6 }, () => granted(ask(logs)));
    assert.equal(refused(ask(logs)), "balance_exhausted");
    for (const it of grants.slice(0, 3)) it.release();
    for (const it of grants.slice(3)) it.settle({ kind: "provider" });
    assert.deepEqual([purse.freeUsedCu, purse.freeHeldCu], [45, 0]);
    assert.equal(granted(ask(logs)).service.fallback, "free");
  },
);

test(
  "open sockets are closed within a second when their key ends or nothing pays any more, and " +
    "not before",
  () => {
    const { admission, runtime, purse, keyContext, closed } = createFixture(
      100_000,
      {},
      { kind: "anonymous" },
    );
    runtime.advance(5_000);
    assert.deepEqual(closed, []);
    purse.availableN = 0;
    purse.state = "empty";
    runtime.advance(1_000);
    assert.deepEqual(closed, ["balance_exhausted"]);
    keyContext.bounds = { ...UNBOUND, revoked: true };
    runtime.advance(1_000);
    assert.deepEqual(closed, ["balance_exhausted", "key_revoked"]);
    admission.close();
    runtime.advance(5_000);
    assert.equal(closed.length, 2);
  },
);

test("a handshake is refused for the reasons a call would be", () => {
  assert.equal(
    createFixture(1e9).admission.refusal(createFixture(1e9).keyContext, "premium"),
    null,
  );
  const broke = createFixture(0, {}, { kind: "anonymous" });
  assert.equal(broke.admission.refusal(broke.keyContext, "premium")?.code, "balance_exhausted");
  const scoped = createFixture(1e9, { bounds: { ...UNBOUND, allowed: ["public"] } });
  assert.equal(scoped.admission.refusal(scoped.keyContext, "premium")?.code, "forbidden");
});

/** Custom profile `nodes`; `gone` was deleted. */
function ownUntil(runtime: Fixture["runtime"], untilMs: number): OwnProfiles {
  const isOpen = (): boolean => runtime.wallMs() < untilMs;
  return {
    slugs: ["nodes"],
    servicesOf: (slug) =>
      slug === "nodes" && isOpen()
        ? customServiceTiers("nodes")
        : ["nodes", "gone"].includes(slug)
          ? LAPSED
          : undefined,
  };
}

test(
  "a Custom profile: any strategy, uncharged with nothing left, counted, from a bucket of its " +
    "own size and name",
  () => {
    const { admission, runtime, purse, keyContext, ask } = createFixture(0);
    keyContext.account.own = ownUntil(runtime, runtime.wallMs() + DAY_MS);
    const grant = granted(ask({ profile: "nodes" }));
    assert.deepEqual(
      [grant.service.access, grant.service.fallback, grant.service.profile, grant.strategy],
      ["custom", null, "nodes", "fastest"],
    );
    assert.equal(grant.settle({ kind: "provider" }).chargeN, 0);
    assert.deepEqual(purse.settled, [{ method: "eth_call", cu: 6, chargeN: 0, freeCu: 0 }]);
    granted(ask({ profile: "nodes" }));
    const limited = ask({ profile: "nodes" });
    assert.equal(refused(limited), "rate_limit_exceeded");
    assert.equal(admission.rateLimitStatus(keyContext, grant.service.rateLimit).name, "nodes");
    assert.equal(admission.refusal(keyContext, "nodes"), null, "a socket needs no balance there");
    assert.equal(admission.meter(grant, 5), null);
    assert.equal(purse.settled.at(-1)?.chargeN, 0);
  },
);

test(
  "deleted, or without Custom access any more: as premium, charged as that, and told so; with " +
    "nothing to pay for that, refused",
  () => {
    const { runtime, purse, keyContext, ask } = createFixture(1_000_000);
    keyContext.account.own = ownUntil(runtime, runtime.wallMs() + 1_000);
    const gone = granted(ask({ profile: "gone" }));
    assert.deepEqual(
      [gone.service.access, gone.service.fallback, gone.service.profile, gone.heldN],
      ["premium", "profile", "premium", 30_000],
    );
    assert.equal(granted(ask({ profile: "nodes" })).service.access, "custom");
    runtime.advance(1_000);
    assert.deepEqual(granted(ask({ profile: "nodes" })).service.fallback, "profile");
    purse.availableN = 0;
    purse.state = "empty";
    purse.freeUsedCu = 100;
    assert.equal(refused(ask({ profile: "nodes" })), "balance_exhausted");
    assert.equal(refused(ask({ profile: "never" })), "forbidden");
  },
);

test(
  "a key scoped to other profiles may not use a Custom profile; one scoped to it may use " +
    "nothing else",
  () => {
    const { runtime, keyContext, ask } = createFixture(1_000_000);
    keyContext.account.own = ownUntil(runtime, runtime.wallMs() + DAY_MS);
    keyContext.bounds = { ...UNBOUND, allowed: ["premium"] };
    assert.equal(refused(ask({ profile: "nodes" })), "forbidden");
    keyContext.bounds = { ...UNBOUND, allowed: ["nodes"] };
    assert.equal(granted(ask({ profile: "nodes" })).service.access, "custom");
    assert.equal(refused(ask({ profile: "premium" })), "forbidden");
  },
);

test(
  "a socket on a Custom profile stays open with nothing left, and is closed within a second " +
    "when its access ends; one that fell back before stays",
  () => {
    const { runtime, keyContext, closed } = createFixture(0, {}, { kind: "anonymous" });
    const own = ownUntil(runtime, runtime.wallMs() + 5_000);
    keyContext.account.own = own;
    const close = (reason: SocketEnd): void => void closed.push(reason);
    keyContext.openSockets = new Set([{ profile: "nodes", custom: true, close }]);
    runtime.advance(4_900);
    assert.deepEqual(closed, []);
    runtime.advance(1_200);
    assert.deepEqual([...new Set(closed)], ["custom_access_expired"]);
    const paid = createFixture(1_000_000);
    paid.keyContext.account.own = ownUntil(paid.runtime, 0);
    paid.keyContext.openSockets = new Set([
      { profile: "nodes", custom: false, close: (reason) => void paid.closed.push(reason) },
    ]);
    paid.runtime.advance(5_000);
    assert.deepEqual(paid.closed, []);
  },
);
