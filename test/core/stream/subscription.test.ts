// What a caller subscribes to: equal filters become equal texts, every other parameter is refused
// in words, and no input breaks the reader.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import {
  isWithin,
  logsOfBlock,
  readCriteria,
  readSubscription,
  type Subscription,
} from "../../../src/core/stream/subscription.ts";

const A = `0x${"aB".repeat(20)}`;
const B = `0x${"cd".repeat(20)}`;
const T = `0x${"Ef".repeat(32)}`;

function paramsOf(params: unknown): string {
  const it = readSubscription(params);
  return it.kind === "invalid" ? `invalid: ${it.message}` : it.params;
}

function subscriptionOf(params: unknown): Subscription {
  const it = readSubscription(params);
  assert.ok(it.kind !== "invalid", JSON.stringify(params));
  return it;
}

test("ways of writing the same subscription become one text", () => {
  const same: readonly (readonly unknown[])[] = [
    [["newHeads"], ["newHeads", {}], ["newHeads", null]],
    [
      ["newPendingTransactions"],
      ["newPendingTransactions", false],
      ["newPendingTransactions", {}],
      ["newPendingTransactions", null],
    ],
    [
      ["logs"],
      ["logs", {}],
      ["logs", { address: null, topics: [] }],
      ["logs", { address: [], topics: [null, []] }],
      ["logs", { fromBlock: "latest", toBlock: null }],
      ["logs", { fromBlock: "0x0", toBlock: "latest", address: null, topics: null }],
      ["logs", { fromBlock: "0x10", toBlock: "0x20", blockHash: null }],
    ],
    [
      ["logs", { address: A }],
      ["logs", { address: [A.toLowerCase(), A] }],
    ],
    [
      ["logs", { address: [A, B] }],
      ["logs", { address: [B, A.toLowerCase(), B] }],
    ],
    [
      ["logs", { topics: [null, T] }],
      ["logs", { topics: [[], [T, T.toLowerCase()], null] }],
      ["logs", { topics: [[null, T], T] }],
    ],
  ];
  for (const group of same)
    assert.equal(new Set(group.map(paramsOf)).size, 1, JSON.stringify(group));
  assert.equal(new Set(same.map(([first]) => paramsOf(first))).size, same.length);
  assert.equal(
    paramsOf(["logs", { address: A, topics: [null, [T]] }]),
    `["logs",{"address":"${A.toLowerCase()}","topics":[null,"${T.toLowerCase()}"]}]`,
  );
  assert.equal(paramsOf(["newPendingTransactions", true]), '["newPendingTransactions",true]');
});

test("parameters that are none are refused, and the message names what is allowed", () => {
  const bad: readonly (readonly [unknown, RegExp])[] = [
    [undefined, /array/],
    [{}, /array/],
    [[], /newHeads/],
    [["vendor"], /newHeads, logs/],
    [[1], /newHeads/],
    [["newHeads", {}, 1], /at most one/],
    [["newHeads", { includeTransactions: true }], /no option/],
    [["syncing", true], /no option/],
    [["newPendingTransactions", "yes"], /true/],
    [["logs", []], /object/],
    [["logs", { address: "0x1" }], /20 bytes/],
    [["logs", { address: Array.from({ length: 1_001 }, () => A) }], /1000/],
    [["logs", { address: [null] }], /20 bytes/],
    [["logs", { topics: T }], /list/],
    [["logs", { topics: [T, T, T, T, T] }], /at most 4/],
    [["logs", { topics: [A] }], /32 bytes/],
    [["logs", { fromBlock: "pending" }], /pending/],
    [["logs", { toBlock: "pending" }], /pending/],
    [["logs", { fromBlock: "finalized" }], /finalized/],
    [["logs", { fromBlock: 1 }], /hex quantities/],
    [["logs", { fromBlock: {} }], /hex quantities/],
    [["logs", { toBlock: "0x5" }], /needs a fromBlock/],
    [["logs", { fromBlock: "0x6", toBlock: "0x5" }], /greater/],
    [["logs", { fromBlocks: "0x1" }], /fromBlocks/],
    [["logs", { blockHash: T }], /blockHash/],
  ];
  for (const [params, message] of bad)
    assert.match(paramsOf(params), message, JSON.stringify(params)?.slice(0, 80));
});

