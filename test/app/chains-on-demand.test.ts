// Chains that are opened when they are called, in simulated time: the bounds of all and of one
// caller, who is closed first, how long a call waits, and what is left when a chain is closed.
import assert from "node:assert/strict";
import { test } from "node:test";
import { pino } from "pino";
import { ChainsOnDemand } from "../../src/app/chains-on-demand.ts";
import { ServedChains } from "../../src/app/served-chains.ts";
import type { Fault } from "../../src/core/faults/rpc-fault.ts";
import type { Profile } from "../../src/core/provider/profile.ts";
import type { Tracker } from "../../src/upstream/health/tracker.ts";
import { ProfileRegistry } from "../../src/upstream/registry/profile-registry.ts";
import { fakeKnownChain, knownAmong } from "../fakes/known-chains.ts";
import { SELECTION } from "../fakes/providers.ts";
import { simulatedWorld } from "../fakes/runtime.ts";
import { configOf } from "../fakes/service.ts";

const ALL = JSON.stringify({ chains: "all" });
const KNOWN = Array.from({ length: 200 }, (_, n) =>
  fakeKnownChain(1_000 + n, [`https://a.chain-${n}.test/`, `https://b.chain-${n}.test/`]),
);
const MINUTE_MS = 60_000;

function fixture(text = ALL) {
  const world = simulatedWorld(7);
  let config = configOf(text);
  const lines: string[] = [];
  const log = pino({ level: "info" }, { write: (line: string) => void lines.push(line) });
  const registry = new ProfileRegistry(config.chains, config.profiles, world, SELECTION);
  const calls = new Map<string, number>();
  const subscribed = new Set<string>();
  const common = { runtime: world, log, registry, config: () => config };
  const served = new ServedChains(common);
  const onDemand = new ChainsOnDemand({
    ...common,
    served,
    knownChain: knownAmong(KNOWN),
    callsOf: (name) => calls.get(name) ?? 0,
    subscribed: () => subscribed,
  });
  const trackerOf = (name: string): Tracker | undefined =>
    registry.defaultProfile?.trackers.get(name);
  return {
    world,
    registry,
    served,
    onDemand,
    calls,
    subscribed,
    lines,
    trackerOf,
    open: (): readonly string[] => registry.chains.map(({ chainName }) => chainName),
    reload(next: string): void {
      config = configOf(next);
      onDemand.reloaded();
    },
    /** A provider of the chain answers a probe. */
    answer(name: string, height = 1): void {
      const tracker = trackerOf(name);
      const provider = tracker?.set.providers[0];
      assert.ok(tracker !== undefined && provider !== undefined);
      const result = { kind: "ok", chainId: tracker.set.chain.chainId, height } as const;
      tracker.recordProbe({ provider, transport: "http", latencyMs: 1, result });
    },
    /** Calls a chain; the answer is `undefined` until there is one. */
    ask(n: number, caller = "address 10.0.0.1") {
      const asked: { why: Fault | null | undefined; cancel: () => void } = {
        why: undefined,
        cancel: () => {},
      };
      asked.cancel = onDemand.prepare(`chain-${1_000 + n}`, caller, (why) => {
        asked.why = why;
      });
      return asked;
    },
  };
}

type Fixture = ReturnType<typeof fixture>;

/** Opens a chain, which answers at once. */
function opened(at: Fixture, n: number, caller: string): void {
  const asked = at.ask(n, caller);
  if (asked.why === undefined) at.answer(`chain-${1_000 + n}`);
  assert.equal(asked.why, null, `chain ${n} for ${caller}`);
}

/** Opens so many chains, four for each caller. */
function openMany(at: Fixture, count: number): void {
  for (let n = 0; n < count; n++) opened(at, n, `address 10.1.0.${Math.floor(n / 4)}`);
}

const profile = (at: Fixture): Profile => {
  const found = at.registry.defaultProfile?.profile;
  assert.ok(found);
  return found;
};

test("a call waits until a provider has answered, two seconds at most", () => {
  const at = fixture();
  const [one, two] = [at.ask(0), at.ask(0, "address 10.0.0.2")];
  const [chain] = at.registry.chains;
  assert.ok(chain !== undefined && at.onDemand.isOpening(chain));
  at.world.advance(1_999);
  assert.deepEqual([one.why, two.why], [undefined, undefined]);
  at.world.advance(1);
  assert.deepEqual([one.why?.code, two.why?.code], ["not_prepared", "not_prepared"]);
  const late = at.ask(0);
  at.answer("chain-1000");
  assert.equal(late.why, null);
  assert.equal(at.onDemand.isOpening(chain), false);
  assert.equal(at.ask(0).why, null);
  assert.deepEqual(at.open(), ["chain-1000"]);
});

test("a call that is cancelled hears nothing; an answer of another chain opens none", () => {
  const at = fixture();
  const [cancelled, other] = [at.ask(0), at.ask(0)];
  cancelled.cancel();
  const provider = at.trackerOf("chain-1000")?.set.providers[0];
  assert.ok(provider);
  const result = { kind: "ok", chainId: 5, height: 1 } as const;
  at.trackerOf("chain-1000")?.recordProbe({ provider, transport: "http", latencyMs: 1, result });
  assert.equal(other.why, undefined);
  at.answer("chain-1000");
  assert.deepEqual([cancelled.why, other.why], [undefined, null]);
});

