// Why a provider is left out of a plan, and which reasons may be set aside.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import {
  type Condition,
  capability,
  type ExclusionReason,
  FACT_MS,
  LearnedFacts,
  mayLack,
  RANGE_FACT_MS,
  type SetView,
  unreachable,
  waiverOf,
} from "../../../src/core/provider/capability.ts";
import { historyOf, type StatedHistory, WHOLE } from "../../../src/core/provider/history.ts";
import type { Provider } from "../../../src/core/provider/profile.ts";
import type { BlockRef } from "../../../src/core/rpc/call.ts";
import { type Method, methodOf, RESOURCES, type Resource } from "../../../src/core/rpc/method.ts";
import { fakeCall, fakeProvider } from "../../fakes/providers.ts";

const HEAD = 10_000;
const VIEW: SetView = { nowMs: 0, head: HEAD, archivalThreshold: 128, maxLagBlocks: 5 };
const WELL: Condition = {
  transport: "http",
  wrongChain: false,
  cordoned: false,
  cordonedByOperator: false,
  behind: false,
  lagBlocks: null,
  facts: null,
  history: historyOf(fakeProvider(0), VIEW.archivalThreshold, null),
  unserved: false,
};
const EARLIEST: BlockRef = { kind: "earliest" };
const HASH: BlockRef = { kind: "hash" };
const PENDING: BlockRef = { kind: "tag", tag: "pending" };
const at = (number: number): BlockRef => ({ kind: "number", number });
const range = (from: number | null, to: number | null): BlockRef => ({ kind: "range", from, to });

const refused = (block: BlockRef, nowMs: number) => ({ block, head: null, nowMs });
const learnMethod = (facts: LearnedFacts, method: Method, nowMs: number): void =>
  facts.learn(method, { kind: "learn", what: "method" }, refused(EARLIEST, nowMs));
const learnTag = (facts: LearnedFacts, method: Method, block: BlockRef, nowMs: number): void =>
  facts.learn(method, { kind: "learn", what: "tag" }, refused(block, nowMs));
const learnPruned = (facts: LearnedFacts, method: Method, nowMs: number): void =>
  facts.learn(method, { kind: "learn", what: "pruned" }, refused(EARLIEST, nowMs));
/** The refusal of a range, with the limit that it names. */
const learnRange = (
  facts: LearnedFacts,
  maxBlockRange: number | null,
  span: number | null,
  nowMs: number,
): void =>
  facts.learn(
    methodOf("eth_getLogs"),
    { kind: "learn", what: "range", maxBlockRange },
    refused(span === null ? EARLIEST : range(0, span), nowMs),
  );

interface Asked {
  readonly method?: string;
  readonly block?: BlockRef;
  readonly provider?: Partial<Provider>;
  readonly view?: Partial<SetView>;
  readonly condition?: Partial<Condition>;
  readonly reported?: StatedHistory;
}

function reasonOf({
  method = "eth_getBalance",
  block = { kind: "none" },
  provider = {},
  view = {},
  condition = {},
  reported,
}: Asked): ExclusionReason | null {
  const known = fakeProvider(0, provider);
  const history = historyOf(known, VIEW.archivalThreshold, reported ?? null);
  return capability(
    known,
    fakeCall(method, block),
    { ...VIEW, ...view },
    { ...WELL, history, ...condition },
  );
}

test("a provider that nothing speaks against can serve", () => {
  assert.equal(reasonOf({}), null);
});

test("a missing transport, a wrong chain and a cordon exclude, pinned or not", () => {
  assert.equal(reasonOf({ provider: { url: null } }), "transport_missing");
  assert.equal(
    reasonOf({ provider: { wsUrl: null }, condition: { transport: "ws" } }),
    "transport_missing",
  );
  assert.equal(reasonOf({ condition: { wrongChain: true } }), "wrong_chain");
  assert.equal(reasonOf({ condition: { cordoned: true } }), "cordoned");
  assert.equal(unreachable(fakeProvider(0), { ...WELL, cordoned: true }), "cordoned");
  assert.equal(unreachable(fakeProvider(0), { ...WELL, behind: true, lagBlocks: 99 }), null);
});

