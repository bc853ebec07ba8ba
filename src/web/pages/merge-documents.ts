// The instance documents of several workers as one document of the service: what was counted is
// added up, states are the worst, latencies are averaged by calls. Knows no worker.
import type { ReadyDocument } from "./instance.ts";

/** A JSON document, or a part of one. */
type Json = unknown;
type JsonObject = Readonly<Record<string, Json>>;

/** How the values of one member become one value. */
type Rule =
  /** Counted since the start: added up, also of workers that are gone. */
  | "count"
  /** There now: added up. */
  | "sum"
  | "max"
  | "min"
  /** A state: the first one that is known. */
  | "now"
  /** Averaged by the calls of the nearest object that tells them. */
  | "average"
  /** The worst state of a circuit. */
  | "worst"
  /** The share of calls, computed anew. */
  | "share"
  /** A list: everything that stands in any of them. */
  | "union"
  /** A list of what is there now: one after the other, up to a bound. */
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
  pruned: "now",
  state: "now",
  calls: "count",
  outcomes: "count",
  unsupported_methods: "union",
  max_block_range: "min",
  share: "share",
  success_rate: "average",
  latency_ms: "average",
  age_ms: "min",
  subscriptions: "sum",
  opened: "count",
  stray_frames: "count",
  total: "count",
  count: "count",
};
/** Members that tell two objects of a list apart. */
const IDENTITIES: readonly (readonly string[])[] = [
  ["profile"],
  ["id"],
  ["transport"],
  ["provider", "method", "code", "http_status", "sample"],
  ["method"],
];
const CIRCUITS: readonly Json[] = ["closed", "half_open", "open"];
const MAX_CONCATENATED = 100;

/**
 * Merges the documents of `GET /api/metrics/{chain}`. `gone` is what workers counted that are no
 * more; null = nothing. It adds to what is shown, and shows nothing else.
 */
export function mergeChainDocuments(
  documents: readonly JsonObject[],
  gone: JsonObject | null,
): JsonObject {
  const living = merged(documents);
  return withShares(gone === null ? living : merged([living, within(gone, living)]));
}

/** Adds what another worker counted to what those before it did. */
export function addCounts(gone: JsonObject | null, document: JsonObject): JsonObject {
  const counts = countsOf(document, null);
  return gone === null ? counts : merged([gone, counts]);
}

function merged(documents: readonly JsonObject[]): JsonObject {
  return mergeObjects(documents, null, documents.map(callsOf));
}

/** The part of a document whose lists hold nothing that the other one does not have. */
function within(document: JsonObject, other: JsonObject): JsonObject {
  return Object.fromEntries(
    Object.entries(document).map(([name, value]) => [name, valueWithin(value, other[name])]),
  );
}

function valueWithin(value: Json, other: Json): Json {
  if (isObject(value)) return isObject(other) ? within(value, other) : null;
  if (!Array.isArray(value) || !Array.isArray(other)) return value;
  const byIdentity = new Map(other.filter(isObject).map((item) => [identityOf(item), item]));
  return value.filter(isObject).flatMap((item) => {
    const same = byIdentity.get(identityOf(item));
    return same === undefined ? [] : [within(item, same)];
  });
}

/** Merges the documents of `GET /api/ready`: what one worker can serve, the service can. */
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
  const reasons = [...new Set(documents.flatMap((document) => document.reasons))];
  const least = isDraining ? reasons.filter((reason) => reason === "draining") : reasons;
  return { ready, reasons: ready ? [] : least, chains };
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

/** Without what holds only while its worker lives: numbers that were not counted become null. */
function countsOf(object: JsonObject, inherited: Rule | null): JsonObject {
  return Object.fromEntries(
    Object.entries(object).map(([name, value]) => [name, kept(value, RULES[name] ?? inherited)]),
  );
}

function kept(value: Json, rule: Rule | null): Json {
  if (Array.isArray(value)) {
    if (rule === "concat" || rule === "union") return [];
    return value.filter(isObject).map((item) => countsOf(item, null));
  }
  if (isObject(value)) return countsOf(value, rule);
  return rule === null || rule === "count" ? value : null;
}

/** Shares follow from the calls of each profile. */
function withShares(document: JsonObject): JsonObject {
  const { profiles } = document;
  if (!Array.isArray(profiles)) return document;
  const withOwn = profiles.filter(isObject).map((profile) => {
    const total = callsOf(profile);
    return mapTransports(profile, (transport) => ({
      ...transport,
      share: total === 0 ? null : callsOf(transport) / total,
    }));
  });
  return { ...document, profiles: withOwn };
}

function mapTransports(
  profile: JsonObject,
  map: (transport: JsonObject) => JsonObject,
): JsonObject {
  const providers = Array.isArray(profile["providers"]) ? profile["providers"] : [];
  return {
    ...profile,
    providers: providers.filter(isObject).map((provider) => {
      const transports = Array.isArray(provider["transports"]) ? provider["transports"] : [];
      return { ...provider, transports: transports.filter(isObject).map(map) };
    }),
  };
}

/** Whether a value is an object of a document. */
export function isObject(value: Json): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