test("sixty-four chains are open at most: the one that was not used for longest is closed first", () => {
  const at = fixture();
  openMany(at, 64);
  assert.equal(at.open().length, 64);
  at.world.advance(MINUTE_MS);
  for (let n = 1; n < 64; n++) at.calls.set(`chain-${1_000 + n}`, 1);
  opened(at, 64, "address 10.2.0.1");
  assert.equal(at.open().length, 64);
  assert.deepEqual(
    [at.trackerOf("chain-1000"), at.open().includes("chain-1064")],
    [undefined, true],
  );
  // Of equals the first; but not one that somebody is subscribed to.
  at.subscribed.add("chain-1001");
  opened(at, 65, "address 10.2.0.1");
  assert.deepEqual(
    [at.open().includes("chain-1001"), at.open().includes("chain-1002")],
    [true, false],
  );
  for (const name of at.open()) at.subscribed.add(name);
  assert.equal(at.ask(66, "address 10.2.0.2").why?.code, "not_prepared");
  assert.equal(at.open().length, 64);
});

test("one caller opens five chains a minute, and has sixteen open at most", () => {
  const at = fixture();
  const caller = "account acct_1";
  for (let n = 0; n < 5; n++) opened(at, n, caller);
  const refused = at.ask(5, caller).why;
  assert.equal(refused?.code, "rate_limit_exceeded");
  assert.ok((refused?.retryAfterMs ?? 0) <= 12_000);
  opened(at, 5, "account acct_2");
  at.world.advance(refused?.retryAfterMs ?? 0);
  opened(at, 6, caller);
  for (let n = 7; n < 17; n++) {
    at.world.advance(12_000);
    for (const name of at.open()) at.calls.set(name, n);
    opened(at, n, caller);
  }
  assert.equal(at.open().length, 17);
  at.world.advance(12_000);
  for (const name of at.open()) if (name !== "chain-1003") at.calls.set(name, 99);
  opened(at, 17, caller);
  assert.equal(at.open().length, 17);
  assert.equal(at.trackerOf("chain-1003"), undefined, "its own that was not used for longest");
  assert.notEqual(at.trackerOf("chain-1005"), undefined, "not that of another one");
});

test("a chain is closed that nobody uses for ten minutes, and one that never answers after one", () => {
  const at = fixture();
  opened(at, 0, "a");
  opened(at, 1, "a");
  opened(at, 2, "a");
  const silent = at.ask(3, "a");
  at.subscribed.add("chain-1001");
  at.world.advance(2 * MINUTE_MS);
  assert.equal(silent.why?.code, "not_prepared");
  assert.deepEqual(at.open(), ["chain-1000", "chain-1001", "chain-1002"]);
  for (let minute = 0; minute < 9; minute++) {
    at.calls.set("chain-1002", minute + 1);
    at.world.advance(MINUTE_MS);
  }
  assert.deepEqual(at.open(), ["chain-1001", "chain-1002"]);
  assert.match(at.lines.join(""), /nobody used it/);
  at.subscribed.clear();
  at.world.advance(11 * MINUTE_MS);
  assert.deepEqual(at.open(), []);
  opened(at, 0, "a");
  assert.deepEqual(at.open(), ["chain-1000"]);
  at.onDemand.end();
  at.served.end();
  assert.equal(at.world.pendingTimers(), 0);
});

test("only public profiles open chains, and only those whose id and name are theirs alone", () => {
  const named = fixture(
    JSON.stringify({
      chains: { all: true, "chain-1000": { chain_id: 5 }, mine: { chain_id: 1_001 } },
      profiles: {
        public: { chains: { mine: { providers: [{ id: "a", url: "http://127.0.0.1:1" }] } } },
        team: { chains: { "chain-1000": { providers: [{ id: "a", url: "http://127.0.0.1:1" }] } } },
      },
    }),
  );
  const known = (text: string, of: Partial<Profile> = {}) =>
    named.onDemand.known(text, { ...profile(named), ...of })?.chainName ?? null;
  assert.equal(known("1002"), "chain-1002");
  assert.equal(known("alias-1002"), "chain-1002");
  assert.equal(
    known("1002", { owner: "acct_1", slug: "public" }),
    null,
    "Custom profiles open none",
  );
  assert.equal(known("1002", { slug: "team" }), null);
  assert.equal(known("1000"), null, "its name stands for another chain");
  assert.equal(known("no-such-chain"), null);
  const none = fixture(JSON.stringify({ chains: { ethereum: {} } }));
  assert.equal(none.onDemand.known("1002", profile(none)), null);
});

test("a reload keeps the chains that are open, unless it names them or opens none any more", () => {
  const at = fixture();
  opened(at, 0, "a");
  opened(at, 1, "a");
  const before = at.trackerOf("chain-1001");
  const waiting = at.ask(2, "a");
  at.reload(
    JSON.stringify({
      chains: { all: true, mine: { chain_id: 1_000 } },
      profiles: {
        public: { chains: { mine: { providers: [{ id: "a", url: "https://a.test/" }] } } },
      },
    }),
  );
  assert.deepEqual(at.open(), ["mine", "chain-1001", "chain-1002"]);
  assert.equal(at.trackerOf("chain-1001"), before, "it is not disturbed");
  at.answer("chain-1002");
  assert.equal(waiting.why, null);
  at.reload(JSON.stringify({ chains: { ethereum: {} } }));
  assert.deepEqual(at.open(), ["ethereum"]);
});

test("a chain with one address says that there is no failover", () => {
  const only = fakeKnownChain(4_000, ["https://only.test/"]);
  KNOWN.push(only);
  const at = fixture();
  at.ask(3_000, "a");
  assert.match(at.lines.join(""), /"chain":"chain-4000".*no failover/);
});
