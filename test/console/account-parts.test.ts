// The pure parts of the pages of accounts and of the tester: estimates, graphs, differences,
// documents against a schema, programs to copy, offers of payments, comparisons.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { test } from "node:test";
import fc from "fast-check";
import { checkDocument } from "../../console/editor/schema-check.ts";
import { differs, lineDiff } from "../../console/format/line-diff.ts";
import { runOutOf, runOutText, usdScale } from "../../console/format/money.ts";
import { LANGUAGES, shell, snippet } from "../../console/format/snippets.ts";
import { usd } from "../../console/format/text.ts";
import { columnsOf } from "../../console/pages/account/usage.ts";
import { dayRangeOf } from "../../console/pages/money/day-range.ts";
import { comparisonText, groupsOf } from "../../console/pages/tester/compare.ts";
import { decodeError, decodeResult, revertReason } from "../../console/pages/tester/decode.ts";
import {
  METHOD_FORMS,
  needsConfirmation,
  paramsOfForm,
  paramsOfJson,
} from "../../console/pages/tester/method-forms.ts";
import { reasonsOf } from "../../console/pages/tester/routing-reasons.ts";
import {
  amountText,
  authorizationFor,
  paymentHeader,
  readOffers,
  typedDataText,
} from "../../console/wallet/x402-offer.ts";
import { MPPX_COMMAND } from "../../src/core/billing/payment.ts";

const NOW_MS = Date.UTC(2026, 10, 23, 12, 30);
const DAY_MS = 86_400_000;

const HOUR_MS = 3_600_000;
const isoOf = (ms: number): string => new Date(ms).toISOString();

/** An account with this balance that was charged so much since 90 minutes and since a day. */
const spending = (balance_usd: string, hourUsd: string, dayUsd: string, ageMs = 9 * DAY_MS) => ({
  balance_usd,
  created_at: isoOf(NOW_MS - ageMs),
  recent: {
    hour: { from: isoOf(NOW_MS - 1.5 * HOUR_MS), usd: hourUsd },
    day: { from: isoOf(NOW_MS - DAY_MS), usd: dayUsd },
  },
});

test("a balance ends in a range: at the rate of the last hour, and of the last day", () => {
  const faster = runOutOf(spending("48", "1.5", "12"), NOW_MS);
  assert.deepEqual(faster?.perDayUsd, [12, 24]);
  assert.equal(faster?.soonestMs, NOW_MS + 2 * DAY_MS, "the hour is sooner");
  assert.equal(faster?.latestMs, NOW_MS + 4 * DAY_MS);
  const slower = runOutOf(spending("48", "0.75", "48"), NOW_MS);
  assert.equal(slower?.soonestMs, NOW_MS + DAY_MS, "the day is sooner");
  assert.equal(runOutOf(spending("48", "0", "12"), NOW_MS)?.latestMs, null);
  assert.equal(runOutOf(spending("48", "0", "0"), NOW_MS), null);
  const young = runOutOf(spending("24", "1", "1", HOUR_MS), NOW_MS);
  assert.deepEqual(young?.perDayUsd, [24, 24], "a short life counts as long as it was");
  const newborn = runOutOf(spending("24", "1", "1", 60_000), NOW_MS);
  assert.deepEqual(newborn?.perDayUsd, [24, 24], "and as an hour at least");
  assert.equal(runOutOf(spending("-1", "1", "1"), NOW_MS)?.soonestMs, NOW_MS);
});

test("the end of a balance never comes later by more spending, nor sooner by more money", () => {
  const cents = fc.nat(100_000);
  const usdOf = (n: number): string => String(n / 100);
  fc.assert(
    fc.property(cents, cents, cents, cents, (balance, hour, more, extra) => {
      const dayUsd = usdOf(hour + more);
      const now = runOutOf(spending(usdOf(balance), usdOf(hour), dayUsd), NOW_MS);
      const richer = runOutOf(spending(usdOf(balance + extra), usdOf(hour), dayUsd), NOW_MS);
      const spent = usdOf(hour + more + extra);
      const busier = runOutOf(spending(usdOf(balance), usdOf(hour), spent), NOW_MS);
      if (now === null) return;
      assert.ok(now.soonestMs >= NOW_MS && now.soonestMs <= (now.latestMs ?? Infinity));
      assert.ok((richer?.soonestMs ?? Infinity) >= now.soonestMs);
      assert.ok((busier?.soonestMs ?? Infinity) <= now.soonestMs);
    }),
  );
});

