// The reading of the answer to a batch, fed by hand in pieces of any length: every call gets its
// own answer or none, whatever a provider puts into the array, and borrowed memory comes back.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Failure } from "../../../src/core/rpc/failure.ts";
import { BufferPool } from "../../../src/upstream/http/buffer-pool.ts";
import { HttpBatch, MAX_ELEMENT_BYTES } from "../../../src/upstream/http/http-batch.ts";
import { MemoryBudget } from "../../../src/upstream/memory-budget.ts";
import { TimerWheel } from "../../../src/upstream/timer-wheel.ts";
import type { BatchEnding } from "../../../src/upstream/transport.ts";
import { type SimulatedWorld, seededRandom, simulatedWorld } from "../../fakes/runtime.ts";
import { chanceSeed } from "../../fakes/seed.ts";

const CHANCE = chanceSeed();
const IDS = ["1000000000000001", "1000000000000002", "1000000000000003", "1000000000000004"];

/** One batch in flight, and what was told of it. */
interface Fixture {
  readonly runtime: SimulatedWorld;
  readonly batch: HttpBatch;
  readonly buffers: BufferPool;
  /** By place: a result as text, or the kind and message of a failure. */
  readonly told: Map<number, string>;
  readonly failures: Failure[];
  readonly tooLong: number[];
  readonly ending: () => BatchEnding | null;
  /** Whether the connection was ended from here. */
  readonly aborted: () => boolean;
  /** The whole answer, in pieces of these lengths; returns whether its connection may be used. */
  answer(text: string | Buffer, about?: About): boolean;
  begin(about?: About): void;
  data(text: string | Buffer, last?: boolean): void;
}

interface About {
  readonly status?: number;
  readonly headers?: Record<string, string>;
  readonly pieces?: () => number;
}

function fixture(ids: readonly string[] = IDS, room = MemoryBudget.unbounded()): Fixture {
  const runtime = simulatedWorld(1);
  const buffers = new BufferPool();
  const told = new Map<number, string>();
  const [failures, tooLong]: [Failure[], number[]] = [[], []];
  let ending: BatchEnding | null = null;
  let isAborted = false;
  let open = ids.length;
  const isOpen = (place: number): boolean => !told.has(place) && !tooLong.includes(place);
  const tell = (place: number, text: string): void => {
    assert.ok(isOpen(place) && ending === null, "each once, and nothing after the end");
    told.set(place, text);
    open--;
  };
  const expected = {
    wireIds: ids,
    mayBorrow: ids.map((_, place) => place % 2 === 0),
    room: room.roomOf("a caller"),
    maxAnswerBytes: 10_000_000,
    distrust() {},
  };
  const listener = {
    get isWaiting() {
      return open > 0;
    },
    isOpen,
    isAnswered: (place: number) => told.has(place),
    heard() {},
    result(
      place: number,
      body: Buffer,
      { start, end }: { readonly start: number; readonly end: number },
      pool?: { recycle(chunk: Buffer): void },
    ) {
      tell(place, body.toString("utf8", start, end));
      assert.equal(pool !== undefined, place % 2 === 0 && body.length <= 4_096);
      pool?.recycle(body);
    },
    failed(place: number, failure: Failure) {
      failures.push(failure);
      tell(place, `${failure.kind} ${failure.message}`);
    },
    tooLong(place: number) {
      assert.ok(isOpen(place));
      tooLong.push(place);
      open--;
    },
    over(how: BatchEnding) {
      assert.equal(ending, null);
      ending = how;
    },
  };
  const parts = { buffers, runtime, timerWheel: new TimerWheel(runtime) };
  const batch = new HttpBatch(expected, listener, parts);
  const abort = (): void => {
    isAborted = true;
  };
  const controller = { abort, pause() {}, resume() {} };
  batch.onRequestStart(controller);
  const it: Fixture = {
    runtime,
    batch,
    buffers,
    told,
    failures,
    tooLong,
    ending: () => ending,
    aborted: () => isAborted,
    begin: ({ status = 200, headers = {} } = {}) =>
      batch.onResponseStart(controller, status, headers),
    data: (text, last = false) => void batch.onResponseData(controller, Buffer.from(text), last),
    answer(text, about = {}) {
      it.begin(about);
      const bytes = Buffer.from(text);
      for (let at = 0; at < bytes.length; ) {
        const end = Math.min(bytes.length, at + Math.max(1, about.pieces?.() ?? bytes.length));
        it.data(bytes.subarray(at, end), end === bytes.length);
        at = end;
      }
      if (isAborted) return false;
      const isTrusted = batch.onResponseComplete();
      batch.onResponseEnd();
      return isTrusted;
    },
  };
  return it;
}

const result = (id: string | undefined, value: string): string =>
  `{"jsonrpc":"2.0","id":${id},"result":${value}}`;
const error = (id: string | undefined, message: string): string =>
  `{"jsonrpc":"2.0","id":${id},"error":{"code":-32000,"message":${JSON.stringify(message)}}}`;

