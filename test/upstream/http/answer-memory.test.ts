// The memory of answers: every buffer that one is read into goes back exactly once, no matter who
// keeps it and how the answer ends, and nobody sees another's bytes.
import assert from "node:assert/strict";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { type TestContext, test } from "node:test";
import { realRuntime } from "../../../src/runtime.ts";
import {
  BUFFER_BYTES,
  BufferPool,
  HEADROOM_BYTES,
  SLAB_ANSWER_BYTES,
} from "../../../src/upstream/http/buffer-pool.ts";
import type { RequestBody } from "../../../src/upstream/http/connections.ts";
import { HttpDispatch } from "../../../src/upstream/http/dispatch.ts";
import { GatheredBody } from "../../../src/upstream/http/gathered-body.ts";
import { MemoryBudget } from "../../../src/upstream/memory-budget.ts";
import { TimerWheel } from "../../../src/upstream/timer-wheel.ts";
import type { AnswerListener } from "../../../src/upstream/transport.ts";
import { originAt } from "../../fakes/origin.ts";
import { seededRandom } from "../../fakes/runtime.ts";
import { namedSeeds } from "../../fakes/seed.ts";
import { until } from "../../fakes/service-fixture.ts";

const LIMITS = { maxAnswerBytes: 100_000_000, maxWholeBytes: 50_000_000 };
const partsOf = (buffers: BufferPool) => ({ buffers, runtime: realRuntime, timerWheel: WHEEL });
const WHEEL = new TimerWheel(realRuntime);

test("a buffer comes back once, by any part of it; memory of others is left alone", () => {
  const pool = new BufferPool();
  const [first, second] = [pool.take(), pool.take()];
  assert.equal(pool.out, 2);
  pool.recycle(Buffer.alloc(10));
  pool.recycle(pool.scratch);
  pool.recycle(first.subarray(7, 9));
  pool.recycle(first);
  assert.equal(pool.out, 1);
  const again = pool.take();
  assert.equal(pool.made, 2);
  assert.equal(again.length, BUFFER_BYTES);
  const other = pool.take();
  assert.equal(pool.made, 3);
  for (const it of [again, other, second]) pool.recycle(it);
  assert.equal(pool.out, 0);
});

test(
  "short answers that are out at once have free bytes of their own before them: code that writes " +
    "there harms no other",
  () => {
    const pool = new BufferPool();
    const random = seededRandom(9);
    const answers = Array.from({ length: 500 }, (_, at) =>
      Buffer.alloc(Math.floor(random() * SLAB_ANSWER_BYTES), at % 256),
    );
    const copies = answers.map((answer) => pool.copyOf(answer));
    for (const copy of copies)
      Buffer.from(copy.buffer, copy.byteOffset - HEADROOM_BYTES, HEADROOM_BYTES).fill(0xff);
    for (const [at, copy] of copies.entries())
      assert.ok(copy.equals(answers[at] ?? Buffer.alloc(0)), `answer ${at}`);
  },
);

test(
  "an answer is gathered in one piece, whatever it says of its length, and takes no more than " +
    "twice its size",
  () => {
    const random = seededRandom(3);
    for (const expected of [null, 5, 300_000, 1_000_000_000]) {
      const pool = new BufferPool();
      const budget = MemoryBudget.unbounded();
      const room = budget.roomOf("a");
      const body = new GatheredBody(pool, room);
      const pieces = Array.from({ length: 40 }, () =>
        Buffer.alloc(Math.floor(random() * 30_000), Math.floor(random() * 256)),
      );
      for (const piece of pieces) body.add(piece, expected, true);
      const kept = body.keep();
      assert.ok(kept.equals(Buffer.concat(pieces)));
      assert.ok(
        kept.buffer.byteLength <= 2 * kept.length,
        `${kept.buffer.byteLength} bytes for ${kept.length}`,
      );
      body.vacate();
      assert.deepEqual([pool.out, budget.used, budget.callers], [0, 0, 0]);
    }
  },
);

/** What the provider is told to do, in the body of the request. */
interface Order {
  readonly id: string;
  readonly size: number;
  readonly chunked: boolean;
  /** Writes of this many bytes. */
  readonly step: number;
  /** Ends the connection after this share of the answer; 1 = answers in full. */
  readonly share: number;
}

function resultOf({ id, size }: Order): string {
  return `{"jsonrpc":"2.0","id":${id},"result":"${id.repeat(Math.ceil(size / id.length)).slice(0, size)}"}`;
}

function wireOf(order: Order): Buffer {
  const body = resultOf(order);
  const head = "HTTP/1.1 200 OK\r\n";
  if (!order.chunked) return Buffer.from(`${head}Content-Length: ${body.length}\r\n\r\n${body}`);
  const chunks = body.match(/.{1,9973}/g) ?? [];
  return Buffer.from(
    `${head}Transfer-Encoding: ` +
      `chunked\r\n\r\n${chunks.map((it) => `${it.length.toString(16)}\r\n${it}\r\n`).join("")}0\r\n\r\n`,
  );
}

