// What calls can be filtered by, which values are known, and what a typed text means. Pure.
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

/** Their names. */
export const NAMES = Object.keys(FILTERS) as readonly (keyof typeof FILTERS)[];

/** A filter with a value; `label` "" = the value is called what it is. */
export interface CallFilter {
  readonly name: keyof typeof FILTERS;
  readonly value: string;
  readonly label: string;
}

const OCCURRING = ["chain", "provider", "profile", "method"] as const;
const MAX_SUGGESTIONS = 1_000;

interface Known {
  readonly providers: readonly Partial<Pick<CallEvent, (typeof OCCURRING)[number]>>[];
  readonly keys: ReadonlyMap<string, string>;
  readonly calls: readonly CallEvent[];
}

/** What is suggested: what the service is made of, and what occurs in the calls on show. */
export function suggestionsOf({ providers, keys, calls }: Known): readonly CallFilter[] {
  const all: readonly CallFilter[] = [
    ...Object.keys(OUTCOMES).map((value) => filterOf("outcome", value, keys)),
    filterOf("failovers", "true", keys),
    filterOf("min_ms", "1000", keys),
    ...OCCURRING.flatMap((name) =>
      [...providers, ...calls].map((each) => filterOf(name, each[name] ?? "", keys)),
    ),
    ...Array.from(keys.keys(), (id) => filterOf("key", id, keys)),
  ];
  const different = new Map(all.map((each) => [`${each.name} ${each.value}`, each]));
  return [...different.values()].filter(({ value }) => value !== "").slice(0, MAX_SUGGESTIONS);
}

/** A filter with what its value is called. */
export function filterOf(
  name: CallFilter["name"],
  value: string,
  keys: ReadonlyMap<string, string>,
): CallFilter {
  const words: Readonly<Record<string, { readonly word: string }>> = OUTCOMES;
  const label = name === "key" ? keys.get(value) : name === "outcome" && words[value]?.word;
  return { name, value, label: label || "" };
}

/** What a text means: `chain: base`, a request id, or a value that is known; null = nothing. */
export function parseFilter(text: string, known: readonly CallFilter[]): CallFilter | null {
  const id = requestIdIn(text);
  if (id !== null) return { name: "id", value: id, label: "" };
  const [, word = "", value = text.trim()] = /^\s*(\w+)\s*:\s*(.*?)\s*$/.exec(text) ?? [];
  if (value === "") return null;
  const name = NAMES.find((each) => each === word.toLowerCase());
  const found = known.find(
    (each) =>
      (word === "" || name === each.name) &&
      [each.value, each.label].some((of) => of.toLowerCase() === value.toLowerCase()),
  );
  if (found !== undefined) return found;
  // Of these only values that are known are any.
  if (name === undefined || name === "outcome" || name === "failovers") return null;
  return name === "min_ms" && !/^\d{1,7}$/.test(value) ? null : { name, value, label: "" };
}

/** A filter in words. */
export function filterText({ name, value, label }: CallFilter): string {
  return name === "failovers" ? FILTERS[name] : `${FILTERS[name]}: ${label || value}`;
}
