// The questions and answers about reports between the workers of a service, checked where they
// arrive. Workers run the same code, so of an answer only what merging relies on is looked at.
import { isRecord } from "../core/fields.ts";
import { STRATEGY_NAMES, type Strategy } from "../core/routing/strategy.ts";
import type { PlanChange } from "../core/routing/what-if.ts";
import type { ReportAnswers, ReportQuery } from "../observe/operator-report.ts";
import { parseFilter } from "./feed-exchange.ts";

export type ReportKind = ReportQuery["kind"];
export type QueryOf<K extends ReportKind> = Extract<ReportQuery, { readonly kind: K }>;

/** What one process answers. */
export interface ProcessReport<K extends ReportKind> {
  readonly answer: ReportAnswers[K];
}

/** Parses the questions of each kind; null = it is none. */
export const PARSE_QUERY: {
  readonly [K in ReportKind]: (value: unknown) => QueryOf<K> | null;
} = {
  decisions(value) {
    if (!isRecord(value) || !isNumber(value["limit"])) return null;
    const filter = parseFilter(value["filter"]);
    return filter === null ? null : { kind: "decisions", filter, limit: value["limit"] };
  },
  decision(value) {
    const id = parseId(value);
    return id === null ? null : { kind: "decision", id };
  },
  what_if(value) {
    const id = parseId(value);
    const change = isRecord(value) ? parseChange(value["change"]) : null;
    return id === null || change === null ? null : { kind: "what_if", id, change };
  },
  errors: () => ({ kind: "errors" }),
  streams: () => ({ kind: "streams" }),
};

/** Parses the answers of each kind; null = it is none. */
export const PARSE_ANSWER: {
  readonly [K in ReportKind]: (value: unknown) => ProcessReport<K> | null;
} = {
  decisions: parserOf<"decisions">(
    (answer) =>
      isRecord(answer) &&
      Array.isArray(answer["calls"]) &&
      answer["calls"].every((each) => hasText(each, "at")) &&
      areRecords(answer["uses"]),
  ),
  decision: parserOf<"decision">((answer) => answer === null || hasText(answer, "id")),
  what_if: parserOf<"what_if">(
    (answer) =>
      answer === null ||
      answer === "unrecorded" ||
      answer === "unknown_provider" ||
      hasText(answer, "id"),
  ),
  errors: parserOf<"errors">(
    (answer) => isRecord(answer) && isNumber(answer["total"]) && areRecords(answer["shapes"]),
  ),
  streams: parserOf<"streams">(
    (answer) => isRecord(answer) && isRecord(answer["totals"]) && areRecords(answer["streams"]),
  ),
};

function parserOf<K extends ReportKind>(
  isAnswer: (answer: unknown) => boolean,
): (value: unknown) => ProcessReport<K> | null {
  return (value) =>
    isRecord(value) && isAnswer(value["answer"]) ? (value as unknown as ProcessReport<K>) : null;
}

function parseId(value: unknown): string | null {
  return isRecord(value) && typeof value["id"] === "string" ? value["id"] : null;
}

function parseChange(value: unknown): PlanChange | null {
  if (!isRecord(value)) return null;
  const { without } = value;
  const strategy = parseStrategy(value["strategy"]);
  return strategy === null || !isTextOrNull(without) ? null : { strategy, without };
}

function parseStrategy(value: unknown): Strategy | null {
  return STRATEGY_NAMES.find((name) => name === value) ?? null;
}

function hasText(value: unknown, name: string): boolean {
  return isRecord(value) && typeof value[name] === "string";
}

function areRecords(value: unknown): boolean {
  return Array.isArray(value) && value.every(isRecord);
}

function isTextOrNull(value: unknown): value is string | null {
  return value === null || typeof value === "string";
}

function isNumber(value: unknown): value is number {
  return typeof value === "number" && Number.isFinite(value);
}
