// How far back a provider has each kind of data: as it is written, reported, merged and compared.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { isBeyond } from "../../../src/core/provider/capability.ts";
import {
  byResource,
  type HistoryBound,
  historyOf,
  type KnownBound,
  type KnownHistory,
  NOTHING,
  oldestAt,
  readBound,
  readReport,
  unionOf,
  WHOLE,
  writtenBound,
  writtenReport,
} from "../../../src/core/provider/history.ts";
import type { BlockRef } from "../../../src/core/rpc/call.ts";
import { RESOURCES } from "../../../src/core/rpc/method.ts";
import { fakeProvider } from "../../fakes/providers.ts";

const USUAL = 128;
const HASH = `0x${"ab".repeat(32)}`;

const height = fc.integer({ min: 0, max: 50_000_000 });
const anyBound: fc.Arbitrary<HistoryBound> = fc.oneof(
  height.map((oldest) => ({ ...WHOLE, oldest })),
  fc.integer({ min: 1, max: 50_000_000 }).map((window) => ({ oldest: 0, window })),
  fc.constant(NOTHING),
);
const anyHistory: fc.Arbitrary<KnownHistory> = fc
  .tuple(...RESOURCES.map(() => fc.option(anyBound)))
  .map((bounds) =>
    byResource((resource): KnownBound | null => {
      const bound = bounds[RESOURCES.indexOf(resource)] ?? null;
      return bound === null ? null : { ...bound, source: "reported" };
    }),
  );
const number = (value: number): BlockRef => ({ kind: "number", number: value });

test("a bound is a number, the last blocks, or none", () => {
  assert.deepEqual(readBound(0), WHOLE);
  assert.deepEqual(readBound(15_537_394), { ...WHOLE, oldest: 15_537_394 });
  assert.deepEqual(readBound("last 90000"), { oldest: 0, window: 90_000 });
  assert.deepEqual(readBound("none"), NOTHING);
  for (const text of ["", "last", "last 0", "last -1", "last 1.5", "last 99999999999", "all", "7"])
    assert.equal(readBound(text), null, text);
  for (const value of [-1, 1.5, Number.NaN, 2 ** 60]) assert.equal(readBound(value), null);
});

test("property: what is written of a bound is read as that bound", () => {
  fc.assert(
    fc.property(anyBound, (bound) => assert.deepEqual(readBound(writtenBound(bound)), bound)),
  );
});

test("property: a block is beyond a bound if it is older than the oldest one within it", () => {
  fc.assert(
    fc.property(anyBound, height, height, (bound, head, block) => {
      fc.pre(block <= head);
      const isOld = block < oldestAt(bound, head);
      assert.equal(isBeyond(number(block), bound, head, USUAL), isOld);
      const range = { kind: "range", from: block, to: head } as const;
      assert.equal(isBeyond(range, bound, head, USUAL), isOld);
      const isAllOld = 0 < oldestAt(bound, head);
      assert.equal(isBeyond({ kind: "earliest" }, bound, head, USUAL), isAllOld);
      assert.equal(isBeyond({ kind: "none" }, bound, head, USUAL), false);
    }),
  );
});

test("without a head only what is certain counts as beyond", () => {
  const window = { oldest: 0, window: 1_000 };
  assert.equal(isBeyond(number(0), window, null, USUAL), false);
  assert.equal(isBeyond({ kind: "hash" }, window, null, USUAL), false);
  assert.equal(isBeyond({ kind: "earliest" }, window, null, USUAL), true);
  assert.equal(isBeyond({ kind: "range", from: 0, to: null }, window, null, USUAL), true);
  assert.equal(isBeyond({ kind: "range", from: 5, to: null }, window, null, USUAL), false);
  assert.equal(isBeyond(number(4), { ...WHOLE, oldest: 5 }, null, USUAL), true);
});

