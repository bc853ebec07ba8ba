// Merges the instance documents of several workers into one document of the service: counts are
// added, states become the worst one, latencies are averaged by calls. Knows no worker.
import type { ReadyDocument } from "./instance.ts";

/** A JSON document, or a part of one. */
type Json = unknown;
type JsonObject = Readonly<Record<string, Json>>;

/** How the values of one member are merged. */
type Rule =
  /** A counter since the start: added, including workers that have ended. */
  | "count"
  /** A current amount: added. */
  | "sum"
  | "max"
  | "min"
  /** A state: the first known one. */
  | "now"
  /** An average, weighted by the calls of the nearest enclosing object that has them. */
  | "average"
  /** The worst state of a circuit breaker. */
  | "worst"
  /** A list: the union. */
  | "union"
  /** A list of current things: concatenated, up to a limit. */
  | "concat";

const RULES: Readonly<Record<string, Rule>> = {
  open_sockets: "sum",
  head_block: "max",
  block_height: "max",
  lag_blocks: "max",
  blocks_behind: "max",
  open: "sum",
  subscribers: "sum",
  failovers: "count",
  blocks_filled: "count",
  ended: "count",
  log_checks: "count",
  notifications: "count",
  streams: "concat",
  circuit_breaker_state: "worst",
  circuit_opened: "count",
  half_open_in_ms: "max",
  rate_limited_for_ms: "max",
  rate_limited_methods: "union",
  cordoned: "now",
  disabled: "now",
  oldest_block: "max",
  window_blocks: "min",
  source: "now",
  pruned: "now",
  pruned_resources: "union",
  requests_per_second: "sum",
  state: "now",
  state_since: "now",
  cause: "now",
  certificate_until: "now",
  answered_share: "now",
  in_use: "sum",
  limit: "max",
  spent: "max",
  left: "min",
  resets_in_ms: "min",
  ahead_of_pace: "now",
  calls: "count",
  outcomes: "count",
  unsupported_methods: "union",
  max_block_range: "min",
  share: "now",
  success_rate: "average",
  latency_ms: "average",
  age_ms: "min",
  subscriptions: "sum",
  opened: "count",
  stray_frames: "count",
  total: "count",
  count: "count",
};
/** Members that identify the objects of a list. */
const IDENTITIES: readonly (readonly string[])[] = [
  ["profile"],
  ["id"],
  ["transport"],
  ["method"],
  ["resource"],
];
const CIRCUITS: readonly Json[] = ["closed", "recovered", "never_answered", "half_open", "open"];
const MAX_CONCATENATED = 100;

/**
 * Merges the documents of `GET /api/metrics/{chain}`. `gone` holds the counts of workers that have
 * ended (null = none). It is added to existing entries and creates none.
 */
export function mergeChainDocuments(
  documents: readonly JsonObject[],
  gone: JsonObject | null,
): JsonObject {
  const living = merged(documents);
  return withShares(gone === null ? living : withCountsOf(living, gone, null), 0);
}

/** Adds another ended worker. */
export function addCounts(gone: JsonObject | null, document: JsonObject): JsonObject {
  return gone === null ? document : merged([gone, document]);
}

function merged(documents: readonly JsonObject[]): JsonObject {
  return mergeObjects(documents, null, documents.map(callsOf));
}

/** A value of living workers with the counts of the same value of those that have ended. */
function withCounts(living: Json, gone: Json, rule: Rule | null): Json {
  if (Array.isArray(living) && Array.isArray(gone)) {
    const byIdentity = new Map(gone.filter(isObject).map((item) => [identityOf(item), item]));
    return living.map((item) =>
      isObject(item) ? withCounts(item, byIdentity.get(identityOf(item)), null) : item,
    );
  }
  if (isObject(living) && isObject(gone)) return withCountsOf(living, gone, rule);
  if (rule !== "count" || typeof gone !== "number") return living;
  return typeof living === "number" ? living + gone : gone;
}

function withCountsOf(living: JsonObject, gone: JsonObject, rule: Rule | null): JsonObject {
  const names = Object.keys(rule === "count" ? { ...living, ...gone } : living);
  return Object.fromEntries(
    names.map((name) => [name, withCounts(living[name], gone[name], RULES[name] ?? rule)]),
  );
}

