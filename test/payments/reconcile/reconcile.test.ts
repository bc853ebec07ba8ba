// Reconciliation: whatever moved on the chain and whatever was recorded for it are compared to the
// unit, in ranges that the node takes, and each difference is told.
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  ChainFailure,
  type NodeError,
  type NodeResult,
} from "../../../src/payments/rails/chain.ts";
import { EvmNode } from "../../../src/payments/rails/evm/node.ts";
import {
  MAX_DIFFERENCES,
  type ReceivingAddressReport,
  type Records,
  reconcile,
} from "../../../src/payments/reconcile/reconcile.ts";
import { realRuntime } from "../../../src/runtime.ts";

const TOKEN = `0x${"a1".repeat(20)}`;
const RECIPIENT = `0x${"b2".repeat(20)}`;
const PAYER = `0x${"c3".repeat(20)}`;
const TRANSFER = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef";
const SECONDS_PER_BLOCK = 10;

interface Transfer {
  readonly block: number;
  readonly tx: string;
  readonly units: bigint;
  readonly to?: string;
}

interface Record {
  readonly tx: string;
  readonly units: bigint;
  readonly id: string;
}

interface Case {
  readonly transfers: readonly Transfer[];
  readonly records: readonly Record[];
  readonly head?: number;
  readonly confirmations?: number;
  readonly sinceMs?: number;
  readonly underWay?: readonly string[];
  /** Blocks of one question that the node answers at most. */
  readonly maxRange?: number;
  /** Whether it refuses the next question for logs. */
  readonly isRefused?: () => boolean;
  /** How: by a JSON-RPC error, or by an HTTP status. */
  readonly refusal?: "error" | "failure";
}

test(
  "what agrees is told as such, with several transfers in one transaction and several " +
    "purchases paid by one",
  async () => {
    const report = await run({
      transfers: [
        { block: 3, tx: "01", units: 5n },
        { block: 3, tx: "01", units: 7n },
        { block: 40, tx: "02", units: 9n },
        { block: 40, tx: "03", units: 1n, to: PAYER },
      ],
      records: [
        { tx: "01", units: 4n, id: "pur_a" },
        { tx: "01", units: 8n, id: "pur_b" },
        { tx: "02", units: 9n, id: "pur_c" },
      ],
    });
    assert.deepEqual(
      { ...report, differences: [...report.differences] },
      { ...QUIET, transfers: 2, movedUnits: 21n, recordedUnits: 21n },
    );
  },
);

test(
  "money that nobody recorded, money that was recorded and never came, and amounts that differ " +
    "are each told once",
  async () => {
    const report = await run({
      transfers: [
        { block: 3, tx: "01", units: 5n },
        { block: 4, tx: "02", units: 6n },
      ],
      records: [
        { tx: "02", units: 7n, id: "pur_b" },
        { tx: "04", units: 1n, id: "pur_d" },
      ],
    });
    const told = report.differences.map((it) => [
      it.txHash.slice(-2),
      it.movedUnits,
      it.recordedUnits,
    ]);
    assert.deepEqual(told, [
      ["01", 5n, 0n],
      ["02", 6n, 7n],
      ["04", 0n, 1n],
    ]);
    assert.deepEqual(report.differences[2]?.ids, ["pur_d"]);
    assert.equal(report.differing, 3);
  },
);

test("a transfer that a purchase under way may be for is no difference", async () => {
  const report = await run({
    transfers: [{ block: 3, tx: "01", units: 5n }],
    records: [],
    underWay: ["01"],
  });
  assert.deepEqual([report.underWay, report.differing], [1, 0]);
});

test(
  "blocks that are not deep enough are left for the next time, also where their money is " +
    "recorded",
  async () => {
    const report = await run({
      transfers: [{ block: 49, tx: "01", units: 5n }],
      records: [{ tx: "01", units: 5n, id: "pur_a" }],
      confirmations: 5,
    });
    assert.deepEqual([report.transfers, report.differing, report.toBlock], [0, 0, 45n]);
  },
);

test(
  "with a first day, older transfers are not compared, and older records are looked up by " +
    "their transaction",
  async () => {
    const old = { block: 2, tx: "01", units: 5n };
    const base = { sinceMs: 10 * SECONDS_PER_BLOCK * 1_000 };
    const fine = await run({
      ...base,
      transfers: [old],
      records: [{ tx: "01", units: 5n, id: "pur_a" }],
    });
    assert.deepEqual([fine.fromBlock, fine.transfers, fine.differing], [10n, 0, 0]);
    const wrong = await run({
      ...base,
      transfers: [old],
      records: [{ tx: "01", units: 6n, id: "pur_a" }],
    });
    assert.equal(wrong.differing, 1);
  },
);

test("a node that answers only small ranges is asked in small ranges, and misses nothing", async () => {
  const transfers = Array.from({ length: 50 }, (_, block) => ({
    block,
    tx: String(10 + block),
    units: 1n,
  }));
  const report = await run({ transfers, records: [], maxRange: 3 });
  assert.deepEqual([report.transfers, report.differing], [50, 50]);
});

