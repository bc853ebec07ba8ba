// Tests of the benchmark itself: it parses any framing, detects wrong answers, and fails when a
// target is missed.
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import fc from "fast-check";
import { type BatchRound, missedOf as missedBatches, missedSharesOf } from "./batches.ts";
import { missedOf } from "./budgets.ts";
import { Caller, saysTheSame } from "./caller.ts";
import { CELLS, type Cell, TARGETS } from "./cells.ts";
import { isMet, median, type Results } from "./figures.ts";
import { Histogram } from "./histogram.ts";
import { MessageReader } from "./http1.ts";
import type { Round } from "./measure.ts";
import { indexOf, pageOf } from "./page.ts";
import { peersIn } from "./peers.ts";
import { complaints, discardedIn, figuresOf, type Series } from "./report.ts";
import { missedSizes, SIZES, type SizeCost, vsLine } from "./sweep.ts";
import { judge, LEAST_ROUNDS, MOST_ROUNDS, medianInterval, type PairedRound } from "./verdict.ts";
import {
  expectedAnswer,
  LARGE_SHAPE,
  largePrefix,
  largeRest,
  METHOD_NAMES,
  mixedMethod,
  numberIn,
  requestBody,
  SMALL_BYTES,
  shapeIn,
} from "./workload.ts";

const NUMBER = 100_000_007;

test("a message is read the same however the stream is cut, in either framing", () => {
  const message = fc.record({
    text: fc.string({ maxLength: 80 }).map(ascii),
    chunked: fc.boolean(),
  });
  fc.assert(
    fc.property(
      fc.array(message, { minLength: 1, maxLength: 4 }),
      fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 20 }),
      (messages, cuts) => {
        const stream = Buffer.from(messages.map(framed).join(""), "latin1");
        const bodies: string[] = [];
        let body = "";
        const reader = new MessageReader({
          head: () => {
            body = "";
          },
          body: (piece) => {
            body += piece.toString("latin1");
          },
          end: () => bodies.push(body),
        });
        for (let at = 0, cut = 0; at < stream.length; cut++) {
          const end = at + (cuts[cut % cuts.length] ?? 1);
          const piece = Buffer.from(stream.subarray(at, end));
          reader.push(piece);
          piece.fill(0);
          at = end;
        }
        assert.deepEqual(
          bodies,
          messages.map(({ text }) => text),
        );
        assert.equal(reader.idle, true);
      },
    ),
  );
});

test("a head without end is refused instead of kept", () => {
  const reader = new MessageReader({
    head: () => undefined,
    body: () => undefined,
    end: () => undefined,
  });
  assert.throws(() => reader.push(Buffer.alloc(70_000, "a")), /without end/);
});

test("answers have exactly the published sizes, and requests of a workload all have one length", () => {
  assert.equal(expectedAnswer("small", NUMBER).length, SMALL_BYTES);
  assert.equal(
    largePrefix(String(NUMBER), String(NUMBER)).length + largeRest().length,
    LARGE_SHAPE.bytes,
  );
  assert.doesNotThrow(() =>
    JSON.parse(largePrefix(String(NUMBER), String(NUMBER)) + largeRest().toString("latin1")),
  );
  for (const workload of ["small", "large", "batch", "mixed"] as const) {
    assert.equal(requestBody(workload, NUMBER).length, requestBody(workload, 899_999_998).length);
    assert.equal(numberIn(requestBody(workload, NUMBER)), String(NUMBER));
  }
});

test("a sized answer has the size it was asked for, in either framing, and its request says which", () => {
  for (const chunked of [false, true]) {
    for (const bytes of SIZES) {
      assert.equal(
        largePrefix(String(NUMBER), String(NUMBER)).length + largeRest(bytes).length,
        bytes,
      );
      assert.deepEqual(shapeIn(requestBody("sized", NUMBER, { bytes, chunked })), {
        bytes,
        chunked,
      });
    }
  }
  assert.deepEqual(shapeIn(requestBody("large", NUMBER)), LARGE_SHAPE);
});

test(
  "a size that costs too much beside nginx or beside its neighbours is a missed target; the " +
    "ends have no line",
  () => {
    const costs = (middleUs: number): SizeCost[] =>
      [10, middleUs, 30].map((svcUs, at) => ({
        shape: { bytes: 1_000 * (at + 1), chunked: false },
        nginxUs: 20,
        controlRatio: 1,
        svcUs,
        kept: 5,
      }));
    const fair = costs(20);
    assert.deepEqual(
      [missedSizes(fair), fair.map((row) => vsLine(fair, row))],
      [[], [null, 1, null]],
    );
    assert.match(missedSizes(costs(26)).join(), /1\.30 × the line/);
    assert.match(missedSizes(costs(45)).join(), /2\.25 × nginx.*2\.25 × the line/s);
  },
);

