// What calls can be filtered by: names of filters, values that are known, and what a typed text
// means. Pure.
import type { AnswerOf } from "../../api/contract-types.ts";
import type { CallEvent } from "../../api/use-feed.ts";
import { requestIdIn } from "../../app/palette-search.ts";
import { OUTCOMES } from "../../health/outcomes.ts";

/** The filters by the names of the API, and what they are called. */
export const FILTERS = {
  outcome: "Outcome",
  chain: "Chain",
  method: "Method",
  provider: "Provider",
  key: "Key",
  profile: "Profile",
  failovers: "Failovers only",
  min_ms: "At least, ms",
  id: "Request id",
} as const;

export type FilterName = keyof typeof FILTERS;

/** A filter with its value. */
export interface SetFilter {
  readonly name: FilterName;
  readonly value: string;
}

/** A filter that can be set. */
export interface Suggestion extends SetFilter {
  /** What the value is called. */
  readonly label: string;
}

type Used = AnswerOf<"GET /api/v1/operator/usage">["by_key"];

interface KeyName {
  readonly name: string;
  readonly prefix: string;
}

/** Keys that were used lately, by their ids. */
export type KeyNames = ReadonlyMap<string, KeyName>;

/** The name of a key, or how its secret begins. */
export function nameOfKey({ name, prefix }: KeyName): string {
  return name === "" ? `${prefix}…` : name;
}

/** The names of keys that are in a list of what was used. */
export function keyNames(used: Used): KeyNames {
  return new Map(used.map(({ key_id: id, name, key_prefix: prefix }) => [id, { name, prefix }]));
}

const MAX_OF_EACH = 200;

interface Known {
  readonly providers: readonly Readonly<Record<"chain" | "profile" | "provider", string>>[];
  readonly keys: KeyNames;
  readonly calls: readonly CallEvent[];
}

/** What is suggested: what the service is made of, and what occurs in the calls on show. */
export function suggestionsOf({ providers, keys, calls }: Known): readonly Suggestion[] {
  const occurring = (name: "chain" | "profile" | "provider" | "method") => [
    ...new Set(
      [
        ...(name === "method" ? [] : providers.map((each) => each[name])),
        ...calls.map((call) => call[name]),
      ].filter((value) => value !== null),
    ),
  ];
  const plain = (name: FilterName, values: readonly string[]): readonly Suggestion[] =>
    values.slice(0, MAX_OF_EACH).map((value) => ({ name, value, label: FILTERS[name] }));
  const labelled = (name: FilterName, values: readonly (readonly [string, string])[]) =>
    values.slice(0, MAX_OF_EACH).map(([value, label]) => ({ name, value, label }));
  return [
    ...labelled(
      "outcome",
      Object.entries(OUTCOMES).map(([value, { word }]) => [value, word] as const),
    ),
    ...plain("failovers", ["true"]),
    ...plain("min_ms", ["1000"]),
    ...(["chain", "profile", "provider", "method"] as const).flatMap((name) =>
      plain(name, occurring(name).sort()),
    ),
    ...labelled(
      "key",
      Array.from(keys, ([id, key]) => [id, nameOfKey(key)] as const),
    ),
  ];
}

/** What a text means: `chain: base`, a request id, or a value that is known; null = nothing. */
export function parseFilter(text: string, known: readonly Suggestion[]): SetFilter | null {
  const id = requestIdIn(text);
  if (id !== null) return { name: "id", value: id };
  const [, word = "", rest = ""] = /^\s*(\w[\w ,]*?)\s*:\s*(.*?)\s*$/.exec(text) ?? [];
  const name = nameOf(word);
  const wanted = (name === null ? text : rest).trim();
  const found = known.find(
    (each) => (name ?? each.name) === each.name && isCalled(each, wanted.toLowerCase()),
  );
  if (found !== undefined) return { name: found.name, value: found.value };
  if (name === null || wanted === "" || !isValue(name, wanted)) return null;
  return { name, value: wanted };
}

function nameOf(word: string): FilterName | null {
  const lower = word.toLowerCase();
  const found = Object.entries(FILTERS).find(
    ([name, label]) => name === lower || label.toLowerCase() === lower,
  );
  return (found?.[0] as FilterName | undefined) ?? null;
}

function isCalled({ name, value, label }: Suggestion, wanted: string): boolean {
  return (
    value.toLowerCase() === wanted || (label !== FILTERS[name] && label.toLowerCase() === wanted)
  );
}

/** Whether the API takes it. */
function isValue(name: FilterName, value: string): boolean {
  if (name === "outcome") return Object.hasOwn(OUTCOMES, value);
  if (name === "failovers") return value === "true";
  if (name === "min_ms") return /^\d{1,7}$/.test(value);
  return value.length <= 100;
}

/** A filter in words. */
export function filterText({ name, value }: SetFilter, keys: KeyNames): string {
  if (name === "failovers") return FILTERS[name];
  const key = name === "key" ? keys.get(value) : undefined;
  const outcome = name === "outcome" ? OUTCOMES[value as keyof typeof OUTCOMES]?.word : undefined;
  return `${FILTERS[name]}: ${key === undefined ? (outcome ?? value) : nameOfKey(key)}`;
}