/** What the calls that have no answer of their own are told of. */
function endingOf(it: Fixture): string {
  const ending = it.ending();
  if (ending === null) return "none";
  const { kind, failure } = ending;
  if (kind === "failed") return `failed: ${failure?.kind} ${failure?.message}`;
  return kind === "answered" ? `answered: ${failure?.message ?? ""}` : kind;
}

test("answers in any order reach their calls, and the connection goes on", () => {
  const it = fixture();
  const [a, b, c, d] = IDS;
  const text = `[${result(d, "4")}, ${error(b, "no funds")},\n${result(a, '"0x1"')},${result(c, "null")}]`;
  assert.equal(it.answer(text), true);
  assert.deepEqual(Object.fromEntries(it.told), {
    0: '"0x1"',
    1: "error no funds",
    2: "null",
    3: "4",
  });
  assert.equal(endingOf(it), "answered: ");
});

test("an id that is nobody's, or comes twice, is believed by nobody and ends the connection", () => {
  for (const strange of [
    result("9000000000000009", "1"),
    result(IDS[0], '"again"'),
    result(`"${IDS[1]}"`, "1"),
    '{"jsonrpc":"2.0","result":1}',
    '{"method":"eth_subscription"}',
    "{}",
  ]) {
    const it = fixture();
    assert.equal(it.answer(`[${result(IDS[0], "1")},${strange}]`), false, strange);
    assert.deepEqual(Object.fromEntries(it.told), { 0: "1" });
    assert.equal(endingOf(it), "answered: ");
  }
});

test("what came whole before an answer breaks is told, and the rest has failed", () => {
  const first = result(IDS[0], "1");
  const broken = [
    `[${first},${result(IDS[1], "2").slice(0, -5)}`,
    `[${first},`,
    `[${first}`,
    `[${first},null]`,
    `[${first}]}`,
    `[${first} ${first}]`,
  ];
  for (const text of broken) {
    const it = fixture();
    it.answer(text, { pieces: () => 7 });
    assert.equal(it.told.get(0), "1", text);
    assert.match(
      endingOf(it),
      /^failed: body the answer to the batch is not a complete JSON array/,
    );
  }
  const reset = fixture();
  reset.begin();
  reset.data(`[${first},{"jso`);
  reset.batch.onResponseError(null, Object.assign(new Error("reset"), { code: "ECONNRESET" }));
  assert.deepEqual([reset.told.get(0), endingOf(reset)], ["1", "failed: network ECONNRESET"]);
  assert.equal(reset.buffers.out, 0);
});

test("an element that is no answer fails its call alone", () => {
  const it = fixture();
  const [a, b, c, d] = IDS;
  const both = `{"jsonrpc":"2.0","id":${a},"result":1,"error":{"code":1,"message":"x"}}`;
  const neither = `{"jsonrpc":"2.0","id":${b}}`;
  const binary = Buffer.concat([
    Buffer.from(`[${both},${neither},{"jsonrpc":"2.0","id":${c},"result":"`),
    Buffer.from([0xff, 0xfe]),
    Buffer.from(`"},${result(d, "4")}]`),
  ]);
  it.answer(binary);
  assert.equal(it.told.get(0), "body the answer has both a result and an error");
  assert.equal(it.told.get(2), "body the answer is not UTF-8");
  assert.equal(it.told.get(3), "4");
  assert.equal(it.told.get(1), undefined, "it names no result: it is no answer to anything");
});

test("a body that is no array is an error about all, the answer to one, or no answer", () => {
  const cases: readonly (readonly [body: string, told: string, trusted: boolean])[] = [
    [error("null", "batches are off"), "failed: error batches are off", true],
    ['{"error":{"code":-32700,"message":"what?"}}', "failed: error what?", true],
    [error(IDS[2], "one at a time"), "failed: error one at a time", true],
    [result(IDS[2], "3"), "single", true],
    [result("9000000000000009", "3"), "failed: body the answer carries another id", false],
    ["<html>busy</html>", "failed: body <html>busy</html>", true],
    ["", "failed: body the body is empty", true],
    ["  \n", "failed: body the body is empty", true],
    ["null", "failed: body null", true],
  ];
  for (const [body, told, trusted] of cases)
    for (const pieces of [3, 1_000]) {
      const it = fixture();
      assert.equal(it.answer(body, { pieces: () => pieces }), trusted, body);
      assert.equal(endingOf(it), told, body);
      assert.equal(it.told.get(2), told === "single" ? "3" : undefined);
      assert.equal(it.buffers.out, 0);
    }
});

test("the status counts: a result under an error status is none, and errors carry it", () => {
  const it = fixture();
  const headers = { "retry-after": "7" };
  it.answer(`[${result(IDS[0], "1")},${error(IDS[1], "slow down")}]`, { status: 429, headers });
  assert.equal(it.told.get(0), "body a result with HTTP status 429");
  assert.deepEqual(
    it.failures.map(({ httpStatus, retryAfter }) => [httpStatus, retryAfter]),
    [
      [429, "7"],
      [429, "7"],
    ],
  );
  const packed = fixture();
  packed.begin({ headers: { "content-encoding": "gzip" } });
  assert.equal(endingOf(packed), "failed: body the answer is compressed, which was not asked for");
  assert.ok(packed.aborted());
});