test("declared methods and categories are left out, by the caller's own name", () => {
  assert.equal(
    reasonOf({
      method: "custom_thing",
      provider: { unsupportedMethods: new Set(["custom_thing"]) },
    }),
    "method_unsupported",
  );
  assert.equal(
    reasonOf({
      method: "custom_other",
      provider: { unsupportedMethods: new Set(["custom_thing"]) },
    }),
    null,
  );
  assert.equal(
    reasonOf({ method: "trace_block", provider: { unsupportedCategories: new Set(["trace"]) } }),
    "category_unsupported",
  );
  assert.equal(
    reasonOf({ method: "eth_getLogs", provider: { unsupportedCategories: new Set(["filters"]) } }),
    null,
    "eth_getLogs is no filter",
  );
});

test(
  "archival: old numbers, the earliest block and state by hash need an archive, tags and " +
    "missing parameters do not",
  () => {
    const rows: readonly (readonly [BlockRef, ExclusionReason | null])[] = [
      [{ kind: "none" }, null],
      [PENDING, null],
      [at(HEAD), null],
      [at(HEAD - 128), null],
      [at(HEAD - 129), "archival_required"],
      [at(HEAD + 50), null],
      [EARLIEST, "archival_required"],
      [HASH, "archival_required"],
    ];
    for (const [block, wanted] of rows) {
      assert.equal(reasonOf({ block }), wanted, JSON.stringify(block));
      assert.equal(reasonOf({ block, provider: { archival: true } }), null, JSON.stringify(block));
    }
  },
);

test("archival: a full node has old blocks, receipts, transactions and logs", () => {
  const old: readonly (readonly [string, BlockRef])[] = [
    ["eth_getBlockByNumber", at(1)],
    ["eth_getBlockByNumber", EARLIEST],
    ["eth_getTransactionByBlockNumberAndIndex", at(1)],
    ["eth_getBlockReceipts", at(1)],
    ["eth_getBlockReceipts", HASH],
    ["eth_getLogs", range(HEAD - 500, null)],
    ["eth_getLogs", range(0, 9)],
    ["debug_getRawBlock", at(1)],
    ["debug_getRawReceipts", at(1)],
  ];
  for (const [method, block] of old) assert.equal(reasonOf({ method, block }), null, method);
  const archived = [
    "eth_call",
    "eth_getProof",
    "trace_block",
    "debug_traceBlockByNumber",
    "debug_executionWitness",
    "debug_accountRange",
    "ots_hasCode",
  ];
  for (const method of archived)
    assert.equal(reasonOf({ method, block: at(1) }), "archival_required", method);
});

test("old blocks: of a full node without a bound nobody knows what it has", () => {
  const mayLackAt = (
    block: BlockRef,
    provider: Partial<Provider> = {},
    method = "eth_getLogs",
    reported: StatedHistory | null = null,
  ): boolean => {
    const history = historyOf(fakeProvider(0, provider), VIEW.archivalThreshold, reported);
    return mayLack(history, fakeCall(method, block), VIEW);
  };
  const old = range(HEAD - 500, null);
  assert.equal(mayLackAt(old), true);
  assert.equal(mayLackAt(range(HEAD - 5, null)), false);
  assert.equal(mayLackAt(old, { archival: true }), false);
  assert.equal(mayLackAt(old, { maxBlockAge: 1_000 }), false);
  assert.equal(mayLackAt(old, { maxBlockAge: 499 }), true);
  assert.equal(mayLackAt(old, { history: { logs: { ...WHOLE, oldest: HEAD - 500 } } }), false);
  assert.equal(mayLackAt(old, {}, "eth_getLogs", { logs: { ...WHOLE, oldest: 1 } }), false);
  assert.equal(mayLackAt(old, {}, "eth_getLogs", { receipts: WHOLE }), true);
  assert.equal(mayLackAt(at(1), {}, "eth_getBlockByNumber"), true);
});