test("the mixed workload uses all of its 10,000 method names", () => {
  const names = new Set(
    Array.from({ length: 2 * METHOD_NAMES }, (_, at) => mixedMethod(NUMBER + at)),
  );
  assert.equal(names.size, METHOD_NAMES + 1);
});

test("quantiles stay within one step of the exact ones", () => {
  fc.assert(
    fc.property(
      fc.array(fc.double({ min: 0, max: 1_900, noNaN: true }), { minLength: 1, maxLength: 200 }),
      fc.double({ min: 0.01, max: 1, noNaN: true }),
      (values, q) => {
        const histogram = new Histogram();
        for (const value of values) histogram.add(value);
        const exact =
          values.toSorted((a, b) => a - b)[Math.max(1, Math.ceil(q * values.length)) - 1] ?? 0;
        assert.ok(
          Math.abs(histogram.quantileMs(q) - exact) <= (exact < 20 ? 0.0015 : 0.11),
          `${histogram.quantileMs(q)} is not ${exact}`,
        );
      },
    ),
  );
});

test("a caller accepts the right answer and names every kind of wrong one", async () => {
  const right = expectedAnswer("small", NUMBER);
  const other = expectedAnswer("small", NUMBER + 1);
  assert.equal(await faultOf("small", framed({ text: right, chunked: false })), null);
  assert.equal(await faultOf("small", framed({ text: right, chunked: true })), null);
  assert.match(
    String(await faultOf("small", framed({ text: other, chunked: false }))),
    /wrong answer/,
  );
  assert.match(
    String(await faultOf("small", framed({ text: right.replace(`"0x0`, `"0x1`), chunked: false }))),
    /wrong answer/,
  );
  assert.match(
    String(
      await faultOf(
        "small",
        framed({ text: right, chunked: false }).replace("200 OK", "502 Bad Gateway"),
      ),
    ),
    /502/,
  );
  assert.match(
    String(await faultOf("small", framed({ text: right, chunked: false }).slice(0, -1))),
    /closed before/,
  );
});

test("a large answer is checked for beginning, length and bytes", async () => {
  const sampled = 100_000_008;
  const good = largePrefix(String(sampled), String(sampled)) + largeRest().toString("latin1");
  const flipped = `${good.slice(0, 700_000)}!${good.slice(700_001)}`;
  assert.equal(await faultOf("large", framed({ text: good, chunked: false }), sampled), null);
  assert.match(
    String(await faultOf("large", framed({ text: good.slice(0, -1), chunked: false }), sampled)),
    /bytes instead of/,
  );
  assert.match(
    String(await faultOf("large", framed({ text: flipped, chunked: false }), sampled)),
    /altered bytes/,
  );
  assert.match(
    String(await faultOf("large", framed({ text: good, chunked: false }), sampled + 8)),
    /wrong beginning/,
  );
});

test(
  "a missed target, a wrong answer, an extra upstream call and an empty cell are complaints; a " +
    "good run has none",
  () => {
    const cell = cellNamed("small-64");
    const target = TARGETS.find((each) => each.cell === cell.name && each.measure === "cpuUs");
    assert.ok(target !== undefined && target.of === "ratio");
    const verdict = (svc: Partial<Round>): readonly string[] =>
      complaints({ cell, series: [series("nginx", [{}]), series("svc", [svc])] });
    assert.deepEqual(verdict({ cpuUsPerRequest: 10 * target.most - 0.1 }), []);
    assert.match(verdict({ cpuUsPerRequest: 10 * target.most + 0.1 }).join(), /CPU µs of svc/);
    assert.match(verdict({ amplification: 1.01 }).join(), /must be 1\.00/);
    assert.match(verdict({ amplification: 0.99 }).join(), /must be 1\.00/);
    const failed = { load: { ...round("svc", {}).load, failed: 1 } };
    assert.match(verdict(failed).join(), /wrong or missing/);
    assert.match(verdict({ discarded: "the generator was saturated" }).join(), /no round of svc/);
    const peer = { ...series("other", [failed]), isPeer: true };
    const own = [series("nginx", [{}]), series("svc", [{}])];
    assert.deepEqual(complaints({ cell, series: [...own, peer] }), []);
  },
);