async function provider(t: TestContext): Promise<number> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
    socket.on("data", (request) => {
      const text = request.toString("latin1");
      const order: Order = JSON.parse(text.slice(text.indexOf("\r\n\r\n") + 4));
      const wire = wireOf(order);
      const end = Math.floor(wire.length * order.share);
      let at = 0;
      const more = (): void => {
        if (socket.destroyed) return;
        const piece = wire.subarray(at, Math.min(end, at + order.step));
        at += order.step;
        if (at < end) socket.write(piece, () => setImmediate(more));
        else if (order.share === 1) socket.write(piece);
        else socket.end(piece);
      };
      more();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

/** An order as it is sent: its id is among what it says. */
function bodyOf(order: Order): RequestBody {
  return { bytes: Buffer.from(JSON.stringify(order)), id: "", idStart: 0, idEnd: 0 };
}

type Way = "borrows" | "keeps" | "reads slowly" | "leaves";

/**
 * Hears one answer in one of the ways of callers; says `whole`, `failed` or `broken`, and fails
 * when a byte is not the answer's own.
 */
function hear(
  order: Order,
  way: Way,
  random: () => number,
): { listener: AnswerListener; outcome: Promise<string>; cancel: (it: HttpDispatch) => void } {
  const expected = resultOf(order);
  let settle: (outcome: string) => void = () => {};
  const outcome = new Promise<string>((resolve) => (settle = resolve));
  const later = (run: () => void): void => void setTimeout(run, random() * 4);
  const listener: AnswerListener = {
    result(body, { start, end }, pool) {
      const [from, to] = [expected.indexOf(":", 30) + 1, expected.length - 1];
      later(() => {
        settle(
          body.toString("latin1", start, end) === expected.slice(from, to) ? "whole" : "altered",
        );
        pool?.recycle(body);
      });
    },
    stream(stream) {
      const pieces: { readonly bytes: Buffer; readonly borrowed: boolean }[] = [];
      const texts = [stream.head.toString("latin1")];
      /** Reads what it kept, oldest first, and hands it back. */
      const read = (): void => {
        for (const { bytes, borrowed } of pieces.splice(0)) {
          texts.push(bytes.toString("latin1"));
          if (borrowed) stream.recycle(bytes);
        }
        stream.resume();
      };
      stream.flow({
        data(chunk, borrowed) {
          if (way === "leaves" && random() < 0.3) {
            read();
            stream.cut();
            settle("left");
            return true;
          }
          if (pieces.length === 0 && random() < 0.3) {
            texts.push(chunk.toString("latin1"));
            return true;
          }
          pieces.push({ bytes: chunk, borrowed });
          if (random() < 0.5) stream.pause();
          later(read);
          return false;
        },
        end(last, _, borrowed) {
          pieces.push({ bytes: last, borrowed });
          later(() => {
            read();
            settle(texts.join("") === expected ? "whole" : "altered");
          });
          return false;
        },
        broken() {
          later(() => {
            read();
            settle("broken");
          });
        },
      });
    },
    broken() {},
    failed: ({ kind }) => settle(kind === "no_room" ? kind : "failed"),
  };
  const cancel = (dispatch: HttpDispatch): void => {
    if (way === "leaves" && random() < 0.5)
      later(() => {
        dispatch.cancel();
        settle("left");
      });
  };
  return { listener, outcome, cancel };
}

for (const seed of namedSeeds(1, 2, 3)) {
  test(`no buffer is lost or used twice, no matter who keeps it and how an answer ends (seed ${seed})`, async (t) => {
    const random = seededRandom(seed);
    const port = await provider(t);
    const pool = new BufferPool();
    const budget = new MemoryBudget(() => ({
      maxInFlightBytes: 1_000_000,
      maxCallerBytes: 300_000,
    }));
    const room = budget.roomOf("a caller");
    const origin = originAt(port, { connections: 6, queue: 1_000, buffers: pool });
    const send = origin.prepare("/", []);
    t.after(() => origin.destroy());
    const pick = <T>(values: readonly T[]): T =>
      values[Math.floor(random() * values.length)] ?? (values[0] as T);
    const ways: readonly Way[] = ["borrows", "keeps", "reads slowly", "leaves"];
    const outcomes = new Map<string, number>();
    const ask = async (n: number): Promise<void> => {
      const order: Order = {
        id: String(1_000_000_000_000_000 + n),
        size:
          pick([10, 3_000, 5_000, 20_000, 60_000, 66_000, 73_728, 140_000, 400_000]) +
          Math.floor(random() * 300),
        chunked: random() < 0.5,
        step: pick([7_001, 16_384, 65_536, 1_000_000]),
        share: random() < 0.8 ? 1 : random(),
      };
      const way = pick(ways);
      const { listener, outcome, cancel } = hear(order, way, random);
      const expected = {
        wireId: order.id,
        mayStream: way !== "keeps",
        room,
        deadlineMs: 60_000,
        distrust() {},
      };
      const dispatch = new HttpDispatch(expected, listener, LIMITS, partsOf(pool));
      send(bodyOf(order), dispatch, "alone");
      cancel(dispatch);
      const said = await outcome;
      outcomes.set(said, (outcomes.get(said) ?? 0) + 1);
      assert.notEqual(said, "altered", JSON.stringify({ order, way }));
      if (order.share === 1 && way !== "leaves")
        assert.match(
          said,
          way === "keeps" ? /^(whole|no_room)$/ : /^whole$/,
          JSON.stringify({ order, way }),
        );
    };
    const workers = Array.from({ length: 8 }, async (_, worker) => {
      for (let n = 0; n < 40; n++) await ask(worker * 40 + n);
    });
    await Promise.all(workers);
    for (const kind of ["whole", "left", "no_room"])
      assert.ok((outcomes.get(kind) ?? 0) > 0, `${kind}: ${JSON.stringify([...outcomes])}`);
    await origin.destroy();
    await until("the return of every buffer", () => pool.out === 0);
    assert.deepEqual([budget.used, budget.callers], [0, 0]);
  });
}

test(
  "a holder of a buffer that was given back has nothing: neither to read, nor to give back " +
    "again",
  () => {
    const pool = new BufferPool();
    const first = pool.take();
    first.fill("first");
    const stale = first.subarray(10, 500);
    pool.recycle(stale);
    const second = pool.take();
    second.fill("second");
    assert.deepEqual([first.length, stale.length, stale.toString()], [0, 0, ""]);
    pool.recycle(stale);
    pool.recycle(first);
    assert.equal(pool.out, 1, "the second is still out");
    const third = pool.take();
    third.fill("third");
    assert.equal(second.toString("latin1", 0, 6), "second");
    assert.equal(second.length, BUFFER_BYTES);
  },
);

test("a short answer that is returned twice is noticed, and frees nobody's memory", () => {
  const ways = ["reuse", "recycle"] as const;
  for (const first of ways) {
    for (const second of ways) {
      let noticed = 0;
      const pool = new BufferPool(() => void noticed++);
      const [stale, neighbour] = [pool.copyOf(Buffer.alloc(7, 1)), pool.copyOf(Buffer.alloc(7, 2))];
      pool[first](stale);
      pool[second](stale);
      assert.equal(noticed, 1, `${first}, ${second}`);
      for (let n = 0; n < 200; n++) pool.copyOf(Buffer.alloc(SLAB_ANSWER_BYTES, 3));
      assert.ok(neighbour.equals(Buffer.alloc(7, 2)), "the neighbour is out, and stays as it is");
      pool.reuse(neighbour);
      assert.equal(noticed, 1);
    }
  }
  const strict = new BufferPool();
  const stale = strict.copyOf(Buffer.alloc(7));
  strict.reuse(stale);
  assert.throws(() => strict.reuse(stale), /returned twice/);
});

test("a short answer is known apart from the one that took its place in memory", () => {
  let noticed = 0;
  const pool = new BufferPool(() => void noticed++);
  const stale = pool.copyOf(Buffer.alloc(7, 1));
  pool.reuse(stale);
  const next = pool.copyOf(Buffer.alloc(7, 2));
  assert.deepEqual([next.buffer, next.byteOffset], [stale.buffer, stale.byteOffset]);
  pool.reuse(stale);
  assert.equal(noticed, 1);
  const after = pool.copyOf(Buffer.alloc(7, 3));
  assert.ok(next.equals(Buffer.alloc(7, 2)), "it is still out");
  pool.reuse(next);
  pool.reuse(after);
  assert.equal(noticed, 1);
});

test("two hundred answers of every length, one after the other, are read into a handful of buffers", async (t) => {
  const port = await provider(t);
  const pool = new BufferPool();
  const room = MemoryBudget.unbounded().roomOf("a caller");
  const origin = originAt(port, { connections: 2, queue: 10, buffers: pool });
  t.after(() => origin.destroy());
  for (let n = 0; n < 200; n++) {
    const order: Order = {
      id: String(1_000_000_000_000_000 + n),
      size: (n % 10) * 16_384,
      chunked: n % 2 === 0,
      step: 1_000_000,
      share: 1,
    };
    const { listener, outcome } = hear(order, "borrows", () => 0.1);
    const expected = { wireId: order.id, mayStream: true, room, deadlineMs: 60_000, distrust() {} };
    const dispatch = new HttpDispatch(expected, listener, LIMITS, partsOf(pool));
    origin.prepare("/", [])(bodyOf(order), dispatch, "alone");
    assert.equal(await outcome, "whole");
  }
  assert.ok(pool.made <= 8, `${pool.made} buffers`);
});
