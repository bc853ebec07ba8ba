// JSON as people and programs really write it: random white space, escapes, big numbers, strange
// keys. Text only; what it means is the test's question.
import fc from "fast-check";

/** White space that JSON allows, at most two characters. */
export const whiteSpace = fc.string({ unit: fc.constantFrom(" ", "\t", "\n", "\r"), maxLength: 2 });

const LETTERS = [
  "a",
  "id",
  "0x",
  " ",
  ",",
  ":",
  "{",
  "}",
  "[",
  "]",
  "é",
  "😀",
  "\u2028",
  "\\n",
  '\\"',
  "\\/",
  "\\u0069",
  "\\uD83D",
  "\\udc00",
];
const BACKSLASH = "\\\\";

/** A string with its quotes. */
export const stringText = stringOf([...LETTERS, BACKSLASH]);

/**
 * The name of a member. Has no backslash: after V8 (at least 13.6 to 14.6) has once parsed a name
 * that has one, JSON.parse takes escapes in the same place of an object for it (nodejs/node#63785),
 * and what it says is no measure of anything any more.
 */
export const nameText = stringOf(LETTERS);

function stringOf(letters: readonly string[]): fc.Arbitrary<string> {
  return fc
    .array(fc.constantFrom(...letters), { maxLength: 6 })
    .map((parts) => `"${parts.join("")}"`);
}

/** A number as JSON allows it, also far beyond 2^53. */
export const numberText = fc.stringMatching(/^-?(0|[1-9]\d{0,24})(\.\d{1,9})?([eE][+-]?\d{1,3})?$/);

const keyText = fc.oneof(
  nameText,
  fc.constantFrom('"__proto__"', '"constructor"', '"toString"', '"id"', '"result"'),
);

const tree = fc.letrec<{ value: string }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4, withCrossShrink: true },
    { weight: 2, arbitrary: stringText },
    { weight: 2, arbitrary: numberText },
    { weight: 1, arbitrary: fc.constantFrom("true", "false", "null") },
    { weight: 3, arbitrary: list(tie("value")).map((inner) => `[${inner}]`) },
    { weight: 3, arbitrary: list(member(tie("value"))).map((inner) => `{${inner}}`) },
  ),
}));

/** Any JSON value, without white space around it. */
export const valueText: fc.Arbitrary<string> = tree.value;

/** Any JSON document. */
export const documentText = fc
  .tuple(whiteSpace, valueText, whiteSpace)
  .map((parts) => parts.join(""));

/** An object from these members, in this order, with white space wherever it may stand. */
export function objectText(
  members: readonly (readonly [key: string, value: string])[],
  spaces: readonly string[],
): string {
  let at = 0;
  const space = (): string => spaces[at++ % Math.max(1, spaces.length)] ?? "";
  const inner = members
    .map(([key, value]) => `${space()}${key}${space()}:${space()}${value}${space()}`)
    .join(",");
  return `{${inner === "" ? space() : inner}}`;
}

function member(value: fc.Arbitrary<string>): fc.Arbitrary<string> {
  return fc
    .tuple(keyText, whiteSpace, whiteSpace, value)
    .map(([key, before, after, text]) => `${key}${before}:${after}${text}`);
}

function list(item: fc.Arbitrary<string>): fc.Arbitrary<string> {
  const spaced = fc.tuple(whiteSpace, item, whiteSpace).map((parts) => parts.join(""));
  const filled = fc.array(spaced, { minLength: 1, maxLength: 4 }).map((items) => items.join(","));
  return fc.oneof({ weight: 1, arbitrary: whiteSpace }, { weight: 5, arbitrary: filled });
}
