// Requests that are put together in shared memory: the same bytes as a plain concatenation gives,
// and a request that is not in the kernel yet keeps its memory.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { RequestBody } from "../../../src/upstream/http/connections.ts";
import { RequestWriter } from "../../../src/upstream/http/http1-connection.ts";

function plainly(head: string, { bytes, id, idStart, idEnd }: RequestBody): string {
  const body = `${bytes.toString("latin1", 0, idStart)}${id}${bytes.toString("latin1", idEnd)}`;
  return `${head}${body.length}\r\n\r\n${body}`;
}

const texts = (maxLength: number): fc.Arbitrary<string> =>
  fc.string({
    maxLength,
    unit: fc.integer({ min: 32, max: 126 }).map((c) => String.fromCharCode(c)),
  });

test("requests are each head, length and body with the id replaced, whatever their sizes", () => {
  const writer = new RequestWriter();
  const parts = fc.record({
    head: texts(300),
    before: texts(120),
    theirs: texts(40),
    after: texts(6_000),
    id: fc.oneof(fc.constant("1234567890123456"), texts(20)),
    together: fc.integer({ min: 1, max: 8 }),
  });
  const run = fc.check(
    fc.property(parts, ({ head, before, theirs, after, id, together }) => {
      const body: RequestBody = {
        bytes: Buffer.from(before + theirs + after, "latin1"),
        id,
        idStart: before.length,
        idEnd: before.length + theirs.length,
      };
      for (let sent = 1; sent <= together; sent++) writer.add(Buffer.from(head, "latin1"), body);
      assert.equal(writer.take().toString("latin1"), plainly(head, body).repeat(together));
    }),
    { numRuns: 500 },
  );
  assert.equal(run.failed, false, fc.defaultReportMessage(run));
});

test("lengths of one to five digits are written in full", () => {
  const writer = new RequestWriter();
  for (const length of [0, 1, 9, 10, 99, 100, 101, 999, 1_000, 9_999, 10_000, 16_384]) {
    const body = { bytes: Buffer.alloc(length, "x"), id: "", idStart: 0, idEnd: 0 };
    writer.add(Buffer.from("length: "), body);
    const text = writer.take().toString("latin1");
    assert.equal(text, `length: ${length}\r\n\r\n${"x".repeat(length)}`);
  }
});

test("a request that is left with its memory is not overwritten by the next one", () => {
  const writer = new RequestWriter();
  const head = Buffer.from("length: ");
  const body = (text: string): RequestBody => ({
    bytes: Buffer.from(text),
    id: "",
    idStart: 0,
    idEnd: 0,
  });
  writer.add(head, body("first"));
  const kept = writer.take();
  writer.leave();
  writer.add(head, body("other"));
  assert.equal(kept.toString("latin1"), "length: 5\r\n\r\nfirst");
});