/** Merges the documents of `GET /api/ready`: the service can serve what any worker can serve. */
export function mergeReadyDocuments(documents: readonly ReadyDocument[]): ReadyDocument {
  const byChain = Map.groupBy(
    documents.flatMap(({ chains }) => chains),
    ({ profile, chain }) => `${profile} ${chain}`,
  );
  const chains = Array.from(byChain.values(), (all) =>
    all.reduce((best, other) => (other.providers_usable > best.providers_usable ? other : best)),
  );
  const isDraining = documents.some(({ reasons }) => reasons.includes("draining"));
  const ready = !isDraining && documents.some((document) => document.ready);
  const traffic = !isDraining && documents.some((document) => document.traffic);
  const reasons = [...new Set(documents.flatMap((document) => document.reasons))];
  const least = isDraining ? reasons.filter((reason) => reason === "draining") : reasons;
  return { ready, traffic, reasons: ready ? [] : least, chains };
}

function mergeObjects(
  objects: readonly JsonObject[],
  inherited: Rule | null,
  weights: readonly number[],
): JsonObject {
  const names = new Set(objects.flatMap((object) => Object.keys(object)));
  return Object.fromEntries(
    Array.from(names, (name) => {
      const rule = RULES[name] ?? inherited;
      const values = objects.map((object) => object[name]);
      return [name, mergeValues(values, rule, weights)];
    }),
  );
}

function mergeValues(values: readonly Json[], rule: Rule | null, weights: readonly number[]): Json {
  const known = values.flatMap((value, n) =>
    value === null || value === undefined ? [] : [{ value, weight: weights[n] ?? 0 }],
  );
  const [first] = known;
  if (first === undefined) return null;
  const present = known.map(({ value }) => value);
  if (Array.isArray(first.value)) return mergeLists(present.filter(Array.isArray), rule);
  if (isObject(first.value)) {
    const objects = present.filter(isObject);
    const own = objects.map((object, n) =>
      "calls" in object ? callsOf(object) : (known[n]?.weight ?? 0),
    );
    return mergeObjects(objects, rule, own);
  }
  return mergeScalars(known, rule);
}

function mergeScalars(
  known: readonly { readonly value: Json; readonly weight: number }[],
  rule: Rule | null,
): Json {
  const first = known[0]?.value;
  if (rule === "worst") {
    const worst = Math.max(...known.map(({ value }) => CIRCUITS.indexOf(value)));
    return CIRCUITS[worst] ?? first;
  }
  const numbers = known.flatMap(({ value, weight }) =>
    typeof value === "number" ? [{ value, weight }] : [],
  );
  if (rule === null || numbers.length < known.length) return first;
  switch (rule) {
    case "count":
    case "sum":
      return numbers.reduce((sum, { value }) => sum + value, 0);
    case "max":
      return Math.max(...numbers.map(({ value }) => value));
    case "min":
      return Math.min(...numbers.map(({ value }) => value));
    case "average":
      return averageOf(numbers);
    default:
      return first;
  }
}

function averageOf(
  numbers: readonly { readonly value: number; readonly weight: number }[],
): number {
  const weight = numbers.reduce((sum, each) => sum + each.weight, 0);
  if (weight === 0) return numbers.reduce((sum, each) => sum + each.value, 0) / numbers.length;
  return numbers.reduce((sum, each) => sum + each.value * each.weight, 0) / weight;
}

function mergeLists(lists: readonly (readonly Json[])[], rule: Rule | null): Json {
  const all = lists.flat();
  if (rule === "concat") return all.slice(0, MAX_CONCATENATED);
  const objects = all.filter(isObject);
  if (objects.length < all.length) return [...new Set(all)];
  const groups = Map.groupBy(objects, identityOf);
  return Array.from(groups.values(), (same) => mergeObjects(same, null, same.map(callsOf)));
}

function identityOf(object: JsonObject): string {
  const names = IDENTITIES.find((candidates) => candidates.every((name) => name in object)) ?? [];
  return JSON.stringify(names.map((name) => object[name]));
}

function callsOf(object: JsonObject): number {
  const { calls } = object;
  return typeof calls === "number" ? calls : 0;
}

/** Computes shares; `total`: the calls of the profile that the object belongs to. */
function withShares(object: JsonObject, total: number): JsonObject {
  const calls = callsOf(object);
  const all = "providers" in object ? calls : total;
  const members = Object.entries(object).map(([name, value]): readonly [string, Json] => {
    if (name === "share") return [name, all === 0 ? null : calls / all];
    if (isObject(value)) return [name, withShares(value, all)];
    if (!Array.isArray(value)) return [name, value];
    return [name, value.map((item) => (isObject(item) ? withShares(item, all) : item))];
  });
  return Object.fromEntries(members);
}

/** Whether a value is a JSON object. */
export function isObject(value: Json): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