test("the range of the end is told in words", () => {
  const textOf = (balance: string, hour: string, day: string): string =>
    runOutText(runOutOf(spending(balance, hour, day), NOW_MS), NOW_MS);
  assert.equal(textOf("48", "1.5", "12"), "25 Nov 2026 – 27 Nov 2026");
  assert.equal(textOf("4", "1.5", "12"), "in 4 h 0 min – 8 h 0 min");
  assert.equal(textOf("48", "0", "12"), "not before 27 Nov 2026");
  assert.equal(textOf("4", "0", "12"), "not within 8 h 0 min");
  assert.equal(textOf("48", "1.5", "24"), "25 Nov 2026");
  assert.equal(textOf("0", "1", "1"), "now");
  assert.equal(textOf("1000000", "0.01", "0.01"), "over 5 years");
  assert.equal(textOf("1", "0", "0"), "–");
});

test("amounts of a column have one scale", () => {
  const texts = (...amounts: (string | null)[]): string[] => amounts.map(usdScale(amounts));
  assert.deepEqual(texts("1234.5", "0", "-3"), ["$1,234.50", "$0.00", "−$3.00"]);
  assert.deepEqual(texts("12", "0.000015"), ["$12.000000", "$0.000015"]);
  assert.deepEqual(texts("12", "0.004", null), ["$12.0000", "$0.0040", "–"]);
  assert.deepEqual(texts("1", "0.000000001"), ["$1.000000", "<$0.000001"]);
});

test("the days of the page of money stand in its address", () => {
  const today = "2026-11-29";
  assert.deepEqual(dayRangeOf({}, today), { from: "2026-10-31", to: today, span: "30d" });
  assert.deepEqual(dayRangeOf({ range: "hour" }, today), { from: today, to: today, span: "day" });
  assert.deepEqual(dayRangeOf({ range: "7d" }, today), {
    from: "2026-11-23",
    to: today,
    span: "7d",
  });
  const range = { from: "2026-11-01", to: "2026-11-02" };
  assert.deepEqual(dayRangeOf(range, today), { ...range, span: "custom" });
  for (const wrong of [
    { from: today },
    { from: today, to: "2026-11-01" },
    { from: "2020-01-01", to: today },
    { from: "2026-13-01", to: today },
  ])
    assert.equal(dayRangeOf(wrong, today).span, "30d", JSON.stringify(wrong));
});

test("a graph of usage has every day, also those without any", () => {
  const days = [{ day: "2026-11-22", calls: 7, cu: 21, usd: "0.5" }];
  const from = "2026-11-21T00:00:00.000Z";
  const { times, values } = columnsOf({ from, to: "2026-11-23T12:00:00.000Z", days }, "usd");
  assert.deepEqual(values, [0, 0.5, 0]);
  assert.equal((times[1] ?? 0) * 1000, Date.UTC(2026, 10, 22));
});

test("small amounts are not shown as nothing", () => {
  assert.deepEqual(["0", "2.5", "1234.567", "0.000015", "0.0000000001", "-3", null].map(usd), [
    "$0.00",
    "$2.50",
    "$1,234.57",
    "$0.000015",
    "<$0.000001",
    "−$3.00",
    "–",
  ]);
});

test("a difference rebuilds both texts, whatever they are", () => {
  const texts = fc.array(fc.constantFrom("a", "b", "c", ""), { maxLength: 12 });
  fc.assert(
    fc.property(texts, texts, (before, after) => {
      const lines = lineDiff(before.join("\n"), after.join("\n"));
      const without = (kind: string): string =>
        lines.flatMap((line) => (line.kind === kind ? [] : [line.text])).join("\n");
      assert.equal(without("added"), before.join("\n"));
      assert.equal(without("removed"), after.join("\n"));
      assert.equal(differs(lines), before.join("\n") !== after.join("\n"));
    }),
  );
  const long = (mark: string): string =>
    Array.from({ length: 3_000 }, (_, at) => mark + at).join("\n");
  assert.equal(lineDiff(long("a"), long("b")).length, 6_000);
});

