// The URL grammar, a row for every form: what each leads to, and with which words everything else
// is refused.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { pino } from "pino";
import type { Fault } from "../../../src/core/faults/rpc-fault.ts";
import type { Strategy } from "../../../src/core/routing/strategy.ts";
import { Observer } from "../../../src/observe/observer.ts";
import { ProfileRegistry } from "../../../src/upstream/registry/profile-registry.ts";
import {
  isRpcPath,
  type MetaMode,
  type Target,
  TargetResolver,
  URL_FORMS,
} from "../../../src/web/rpc/target.ts";
import { simulatedWorld } from "../../fakes/runtime.ts";
import { configOf } from "../../fakes/service.ts";

const provider = (id: string) => ({ id, url: `http://${id}.test` });
const config = configOf(
  JSON.stringify({
    chains: {
      ethereum: {
        chain_id: 1,
        name: "Ethereum Mainnet",
        aliases: ["mainnet", "eth"],
        block_time_ms: 12_000,
      },
      base: { chain_id: 8453, block_time_ms: 2_000 },
    },
    profiles: {
      public: {
        chains: {
          ethereum: { providers: [provider("alpha"), { ...provider("beta"), alias: "b" }] },
          base: { providers: [provider("alpha")] },
        },
      },
      team: {
        chains: {
          ethereum: { providers: [provider("own"), provider("fastest"), provider("ethereum")] },
        },
      },
    },
  }),
);
const runtime = simulatedWorld(1);
const registry = new ProfileRegistry(config.chains, config.profiles, runtime, config.selection);
const newResolver = () =>
  new TargetResolver(registry, new Observer(pino({ level: "silent" }), runtime));

interface Hints {
  readonly provider?: string;
  readonly strategy?: string;
}

const resolve = (url: string, { provider, strategy }: Hints = {}): Target | Fault =>
  newResolver().resolve({ url, defaultProfile: null, within: null, provider, strategy }, null);

/** Profile, chain, strategy, pin: how an address reads in the rows below. */
function shown(target: Target | Fault): string {
  if (target.kind === "fault") return `${target.status} ${target.code}`;
  return [target.profile.slug, target.chain.chainName, target.strategy, target.pin?.id ?? "-"].join(
    " ",
  );
}

