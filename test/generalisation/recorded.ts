// The recorded provider errors as the classifier sees them, and how much of the table is left when
// some of them are taken for unseen.
import { readFileSync } from "node:fs";
import type { Verdict } from "../../src/core/provider/attempt.ts";
import { DECISIONS } from "../../src/core/provider-errors/category.ts";
import { ruleFor } from "../../src/core/provider-errors/classify.ts";
import type { Phrase, Rule } from "../../src/core/provider-errors/rule.ts";
import { RULES } from "../../src/core/provider-errors/rules.ts";
import type { Failure } from "../../src/core/rpc/failure.ts";
import { methodOf } from "../../src/core/rpc/method.ts";

/** One recorded error. */
export interface Recorded {
  readonly id: number;
  readonly vendor: string;
  readonly http: number;
  readonly code: number | null;
  readonly method: string | null;
  readonly message: string;
  readonly data: unknown;
}

/** One that names its category. */
export interface Shape extends Recorded {
  readonly method: string;
  readonly category: string;
}

/** How well a part of the table knew what it was not written from. */
export interface Score {
  readonly judged: number;
  readonly right: number;
  /** Ids of those that were judged otherwise. */
  readonly wrong: readonly number[];
}

/**
 * `rule`: a rule is off when it was written from judged rows alone. `phrase`: so is a phrase of a
 * rule that stays on.
 */
export type Strictness = "rule" | "phrase";

/** A shape of answers to batches, which the service never sends. */
const SHAPE_ONLY = 214;

/** The corpus that vendors and nodes were watched for. */
export const CORPUS: readonly Recorded[] = read<Recorded>("provider-errors.json").filter(
  (row) => row.id !== SHAPE_ONLY,
);
/** Further shapes, from nodes' sources and vendors' documents. */
export const SHAPES: readonly Shape[] = read<Shape>("error-shapes.json");
/** Both. */
export const RECORDED: readonly Recorded[] = [...CORPUS, ...SHAPES];

/** A recorded error as a failure. */
export function failureOf({ http, code, message, data }: Recorded): Failure {
  const kind = http === 0 ? "network" : code === null ? "body" : "error";
  return { kind, httpStatus: http, retryAfter: null, code, message, data };
}

/** The rule that decides about a recorded error. */
export function decidingRule(row: Recorded, rules: readonly Rule[] = RULES): Rule | undefined {
  const methodName = row.method ?? "eth_getBalance";
  return ruleFor(failureOf(row), methodOf(methodName), { methodName, rules: [], wallMs: 0 }, rules);
}

/** Judges rows as if they had never been seen. */
export function scoreUnseen(judged: readonly Recorded[], strictness: Strictness): Score {
  const rules = tableWithout(judged, strictness);
  const wrong = judged
    .filter((row) => outcome(row, rules) !== outcome(row, RULES))
    .map((row) => row.id);
  return { judged: judged.length, right: judged.length - wrong.length, wrong };
}

/**
 * What follows: the step for this method and the effect on health. That is what a wrong category
 * costs.
 */
function outcome(row: Recorded, rules: readonly Rule[]): string {
  const [replaySafe, otherwise, effect] = DECISIONS.get(
    decidingRule(row, rules)?.category ?? "unknown",
  ) ?? ["next", "return", { kind: "ignored" }];
  const step: Verdict["step"] = methodOf(row.method ?? "eth_getBalance").replaySafe
    ? replaySafe
    : otherwise;
  return `${step} ${JSON.stringify(effect)}`;
}

/** The rows that each rule decides: what it was written from. */
const DECIDED: ReadonlyMap<Rule | undefined, readonly Recorded[]> = Map.groupBy(RECORDED, (row) =>
  decidingRule(row),
);

function tableWithout(judged: readonly Recorded[], strictness: Strictness): readonly Rule[] {
  const ids = new Set(judged.map((row) => row.id));
  const seen = RECORDED.filter((row) => !ids.has(row.id));
  return RULES.flatMap((rule) => {
    const decided = DECIDED.get(rule);
    if (decided?.every(({ id }) => ids.has(id))) return [];
    if (strictness === "rule" || rule.text === undefined) return [rule];
    const text = rule.text.filter(
      (phrase) => !isOwedTo(phrase, rule, judged) || isOwedTo(phrase, rule, seen),
    );
    return text.length === 0 ? [] : [{ ...rule, text }];
  });
}

/** Whether a phrase is what makes a rule decide about one of the rows. */
function isOwedTo(phrase: Phrase, rule: Rule, rows: readonly Recorded[]): boolean {
  const alone = { ...rule, text: [phrase] };
  const decided = DECIDED.get(rule) ?? [];
  return rows.some((row) => decided.includes(row) && decidingRule(row, [alone]) === alone);
}

function read<T>(name: string): readonly T[] {
  return JSON.parse(readFileSync(new URL(`../data/${name}`, import.meta.url), "utf8"));
}
