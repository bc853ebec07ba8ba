// Tests of the benchmark itself: it parses any framing, detects wrong answers, and fails when a
// target is missed.
import assert from "node:assert/strict";
import { createServer, type Server } from "node:net";
import { test } from "node:test";
import fc from "fast-check";
import { type BatchRound, missedOf as missedBatches } from "./batches.ts";
import { missedOf } from "./budgets.ts";
import { Caller } from "./caller.ts";
import { CELLS, TARGETS } from "./cells.ts";
import { Histogram } from "./histogram.ts";
import { MessageReader } from "./http1.ts";
import type { Round } from "./measure.ts";
import { complaints, median, rowsOf } from "./report.ts";
import { missedSizes, SIZES, type SizeCost, vsLine } from "./sweep.ts";
import type { SystemName } from "./systems.ts";
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
    const cell = CELLS.find(({ name }) => name === "small-64");
    assert.ok(cell !== undefined);
    assert.ok(
      TARGETS.some(
        (target) =>
          target.cell === "small-64" && target.measure === "cpuVsNginx" && target.max === 2.2,
      ),
    );
    const verdict = (svc: Partial<Round>): readonly string[] =>
      complaints({
        cell,
        ratePerSecond: null,
        startRssMb: new Map(),
        rounds: [round("nginx", {}), round("svc", svc)],
      });
    assert.deepEqual(verdict({ cpuUsPerRequest: 21.9 }), []);
    assert.match(verdict({ cpuUsPerRequest: 22.1 }).join(), /cpuVsNginx/);
    assert.match(verdict({ amplification: 1.01 }).join(), /must be 1\.00/);
    assert.match(verdict({ amplification: 0.99 }).join(), /must be 1\.00/);
    assert.match(
      verdict({ load: { ...round("svc", {}).load, failed: 1 } }).join(),
      /wrong or missing/,
    );
    assert.match(verdict({ discarded: "the generator was saturated" }).join(), /no round of svc/);
  },
);

test("discarded rounds stay out of the medians, and added latency is taken within a round", () => {
  const cell = CELLS[0];
  assert.ok(cell !== undefined);
  const at = (p50Ms: number): Round["load"] => ({ ...round("svc", {}).load, p50Ms });
  const rounds = [1, 5, 9].flatMap((base) => [
    round("direct", { load: at(base) }),
    round("svc", { load: at(base + 0.2), cpuUsPerRequest: base }),
  ]);
  const spoiled = [
    round("direct", { load: at(1) }),
    round("svc", { load: at(90), cpuUsPerRequest: 500, discarded: "noise" }),
  ];
  const svc = rowsOf({
    cell,
    ratePerSecond: null,
    startRssMb: new Map([["svc", 25]]),
    rounds: [...rounds, ...spoiled],
  }).find(({ system }) => system === "svc");
  assert.equal(svc?.cpuUs, 5);
  assert.equal(svc?.kept, 3);
  assert.equal(svc?.memoryGrowthMb, 35);
  assert.ok(Math.abs((svc?.addedP50Ms ?? 0) - 0.2) < 1e-9);
  assert.equal(median([4, 1, 3, 2]), 2.5);
});

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

function round(system: SystemName, change: Partial<Round>): Round {
  const load = {
    sent: 10,
    ok: 10,
    failed: 0,
    failedUnknown: 0,
    faults: [],
    seconds: 1,
    p50Ms: 1,
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
        { port: address.port, path: "/", workload, shape: LARGE_SHAPE, done },
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

test("the targets of budgets: one request more than declared, a refusal, a failure", () => {
  const well = { mostInASecond: 51, refused: 0, failed: 0 };
  assert.deepEqual(missedOf(well), []);
  assert.equal(missedOf({ ...well, mostInASecond: 52 }).length, 1);
  assert.equal(missedOf({ mostInASecond: 99, refused: 2, failed: 1 }).length, 3);
});