test("an element that is too long, or finds no room, leaves its call to be asked alone, and no other", () => {
  const long = `"${"x".repeat(MAX_ELEMENT_BYTES)}"`;
  const text = `[${result(IDS[0], "1")},${result(IDS[1], long)},${result(IDS[3], "4")}]`;
  const it = fixture();
  it.answer(text, { pieces: () => 65_536 });
  assert.deepEqual(Object.fromEntries(it.told), { 0: "1", 3: "4" });
  assert.deepEqual([it.tooLong, endingOf(it), it.buffers.out], [[1], "answered: ", 0]);
  const idLast = fixture(IDS.slice(0, 2));
  idLast.answer(`[{"jsonrpc":"2.0","result":${long},"id":${IDS[1]}},${result(IDS[0], "1")}]`, {
    pieces: () => 65_536,
  });
  assert.deepEqual(idLast.ending(), { kind: "answered", failure: null, passedOver: 1 });
  assert.deepEqual([idLast.tooLong, idLast.told.get(0)], [[], "1"]);
  const budget = new MemoryBudget(() => ({ maxInFlightBytes: 1e9, maxCallerBytes: 100_000 }));
  const narrow = fixture(IDS, budget);
  narrow.answer(`[${result(IDS[1], `"${"x".repeat(300_000)}"`)},${result(IDS[0], "1")}]`, {
    pieces: () => 65_536,
  });
  assert.deepEqual([narrow.tooLong, narrow.told.get(0), budget.used], [[1], "1", 0]);
});

test("an answer of far more elements than calls is given up", () => {
  const it = fixture(IDS.slice(0, 2));
  it.answer(`[${result(IDS[0], "1")}${",{}".repeat(8)},${result(IDS[1], "2")}]`);
  assert.deepEqual(Object.fromEntries(it.told), { 0: "1" });
  assert.equal(endingOf(it), "failed: body the answer to the batch has more elements than calls");
  assert.ok(it.aborted());
});

test("an array that does not end after its last answer, or is too long, ends with its connection", () => {
  const it = fixture(IDS.slice(0, 1));
  it.begin();
  it.data(`[${result(IDS[0], "1")}`);
  it.runtime.advance(900);
  assert.equal(it.aborted(), false);
  it.runtime.advance(200);
  assert.equal(it.aborted(), true);
  assert.equal(it.ending(), null, "everybody has an answer");
  const endless = fixture();
  endless.begin();
  for (let n = 0; n < 200 && !endless.aborted(); n++)
    endless.data(n === 0 ? "[" : " ".repeat(65_536));
  assert.equal(endingOf(endless), "failed: body the answer is too long");
  const closed = fixture(IDS.slice(0, 1));
  closed.answer(`[${result(IDS[0], "1")} ]`, { pieces: () => 1 });
  closed.runtime.advance(5_000);
  assert.equal(closed.aborted(), false, "the timer is gone");
});

test(`property: each call gets its own answer or none, in pieces of any length (seed ${CHANCE})`, () => {
  const random = seededRandom(CHANCE);
  const chance = (count: number): number => Math.floor(random() * count);
  for (let round = 0; round < 200; round++) {
    const ids = Array.from({ length: 1 + chance(20) }, (_, n) => String(2_000_000_000_000_000 + n));
    const elements: string[] = [];
    const given = new Set<number>();
    let strange = 0;
    for (const [place, id] of ids.entries()) {
      const kind = chance(12);
      const value = JSON.stringify(
        `${place}:${'"]},{['.repeat(chance(4))}${"y".repeat(chance(3) * 3_000)}`,
      );
      if (kind === 0) continue;
      given.add(place);
      if (kind === 1) elements.push(`{"result":${value},"jsonrpc":"2.0","id":${id}}`);
      else elements.push(result(id, value));
      if (kind === 2) {
        elements.push(result(id, '"twice"'));
        strange++;
      }
      if (kind === 3) {
        elements.push(result("8888888888888888", '"foreign"'));
        strange++;
      }
    }
    for (let at = elements.length - 1; at > 0; at--) {
      const other = chance(at + 1);
      [elements[at], elements[other]] = [elements[other] ?? "", elements[at] ?? ""];
    }
    const it = fixture(ids);
    const most = 1 + chance(5_000);
    const isTrusted = it.answer(`[${elements.join(",")}]`, { pieces: () => 1 + chance(most) });
    assert.equal(isTrusted, strange === 0, `round ${round}`);
    for (const [place, value] of it.told)
      assert.ok(value.startsWith(`"${place}:`) || value === '"twice"', `round ${round}: ${value}`);
    assert.deepEqual([...it.told.keys()].sort(), [...given].sort());
    assert.equal(it.buffers.out, 0);
  }
});
