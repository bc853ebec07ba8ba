// Lists of methods and limits of rates as other formats write them, in the settings of a provider.

import type { Fields } from "../../core/fields.ts";
import { CATEGORIES, METHODS, methodOf } from "../../core/rpc/method.ts";
import { given } from "./draft.ts";
import type { ImportedValue } from "./imported-value.ts";

/** What a provider does not serve. */
export interface RefusedMethods {
  readonly methods: readonly string[];
  readonly categories: readonly string[];
  /** Patterns that name no method that svc knows. */
  readonly unknown: readonly string[];
}

const NAMESPACES: Readonly<Record<string, string>> = {
  "debug_*": "debug",
  "trace_*": "trace",
  "txpool_*": "txpool",
};
const NAME = /^[A-Za-z0-9]+_[A-Za-z0-9_]+$/;

/** Reads names and patterns with `*` and `|`; patterns become the methods that they name. */
export function refusedOf(patterns: readonly string[]): RefusedMethods {
  const parts = patterns.flatMap((pattern) => pattern.split("|")).map((part) => part.trim());
  const categories = new Set<string>();
  const methods = new Set<string>();
  const unknown: string[] = [];
  for (const part of parts) {
    const category = NAMESPACES[part];
    const found = methodsLike(part);
    if (category !== undefined && CATEGORIES.some((known) => known === category))
      categories.add(category);
    else if (found.length > 0) for (const name of found) methods.add(name);
    else unknown.push(part);
  }
  const named = [...methods].filter((name) => !categories.has(methodOf(name).category));
  return { methods: named, categories: [...categories], unknown };
}

/** The methods that a pattern names; a plain name is itself, known or not. */
export function methodsLike(pattern: string): readonly string[] {
  if (NAME.test(pattern)) return [pattern];
  if (!/^[A-Za-z0-9_*]+$/.test(pattern) || !pattern.includes("*") || pattern === "*") return [];
  const wanted = new RegExp(`^${pattern.replaceAll("*", ".*")}$`);
  return METHODS.map(({ name }) => name).filter((name) => NAME.test(name) && wanted.test(name));
}

/** A limit of requests in a period. */
export interface RateRule {
  readonly count: number;
  readonly periodMs: number;
}

const SECOND_MS = 1_000;
const DAY_MS = 86_400_000;
const MONTH_MS = 30 * DAY_MS;
const MAX_RPS = 100_000;

/** The setting `limits` of a provider for rules that hold for all of its methods. */
export function limitsOf(rules: readonly RateRule[], source: ImportedValue): Fields | null {
  const found: { rps?: number; daily?: number; monthly?: number } = {};
  for (const { count, periodMs } of rules) {
    if (periodMs >= MONTH_MS) found.monthly = Math.min(count, found.monthly ?? count);
    else if (periodMs >= DAY_MS) found.daily = Math.min(count, found.daily ?? count);
    else {
      const rps = Math.max(1, Math.floor((count * SECOND_MS) / periodMs));
      if (periodMs !== SECOND_MS)
        source.note(`a limit of ${count} in ${periodMs / SECOND_MS} s is here ${rps} a second`);
      if (rps <= MAX_RPS) found.rps = Math.min(rps, found.rps ?? rps);
    }
  }
  return Object.keys(found).length === 0 ? null : given(found);
}