const SCHEMA = {
  type: "object",
  required: ["chains"],
  additionalProperties: false,
  properties: {
    name: { type: "string", maxLength: 3 },
    chains: { type: "object", additionalProperties: { $ref: "#/$defs/Chain" } },
    span: { anyOf: [{ type: "integer", minimum: 1 }, { type: "null" }] },
  },
  $defs: {
    Chain: {
      type: "array",
      minItems: 1,
      items: { type: "object", properties: { url: { type: "string", pattern: "^https" } } },
    },
  },
};

test("a document is checked while it is typed, with the path of each problem", () => {
  const problemsOf = (document: unknown): string[] =>
    checkDocument(SCHEMA, document).map(({ path, message }) => `${path}: ${message}`);
  assert.deepEqual(problemsOf({ chains: { a: [{ url: "https://x" }] }, span: null }), []);
  assert.deepEqual(problemsOf({ nope: 1, name: "long" }), [
    "chains: is missing",
    "nope: is not known",
    "name: must have 3 characters or fewer",
  ]);
  assert.deepEqual(problemsOf({ chains: { a: [], b: [{ url: "ftp" }, { url: "https://h/…" }] } }), [
    "chains.a: must have 1 or more",
    "chains.b[0].url: has characters that are not allowed",
  ]);
  assert.deepEqual(problemsOf({ chains: {}, span: 0 }), [
    `span: must be from 1 to ${Number.POSITIVE_INFINITY}`,
  ]);
  assert.deepEqual(problemsOf(7), [": must be an object"]);
  const deep = { $defs: { D: { items: { $ref: "#/$defs/D" } } }, $ref: "#/$defs/D" };
  let nested: unknown = [];
  for (let depth = 0; depth < 500; depth++) nested = [nested];
  assert.deepEqual(checkDocument(deep, nested), []);
});

test("programs hold a hostile call as data: they read back what was meant", () => {
  const hostile = `'; touch /tmp/x; echo "$(id)" \`id\` \\ é`;
  assert.equal(execFileSync("sh", ["-c", `printf %s ${shell(hostile)}`]).toString(), hostile);
  const call = { url: "http://127.0.0.1/rpc", method: hostile, params: [hostile, true, null] };
  for (const language of LANGUAGES) assert.match(snippet(language, call), /127\.0\.0\.1/);
  // A string of JSON is one of python, too.
  const [, text = ""] = /json\.loads\((".*")\)/.exec(snippet("web3.py", call)) ?? [];
  assert.deepEqual(JSON.parse(JSON.parse(text)), call.params);
});

test("a form becomes parameters, and what changes the chain is confirmed", () => {
  const fields = METHOD_FORMS["eth_getBlockByNumber"] ?? [];
  assert.deepEqual(paramsOfForm(fields, ["latest", "false"]), {
    params: ["latest", false],
    why: "",
  });
  assert.equal(
    paramsOfForm(fields, ["latest", "maybe"]).why,
    "Whole transactions: not valid JSON.",
  );
  assert.notEqual(paramsOfJson('{"a":1}').why, "");
  assert.deepEqual(paramsOfJson(""), { params: [], why: "" });
  for (const method of ["eth_sendRawTransaction", "eth_sendBundle", "eth_sendUserOperation"])
    assert.ok(needsConfirmation(method), method);
  assert.ok(!needsConfirmation("eth_getTransactionByHash"));
});

const TERMS = {
  scheme: "exact",
  network: "eip155:31337",
  amount: "2500000",
  asset: `0x${"a".repeat(40)}`,
  payTo: `0x${"b".repeat(40)}`,
  maxTimeoutSeconds: 300,
  extra: { name: "Dollar", version: "2" },
};
const encode = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString("base64");
const decode = (text: string) => JSON.parse(Buffer.from(text, "base64").toString());

