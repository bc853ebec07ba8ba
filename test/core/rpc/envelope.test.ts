// Requests as bytes against an oracle made of JSON.parse: the same members are found, what is
// invalid is refused with the right id, nothing is rewritten.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import {
  type Envelope,
  type InvalidRequest,
  readRequest,
  readRequests,
} from "../../../src/core/rpc/envelope.ts";
import { elements, isJson, skipSpace } from "../../../src/core/rpc/json.ts";
import {
  numberText,
  objectText,
  stringText,
  valueText,
  whiteSpace,
} from "../../fakes/json-text.ts";

type Member = readonly [key: string, value: string];

const KNOWN: ReadonlySet<string> = new Set([
  "id",
  "method",
  "params",
  "jsonrpc",
  "result",
  "error",
]);

const keyText = fc.constantFrom(
  ...[
    '"id"',
    '"\\u0069d"',
    '"i\\u0064"',
    '"method"',
    '"meth\\u006fd"',
    '"params"',
    '"param\\u0073"',
    '"jsonrpc"',
    '"json\\u0072pc"',
    '"result"',
    '"error"',
  ],
  ...[
    '"__proto__"',
    '"constructor"',
    '"toString"',
    '"ID"',
    '"Id"',
    '"id "',
    '"x"',
    '""',
    '"\\\\id"',
    `"${"\\u0061".repeat(20)}"`,
  ],
);
const memberText: fc.Arbitrary<Member> = fc.oneof(
  { weight: 3, arbitrary: fc.tuple(keyText, valueText) },
  {
    weight: 2,
    arbitrary: fc.tuple(
      fc.constant('"id"'),
      fc.oneof(
        numberText,
        stringText,
        fc.constantFrom("null", "0", "-0", "1.0", "1e3", "true", "[]", "{}"),
      ),
    ),
  },
  {
    weight: 2,
    arbitrary: fc.tuple(
      fc.constant('"jsonrpc"'),
      fc.constantFrom('"2.0"', '"1.0"', "2.0", '"\\u0032.0"', "null"),
    ),
  },
  {
    weight: 2,
    arbitrary: fc.tuple(
      fc.constant('"method"'),
      fc.oneof(stringText, fc.constantFrom('"eth_call"', '"eth\\u005fcall"', "1", "null")),
    ),
  },
  {
    weight: 2,
    arbitrary: fc.tuple(
      fc.constant('"params"'),
      fc.oneof(valueText, fc.constantFrom("[]", "{}", "null")),
    ),
  },
);
/** A request that is valid but for what the extra members do to it. */
const usual: fc.Arbitrary<readonly Member[]> = fc
  .tuple(
    fc.constantFrom<Member[]>([], [['"id"', "7"]], [['"id"', '"a"']]),
    fc.array(memberText, { maxLength: 2 }),
  )
  .map(([id, extra]) => [['"jsonrpc"', '"2.0"'], ['"method"', '"eth_call"'], ...id, ...extra]);
const members = fc.oneof(
  fc.array(memberText, { maxLength: 6 }),
  usual.chain((them) => fc.shuffledSubarray([...them], { minLength: them.length - 1 })),
);

function read(text: string): Envelope | InvalidRequest {
  const bytes = Buffer.from(text);
  return readRequest(bytes, 0, bytes.length);
}