test("numbers bound the live logs; what leaves out nothing is no bound", () => {
  const boundsOf = (option: unknown) => subscriptionOf(["logs", option]).bounds;
  for (const option of [
    {},
    { fromBlock: "0x0" },
    { fromBlock: "earliest" },
    { fromBlock: "latest", toBlock: "latest" },
  ])
    assert.equal(boundsOf(option), null);
  assert.deepEqual(boundsOf({ fromBlock: "0x0", toBlock: "0xff" }), { from: 0, to: 255 });
  assert.deepEqual(boundsOf({ fromBlock: "0x10" }), { from: 16, to: null });
  assert.deepEqual(boundsOf({ fromBlock: "0x10", toBlock: "latest" }), { from: 16, to: null });
  assert.deepEqual(boundsOf({ fromBlock: "0x5", toBlock: "0x5" }), { from: 5, to: 5 });
  const endless =
    boundsOf({ fromBlock: "0x1", toBlock: "0xffffffffffffffff" }) ?? assert.fail("bounded");
  assert.deepEqual(
    [0, 1, Number.MAX_SAFE_INTEGER].map((it) => isWithin(endless, it)),
    [false, true, true],
  );
  assert.deepEqual(
    [4, 5, 6].map((it) => isWithin({ from: 5, to: 5 }, it)),
    [false, true, false],
  );
});

test(
  "criteria of a filter are those of a subscription, and are kept as they were for their query " +
    "of history",
  () => {
    const it = readCriteria([{ fromBlock: "earliest", address: A, topics: [null, [T]] }]);
    assert.ok(it.kind === "criteria");
    assert.equal(it.subscription.params, paramsOf(["logs", { address: A, topics: [null, T] }]));
    assert.deepEqual(JSON.parse(it.query), [
      { fromBlock: "earliest", address: A, topics: [null, [T]] },
    ]);
    for (const params of [[], [{}], [null]])
      assert.equal(readCriteria(params).kind, "criteria", JSON.stringify(params));
    for (const params of [
      null,
      {},
      [[]],
      ["0x1"],
      [{}, {}],
      [{ blockHash: T }],
      [{ fromBlock: "pending" }],
    ])
      assert.equal(readCriteria(params).kind, "invalid");
    fc.assert(fc.property(fc.jsonValue(), (option) => void readCriteria([option])));
  },
);

test("a normalised subscription reads back as itself", () => {
  const hex = (digits: number) => fc.stringMatching(new RegExp(`^0x[0-9a-fA-F]{${digits}}$`));
  const choice = (digits: number) =>
    fc.oneof(fc.constant(null), hex(digits), fc.array(hex(digits), { maxLength: 4 }));
  const filter = fc.record(
    { address: choice(40), topics: fc.array(choice(64), { maxLength: 4 }) },
    { requiredKeys: [] },
  );
  fc.assert(
    fc.property(filter, fc.nat(), (option, turn) => {
      const first = subscriptionOf(["logs", option]);
      const again = subscriptionOf(JSON.parse(first.params));
      assert.deepEqual(again, first);
      const { address } = option;
      const turned = Array.isArray(address)
        ? [
            ...address.slice(turn % (address.length + 1)),
            ...address.slice(0, turn % (address.length + 1)),
          ]
        : address;
      assert.equal(subscriptionOf(["logs", { ...option, address: turned }]).params, first.params);
      assert.ok(first.filter !== null);
      const [asked] = JSON.parse(logsOfBlock(first.filter, T));
      assert.deepEqual(asked, { blockHash: T, ...JSON.parse(first.params)[1] });
    }),
  );
});

test("no parameters at all break the reader", () => {
  fc.assert(fc.property(fc.anything(), (params) => void readSubscription(params)));
  fc.assert(
    fc.property(
      fc.constantFrom("newHeads", "logs", "newPendingTransactions", "syncing"),
      fc.jsonValue(),
      (kind, it) => void readSubscription([kind, it]),
    ),
  );
});