test("an offer is signed as it stands, and comes back as it came", () => {
  const [offer] = readOffers(encode({ x402Version: 2, resource: { url: "u" }, accepts: [TERMS] }));
  assert.ok(offer !== undefined);
  assert.equal(amountText(offer.amount), "2.5");
  const nonce = new Uint8Array(32).fill(7);
  const payer = `0x${"c".repeat(40)}`;
  const authorization = authorizationFor(offer, payer, { nowMs: 10_000, nonce });
  assert.deepEqual(
    [authorization.to, authorization.value, authorization.validBefore],
    [TERMS.payTo, "2500000", "310"],
  );
  const typed = JSON.parse(typedDataText(offer, authorization));
  assert.deepEqual([typed.domain.chainId, typed.domain.verifyingContract], [31_337, TERMS.asset]);
  const sent = decode(paymentHeader(offer, authorization, "0xsigned"));
  assert.deepEqual(
    [sent.accepted, sent.resource, sent.payload.signature],
    [TERMS, { url: "u" }, "0xsigned"],
  );
});

test("an offer that is not whole is none, and amounts are exact", () => {
  for (const wrong of [
    { scheme: "upto" },
    { network: "solana:1" },
    { amount: "1e6" },
    { payTo: "0x1" },
    { extra: {} },
    { maxTimeoutSeconds: "soon" },
  ])
    assert.deepEqual(
      readOffers(encode({ x402Version: 2, accepts: [{ ...TERMS, ...wrong }] })),
      [],
      JSON.stringify(wrong),
    );
  for (const header of [null, "", "%", encode(null), encode({ x402Version: 1, accepts: [TERMS] })])
    assert.deepEqual(readOffers(header), []);
  assert.deepEqual(["0", "1", "1000000", "10000001", "123456789012345678901"].map(amountText), [
    "0",
    "0.000001",
    "1",
    "10.000001",
    "123456789012345.678901",
  ]);
});

test("equal answers are one group, and the largest comes first", () => {
  const answer = (provider: string, digest: string) =>
    ({ provider, outcome: "answer", digest }) as const;
  assert.deepEqual(
    groupsOf([
      answer("a", "x"),
      answer("b", "y"),
      answer("c", "y"),
      { provider: "d", outcome: "error", digest: null },
    ]),
    [1, 0, 0, null],
  );
});

test("the command that pays is the one that the documents tell", async () => {
  const text = await import("node:fs/promises").then(({ readFile }) =>
    readFile(new URL("../../console/pages/account/top-up.tsx", import.meta.url), "utf8"),
  );
  assert.ok(text.includes(MPPX_COMMAND));
});

test("a comparison counts answers that are alike, and never an error among them", () => {
  const answered = (digest: string) => ({ provider: "p", outcome: "answer" as const, digest });
  const failed = { provider: "p", outcome: "error" as const, digest: null };
  const skipped = { provider: "p", outcome: "skipped" as const, digest: null };
  const said = (...results: Parameters<typeof comparisonText>[0]) => comparisonText(results);
  assert.deepEqual(said(answered("a"), failed, answered("a")), {
    tone: "warn",
    text: "2 answered alike, 1 failed.",
  });
  assert.deepEqual(said(answered("a"), answered("a")), { tone: "good", text: "2 answered alike." });
  assert.equal(said(answered("a"), skipped).text, "1 answered, 1 not asked.");
  assert.equal(said(answered("a"), answered("b")).text, "2 answered, each differently.");
  assert.equal(
    said(answered("a"), answered("b"), answered("a")).text,
    "2 answered alike, 1 differently.",
  );
  assert.deepEqual(said(failed, failed), { tone: "bad", text: "No provider answered, 2 failed." });
});

const word = (value: number | bigint): string => value.toString(16).padStart(64, "0");
const text = (value: string): string => {
  const hex = Buffer.from(value).toString("hex");
  return word(32) + word(hex.length / 2) + hex.padEnd(Math.ceil(hex.length / 64) * 64, "0");
};
const ADDRESS = "ab".repeat(20);