const FORMS: readonly (readonly [url: string, expected: string, hints?: Hints])[] = [
  ["/rpc/ethereum", "public ethereum load-balanced -"],
  ["/rpc/mainnet", "public ethereum load-balanced -"],
  ["/rpc/eth", "public ethereum load-balanced -"],
  ["/rpc/1", "public ethereum load-balanced -"],
  ["/rpc/8453", "public base load-balanced -"],
  ["/rpc/ethereum/", "public ethereum load-balanced -"],
  ["/rpc/%65thereum", "public ethereum load-balanced -"],
  ["/rpc/ethereum?", "public ethereum load-balanced -"],
  ["/rpc/ethereum?unknown=1&x", "public ethereum load-balanced -"],
  ["/rpc/load-balanced/ethereum", "public ethereum load-balanced -"],
  ["/rpc/load_balanced/1", "public ethereum load-balanced -"],
  ["/rpc/round-robin/ethereum", "public ethereum load-balanced -"],
  ["/rpc/round_robin/ethereum", "public ethereum load-balanced -"],
  ["/rpc/latency-weighted/mainnet", "public ethereum latency-weighted -"],
  ["/rpc/latency_weighted/ethereum", "public ethereum latency-weighted -"],
  ["/rpc/fastest/8453/", "public base fastest -"],
  ["/rpc/priority/ethereum", "public ethereum priority -"],
  ["/rpc/profile/team/ethereum", "team ethereum load-balanced -"],
  ["/rpc/profile/team/1", "team ethereum load-balanced -"],
  ["/rpc/profile/public/base", "public base load-balanced -"],
  ["/rpc/profile/team/fastest/ethereum", "team ethereum fastest -"],
  ["/rpc/profile/team/round-robin/mainnet", "team ethereum load-balanced -"],
  ["/rpc/profile/team/priority/ethereum/", "team ethereum priority -"],
  ["/profile/team/fastest/ethereum", "team ethereum fastest -"],
  ["/profile/team/ethereum", "team ethereum load-balanced -"],
  // Pins: in the path both ways, by header, by query; by id, and by alias.
  ["/rpc/provider/alpha/ethereum", "public ethereum load-balanced alpha"],
  ["/rpc/provider/b/1", "public ethereum load-balanced beta"],
  ["/rpc/ethereum/alpha", "public ethereum load-balanced alpha"],
  ["/rpc/1/beta/", "public ethereum load-balanced beta"],
  ["/rpc/ethereum/p1", "public ethereum load-balanced alpha"],
  ["/rpc/ethereum", "public ethereum load-balanced beta", { provider: "beta" }],
  ["/rpc/fastest/ethereum", "public ethereum fastest beta", { provider: "b" }],
  ["/rpc/ethereum?provider=beta", "public ethereum load-balanced beta"],
  ["/rpc/ethereum?provider=%62eta&strategy=fastest", "public ethereum fastest beta"],
  ["/rpc/profile/team/ethereum/own", "team ethereum load-balanced own"],
  ["/rpc/profile/team/provider/own/ethereum", "team ethereum load-balanced own"],
  ["/rpc/profile/team/ethereum?provider=own", "team ethereum load-balanced own"],
  ["/rpc/profile/team/priority/ethereum", "team ethereum priority own", { provider: "own" }],
  ["/profile/team/ethereum?provider=own", "team ethereum load-balanced own"],
  ["/rpc/profile/team/provider/fastest/ethereum", "team ethereum load-balanced fastest"],
  ["/rpc/profile/team/ethereum/fastest", "team ethereum load-balanced fastest"],
  ["/rpc/profile/team/ethereum/ethereum", "team ethereum load-balanced ethereum"],
  // Of several pins the path counts first, then the query, then the header.
  [
    "/rpc/ethereum/alpha?provider=beta",
    "public ethereum load-balanced alpha",
    { provider: "beta" },
  ],
  ["/rpc/ethereum?provider=alpha", "public ethereum load-balanced alpha", { provider: "beta" }],
  // Of several strategies the path counts first, then the query, then the header, then the default.
  [
    "/rpc/fastest/ethereum?strategy=priority",
    "public ethereum fastest -",
    { strategy: "latency-weighted" },
  ],
  [
    "/rpc/ethereum?strategy=priority",
    "public ethereum priority -",
    { strategy: "latency-weighted" },
  ],
  ["/rpc/ethereum?strategy=latency_weighted", "public ethereum latency-weighted -"],
  ["/rpc/ethereum", "public ethereum latency-weighted -", { strategy: "latency-weighted" }],
  ["/rpc/profile/team/ethereum?strategy=round-robin", "team ethereum load-balanced -"],
  // Refused.
  ["/rpc/nochain", "400 unknown_chain"],
  ["/rpc/2", "400 unknown_chain"],
  ["/rpc/01", "400 unknown_chain"],
  ["/rpc/0x1", "400 unknown_chain"],
  ["/rpc/1.0", "400 unknown_chain"],
  ["/rpc/Ethereum", "400 unknown_chain"],
  ["/rpc/__proto__", "400 unknown_chain"],
  ["/rpc/constructor", "400 unknown_chain"],
  ["/rpc/slowest/ethereum", "400 unknown_chain"],
  ["/rpc/fastest/nochain", "400 unknown_chain"],
  ["/rpc/profile/team/base", "400 unknown_chain"],
  ["/rpc/provider/alpha/nochain", "400 unknown_chain"],
  ["/rpc/profile/nobody/ethereum", "404 unknown_profile"],
  ["/rpc/profile/nobody/fastest/ethereum", "404 unknown_profile"],
  ["/profile/nobody/ethereum", "404 unknown_profile"],
  ["/rpc/profile/__proto__/ethereum", "404 unknown_profile"],
  ["/rpc/ethereum/nobody", "400 invalid_field"],
  ["/rpc/provider/nobody/ethereum", "400 invalid_field"],
  ["/rpc/ethereum?provider=nobody", "400 invalid_field"],
  ["/rpc/ethereum?provider=", "400 invalid_field"],
  ["/rpc/ethereum", "400 invalid_field", { provider: "nobody" }],
  ["/rpc/ethereum", "400 invalid_field", { provider: "own" }],
  ["/rpc/base/beta", "400 invalid_field"],
  ["/rpc/ethereum?strategy=slowest", "400 invalid_field"],
  ["/rpc/ethereum?strategy=", "400 invalid_field"],
  ["/rpc/ethereum?strategy=__proto__", "400 invalid_field"],
  ["/rpc/ethereum", "400 invalid_field", { strategy: "slowest" }],
  ["/rpc/ethereum?include_meta=yes", "400 invalid_field"],
  ["/rpc/ethereum?include_meta=", "400 invalid_field"],
  ["/rpc/", "404 not_found"],
  ["/profile/", "404 not_found"],
  ["/profile/team", "404 not_found"],
  ["/rpc/a/b/c", "404 not_found"],
  ["/rpc/profile/team/fastest/ethereum/own", "404 not_found"],
  ["/rpc/../api/health", "404 not_found"],
  ["/rpc/ethereum/../../etc/passwd", "404 not_found"],
  ["/rpc/..%2f..%2fetc%2fpasswd", "400 unknown_chain"],
  ["/rpc/%2e%2e", "400 unknown_chain"],
  ["/rpc/ethereum%00", "400 unknown_chain"],
  ["/rpc//ethereum", "400 unknown_chain"],
  ["/rpc/ethereum//", "400 invalid_field"],
  ["/rpc/%zz", "400 invalid_request"],
  ["/rpc/%ff", "400 invalid_request"],
  [`/rpc/${"e".repeat(10_240)}`, "400 invalid_request"],
  [`/rpc/ethereum?x=${"e".repeat(10_240)}`, "400 invalid_request"],
];