test("discarded rounds stay out of the medians, and added latency is taken within a round", () => {
  const cell = cellNamed("rate-1000");
  const at = (p50Ms: number): Round["load"] => ({ ...round("svc", {}).load, p50Ms });
  const bases = [1, 5, 9];
  const measured = {
    cell,
    series: [
      series(
        "direct",
        [...bases, 1].map((base) => ({ load: at(base) })),
      ),
      series("svc", [
        ...bases.map((base) => ({ load: at(base + 0.2), cpuUsPerRequest: base })),
        { load: at(90), cpuUsPerRequest: 500, discarded: "noise" },
      ]),
    ],
  };
  const figures = figuresOf(measured);
  const medianOf = (measure: string): number | null | undefined =>
    figures.find((figure) => figure.measure === measure)?.of.value;
  assert.equal(medianOf("CPU µs"), 5);
  assert.equal(figures[0]?.rounds, "3/4");
  assert.ok(Math.abs((medianOf("added p50 ms") ?? 0) - 0.2) < 1e-9);
  assert.deepEqual(discardedIn(measured), [{ cell: "rate-1000", system: "svc", reason: "noise" }]);
  assert.equal(median([4, 1, 3, 2]), 2.5);
});

test("a ratio is of both instances of each system, round by round, and the page shows all four", () => {
  const us = (values: readonly number[]) => values.map((cpuUsPerRequest) => ({ cpuUsPerRequest }));
  const [figure] = figuresOf({
    cell: cellNamed("small-64"),
    series: [
      series("nginx", us([10, 20, 10])),
      { ...series("nginx", us([10, 20, 12])), instance: 2 },
      series("svc", us([15, 30, 22])),
      { ...series("svc", us([17, 34, 22])), instance: 2 },
    ],
  });
  assert.ok(figure !== undefined);
  assert.equal(figure.ratio, 1.6);
  assert.deepEqual(figure.beside, { system: "nginx", value: 10, again: 12 });
  assert.deepEqual(figure.of, { system: "svc", value: 22, again: 22 });
  const page = pageOf([results({ figures: [figure] })]);
  assert.match(
    page,
    /\| small-64 \| CPU µs \| nginx \| 10\.0 \/ 12\.0 \| svc \| 22\.0 \/ 22\.0 \| 1\.60 \|/,
  );
});

test("what no round tells is shown as such, and is no target met", () => {
  const spoiled = { discarded: "noise" };
  const measured = {
    cell: cellNamed("rate-1000"),
    series: ["direct", "nginx", "svc"].map((system) => series(system, [spoiled])),
  };
  const figures = figuresOf(measured);
  assert.deepEqual([...new Set(figures.map(isMet))], [null, false]);
  assert.match(
    pageOf([results({ figures })]),
    /\| nginx \| – \| svc \| – \| {2}\| 0\.3: \*\*missed\*\*/,
  );
  assert.match(complaints(measured).join(), /added p50 ms of svc is not known/);
});

test("the most memory of any round beyond the start is judged, of discarded rounds too", () => {
  const cell = cellNamed("large-64");
  const svc = series("svc", [{ peakMb: 60 }, { peakMb: 400, discarded: "noise" }]);
  assert.match(
    complaints({ cell, series: [series("nginx", [{}, {}]), svc] }).join(),
    /most memory.*is 375\.00, promised at most 256/,
  );
});

test("a page tells commit, machine, targets and the rounds that were thrown away", () => {
  const discarded = { cell: "rate-1000", system: "svc", reason: "other work on this machine" };
  const figure = {
    cell: "c",
    measure: "m",
    beside: null,
    of: { system: "svc", value: 3, again: null },
    ratio: null,
    bound: { of: "value", most: 2 },
    rounds: "1/2",
  } as const;
  const page = pageOf([results({ figures: [figure], discarded: [discarded, discarded] })]);
  for (const part of [
    "Figures of svc 9.8.7",
    "abc123+ with changes",
    "a machine",
    "0 of 1 met",
    "2: **missed**",
  ])
    assert.ok(page.includes(part), part);
  assert.match(page, /`rate-1000`, svc: other work on this machine \(2 rounds\)/);
  const index = indexOf(["0.9.0.md", "README.md", "0.10.0.md"]);
  assert.ok(index.indexOf("[0.10.0]") < index.indexOf("[0.9.0]"));
});

test("an answer by meaning has the same ids and results, in any order of members and items", () => {
  const expected =
    '[{"jsonrpc":"2.0","id":1,"result":"0x1"},{"jsonrpc":"2.0","id":2,"result":"0x2"}]';
  const [one, two] = ['{"result":"0x1","id":1}', '{ "id": 2, "result": "0x2", "jsonrpc": "2.0" }'];
  assert.ok(saysTheSame(`[${two},${one}]`, expected));
  for (const text of [`[${one}]`, `[${one},${one}]`, one, "[", `[${one},{"id":2,"result":"0x1"}]`])
    assert.ok(!saysTheSame(text, expected), text);
});