/** What the members mean, by JSON.parse alone. */
function meaning(them: readonly Member[]) {
  const named = them.map(([key, value]) => [JSON.parse(key) as string, value] as const);
  const texts = (name: string): readonly string[] =>
    named.filter(([key]) => key === name).map(([, value]) => value);
  const repeated = [...KNOWN].some((name) => texts(name).length > 1);
  const [id = null, ...more] = texts("id");
  const idValid =
    more.length === 0 && (id === null || id === "null" || id.startsWith('"') || /^-?\d+$/.test(id));
  const method: unknown = JSON.parse(texts("method").at(-1) ?? "null");
  const methodValid = typeof method === "string" && method.length >= 1 && method.length <= 128;
  const params = texts("params").at(-1) ?? "null";
  const paramsValid = /^[[{n]/.test(params);
  const version = texts("jsonrpc").at(-1) === '"2.0"';
  return {
    valid: !repeated && idValid && methodValid && paramsValid && version,
    id,
    idValid,
    method,
    params: params === "null" ? null : params,
  };
}

test(
  "exactly the members that JSON.parse finds are found, and everything else is refused with an " +
    "id that can be used",
  () => {
    let valid = 0;
    fc.assert(
      fc.property(members, fc.array(whiteSpace, { maxLength: 8 }), (them, spaces) => {
        const text = objectText(them, spaces);
        const found = read(text);
        const meant = meaning(them);
        if (!meant.valid)
          return assert.deepEqual(
            [found.kind, found.id],
            ["invalid", (meant.idValid ? meant.id : null) ?? "null"],
            text,
          );
        valid++;
        assert.ok(found.kind === "request", text);
        const params =
          found.paramsStart === -1
            ? null
            : Buffer.from(text).toString("utf8", found.paramsStart, found.paramsEnd);
        assert.deepEqual(
          [found.id, found.method, params],
          [meant.id, meant.method, meant.params],
          text,
        );
      }),
      { numRuns: 8_000 },
    );
    assert.ok(valid > 1_000, `only ${valid} of the generated requests were valid`);
  },
);

/** The items of a batch, each found and then read by itself. */
function readOneByOne(bytes: Buffer, most: number): readonly (Envelope | InvalidRequest)[] | null {
  if (!isJson(bytes)) return null;
  return elements(bytes, 0, bytes.length, most).map(({ start, end }) =>
    readRequest(bytes, start, end),
  );
}

test("a batch read in one pass holds what its items are each by itself, or is no JSON at all", () => {
  const item = fc.oneof(
    { weight: 5, arbitrary: fc.tuple(members, fc.array(whiteSpace, { maxLength: 4 })) },
    { weight: 1, arbitrary: valueText },
  );
  const text = fc
    .tuple(
      fc.array(item, { maxLength: 6 }),
      whiteSpace,
      fc.nat(),
      fc.constantFrom("", "", "]", ","),
    )
    .map(([items, space, at, extra]) => {
      const texts = items.map((one) => (typeof one === "string" ? one : objectText(...one)));
      const whole = `[${space}${texts.join(`${space},${space}`)}${space}]${space}`;
      const cut = at % (whole.length + 1);
      return extra === "" ? whole : whole.slice(0, cut) + extra + whole.slice(cut);
    });
  fc.assert(
    fc.property(text, fc.integer({ min: 1, max: 7 }), (whole, most) => {
      if (!whole.startsWith("[")) return;
      const bytes = Buffer.from(whole);
      assert.deepEqual(readRequests(bytes, 0, most), readOneByOne(bytes, most), whole);
    }),
    { numRuns: 4_000 },
  );
});

test("a method is never taken for that of the item before, however both are written", () => {
  const names = ['"a"', '"ab"', '"a\\\\b"', '"a\\b"', '"a\\u0062"', '"é"', '"eth_call"', "1"];
  for (const first of names)
    for (const second of names) {
      const bytes = Buffer.from(
        `[{"jsonrpc":"2.0","id":1,"method":${first}},{"jsonrpc":"2.0","id":2,"method":${second}}]`,
      );
      assert.deepEqual(readRequests(bytes, 0, 9), readOneByOne(bytes, 9));
    }
});

test("an item of a batch may be as deep as the batch as a whole allows", () => {
  for (const depth of [124, 125, 126, 127, 128]) {
    const deep = `${"[".repeat(depth)}${"]".repeat(depth)}`;
    for (const name of ["params", "other"]) {
      const bytes = Buffer.from(`[{"jsonrpc":"2.0","id":1,"method":"a","${name}":${deep}}]`);
      assert.deepEqual(readRequests(bytes, 0, 9), readOneByOne(bytes, 9), `${name} ${depth}`);
    }
  }
});

test(
  "a request goes upstream as it was written but for its id only if its bytes hold the four " +
    "members alone",
  () => {
    fc.assert(
      fc.property(members, fc.array(whiteSpace, { maxLength: 8 }), (them, spaces) => {
        const text = objectText(them, spaces);
        const found = read(text);
        if (found.kind === "invalid" || !found.plain) return;
        assert.deepEqual(
          new Set(them.map(([key]) => JSON.parse(key))),
          new Set(["jsonrpc", "id", "method", "params"]),
        );
        assert.equal(Buffer.from(text).toString("utf8", found.idStart, found.idEnd), found.id);
      }),
      { numRuns: 3_000 },
    );
  },
);

test(
  "requests with the four members are plain whatever their id is, and it is known where that " +
    "stands",
  () => {
    const ids = [
      "1",
      "0",
      "-0",
      "null",
      '"1"',
      '""',
      '"8c5d1a6e-2f7b-4b8e-9a51-0d1f6c5e7a90"',
      "123456789012345678901234567890",
      '"é\\n"',
      `"${"x".repeat(60)}"`,
    ];
    for (const id of ids)
      for (const params of ["[]", '["0x1",true]', '{"a":1}']) {
        const text = `{"method":"eth_call","params":${params},"id": ${id} ,"jsonrpc":"2.0"}`;
        const found = read(text);
        assert.ok(found.kind === "request" && found.plain && found.id === id, id);
        assert.equal(Buffer.from(text).toString("utf8", found.idStart, found.idEnd), id);
      }
  },
);

test("an id is kept as written, to the byte, however long", () => {
  const long = `"${"é\\u0000😀".repeat(1_000)}"`;
  for (const id of ["0", "-5", "1".repeat(30), '""', '"\\ud800"', "null", long])
    assert.equal(read(`{"jsonrpc":"2.0","id": ${id} ,"method":"m"}`).id, id);
});

test("ids of other types are refused and answered to null", () => {
  for (const id of [
    "1.5",
    "1.0",
    "1e3",
    "-1.5e-3",
    "true",
    "false",
    "[]",
    "[1]",
    "{}",
    '{"a":1}',
  ]) {
    const found = read(`{"jsonrpc":"2.0","id":${id},"method":"eth_call","params":[]}`);
    assert.deepEqual([found.kind, found.id], ["invalid", "null"], id);
  }
});

test("two ids are ambiguous, so the refusal is addressed to neither", () => {
  assert.deepEqual(read('{"jsonrpc":"2.0","id":1,"\\u0069d":2,"method":"m"}'), {
    kind: "invalid",
    isJson: true,
    id: "null",
    message: "a member appears twice",
  });
  assert.deepEqual(read('{"jsonrpc":"2.0","id":1,"method":"m","method":"n"}'), {
    kind: "invalid",
    isJson: true,
    id: "1",
    message: "a member appears twice",
  });
});

test("keys that mean something to JavaScript are ordinary unknown members", () => {
  const found = read(
    '{"__proto__":{"method":"evil","id":9},"constructor":{"prototype":{"id":9}},"jsonrpc":"2.0","id":1,"method":"eth_call"}',
  );
  assert.ok(
    found.kind === "request" && found.id === "1" && found.method === "eth_call" && !found.plain,
  );
  assert.equal(Object.hasOwn(Object.prototype, "method"), false);
  assert.equal(read('{"__proto__":{"jsonrpc":"2.0","method":"m","id":9}}').kind, "invalid");
});

test("a method name has 1 to 128 characters, however it is written", () => {
  const kindOf = (text: string): string => read(`{"jsonrpc":"2.0","id":1,"method":${text}}`).kind;
  for (const letter of ["a", "é", "\\u0061", "-", "\\n"]) {
    assert.equal(kindOf(`"${letter.repeat(128)}"`), "request", letter);
    assert.equal(kindOf(`"${letter.repeat(129)}"`), "invalid", letter);
  }
  for (const text of ['""', "1", "null", "true", "[]", '{"a":1}', `"${"x".repeat(100_000)}"`])
    assert.equal(kindOf(text), "invalid", text.slice(0, 40));
});

test("everything that is no object is no request", () => {
  fc.assert(
    fc.property(valueText, (text) => {
      fc.pre(!text.startsWith("{"));
      assert.deepEqual(read(text), {
        kind: "invalid",
        isJson: true,
        id: "null",
        message: "a request is a JSON object",
      });
    }),
  );
});

test("a request can be found anywhere inside a longer document", () => {
  fc.assert(
    fc.property(
      members,
      fc.array(whiteSpace, { maxLength: 8 }),
      whiteSpace,
      (them, spaces, padding) => {
        const text = objectText(them, spaces);
        const before = Buffer.from(`[1,${padding}`);
        const bytes = Buffer.concat([
          before,
          Buffer.from(`${text}${padding},{"id":99,"method":"other"}]`),
        ]);
        const alone = read(text);
        const inside = readRequest(bytes, before.length, before.length + Buffer.byteLength(text));
        if (alone.kind === "invalid" || inside.kind === "invalid")
          return assert.deepEqual(inside, alone);
        const shift = (at: number): number => (at === -1 ? -1 : at + before.length);
        const { start, end, idStart, idEnd, paramsStart, paramsEnd } = alone;
        const moved = {
          start: shift(start),
          end: shift(end),
          idStart: shift(idStart),
          idEnd: shift(idEnd),
          paramsStart: shift(paramsStart),
          paramsEnd: shift(paramsEnd),
          elements: alone.elements.map((at) => ({ start: shift(at.start), end: shift(at.end) })),
        };
        assert.deepEqual(inside, { ...alone, ...moved });
      },
    ),
    { numRuns: 1_000 },
  );
});

test(
  "evidence in a message of its own is asked for by one member with one value, and such a " +
    "request is written anew without it",
  () => {
    const read = (member: string): Envelope | InvalidRequest => {
      const bytes = Buffer.from(
        `{"jsonrpc":"2.0","id":1,"method":"eth_call","params":[]${member}}`,
      );
      return readRequest(bytes, 0, bytes.length);
    };
    const asked = (member: string): readonly unknown[] => {
      const it = read(member);
      return it.kind === "request" ? [it.plain, it.notify] : [it.message];
    };
    assert.deepEqual(asked(""), [true, false]);
    assert.deepEqual(asked(',"svc_meta":"notify"'), [false, true]);
    assert.deepEqual(asked(', "svc_meta" : "notify" , "x":1'), [false, true]);
    for (const member of [
      ',"svc_meta":"body"',
      ',"svc_meta":true',
      ',"svc_meta":["notify"]',
      ',"svc_metb":"notify"',
      ',"x":"notify"',
    ]) {
      assert.deepEqual(asked(member), [false, false], member);
    }
    assert.deepEqual(
      asked(',"svc_meta":"notify","svc_meta":1'),
      [false, false],
      "the last one counts, as with any member that is not ours",
    );
  },
);

test("a request of a million members is refused by its first few: nobody waits for their names", () => {
  const request = (members: number): string =>
    `{"id":7,${'"\\u0078":1,'.repeat(members - 3)}"method":"a","jsonrpc":"2.0"}`;
  const read = (text: string) => readRequest(Buffer.from(text), 0, Buffer.byteLength(text));
  assert.equal(read(request(64)).kind, "request");
  const refused = read(request(65));
  assert.deepEqual([refused.kind, refused.id], ["invalid", "7"]);
  // Of what follows the last member that counts only the grammar is read.
  const rest = request(1_000_000).slice(0, -1);
  assert.deepEqual(read(`${rest},"id":8}`), refused);
  assert.deepEqual(read(`${rest},"id":8]`), { ...refused, ...NOT_JSON });
});

const NOT_JSON = { isJson: false, id: "null", message: "the request is not valid JSON" };

test("what is no JSON is told from what is no request, as by the grammar alone", () => {
  fc.assert(
    fc.property(
      members,
      fc.array(whiteSpace, { maxLength: 8 }),
      fc.nat(),
      fc.constantFrom("", " ", "}", "]", ",", ":", '"', "\\", "1", "[", "{"),
      (them, spaces, place, piece) => {
        const text = objectText(them, spaces);
        const at = place % (text.length + 1);
        for (const changed of [
          text.slice(0, at) + piece + text.slice(at),
          text.slice(0, at) + piece + text.slice(at + 1),
        ]) {
          const bytes = Buffer.from(changed);
          const start = skipSpace(bytes, 0, bytes.length);
          const found = readRequest(bytes, start, bytes.length);
          assert.equal(found.kind === "request" || found.isJson, isJson(bytes), changed);
        }
      },
    ),
    { numRuns: 2_000 },
  );
});