test("a bound excludes from older blocks of its resource, and from nothing else", () => {
  const provider = { archival: true, history: { logs: { ...WHOLE, oldest: 4_000 } } };
  const logs = "eth_getLogs";
  assert.equal(reasonOf({ method: logs, block: range(4_000, 4_100), provider }), null);
  assert.equal(reasonOf({ method: logs, block: range(3_999, 9_000), provider }), "block_age_limit");
  assert.equal(
    reasonOf({ method: logs, block: range(0, 1), provider, view: { head: null } }),
    "block_age_limit",
  );
  assert.equal(reasonOf({ method: "eth_getBlockReceipts", block: at(1), provider }), null);
  assert.equal(reasonOf({ block: at(1), provider }), null);
});

test("what a node reports takes the place of assumptions, and not of what is declared", () => {
  const window = { oldest: 0, window: 2_000 };
  const [inside, outside] = [at(HEAD - 2_000), at(HEAD - 2_001)];
  const reported = { state: window, receipts: window };
  assert.equal(reasonOf({ block: inside, reported }), null);
  assert.equal(reasonOf({ block: outside, reported }), "archival_required");
  assert.equal(reasonOf({ block: HASH, reported }), null, "most blocks named by hash are young");
  assert.equal(reasonOf({ block: outside, reported, provider: { archival: true } }), null);
  const receipts = "eth_getBlockReceipts";
  const archive = { archival: true };
  assert.equal(
    reasonOf({ method: receipts, block: outside, reported, provider: archive }),
    "block_age_limit",
  );
  assert.equal(reasonOf({ method: "eth_getProof", block: inside, reported }), "archival_required");
});

test("a refusal that names the oldest block bounds its resource there", () => {
  const learned = (oldest: number | undefined, block = at(100)): LearnedFacts => {
    const facts = new LearnedFacts();
    const effect = { kind: "learn", what: "pruned", ...(oldest === undefined ? {} : { oldest }) };
    facts.learn(methodOf("eth_getBlockReceipts"), effect as never, refused(block, 0));
    return facts;
  };
  const receipts = (block: BlockRef, facts: LearnedFacts, nowMs = 0) =>
    reasonOf({ method: "eth_getBlockReceipts", block, condition: { facts }, view: { nowMs } });
  const named = learned(5_000);
  assert.equal(receipts(at(4_999), named), "archival_required");
  assert.equal(receipts(at(5_000), named), null);
  assert.equal(receipts(at(4_999), named, FACT_MS), null);
  assert.equal(
    reasonOf({ method: "eth_getLogs", block: range(1, 2), condition: { facts: named } }),
    null,
  );
  for (const facts of [learned(undefined), learned(100), learned(50)])
    assert.equal(receipts(at(5_000), facts), "archival_required", "a number that explains nothing");
});

test("archival: with an unknown head only the earliest block needs an archive", () => {
  for (const block of [at(0), at(5), HASH, PENDING, range(5, 9)])
    assert.equal(reasonOf({ block, view: { head: null } }), null, JSON.stringify(block));
  assert.equal(reasonOf({ block: EARLIEST, view: { head: null } }), "archival_required");
});

test("archival: on a chain that is younger than what every node keeps, nothing needs an archive", () => {
  const young = { head: 128 };
  for (const block of [at(0), EARLIEST, range(0, 128)])
    assert.equal(reasonOf({ block, view: young }), null, JSON.stringify(block));
  assert.equal(reasonOf({ block: EARLIEST, view: { head: 129 } }), "archival_required");
});

test(
  "a declared block range binds log queries, open ends are the head, and unknown ends exclude " +
    "nobody",
  () => {
    const provider = { maxBlockRange: 100, archival: true };
    const rows: readonly (readonly [string, BlockRef, ExclusionReason | null])[] = [
      ["eth_getLogs", range(9_000, 9_100), null],
      ["eth_getLogs", range(9_000, 9_101), "block_range_limit"],
      ["eth_newFilter", range(9_000, 9_101), "block_range_limit"],
      ["eth_getLogs", range(9_900, null), null],
      ["eth_getLogs", range(9_899, null), "block_range_limit"],
      ["eth_getLogs", range(null, null), null],
      ["eth_getLogs", range(9_500, 9_000), null],
      ["trace_filter", range(9_000, 9_500), null],
    ];
    for (const [method, block, wanted] of rows)
      assert.equal(
        reasonOf({ method, block, provider }),
        wanted,
        `${method} ${JSON.stringify(block)}`,
      );
    assert.equal(
      reasonOf({ method: "eth_getLogs", block: range(1, null), provider, view: { head: null } }),
      null,
    );
  },
);

