// Frames of a provider against an oracle made of JSON.parse: whose they are, in every order of
// their members, and never a throw whatever the bytes.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import {
  readSocketMessage,
  readSubscriptionId,
  type SocketMessage,
} from "../../../src/core/rpc/socket-message.ts";
import { nameText, objectText, valueText, whiteSpace } from "../../fakes/json-text.ts";

type Member = readonly [key: string, value: string];
type Seen =
  | { kind: "answer"; id: string }
  | { kind: "notification"; subscription: string; result: string }
  | { kind: "stray" };

const STRAY: Seen = { kind: "stray" };
const spacing = fc.array(whiteSpace, { maxLength: 10 });
const key = (name: string): fc.Arbitrary<string> =>
  fc.constantFrom(`"${name}"`, `"\\u00${name.charCodeAt(0).toString(16)}${name.slice(1)}"`);
const extra = fc.tuple(nameText, valueText);

const idText = fc.oneof(
  { weight: 4, arbitrary: fc.nat().map(String) },
  {
    weight: 1,
    arbitrary: fc.constantFrom(
      "0",
      "-1",
      "1.0",
      "1e1",
      '"17"',
      "null",
      "[1]",
      "1234567890123456",
      "12345678901234567",
      "true",
    ),
  },
);
const subscriptionText = fc.constantFrom(
  '"0xabc"',
  '"\\u0030xabc"',
  "7",
  "-7",
  "1e3",
  "12345678901234567890",
  '""',
  "null",
  "[]",
  `"${"a".repeat(300)}"`,
  "true",
);

const paramsText = fc.oneof(
  {
    weight: 4,
    arbitrary: membersText([
      fc.tuple(key("subscription"), subscriptionText),
      fc.tuple(key("result"), valueText),
      extra,
    ]),
  },
  { weight: 1, arbitrary: valueText },
);
const methodText = fc.constantFrom(
  '"eth_subscription"',
  '"eth_subscription"',
  '"eth_subscriptio\\u006e"',
  '"other"',
  "null",
);

const answers = members([
  fc.tuple(key("jsonrpc"), fc.constant('"2.0"')),
  fc.tuple(key("id"), idText),
  fc.tuple(key("result"), valueText),
  extra,
]);
const errors = members([
  fc.tuple(key("id"), idText),
  fc.tuple(key("error"), valueText),
  fc.tuple(key("result"), valueText),
]);
const notifications = members([
  fc.tuple(key("jsonrpc"), fc.constant('"2.0"')),
  fc.tuple(key("method"), methodText),
  fc.tuple(key("params"), paramsText),
  extra,
]);
const anything = members([
  fc.tuple(key("id"), idText),
  fc.tuple(key("id"), idText),
  fc.tuple(key("result"), valueText),
  fc.tuple(key("method"), methodText),
  fc.tuple(key("params"), paramsText),
  fc.tuple(key("params"), paramsText),
]);

/** Some of these members, in any order. */
function members(them: readonly fc.Arbitrary<Member>[]): fc.Arbitrary<readonly Member[]> {
  return fc
    .tuple(...them)
    .chain((made) =>
      fc.oneof(
        { weight: 3, arbitrary: fc.shuffledSubarray(made, { minLength: made.length }) },
        { weight: 1, arbitrary: fc.shuffledSubarray(made) },
      ),
    );
}

function membersText(them: readonly fc.Arbitrary<Member>[]): fc.Arbitrary<string> {
  return fc.tuple(members(them), spacing).map(([made, spaces]) => objectText(made, spaces));
}

/** Reads the frame and shows what it found as text. */
function seen(bytes: Buffer): Seen {
  const frame: SocketMessage = readSocketMessage(bytes);
  if (frame.kind !== "notification") return frame;
  return {
    kind: "notification",
    subscription: frame.subscription,
    result: bytes.toString("utf8", frame.start, frame.end),
  };
}

const NAMES = ["id", "result", "error", "method", "params", "subscription"];
const nameOf = ([name]: Member): string => String(JSON.parse(name));
const repeats = (made: readonly Member[]): boolean =>
  NAMES.some((name) => made.filter((it) => nameOf(it) === name).length > 1);

/** What a frame is, by JSON.parse and the order of its members alone. */
function meaning(made: readonly Member[]): Seen {
  const textOf = (name: string): string | undefined => made.find((it) => nameOf(it) === name)?.[1];
  const id = /^\d{1,16}$/.exec(textOf("id") ?? "")?.[0];
  const answered = textOf("result") !== undefined || textOf("error") !== undefined;
  if (id !== undefined && answered) return { kind: "answer", id };
  if (textOf("method") !== '"eth_subscription"') return STRAY;
  const params: unknown = JSON.parse(textOf("params") ?? "null");
  if (typeof params !== "object" || params === null || Array.isArray(params)) return STRAY;
  const { subscription, result }: { subscription?: unknown; result?: unknown } = params;
  if (
    result === undefined ||
    !(typeof subscription === "string"
      ? subscription.length <= 254
      : typeof subscription === "number")
  )
    return STRAY;
  return {
    kind: "notification",
    subscription: String(subscription),
    result: JSON.stringify(result),
  };
}

