// The pure parts of the editor of documents: where a cursor stands in a text that is not finished,
// what fits there by the schema of Custom profiles, where a problem is, and which hidden values can
// be kept.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { z } from "zod";
import { completionsAt } from "../../console/editor/completions.ts";
import { lineOf, offsetOf, offsetsOf, placeAt } from "../../console/editor/json-place.ts";
import { checkDocument } from "../../console/editor/schema-check.ts";
import { draftOf, hiddenProblems, type Shown } from "../../console/pages/account/profile-draft.ts";
import { profileDocument } from "../../src/hosted/profiles/document.ts";

const SCHEMA: unknown = z.toJSONSchema(profileDocument, { target: "draft-2020-12", io: "input" });
const KNOWN = { chains: ["ethereum", "base"] };

/** What is offered at `|`. */
function offeredAt(marked: string): readonly string[] {
  const place = placeAt(marked.replace("|", ""), marked.indexOf("|"));
  return place === null ? [] : completionsAt(SCHEMA, place, KNOWN).map(({ label }) => label);
}

/** The text after the first completion at `|` was taken, with the cursor where it stands then. */
function taken(marked: string): string {
  const text = marked.replace("|", "");
  const place = placeAt(text, marked.indexOf("|"));
  const [first] = place === null ? [] : completionsAt(SCHEMA, place, KNOWN);
  assert.ok(place !== null && first !== undefined, marked);
  const { text: put, cursor } = first;
  return `${text.slice(0, place.start)}${put.slice(0, cursor)}|${put.slice(cursor)}${text.slice(place.end)}`;
}

test("keys are offered that the object may have and has not, also behind the cursor", () => {
  assert.deepEqual(offeredAt("{|"), ["name", "consistency", "chains"]);
  assert.deepEqual(offeredAt('{"name": "x", "c|'), ["consistency", "chains"]);
  assert.deepEqual(offeredAt('{"|", "chains": {}}'), ["name", "consistency"]);
  assert.deepEqual(offeredAt('{"chains": {"|": {}, "base": {}}}'), ["ethereum"]);
  assert.deepEqual(offeredAt('{"chains": {"ethereum": {|}}}'), [
    "providers",
    "max_lag_blocks",
    "block_protection",
  ]);
  const provider = '{"chains": {"base": {"providers": [{"name": "a"}, {"url": "https://x", |}]}}}';
  assert.deepEqual(offeredAt(provider), ["name", "ws_url", "headers", "region", "limits"]);
});

test("words fit their place: true and false, the empty provider, and nothing where it is free", () => {
  assert.deepEqual(offeredAt('{"chains": {"base": {"block_protection": |}}}'), ["true", "false"]);
  assert.deepEqual(offeredAt('{"chains": {"base": {"block_protection": t|}}}'), ["true"]);
  assert.deepEqual(offeredAt('{"chains": {"base": {"providers": [|]}}}'), ['{ "name": "" }']);
  for (const nothing of ['{"name": "|"}', '{"name" |', "|", "{}|", '{"name": "x"|}', "]|", "}}}|"])
    assert.deepEqual(offeredAt(nothing), [], nothing);
});

test("a completion replaces what was typed, and leaves the cursor where the value goes", () => {
  assert.equal(taken('{"ch|'), '{"chains": {|}');
  assert.equal(
    taken('{"chains": {"base": {"prov|": []}}}'),
    '{"chains": {"base": {"providers"|: []}}}',
  );
  assert.equal(taken('{"chains": {"eth|}}'), '{"chains": {"ethereum": { "providers": [|] }}}');
  assert.equal(
    taken('{"chains": {"base": {"providers": [|]}}}'),
    '{"chains": {"base": {"providers": [{ "name": "|" }]}}}',
  );
  assert.equal(taken('{"na|me": "x"}'), '{"name"|: "x"}');
});

test("a problem is found at its line, or at the nearest part of its path that is there", () => {
  const text = '{\n  "chains": {\n    "base": {\n      "providers": [\n        { "name": "a" }\n';
  const offsets = offsetsOf(text);
  const lineAt = (path: string): number | null => {
    const offset = offsetOf(offsets, path);
    return offset === null ? null : lineOf(text, offset).line;
  };
  assert.equal(lineAt("chains.base.providers[0].name"), 5);
  assert.equal(lineAt("chains.base.providers[0].url"), 5);
  assert.equal(lineAt("chains.base.providers[7].url"), 4);
  assert.equal(lineAt("chains.base"), 3);
  assert.equal(lineAt("nowhere.at.all"), null);
  assert.deepEqual(lineOf(text, text.indexOf('"base"')), { line: 3, column: 5 });
});