for (const [url, expected, hints] of FORMS) {
  const name = `${url.length > 60 ? `${url.slice(0, 20)}… (${url.length} characters)` : url}${hints === undefined ? "" : ` ${JSON.stringify(hints)}`}`;
  test(`${name} → ${expected}`, () => assert.equal(shown(resolve(url, hints)), expected));
}

test("evidence is off, in the body or in a header, as asked", () => {
  const modes: readonly (readonly [query: string, mode: MetaMode])[] = [
    ["", "none"],
    ["?include_meta=body", "body"],
    ["?strategy=fastest&include_meta=headers", "headers"],
    ["?include_meta=none", "none"],
  ];
  for (const [query, mode] of modes) {
    const target = resolve(`/rpc/ethereum${query}`);
    assert.equal(target.kind === "target" && target.meta, mode);
  }
});

test(
  "a refusal names what is known: chains, profiles, providers (in managed pools by alias " +
    "only), strategies",
  () => {
    const why = (url: string): Fault => {
      const fault = resolve(url);
      assert.ok(fault.kind === "fault");
      return fault;
    };
    assert.deepEqual(why("/rpc/nochain").details, { known_chains: ["ethereum", "base"] });
    assert.deepEqual(why("/rpc/profile/team/base").details, { known_chains: ["ethereum"] });
    assert.deepEqual(why("/profile/nobody/1").details, { known_profiles: ["public", "team"] });
    assert.deepEqual(why("/rpc/ethereum/nobody").details, { known_providers: ["p1", "b"] });
    assert.doesNotMatch(JSON.stringify(why("/rpc/ethereum/nobody")), /alpha|beta/);
    assert.deepEqual(why("/rpc/profile/team/1/nobody").details, {
      known_providers: ["own", "fastest", "ethereum"],
    });
    for (const strategy of [
      "load-balanced",
      "latency-weighted",
      "fastest",
      "priority",
    ] satisfies Strategy[]) {
      assert.ok(
        why("/rpc/ethereum?strategy=x").nextAction.includes(strategy) &&
          why("/rpc/x/ethereum").nextAction.includes(strategy),
      );
    }
    assert.deepEqual(why("/rpc/a/b/c/d/e").details, { forms: URL_FORMS });
  },
);

