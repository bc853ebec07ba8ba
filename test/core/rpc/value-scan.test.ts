// Where a value ends, against a reader that follows the grammar byte by byte: however its bytes are
// cut, and whatever follows it.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import fc from "fast-check";
import { skipValue } from "../../../src/core/rpc/json.ts";
import { ValueScan } from "../../../src/core/rpc/value-scan.ts";
import { valueText } from "../../fakes/json-text.ts";

const SOURCE = new URL("../../../src/core/rpc/value-scan.wat", import.meta.url);
const DEPTH = 1_024;

/** Offset after the value, found piece by piece; -1 = it has no end. */
function endOf(bytes: Buffer, cuts: readonly number[]): number {
  const scan = ValueScan.of(bytes[0]);
  if (scan === null) return assert.fail();
  let from = 0;
  const places = [...new Set(cuts.map((cut) => cut % (bytes.length + 1)))];
  for (const to of [...places.sort((left, right) => left - right), bytes.length]) {
    const end = scan.take(bytes.subarray(from, to));
    if (end !== -1) return from + end;
    from = to;
  }
  return -1;
}

/** Strings of any length beside brackets, so that blocks with and without brackets alternate. */
const uneven = fc.array(
  fc.oneof(
    fc.nat(200).map((length) => `"0x${"0".repeat(length)}"`),
    fc.constantFrom("[]", "{}", "[[{}]]", '{"a":[1]}', '"]"', '"é{"', '"\\\\"', "1"),
  ),
  { maxLength: 40 },
);

const container = fc.oneof(
  uneven.map((items) => `[${items.join(",")}]`),
  fc.array(valueText, { maxLength: 30 }).map((items) => `[${items.join(",")}]`),
  fc.array(valueText, { maxLength: 30 }).map((items) => `{"a":[${items.join(" , ")}],"b":{}}`),
  fc.string({ unit: "binary", maxLength: 300 }).map((text) => JSON.stringify(text)),
  fc
    .array(fc.constantFrom("\\\\", '\\"', "x", "]}"), { maxLength: 60 })
    .map((it) => `"${it.join("")}"`),
);
const cutting = fc.array(fc.nat(2_000), { maxLength: 8 });

test("a value ends where its grammar says, in any pieces and whatever is behind it", () => {
  const behind = fc.constantFrom("", "}", ',"id":1}', "]", '"', "}{", "  ");
  fc.assert(
    fc.property(container, behind, cutting, (text, rest, cuts) => {
      const bytes = Buffer.from(text + rest);
      const end = skipValue(bytes, 0, bytes.length, DEPTH);
      assert.equal(end, Buffer.byteLength(text));
      assert.equal(endOf(bytes, cuts), end);
    }),
    { numRuns: 2_000 },
  );
});

test("a value that is cut short has no end", () => {
  fc.assert(
    fc.property(container, fc.nat(), cutting, (text, at, cuts) => {
      const bytes = Buffer.from(text);
      const cut = 1 + (at % (bytes.length - 1));
      assert.equal(endOf(bytes.subarray(0, cut), cuts), -1);
    }),
    { numRuns: 2_000 },
  );
});

test("values longer than the memory of the scanner are followed through it", () => {
  const items = Array.from(
    { length: 9_000 },
    (_, n) => `{"n":${n},"text":"}]${'\\"'.repeat(n % 40)}"}`,
  );
  const text = `[${items.join(",")}]`;
  assert.ok(text.length > 400_000);
  assert.equal(ValueScan.of(0x5b)?.take(Buffer.from(`${text}}`)), text.length);
});

test("what is neither object, array nor string is not followed", () => {
  for (const text of ["1", "-", "null", "true", " "])
    assert.equal(ValueScan.of(text.charCodeAt(0)), null);
  assert.equal(ValueScan.of(undefined), null);
});

test("the module is its source, assembled", (t) => {
  const made = spawnSync("wat2wasm", [SOURCE.pathname, "--output=-"]);
  if (made.error !== undefined) return t.skip("wat2wasm (Debian: wabt) is not installed");
  const code = readFileSync(new URL("value-scan.ts", SOURCE), "utf8");
  const held = [...code.matchAll(/^ {2}"([A-Za-z0-9+/=]+)"/gm)].map(([, part]) => part).join("");
  assert.equal(held, made.stdout.toString("base64"));
});
