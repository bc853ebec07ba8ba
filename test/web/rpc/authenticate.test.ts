// Where a caller with a key is bound for when it asks for a Custom profile: in memory, not yet,
// resting, never there; and who is not let wait for one.
import assert from "node:assert/strict";
import { test } from "node:test";
import { pino } from "pino";
import { customServiceTiers, LAPSED } from "../../../src/core/billing/access.ts";
import { type Fault, fault } from "../../../src/core/faults/rpc-fault.ts";
import type { Admission } from "../../../src/hosted/admission/admission.ts";
import { type KeyContext, UNBOUND } from "../../../src/hosted/keys/key-context.ts";
import type { OwnProfiles } from "../../../src/hosted/profiles/custom-access.ts";
import { Observer } from "../../../src/observe/observer.ts";
import { ProfileRegistry } from "../../../src/upstream/registry/profile-registry.ts";
import { trustedProxiesOf } from "../../../src/web/http/client-address.ts";
import { type Authenticated, authenticate } from "../../../src/web/rpc/authenticate.ts";
import { readDirectives } from "../../../src/web/rpc/directives.ts";
import { TargetResolver } from "../../../src/web/rpc/target.ts";
import { fakeProvider, fakeSet, SELECTION } from "../../fakes/providers.ts";
import { simulatedWorld } from "../../fakes/runtime.ts";

const SET = fakeSet([fakeProvider(0)]);
const CHAIN = SET.chain.chainName;
const profile = (slug: string, owner: string | null) => ({
  slug,
  owner,
  managed: owner === null,
  chains: new Map([[CHAIN, SET]]),
});
const OWN: OwnProfiles = {
  slugs: ["mine", "broken"],
  servicesOf: (slug) =>
    ["mine", "broken"].includes(slug)
      ? customServiceTiers(slug)
      : slug === "gone"
        ? LAPSED
        : undefined,
};

function createFixture(refusal: Fault | null = null) {
  const runtime = simulatedWorld(1);
  const registry = new ProfileRegistry(
    [SET.chain],
    [profile("public", null), profile("premium", null)],
    runtime,
    SELECTION,
  );
  const resolver = new TargetResolver(registry, new Observer(pino({ level: "silent" }), runtime));
  const keyContext: KeyContext = {
    kind: "key",
    keyId: "key_1",
    account: { id: "acc_1", kind: "account", paid: null, own: OWN, fullAtMs: null },
    defaultProfile: "premium",
    consistency: null,
    bounds: UNBOUND,
    openSockets: null,
    checked: 0,
  };
  const waiting: ((why: Fault | null) => void)[] = [];
  const cancelled: string[] = [];
  const admission = parseGate({
    keyless: false,
    keyCache: { identify: () => keyContext },
    refusal: () => refusal,
    prepare(_: KeyContext, slug: string, done: (why: Fault | null) => void) {
      waiting.push(done);
      return () => cancelled.push(slug);
    },
  });
  const told: (Authenticated | Fault)[] = [];
  const ask = (url: string) =>
    authenticate(
      { resolver, opener: null, admission, proxies: trustedProxiesOf([]), mark: "none" },
      {
        url,
        directives: { ...readDirectives(url, () => undefined), secret: "s", digest: "d" },
        address: "",
        header: () => undefined,
      },
      (it) => told.push(it),
    );
  return { registry, keyContext, waiting, cancelled, told, ask };
}

const shown = (it: Authenticated | Fault | undefined) =>
  it === undefined
    ? "nothing yet"
    : it.kind === "fault"
      ? `${it.status} ${it.code}`
      : [it.target.named, it.target.profile.owner];

test("a profile that is not in memory is waited for and then served; one that is, is served at once", () => {
  const { registry, waiting, told, ask } = createFixture();
  ask(`/rpc/profile/mine/${CHAIN}`);
  assert.equal(shown(told[0]), "nothing yet");
  registry.put(profile("mine", "acc_1"));
  waiting[0]?.(null);
  assert.deepEqual(shown(told[0]), ["mine", "acc_1"]);
  ask(`/rpc/profile/mine/fastest/${CHAIN}`);
  assert.deepEqual([shown(told[1]), waiting.length], [["mine", "acc_1"], 1]);
});

test("one that does not come in time, or cannot be read, is refused as such, both worth a retry", () => {
  const { waiting, told, ask } = createFixture();
  for (const code of ["not_prepared", "profile_config_unavailable"] as const) {
    ask(`/rpc/profile/broken/${CHAIN}`);
    waiting.at(-1)?.(fault(code, "not now"));
    const it = told.at(-1);
    assert.equal(shown(it), `503 ${code}`);
    assert.ok(
      it?.kind === "fault" && it.retryable && it.retryAfterMs !== null && it.rpcCode === -32002,
    );
  }
});

test(
  "a caller who goes away while waiting hears nothing; one who may not use the profile is refused " +
    "without one being loaded",
  () => {
    const left = createFixture();
    left.ask(`/rpc/profile/mine/${CHAIN}`)?.();
    assert.deepEqual([left.cancelled, left.told], [["mine"], []]);
    const refused = createFixture(fault("forbidden", "not this one"));
    refused.ask(`/rpc/profile/mine/${CHAIN}`);
    assert.deepEqual([shown(refused.told[0]), refused.waiting.length], ["403 forbidden", 0]);
  },
);

test(
  "a profile that rests leads to premium, under the name that was asked for; one that never " +
    "was is told with those there are",
  () => {
    const { told, ask } = createFixture();
    ask(`/rpc/profile/gone/${CHAIN}`);
    assert.deepEqual(shown(told[0]), ["gone", null]);
    ask(`/rpc/profile/never/${CHAIN}`);
    const it = told[1];
    assert.equal(shown(it), "404 unknown_profile");
    assert.deepEqual(it?.kind === "fault" && it.details["known_profiles"], [
      "premium",
      "public",
      "mine",
      "broken",
    ]);
  },
);

test(
  "no text in a URL leads to the profile of another account, and what is remembered for others " +
    "does not either",
  () => {
    const { registry, keyContext, told, ask } = createFixture();
    registry.put(profile("mine", "acc_2"));
    for (const slug of ["acc_2/mine", "acc_2%2Fmine", "..%2Facc_2%2Fmine", "acc_1%2Fmine"])
      ask(`/rpc/profile/${slug}/${CHAIN}`);
    assert.ok(
      told.every(
        (it) =>
          it.kind === "fault" &&
          ["unknown_profile", "not_found", "unknown_chain", "invalid_field"].includes(it.code),
      ),
      JSON.stringify(told),
    );
    registry.put(profile("mine", "acc_1"));
    ask(`/rpc/profile/mine/${CHAIN}`);
    assert.deepEqual(shown(told.at(-1)), ["mine", "acc_1"]);
    keyContext.account = { ...keyContext.account, kind: "account", id: "acc_3", own: null };
    ask(`/rpc/profile/mine/${CHAIN}`);
    assert.equal(shown(told.at(-1)), "404 unknown_profile");
  },
);

function parseGate(it: object): Admission {
  return it as Admission;
}
