// Requests as they go to a provider: whatever the caller wrote, the same request under an id of
// ours; and the ids, which never repeat and never change their width.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { readRequest } from "../../../src/core/rpc/envelope.ts";
import { WIRE_ID_BYTES, withWireId, writeRequest } from "../../../src/core/rpc/wire-request.ts";
import { createWireIds, realRuntime } from "../../../src/runtime.ts";
import { objectText, stringText, valueText, whiteSpace } from "../../fakes/json-text.ts";
import { seededRandom } from "../../fakes/runtime.ts";

const WIRE_ID = "1234567890123456";

test(
  "a written request reads back as itself under the id it is sent with, with its parameters " +
    "byte for byte",
  () => {
    const method = fc
      .string({ unit: "binary", minLength: 1, maxLength: 128 })
      .filter((it) => it.length <= 128);
    fc.assert(
      fc.property(method, fc.option(valueText.filter((it) => /^[[{]/.test(it))), (name, params) => {
        const bytes = withWireId(
          writeRequest(name, params === null ? null : Buffer.from(params)),
          WIRE_ID,
        );
        const found = readRequest(bytes, 0, bytes.length);
        assert.ok(found.kind === "request");
        assert.deepEqual(
          [found.id, found.method],
          [WIRE_ID, name.toWellFormed() === name ? name : JSON.parse(JSON.stringify(name))],
        );
        assert.equal(bytes.toString("utf8", found.paramsStart, found.paramsEnd), params ?? "[]");
        JSON.parse(bytes.toString());
      }),
      { numRuns: 1_000 },
    );
  },
);

test(
  "a caller's request is sent byte for byte but for its id, in every order of its members and " +
    "with ids of every length",
  () => {
    const id = fc.oneof(
      stringText,
      fc.constantFrom("1", "0", "-7", "null", "123456789012345678901234567890"),
    );
    const params = valueText.filter((it) => /^[[{]/.test(it));
    const members = fc
      .tuple(id, params)
      .chain(([one, two]) =>
        fc
          .shuffledSubarray(
            ['"jsonrpc":"2.0"', `"id":${one}`, '"method":"eth_call"', `"params":${two}`],
            { minLength: 4 },
          )
          .map((them) => ({ them, one })),
      );
    fc.assert(
      fc.property(members, ({ them, one }) => {
        const text = `{${them.join(",")}}`;
        const body = Buffer.from(text);
        const found = readRequest(body, 0, body.length);
        assert.ok(found.kind === "request" && found.plain);
        const sent = withWireId(
          { body, idStart: found.idStart, idEnd: found.idEnd },
          WIRE_ID,
        ).toString();
        assert.equal(
          sent,
          `{${them.map((it) => (it === `"id":${one}` ? `"id":${WIRE_ID}` : it)).join(",")}}`,
        );
        assert.equal(
          body.toString(),
          text,
          "the caller's own bytes stay as they are: another attempt may still be writing them",
        );
      }),
      { numRuns: 1_000 },
    );
    fc.assert(
      fc.property(fc.array(whiteSpace, { maxLength: 8 }), (spaces) => {
        const body = Buffer.from(
          objectText(
            [
              ['"id"', "5"],
              ['"jsonrpc"', '"2.0"'],
              ['"params"', "[5]"],
              ['"method"', '"m"'],
            ],
            spaces,
          ),
        );
        const found = readRequest(body, 0, body.length);
        assert.ok(found.kind === "request" && found.plain);
        assert.equal(
          JSON.parse(
            withWireId({ body, idStart: found.idStart, idEnd: found.idEnd }, WIRE_ID).toString(),
          ).id,
          Number(WIRE_ID),
        );
      }),
    );
  },
);

test(
  "ids are numbers of 16 digits that a double holds exactly, never repeat, and start elsewhere " +
    "in every process",
  () => {
    for (let seed = 1; seed <= 10; seed++) {
      const next = createWireIds(seededRandom(seed));
      const ids = Array.from({ length: 30_000 }, next);
      for (const id of ids) {
        assert.match(id, /^[1-9]\d{15}$/);
        assert.ok(
          Number.isSafeInteger(Number(id)) && String(Number(id)) === id,
          `seed ${seed}: ${id}`,
        );
      }
      assert.equal(new Set(ids).size, ids.length, `seed ${seed}`);
    }
    const starts = new Set(
      Array.from({ length: 100 }, (_, seed) => createWireIds(seededRandom(seed))()),
    );
    assert.equal(starts.size, 100);
    assert.equal(realRuntime.wireId().length, WIRE_ID_BYTES);
  },
);

test("ids keep their width and do not repeat where the count carries over and where it begins anew", () => {
  // Greatest keys and the last count there is; then counts on both sides of it.
  for (const draws of [[1 - Number.EPSILON], [0.1, 0.2, 0.3, 0.4, 0.5, 1 - Number.EPSILON], [0]]) {
    const left = [...draws];
    const next = createWireIds(() => left.shift() ?? draws.at(-1) ?? 0);
    const ids = Array.from({ length: 3_000 }, next);
    assert.ok(
      ids.every(
        (it) => it.length === WIRE_ID_BYTES && Number(it) < 2 ** 53 && Number(it) >= 10 ** 15,
      ),
    );
    assert.equal(new Set(ids).size, ids.length);
  }
});

test("the next id cannot be told from those before it: no two steps are alike", () => {
  const next = createWireIds(seededRandom(3));
  const ids = Array.from({ length: 10_000 }, () => Number(next()));
  const steps = new Set(ids.slice(1).map((it, n) => it - (ids[n] ?? 0)));
  assert.ok(steps.size > 9_990, `${steps.size} different steps`);
  const highs = new Set(ids.map((it) => Math.floor(it / 1e8)));
  assert.ok(highs.size > 9_900, `${highs.size} different first halves`);
});