for (const refusal of ["error", "failure"] as const)
  test(`ranges grow again after the node has refused one for a moment (${refusal})`, async () => {
    let questions = 0;
    const transfers = [{ block: 40_000, tx: "01", units: 5n }];
    const report = await run({
      ...{ transfers, records: [{ tx: "01", units: 5n, id: "pur_a" }], head: 90_000, refusal },
      isRefused: () => [1, 2, 3].includes(++questions),
    });
    assert.deepEqual([report.transfers, report.differing], [1, 0]);
    assert.ok(questions < 30, `${questions} questions for 90,000 blocks`);
  });

test("a node that gives no logs at all is trouble, not a clean report", async () => {
  await assert.rejects(run({ transfers: [], records: [], maxRange: 0 }), ChainFailure);
});

test("a great many differences are counted, and listed up to a bound", async () => {
  const transfers = Array.from({ length: MAX_DIFFERENCES + 5 }, (_, at) => ({
    block: at % 50,
    tx: at.toString(16).padStart(4, "0"),
    units: 1n,
  }));
  const report = await run({ transfers, records: [] });
  assert.deepEqual(
    [report.differing, report.differences.length],
    [MAX_DIFFERENCES + 5, MAX_DIFFERENCES],
  );
});

const QUIET: ReceivingAddressReport = {
  chainId: 1,
  fromBlock: 0n,
  toBlock: 50n,
  transfers: 0,
  movedUnits: 0n,
  recordedUnits: 0n,
  underWay: 0,
  differences: [],
  differing: 0,
};

function run(it: Case): Promise<ReceivingAddressReport> {
  const receiver = {
    node: nodeOf(it),
    token: TOKEN,
    recipient: RECIPIENT,
    confirmations: it.confirmations ?? 0,
  };
  return reconcile({
    receiver,
    records: recordsOf(it),
    sinceMs: it.sinceMs ?? 0,
    onProgress: () => {},
  });
}

function nodeOf(given: Case): EvmNode {
  const { transfers, head = 50, maxRange = 1_000_000, isRefused, refusal } = given;
  const answer = (method: string, [first]: readonly unknown[]): unknown => {
    if (method === "eth_getBlockByNumber") {
      const number = first === "latest" ? head : Number(first);
      return {
        number: hex(number),
        hash: word("0x01"),
        timestamp: hex(number * SECONDS_PER_BLOCK),
      };
    }
    if (method === "eth_getTransactionReceipt") {
      const its = transfers.filter((it) => hashOf(it.tx) === first);
      return its[0] === undefined
        ? null
        : { ...placeOf(its[0]), status: "0x1", logs: its.map(logOf) };
    }
    const { fromBlock, toBlock, topics } = first as {
      readonly fromBlock: string;
      readonly toBlock: string;
      readonly topics: readonly (string | null)[];
    };
    if (isRefused?.() || Number(toBlock) - Number(fromBlock) + 1 > maxRange) return null;
    assert.deepEqual(topics, [TRANSFER, null, word(RECIPIENT)]);
    return transfers
      .filter(
        (it) => it.to === undefined && it.block >= Number(fromBlock) && it.block <= Number(toBlock),
      )
      .map(logOf);
  };
  class ScriptedNode extends EvmNode {
    override async call<T>(
      method: string,
      params: readonly unknown[],
      read: (result: unknown) => T,
    ): Promise<NodeResult<T> | NodeError> {
      const value = answer(method, params);
      if (value === null && method === "eth_getLogs" && refusal === "failure")
        throw new ChainFailure("The payment chain's node answered HTTP status 400");
      if (value === null && method === "eth_getLogs")
        return {
          kind: "node_error",
          code: -32005,
          message: "range too large",
          data: null,
          reverted: false,
        };
      return { kind: "result", value: read(value) };
    }
  }
  return new ScriptedNode({ rpcUrl: "http://127.0.0.1:1", chainId: 1, runtime: realRuntime });
}

function recordsOf({ records, underWay = [] }: Case): Records {
  const units = (tx: string): bigint =>
    records.filter((it) => hashOf(it.tx) === tx).reduce((sum, it) => sum + it.units, 0n);
  return {
    recorded: async (hashes) =>
      new Map(hashes.filter((it) => units(it) > 0n).map((it) => [it, units(it)])),
    total: async () => records.reduce((sum, it) => sum + it.units, 0n),
    async *pages() {
      // One record on a page, so that one transaction's records stand on several.
      for (const it of records) yield [{ txHash: hashOf(it.tx), units: it.units, ids: [it.id] }];
    },
    isUnderWay: async ({ txHash }) => underWay.some((it) => hashOf(it) === txHash),
  };
}

function placeOf({ tx, block }: Transfer) {
  return { transactionHash: hashOf(tx), blockNumber: hex(block), blockHash: word("0x01") };
}

function logOf({ tx, block, units, to = RECIPIENT }: Transfer): object {
  return {
    ...placeOf({ tx, block, units }),
    logIndex: "0x0",
    address: TOKEN,
    topics: [TRANSFER, word(PAYER), word(to)],
    data: hex(units),
  };
}

function hashOf(tx: string): string {
  return `0x${tx.padStart(64, "0")}`;
}

function word(address: string): string {
  return `0x${address.slice(2).padStart(64, "0")}`;
}

function hex(it: number | bigint): string {
  return `0x${it.toString(16)}`;
}