test("a declared block age binds the named methods, or all when none is named", () => {
  const aged = { archival: true, maxBlockAge: 1_000 };
  assert.equal(reasonOf({ block: at(HEAD - 1_000), provider: aged }), null);
  assert.equal(reasonOf({ block: at(HEAD - 1_001), provider: aged }), "block_age_limit");
  assert.equal(reasonOf({ block: EARLIEST, provider: aged }), "block_age_limit");
  assert.equal(reasonOf({ block: at(1), provider: aged, view: { head: null } }), null);
  const named = { ...aged, blockAgeMethods: new Set(["eth_call"]) };
  assert.equal(reasonOf({ block: at(1), provider: named }), null);
  assert.equal(reasonOf({ method: "eth_call", block: at(1), provider: named }), "block_age_limit");
});

test(
  "lag above the limit excludes, an unknown height does not, and a provider that says so " +
    "itself lags",
  () => {
    assert.equal(reasonOf({ condition: { lagBlocks: 5 } }), null);
    assert.equal(reasonOf({ condition: { lagBlocks: 6 } }), "lagging");
    assert.equal(reasonOf({ condition: { lagBlocks: null } }), null);
    assert.equal(reasonOf({ condition: { behind: true } }), "lagging");
  },
);

test("a learned method is left out for ten minutes, or until it is served after all", () => {
  const facts = new LearnedFacts();
  learnMethod(facts, methodOf("eth_getBalance"), 0);
  assert.equal(reasonOf({ condition: { facts } }), "method_unsupported");
  assert.equal(reasonOf({ method: "eth_getCode", condition: { facts } }), null);
  assert.equal(reasonOf({ condition: { facts }, view: { nowMs: FACT_MS } }), null);
  assert.deepEqual(facts.methods(0), ["eth_getBalance"]);
  facts.unlearn(methodOf("eth_getBalance"));
  assert.equal(reasonOf({ condition: { facts } }), null);
});

test("what an unlisted method is refused teaches nothing about other unlisted methods", () => {
  const facts = new LearnedFacts();
  learnMethod(facts, methodOf("custom_thing"), 0);
  learnMethod(facts, methodOf("personal_sign"), 0);
  learnTag(facts, methodOf("custom_thing"), PENDING, 0);
  assert.equal(reasonOf({ method: "custom_thing", condition: { facts } }), null);
  assert.deepEqual(facts.methods(0), []);
});

test("a learned tag binds its method only", () => {
  const facts = new LearnedFacts();
  learnTag(facts, methodOf("eth_getBalance"), PENDING, 0);
  assert.equal(reasonOf({ block: PENDING, condition: { facts } }), "tag_unsupported");
  assert.equal(reasonOf({ block: { kind: "tag", tag: "safe" }, condition: { facts } }), null);
  assert.equal(reasonOf({ method: "eth_call", block: PENDING, condition: { facts } }), null);
  assert.equal(reasonOf({ block: PENDING, condition: { facts }, view: { nowMs: FACT_MS } }), null);
});

test("what an archive does not have of old blocks is learned for ten minutes", () => {
  const facts = new LearnedFacts();
  learnPruned(facts, methodOf("eth_getBalance"), 0);
  const asked = { block: at(1), provider: { archival: true }, condition: { facts } };
  assert.equal(reasonOf(asked), "archival_required");
  assert.equal(reasonOf({ ...asked, view: { nowMs: FACT_MS } }), null);
});

test("one refusal says nothing of other resources", () => {
  const methods: Readonly<Record<Resource, string>> = {
    state: "eth_call",
    transactions: "eth_getTransactionByBlockNumberAndIndex",
    receipts: "eth_getBlockReceipts",
    logs: "eth_getLogs",
    blocks: "eth_getBlockByNumber",
    proofs: "eth_getProof",
    traces: "debug_traceBlockByNumber",
  };
  for (const refused of RESOURCES) {
    const facts = new LearnedFacts();
    learnPruned(facts, methodOf(methods[refused]), 0);
    assert.deepEqual(facts.pruned(0), [refused]);
    for (const resource of RESOURCES) {
      const block = resource === "logs" ? range(1, 9) : at(1);
      const asked = { method: methods[resource], block, condition: { facts } };
      assert.equal(
        reasonOf({ ...asked, provider: { archival: true } }),
        resource === refused ? "archival_required" : null,
        `${refused} ${resource}`,
      );
    }
  }
});