/** Numbers and escapes may be written in more than one way: compared by what they mean. */
function sameMeaning(found: Seen, meant: Seen, text: string): void {
  assert.equal(found.kind, meant.kind, text);
  if (found.kind === "answer" && meant.kind === "answer") assert.equal(found.id, meant.id, text);
  if (found.kind !== "notification" || meant.kind !== "notification") return;
  assert.equal(JSON.stringify(JSON.parse(found.result)), meant.result, text);
  const same =
    found.subscription === meant.subscription ||
    Number(found.subscription) === Number(meant.subscription);
  assert.ok(same, text);
}

test(
  "a frame is whose JSON.parse says it is, in every order of its members and however its keys " +
    "are written",
  () => {
    fc.assert(
      fc.property(
        fc.oneof(answers, errors, notifications, anything),
        spacing,
        whiteSpace,
        (made, spaces, around) => {
          const text = around + objectText(made, spaces) + around;
          fc.pre(!repeats(made));
          sameMeaning(seen(Buffer.from(text)), meaning(made), text);
        },
      ),
      { numRuns: 6_000 },
    );
  },
);

test(
  "a notification that names a member twice is taken for nothing, since two readers could read " +
    "it differently",
  () => {
    const once = '"subscription":"0x1","result":1';
    for (const text of [
      `{"method":"eth_subscription","params":{${once}},"params":{${once}}}`,
      `{"method":"eth_subscription","method":"eth_subscription","params":{${once}}}`,
      `{"method":"eth_subscription","params":{${once},"result":2}}`,
      `{"method":"eth_subscription","params":{${once},"subscr\\u0069ption":"0x2"}}`,
    ])
      assert.deepEqual(seen(Buffer.from(text)), STRAY, text);
  },
);

test(
  "a notification that was cut short or changed in one byte is taken for one only when it " +
    "still is JSON",
  () => {
    fc.assert(
      fc.property(
        notifications,
        spacing,
        fc.nat(),
        fc.constantFrom("cut", ...'{}[]:,"\\ 1\0'),
        (made, spaces, chance, change) => {
          const bytes = Buffer.from(objectText(made, spaces));
          const at = chance % bytes.length;
          const changed =
            change === "cut"
              ? bytes.subarray(0, at)
              : Buffer.concat([bytes.subarray(0, at), Buffer.from(change), bytes.subarray(at + 1)]);
          const frame = seen(changed);
          if (frame.kind !== "notification") return;
          JSON.parse(changed.toString("utf8"));
          JSON.parse(frame.result);
        },
      ),
      { numRuns: 4_000 },
    );
  },
);

test("no bytes at all make it throw, and what is no object is nobody's", () => {
  const sharp = fc.constantFrom(
    ...[
      '{"id":',
      '"method":"eth_subscription"',
      '"params":{',
      '"result":',
      "{",
      "}",
      "[",
      '"',
      "\\",
      "\\u0",
      ":",
      ",",
      "1",
      "\0",
      " ",
    ],
  );
  fc.assert(
    fc.property(
      fc.oneof(
        fc.uint8Array({ maxLength: 40 }),
        fc.array(sharp, { maxLength: 12 }).map((it) => Buffer.from(it.join(""))),
      ),
      (bytes) => {
        readSocketMessage(Buffer.from(bytes));
      },
    ),
    { numRuns: 6_000 },
  );
  for (const text of [
    "",
    " ",
    "null",
    "1",
    '"x"',
    "[]",
    '[{"jsonrpc":"2.0","id":1,"result":1}]',
    "{}",
    '{"id":1}',
    "{",
    "\ufeff{}",
  ])
    assert.deepEqual(seen(Buffer.from(text)), STRAY, text);
});

test("the usual answer is known by its first bytes: a long result is not looked at", () => {
  // A reader of it would see that it is no JSON.
  const junk = Buffer.alloc(1_000_000, "{");
  for (const head of [
    '{"jsonrpc":"2.0","id":42,"result":',
    '{"id":42,"jsonrpc":"2.0","result":',
    ' { "jsonrpc" : "2.0" , "id" : 42 , "error" : ',
  ]) {
    const bytes = Buffer.concat([Buffer.from(head), junk]);
    assert.deepEqual(readSocketMessage(bytes), { kind: "answer", id: "42" }, head);
  }
});

test("a subscription id reads the same as acknowledged and as notified, be it a string or a number", () => {
  for (const [written, meant] of [
    ['"0x9cef478923ff08bf67fde6c64013158d"', "0x9cef478923ff08bf67fde6c64013158d"],
    ['"\\u0030x1"', "0x1"],
    ["23584", "23584"],
    ["9007199254740993", "9007199254740993"],
    ['""', ""],
    ["null", null],
    ["{}", null],
    ["true", null],
    [`"${"x".repeat(255)}"`, null],
  ] as const) {
    const bytes = Buffer.from(written);
    assert.equal(readSubscriptionId(bytes, 0, bytes.length), meant);
    const frame = readSocketMessage(
      Buffer.from(
        `{"jsonrpc":"2.0","method":"eth_subscription","params":{"result":null,"subscription":${written}}}`,
      ),
    );
    assert.equal(frame.kind === "notification" ? frame.subscription : null, meant);
  }
});