const quiet = fc.double({ min: 0.99, max: 1.01, noNaN: true });
const pairs = (ratio: fc.Arbitrary<number>, control: fc.Arbitrary<number>, minLength = 1) =>
  fc.array(fc.record({ ratios: ratio.map((one) => [one]), control }), {
    minLength,
    maxLength: MOST_ROUNDS,
  });
const wild = fc.double({ min: 0.5, max: 2, noNaN: true });

test("a build is worse only above 3 % beyond the spread, and passes only under a narrow one", () => {
  fc.assert(
    fc.property(pairs(wild, wild), (rounds) => {
      const { verdict, ratio, spread } = judge(rounds);
      if (verdict === "worse") assert.ok(ratio > 1.03 + spread);
      if (verdict === "passed") assert.ok(spread <= 0.03 && ratio <= 1.03 + spread);
      if (verdict === "undecided") assert.ok(spread > 0.03 && rounds.length === MOST_ROUNDS);
      if (rounds.length < LEAST_ROUNDS) assert.equal(verdict, "more");
      if (rounds.length === MOST_ROUNDS) assert.notEqual(verdict, "more");
      assert.notEqual(judge(rounds, false).verdict, "more");
    }),
  );
});

test("the order of rounds does not matter, and a slower build is never judged better", () => {
  fc.assert(
    fc.property(pairs(wild, wild), fc.double({ min: 1, max: 2, noNaN: true }), (rounds, by) => {
      assert.deepEqual(judge(rounds.toReversed()), judge(rounds));
      const slower = judge(rounds.map((round) => slowed(round, by)));
      if (judge(rounds).verdict === "worse") assert.equal(slower.verdict, "worse");
    }),
  );
});

test("on a quiet machine an equal build passes, a slower one is worse, and one wild round changes neither", () => {
  fc.assert(
    fc.property(pairs(quiet, quiet, LEAST_ROUNDS), wild, (rounds, noise) => {
      const spoiled = rounds.with(0, { ratios: [noise], control: noise });
      const slower = (all: typeof rounds) => all.map((each) => slowed(each, 1.1));
      for (const all of [rounds, spoiled]) {
        assert.equal(judge(all).verdict, "passed");
        assert.equal(judge(slower(all)).verdict, "worse");
      }
    }),
  );
});

test("a machine on which one build differs from itself decides nothing", () => {
  const rounds = Array.from({ length: MOST_ROUNDS }, (_, at) => ({
    ratios: [1],
    control: at % 2 === 0 ? 0.8 : 1.25,
  }));
  assert.equal(judge(rounds).verdict, "undecided");
  assert.equal(judge(rounds.slice(1)).verdict, "more");
  assert.equal(judge([]).verdict, "more");
});

test("the interval of a median leaves out as many values at each end as 95 % confidence allows", () => {
  const upTo = (count: number): readonly number[] =>
    Array.from({ length: count }, (_, at) => at + 1);
  assert.deepEqual(medianInterval(upTo(9)), [2, 8]);
  assert.deepEqual(medianInterval(upTo(25)), [8, 18]);
  assert.deepEqual(medianInterval(upTo(3)), [1, 3]);
});