test("the service's own schema judges names, with patterns that a browser reads", () => {
  const providers = [{ name: "no spaces", url: "https://x.example", region: "?" }];
  const problems = checkDocument(SCHEMA, { chains: { base: { providers } } });
  assert.deepEqual(
    problems.map(({ path }) => path),
    ["chains.base.providers[0].name", "chains.base.providers[0].region"],
  );
  const patterns = JSON.stringify(SCHEMA).match(/"pattern":"(?:[^"\\]|\\.)*"/g) ?? [];
  assert.ok(patterns.length > 0);
  for (const each of patterns) new RegExp(JSON.parse(`{${each}}`).pattern, "u");
});

test("a place with a name that every object has is a place as others are", () => {
  for (const name of ["constructor", "toString", "__proto__"])
    assert.deepEqual(offeredAt(`{"${name}": {"|"}}`), [], name);
});

test("any text at any cursor is read without failing, and whole documents are read rightly", () => {
  const text = fc.oneof(
    fc.string(),
    fc.json(),
    fc
      .array(fc.constantFrom(...'{}[]:,"\\\n 1a'), { maxLength: 60 })
      .map((parts) => parts.join("")),
  );
  fc.assert(
    fc.property(text, fc.nat(80), (given, cursor) => {
      const place = placeAt(given, Math.min(cursor, given.length));
      if (place !== null) {
        assert.ok(place.start <= place.end && place.end <= given.length);
        completionsAt(SCHEMA, place, KNOWN);
      }
      for (const offset of offsetsOf(given).values()) assert.ok(offset < given.length);
    }),
  );
  fc.assert(
    fc.property(
      fc.dictionary(fc.stringMatching(/^[a-z]+$/), fc.json(), { minKeys: 1 }),
      (fields) => {
        const given = JSON.stringify(fields, null, 2);
        const offsets = offsetsOf(given);
        for (const name of Object.keys(fields))
          assert.ok(given.startsWith(JSON.stringify(name), offsets.get(name)), name);
      },
    ),
  );
});

test("hidden values stay where the service keeps them, and are to be typed again elsewhere", () => {
  const provider = {
    name: "a",
    url: "https://a.example/…",
    ws_url: null,
    headers: ["X-Key"],
    region: null,
    limits: { archival: false, logs_span: null, methods_blocked: [] },
  };
  const chain = { max_lag_blocks: 5, block_protection: false, providers: [provider] };
  const saved: Shown = { name: null, consistency: null, chains: { base: chain } };
  assert.ok(!Object.hasOwn(JSON.parse(draftOf(saved)), "consistency"));
  const mode = JSON.parse(draftOf({ ...saved, consistency: "caller" }));
  assert.equal(mode.consistency, "caller", "stays when the draft is saved");
  const problems = (change: object): readonly string[] => {
    const chains = {
      base: { providers: [{ ...JSON.parse(draftOf(saved)).chains.base.providers[0], ...change }] },
    };
    return hiddenProblems({ chains }, saved).map(({ path }) => path.replace(/^.*\]\./, ""));
  };
  assert.deepEqual(problems({}), []);
  assert.deepEqual(problems({ url: "https://b.example/…" }), ["url", "headers.X-Key"]);
  assert.deepEqual(problems({ url: "https://a.example/new" }), ["headers.X-Key"]);
  assert.deepEqual(problems({ ws_url: "wss://a.example/x" }), ["headers.X-Key"]);
  assert.deepEqual(problems({ name: "b" }), ["url", "headers.X-Key"]);
  assert.deepEqual(problems({ headers: { "X-New": "…" } }), ["headers.X-New"]);
  assert.deepEqual(problems({ url: "https://b.example/new", headers: { "X-Key": "typed" } }), []);
  assert.equal(hiddenProblems(JSON.parse(draftOf(saved)), null).length, 2);
  for (const odd of [null, 1, { chains: [] }, { chains: { base: { providers: [null, 3] } } }])
    assert.deepEqual(hiddenProblems(odd, saved), []);
});