test("the declared goes before the reported, and that before what is assumed", () => {
  const told = { logs: { ...WHOLE, oldest: 7 }, state: WHOLE };
  const of = (
    overrides: Parameters<typeof fakeProvider>[1],
    reported = null as typeof told | null,
  ) => historyOf(fakeProvider(0, overrides), USUAL, reported);
  const recent = { oldest: 0, window: USUAL, source: "assumed" };
  const plain = of({});
  assert.deepEqual(plain.state, recent);
  assert.deepEqual([plain.proofs, plain.traces], [recent, recent]);
  for (const resource of ["transactions", "receipts", "logs", "blocks"] as const)
    assert.equal(plain[resource], null);
  assert.deepEqual(of({}, told).state, { ...WHOLE, source: "reported" });
  assert.equal(of({ archival: true }).proofs?.source, "declared");
  assert.equal(of({ archival: true }).logs?.source, "assumed");
  assert.deepEqual(of({ archival: true }, told).logs, { ...told.logs, source: "reported" });
  const aged = { maxBlockAge: 500, history: { logs: WHOLE } };
  assert.deepEqual(of(aged, told).logs, { ...WHOLE, source: "declared" });
  assert.deepEqual(of(aged, told).receipts, { oldest: 0, window: 500, source: "declared" });
  const named = { ...aged, blockAgeMethods: new Set(["eth_call"]) };
  assert.equal(of(named).receipts, null, "an age of named methods says nothing of resources");
});

/** The example of ethereum/execution-apis. */
const EXAMPLE = {
  head: { number: "0x13f8e3a", hash: HASH },
  state: {
    disabled: false,
    oldestBlock: "0x13e022a",
    deleteStrategy: { type: "window", retentionBlocks: "0x15f90" },
  },
  tx: { disabled: false, oldestBlock: "0x11b340a" },
  logs: { disabled: true },
  receipts: { disabled: false },
  blocks: { disabled: false, oldestBlock: "0x0" },
  stateproofs: { disabled: false, deleteStrategy: { type: "window", retentionBlocks: 128 } },
};

test("the report of a node is read; what it leaves open is left out", () => {
  assert.deepEqual(readReport(Buffer.from(JSON.stringify(EXAMPLE))), {
    state: { oldest: 0x13e022a, window: 0x15f90 - 1 },
    transactions: { ...WHOLE, oldest: 0x11b340a },
    logs: NOTHING,
    blocks: WHOLE,
    proofs: { oldest: 0, window: 127 },
  });
});

test("property: no bytes break the reader, and what is no report says nothing", () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      const report = readReport(Buffer.from(JSON.stringify(value)));
      for (const bound of Object.values(report ?? {}))
        assert.ok(bound.oldest >= 0 && bound.window >= 0);
    }),
  );
  for (const text of ["", "null", "[]", '"0x1"', "{}", '{"state":{}}', '{"state":{"disabled":1}}'])
    assert.equal(readReport(Buffer.from(text)), null, text);
  const long = { ...EXAMPLE, more: "x".repeat(9_000) };
  assert.equal(readReport(Buffer.from(JSON.stringify(long))), null);
});

test("property: what is reported of a history is read as what was in reach then", () => {
  fc.assert(
    fc.property(anyHistory, height, (history, head) => {
      const report = readReport(writtenReport(history, head, HASH)) ?? {};
      for (const resource of RESOURCES) {
        const bound = history[resource];
        const read = report[resource];
        if (bound === null || resource === "traces") assert.equal(read, undefined);
        else assert.equal(read && oldestAt(read, head), oldestAt(bound, head));
      }
    }),
  );
});

test("property: a union has every block that one of its parts has, and no other", () => {
  fc.assert(
    fc.property(fc.array(anyHistory, { maxLength: 4 }), height, (histories, head) => {
      const union = unionOf(histories, head);
      for (const resource of RESOURCES) {
        const bounds = histories.map((history) => history[resource]);
        const known = bounds.filter((bound) => bound !== null);
        const furthest = Math.min(...known.map((bound) => oldestAt(bound, head)));
        const bound = union[resource];
        if (bound !== null) assert.equal(oldestAt(bound, head), furthest);
        else assert.ok(known.length === 0 || (furthest === Infinity && bounds.includes(null)));
      }
    }),
  );
});

test("property: what lies within the common bound lies within every bound", () => {
  fc.assert(
    fc.property(anyHistory, height, height, (reported, head, block) => {
      const stated = Object.fromEntries(
        RESOURCES.flatMap((resource) => {
          const bound = reported[resource];
          return bound === null ? [] : [[resource, bound]];
        }),
      );
      const { common, ...history } = historyOf(fakeProvider(0), USUAL, stated);
      if (isBeyond(number(block), common, head, USUAL)) return;
      for (const bound of Object.values(history))
        assert.ok(bound === null || !isBeyond(number(block), bound, head, USUAL));
    }),
  );
});