test("a peer is a folder with an executable start, and says where it takes calls", () => {
  const dir = mkdtempSync(join(tmpdir(), "svc-peers-"));
  try {
    assert.throws(() => peersIn(dir), /no folder/);
    for (const name of ["one", "other", "notes"]) mkdirSync(join(dir, name));
    for (const name of ["one", "other"])
      writeFileSync(join(dir, name, "start"), "#!/bin/sh\n", { mode: 0o755 });
    writeFileSync(join(dir, "other", "path"), "/main/evm/1\n");
    writeFileSync(join(dir, "notes", "start"), "");
    assert.deepEqual(
      peersIn(dir).map(({ name, path }) => [name, path]),
      [
        ["one", "/"],
        ["other", "/main/evm/1"],
      ],
    );
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
});

function slowed({ ratios, control }: PairedRound, by: number): PairedRound {
  return { ratios: ratios.map((ratio) => ratio * by), control };
}

function cellNamed(name: string): Cell {
  const cell = CELLS.find((each) => each.name === name);
  assert.ok(cell !== undefined);
  return cell;
}

function series(system: string, changes: readonly Partial<Round>[]): Series {
  const rounds = changes.map((change) => round(system, change));
  return { system, instance: 1, isPeer: false, startRssMb: 25, rounds };
}

function results(change: Partial<Results>): Results {
  return {
    name: "cells",
    title: "Calls",
    method: "In turn.",
    figures: [],
    discarded: [],
    at: "2026-11-28T12:00:00.000Z",
    version: "9.8.7",
    commit: "abc123+",
    machine: "a machine",
    ...change,
  };
}

function ascii(text: string): string {
  return text.replace(/[^ -~]/g, "?");
}

function framed({ text, chunked }: { readonly text: string; readonly chunked: boolean }): string {
  if (!chunked) return `HTTP/1.1 200 OK\r\nContent-Length: ${text.length}\r\n\r\n${text}`;
  const pieces = text.match(/.{1,7}/g) ?? [];
  return (
    `HTTP/1.1 200 OK\r\nTransfer-Encoding: ` +
    `chunked\r\n\r\n${pieces.map((piece) => `${piece.length.toString(16)}\r\n${piece}\r\n`).join("")}0\r\n\r\n`
  );
}

function round(system: string, change: Partial<Round>): Round {
  const load = {
    sent: 10,
    ok: 10,
    failed: 0,
    failedUnknown: 0,
    faults: [],
    seconds: 1,
    p50Ms: 1,
    p95Ms: 1.5,
    p99Ms: 2,
    maxMs: 3,
    cpuUs: 1,
  };
  const cores = { system: 0, generator: 0, upstream: 0, others: 0 };
  return {
    system,
    load,
    cpuUsPerRequest: 10,
    requestsPerSecond: 10,
    amplification: 1,
    rssMb: 50,
    peakMb: 60,
    cores,
    discarded: null,
    ...change,
  };
}

/** The fault that a caller reports for this raw answer to the request of `number`. */
async function faultOf(
  workload: "small" | "large",
  raw: string,
  number = NUMBER,
): Promise<string | null> {
  const server = await listening(raw);
  const address = server.address();
  assert.ok(address !== null && typeof address === "object");
  try {
    return await new Promise((resolve) => {
      const done = (
        caller: Caller,
        _number: number,
        _dueMs: number,
        fault: string | null,
      ): void => {
        caller.close();
        resolve(fault);
      };
      const caller = new Caller(
        { port: address.port, path: "/", workload, shape: LARGE_SHAPE, byMeaning: false, done },
        Caller.readBuffer(),
      );
      void caller.open().then(() => caller.send(number, 0));
    });
  } finally {
    server.close();
  }
}

function listening(raw: string): Promise<Server> {
  return new Promise((resolve) => {
    const server = createServer((socket) => {
      socket.on("error", () => socket.destroy());
      socket.once("data", () => socket.end(raw, "latin1"));
    });
    server.listen(0, "127.0.0.1", () => resolve(server));
  });
}

test("the targets of batches: fewer requests and less CPU than single calls, of which each is one", () => {
  const round = (requests: number, serviceUs: number): BatchRound => ({
    requests,
    serviceUs,
    providerUs: 2,
    callsPerSecond: 1_000,
  });
  const [alone, together] = [[round(1, 20)], [round(0.05, 15), round(0.04, 16), round(2, 90)]];
  assert.deepEqual(missedBatches({ alone, together }), []);
  assert.equal(missedBatches({ alone: [round(1.2, 20)], together }).length, 1);
  assert.equal(missedBatches({ alone, together: [round(1, 21)] }).length, 2);
  assert.equal(missedBatches({ alone, together: [] }).length, 1);
});

test("the targets of batches of callers: half a call an item, a quarter where they go together", () => {
  const round = (serviceUs: number): readonly BatchRound[] => [
    { requests: 1, serviceUs, providerUs: 2, callsPerSecond: 1_000 },
  ];
  const well = {
    alone: round(20),
    together: round(15),
    "batch-20": round(200),
    "batch-20-together": round(100),
    "batch-1000": round(10_000),
  };
  assert.deepEqual(missedSharesOf(well), []);
  assert.equal(missedSharesOf({ ...well, "batch-20": round(201) }).length, 1);
  assert.equal(missedSharesOf({ ...well, "batch-20-together": round(101) }).length, 1);
  assert.equal(missedSharesOf({ ...well, "batch-1000": round(10_001) }).length, 1);
  assert.equal(missedSharesOf({ ...well, "batch-1000": [] }).length, 1);
});

test("the targets of budgets: one request more than declared, a refusal, a failure", () => {
  const well = { mostInASecond: 51, refused: 0, failed: 0 };
  assert.deepEqual(missedOf(well), []);
  assert.equal(missedOf({ ...well, mostInASecond: 52 }).length, 1);
  assert.equal(missedOf({ mostInASecond: 99, refused: 2, failed: 1 }).length, 3);
});