test("quantities, amounts, times and words of answers are decoded", () => {
  assert.equal(decodeResult("eth_blockNumber", "0x1b4"), "436");
  assert.equal(decodeResult("eth_gasPrice", "0x59682f00"), "1.5 gwei");
  assert.match(String(decodeResult("eth_getBalance", "0x14d1120d7b160000")), /^1\.5 of/);
  assert.equal(decodeResult("eth_getCode", "0x"), "No code: not a contract");
  assert.equal(decodeResult("web3_clientVersion", "Geth/v1"), null);
  assert.deepEqual(decodeResult("eth_call", `0x${text("Tether USD")}`), [
    ["As text", "Tether USD"],
  ]);
  assert.deepEqual(decodeResult("eth_call", `0x${word(18)}`), [["As a number", "18"]]);
  const address = JSON.stringify(decodeResult("eth_call", `0x${ADDRESS.padStart(64, "0")}`));
  assert.ok(address.includes(`or the address 0x${ADDRESS}`), address);
});

test("blocks, transactions, receipts and logs become fields that can be read", () => {
  const log = {
    address: `0x${ADDRESS}`,
    topics: [
      "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef",
      `0x${ADDRESS.padStart(64, "0")}`,
      `0x${"cd".repeat(20).padStart(64, "0")}`,
    ],
    data: `0x${word(1_000_000)}`,
  };
  const block = { number: "0x10", timestamp: "0x6567d4e0", baseFeePerGas: "0x3b9aca00" };
  const receipt = { status: "0x0", gasUsed: "0x5208", type: "0x2", logs: [log] };
  assert.deepEqual(decodeResult("eth_getBlockByNumber", block), [
    ["number", "16"],
    ["timestamp", "2023-11-30 00:18:40 UTC"],
    ["baseFeePerGas", "1 gwei"],
  ]);
  const decoded = JSON.stringify(decodeResult("eth_getTransactionReceipt", receipt));
  for (const part of ['["status","Failed"]', '["gasUsed","21,000"]', "With base fee (0x2)"])
    assert.ok(decoded.includes(part), decoded);
  const event =
    `["event",[["name","Transfer"],["from","0x${ADDRESS}"],` +
    `["to","0x${"cd".repeat(20)}"],["amount or id","1,000,000"]]]`;
  assert.ok(decoded.includes(event), decoded);
  const hashes = { transactions: Array.from({ length: 200 }, () => `0x${"1".repeat(64)}`) };
  assert.match(JSON.stringify(decodeResult("eth_getBlockByHash", hashes)), /\["…","175 more"\]/);
});

test("the reason of a revert is told, of an error and of a panic", () => {
  const error = `0x08c379a0${text("not the owner")}`;
  assert.equal(revertReason(error), "Reverted: not the owner");
  assert.equal(revertReason(`0x4e487b71${word(17)}`), "Panicked: an overflow or underflow (0x11)");
  assert.equal(revertReason("0x08c379a0"), null);
  assert.equal(revertReason("0x12345678"), null);
  const answer = { code: 3, message: "execution reverted", data: error };
  assert.deepEqual(decodeError(answer), [
    ["Reason", "Reverted: not the owner"],
    ["Code", "3"],
    ["Message", "execution reverted"],
  ]);
});

test("decoding takes whatever a provider sends", () => {
  const methods = ["eth_call", "eth_getLogs", "eth_getBalance", "eth_getStorageAt"];
  const hex = fc.stringMatching(/^0x[0-9a-f]{0,200}$/);
  fc.assert(
    fc.property(fc.constantFrom(...methods), fc.oneof(fc.jsonValue(), hex), (method, value) => {
      decodeResult(method, value);
      decodeError(value);
      reasonsOf(value, true);
    }),
  );
});

test("the evidence tells why a provider was asked", () => {
  const meta = {
    strategy: "load-balanced",
    candidate_providers: ["a", "b"],
    selected_provider: { id: "b" },
    attempts: [
      { provider: "a", outcome: "error", category: "server_error", code: -32000 },
      { provider: "b", outcome: "success", category: null, code: null },
    ],
  };
  assert.deepEqual(reasonsOf(meta, false), [
    "b was number 2 of 2 by load-balanced.",
    "In order: a, b.",
    "a failed: server error, code -32000.",
  ]);
  assert.deepEqual(reasonsOf({ ...meta, source: "cache" }, false)[0], SOURCE);
  assert.deepEqual(reasonsOf(null, false), ["The service refused the call before it was routed."]);
});

const SOURCE = "The answer was kept from an earlier call.";