test("a learned range holds for an hour; a named limit beats a guess and a guess only narrows", () => {
  const facts = new LearnedFacts();
  learnRange(facts, null, 5_000, 0);
  assert.equal(facts.range(0), 3_750);
  learnRange(facts, null, 9_000, 0);
  assert.equal(facts.range(0), 3_750);
  learnRange(facts, 8_000, null, 0);
  assert.equal(facts.range(0), 8_000);
  const block = range(1_000, 9_001);
  const asked = {
    method: "eth_getLogs",
    block,
    provider: { archival: true },
    condition: { facts },
  };
  assert.equal(reasonOf(asked), "block_range_limit");
  assert.equal(reasonOf({ ...asked, view: { nowMs: RANGE_FACT_MS } }), null);
});

test("what is learned of a limit without a number is soon accepted, and near it", () => {
  for (const limit of [120, 500, 1_000, 2_999, 10_000, 50_000]) {
    const facts = new LearnedFacts();
    let refusals = 0;
    for (let span = 199_999; span > limit; span = facts.range(0) ?? 0) {
      learnRange(facts, null, span, 0);
      refusals++;
    }
    const learned = facts.range(0) ?? 0;
    assert.ok(learned <= limit && learned >= Math.floor(limit * 0.75), `${learned} of ${limit}`);
    assert.ok(refusals <= 30, `${refusals} refusals until ${limit}`);
  }
});

test("a refused span that is small or unknown, and a senseless limit, teach no range", () => {
  const facts = new LearnedFacts();
  learnRange(facts, null, null, 0);
  learnRange(facts, null, 99, 0);
  learnRange(facts, 0, 5_000, 0);
  learnRange(facts, Number.NaN, 5_000, 0);
  assert.equal(facts.range(0), null);
});

test("facts from before the clock jumped back no longer hold", () => {
  const facts = new LearnedFacts();
  learnMethod(facts, methodOf("eth_getBalance"), 1_000_000);
  learnRange(facts, 10, null, 1_000_000);
  assert.equal(reasonOf({ condition: { facts }, view: { nowMs: 10 } }), null);
  assert.equal(facts.range(10), null);
});

test(
  "limits may be set aside, lag only after them, and chain, credentials, circuit and the " +
    "earliest block never",
  () => {
    const waivers = (
      [
        "method_unsupported",
        "category_unsupported",
        "block_range_limit",
        "block_age_limit",
        "tag_unsupported",
        "archival_required",
      ] as const
    ).map((it) => waiverOf(it, at(1)));
    assert.deepEqual(new Set(waivers), new Set(["limit"]));
    assert.equal(waiverOf("lagging", at(1)), "lag");
    for (const reason of [
      "transport_missing",
      "wrong_chain",
      "cordoned",
      "circuit_open",
      "trial_in_flight",
    ] as const)
      assert.equal(waiverOf(reason, at(1)), "never");
    assert.equal(waiverOf("archival_required", EARLIEST), "never");
  },
);

test(
  "property: a provider with an archive and no declared limits is excluded by nothing a caller " +
    "writes",
  () => {
    const number = fc.option(fc.nat({ max: 2 ** 52 }));
    const block = fc.oneof(
      fc.constantFrom<BlockRef>({ kind: "none" }, EARLIEST, HASH, PENDING),
      fc.nat({ max: 2 ** 52 }).map(at),
      fc.tuple(number, number).map(([from, to]) => range(from, to)),
    );
    fc.assert(
      fc.property(fc.string(), block, fc.option(fc.nat({ max: 2 ** 52 })), (method, ref, head) => {
        assert.equal(
          reasonOf({ method, block: ref, provider: { archival: true }, view: { head } }),
          null,
        );
      }),
    );
  },
);
