// What a request says of its view of the chain, and where it may say it.
import assert from "node:assert/strict";
import { test } from "node:test";
import { readDirectives } from "../../../src/web/rpc/directives.ts";

const HASH = `0x${"ab".repeat(32)}`;
const PATH = "/rpc/ethereum";

const read = (url: string, headers: Readonly<Record<string, string>> = {}) =>
  readDirectives(url, (name) => headers[name]).wishes;
const codeOf = (...request: Parameters<typeof read>) => {
  const found = read(...request);
  return "kind" in found ? [found.code, found.status, found.nextAction] : found;
};

test("most requests say nothing, also with a query", () => {
  for (const url of [
    PATH,
    `${PATH}?`,
    `${PATH}?include_meta=body`,
    "/rpc/consistency=tip",
    "/seen=1",
  ])
    assert.deepEqual(read(url), { consistency: null, seen: null }, url);
});

test("a header or the query says the mode; the query wins", () => {
  for (const mode of ["tip", "caller", "off"]) {
    const said = { consistency: mode, seen: null };
    assert.deepEqual(read(PATH, { "x-svc-consistency": mode }), said);
    assert.deepEqual(read(`${PATH}?include_meta=body&consistency=${mode}`), said);
    assert.deepEqual(read(`${PATH}?consistency=${mode}`, { "x-svc-consistency": "x" }), said);
  }
});

test("a header or the query says the block that was seen; the query wins", () => {
  const seen = { number: 7, hash: HASH };
  assert.deepEqual(read(PATH, { "x-svc-seen": `7-${HASH}` }), { consistency: null, seen });
  assert.deepEqual(read(`${PATH}?seen=7-${HASH}`), { consistency: null, seen });
  assert.deepEqual(read(`${PATH}?seen=8&a=b`, { "x-svc-seen": `7-${HASH}` }), {
    consistency: null,
    seen: { number: 8, hash: null },
  });
  assert.deepEqual(read(`${PATH}?seen=7-${HASH}&consistency=caller`), {
    consistency: "caller",
    seen,
  });
  assert.deepEqual(read(`${PATH}?seen=9`, { "x-svc-consistency": "off" }), {
    consistency: "off",
    seen: { number: 9, hash: null },
  });
});

test("a mode that there is not is refused with those that there are", () => {
  const refused = ["invalid_field", 400, "use tip, caller or off"];
  for (const mode of ["", "TIP", "strict", "tip, off", "toString"]) {
    assert.deepEqual(codeOf(PATH, { "x-svc-consistency": mode }), refused, mode);
    assert.deepEqual(codeOf(`${PATH}?consistency=${encodeURIComponent(mode)}`), refused, mode);
  }
});

test("what is no mark is refused", () => {
  const why = "send X-Svc-Seen back as it was received, or leave it out";
  const refused = ["invalid_request", 400, why];
  for (const mark of ["", "latest", "0x10", "1-0xab", `1-${HASH}, 2-${HASH}`]) {
    assert.deepEqual(codeOf(PATH, { "x-svc-seen": mark }), refused, mark);
    assert.deepEqual(codeOf(`${PATH}?seen=${encodeURIComponent(mark)}`), refused, mark);
  }
});