test("the path for WebSockets is the same path under /ws, without the query", () => {
  const target = resolve("/rpc/profile/team/fastest/1?include_meta=body");
  assert.equal(target.kind === "target" && target.socketPath, "/ws/rpc/profile/team/fastest/1");
});

test("the RPC surface is its two prefixes and nothing else", () => {
  for (const url of ["/rpc/x", "/profile/x", "/rpc/"]) assert.equal(isRpcPath(url), true, url);
  for (const url of [
    "/rpc",
    "/RPC/x",
    "/api/chains",
    "/",
    "",
    "/ws/rpc/x",
    "/profiles/x",
    "//rpc/x",
  ])
    assert.equal(isRpcPath(url), false, url);
});

test("a resolver that has seen a URL before gives the same answer, hints and reloads included", () => {
  const resolver = newResolver();
  const urls = FORMS.map(([url]) => url);
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.constantFrom(...urls), fc.constantFrom(undefined, "alpha", "own")), {
        maxLength: 40,
      }),
      (asked) => {
        for (const [url, pin] of asked)
          assert.equal(
            shown(
              resolver.resolve(
                { url, defaultProfile: null, within: null, provider: pin, strategy: undefined },
                null,
              ),
            ),
            shown(resolve(url, pin === undefined ? {} : { provider: pin })),
          );
      },
    ),
    { numRuns: 50 },
  );
  const before = resolver.resolve(
    {
      url: "/rpc/ethereum",
      defaultProfile: null,
      within: null,
      provider: undefined,
      strategy: undefined,
    },
    null,
  );
  assert.equal(
    resolver.resolve(
      {
        url: "/rpc/ethereum",
        defaultProfile: null,
        within: null,
        provider: undefined,
        strategy: undefined,
      },
      null,
    ),
    before,
    "remembered",
  );
  registry.replace(config.chains, config.profiles);
  const after = resolver.resolve(
    {
      url: "/rpc/ethereum",
      defaultProfile: null,
      within: null,
      provider: undefined,
      strategy: undefined,
    },
    null,
  );
  assert.ok(before.kind === "target" && after.kind === "target" && after !== before, "forgotten");
  assert.equal(after.tracker, before.tracker, "what has not changed is not disturbed");
});

test("no URL at all makes it throw", () => {
  const piece = fc.constantFrom(
    "/",
    "rpc",
    "profile",
    "provider",
    "ethereum",
    "1",
    "team",
    "..",
    "%",
    "%2f",
    "%00",
    "?",
    "&",
    "=",
    "#",
    "é",
    "fastest",
    "\\",
    "*",
  );
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 12 }), fc.option(fc.string()), (pieces, header) => {
      const hints = header === null ? {} : { provider: header, strategy: header };
      for (const url of [pieces.join(""), `/rpc/${pieces.join("/")}`])
        assert.match(resolve(url, hints).kind, /^(target|fault)$/);
    }),
    { numRuns: 1_000 },
  );
});

test("calls that name no strategy use that of their profile, else that of the service", () => {
  const providers = [provider("alpha")];
  const { chains, profiles, selection } = configOf(
    JSON.stringify({
      chains: { ethereum: { chain_id: 1, block_time_ms: 12_000 } },
      routing: { default_strategy: "latency_weighted" },
      profiles: {
        public: { chains: { ethereum: { providers } } },
        team: {
          routing: { default_strategy: "round-robin" },
          chains: { ethereum: { providers } },
        },
      },
    }),
  );
  const resolver = new TargetResolver(
    new ProfileRegistry(chains, profiles, runtime, selection),
    new Observer(pino({ level: "silent" }), runtime),
  );
  const shownAt = (url: string) =>
    shown(
      resolver.resolve(
        { url, defaultProfile: null, within: null, provider: undefined, strategy: undefined },
        null,
      ),
    );
  assert.equal(shownAt("/rpc/ethereum"), "public ethereum latency-weighted -");
  assert.equal(shownAt("/rpc/profile/team/ethereum"), "team ethereum load-balanced -");
  assert.equal(shownAt("/rpc/fastest/ethereum"), "public ethereum fastest -");
});
