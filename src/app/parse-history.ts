// The messages about history between the processes of a service, checked where they arrive. The
// processes run the same code; what is wrong all the same is dropped.
import { isRecord } from "../core/fields.ts";
import { type ChangeEvent, isChange, MAX_CHANGES } from "../observe/feed/recent-changes.ts";
import {
  type CountedRow,
  type CountedStep,
  METHOD_CLASSES,
  type ProviderName,
} from "../observe/history/history-counts.ts";
import {
  HISTORY_SPANS,
  type HistoryQuery,
  type SeriesReport,
  SPANS,
} from "../observe/history/history-report.ts";
import { layoutOfRow } from "../observe/history/history-row.ts";
import type { OpenHours, StepsReport } from "../observe/history/service-history.ts";
import { MAX_STEPS, type StepBatch } from "../observe/history/step-outbox.ts";

/** Which batch of which process was taken last. */
export type TakenBatch = Pick<StepBatch, "process" | "number">;

/** Null = no such message; the same for all that follow. */
export function parseTaken(value: unknown): TakenBatch | null {
  if (!isRecord(value)) return null;
  const { process, number } = value;
  return typeof process === "string" && isCount(number) ? { process, number } : null;
}

export function parseBatch(value: unknown): StepBatch | null {
  const taken = parseTaken(value);
  if (taken === null || !isRecord(value)) return null;
  const { steps, changes } = value;
  if (!Array.isArray(steps) || steps.length > MAX_STEPS) return null;
  const parsed = everyParsed(steps, parseStep);
  const parsedChanges = parseChanges(changes);
  if (parsed === null || parsedChanges === null) return null;
  return { ...taken, steps: parsed, changes: parsedChanges };
}

export function parseChangesAnswer(
  value: unknown,
): { readonly changes: readonly ChangeEvent[] } | null {
  const changes = isRecord(value) ? parseChanges(value["changes"]) : null;
  return changes === null ? null : { changes };
}

export function parseHistoryQuery(value: unknown): HistoryQuery | null {
  if (!isRecord(value)) return null;
  const { span, firstStep, joined, count, provider, classes } = value;
  const known = HISTORY_SPANS.find((name) => name === span);
  if (known === undefined || !isCount(firstStep) || !isCount(joined) || !isCount(count))
    return null;
  if (joined < 1 || joined * count > SPANS[known].steps) return null;
  const chain = parsePlace(value["chain"]);
  if (chain === undefined || !isTextOrNull(provider) || typeof classes !== "boolean") return null;
  return { span: known, firstStep, joined, count, chain, provider, classes };
}

export function parseStepsReport(value: unknown): StepsReport | null {
  if (!isRecord(value) || !isRecord(value["use"]) || !Array.isArray(value["series"])) return null;
  if (!value["series"].every(isSeries)) return null;
  return value as unknown as StepsReport;
}

export function parseOpenHours(value: unknown): { readonly open: OpenHours | "none" } | null {
  if (!isRecord(value)) return null;
  const { open } = value;
  if (open === "none") return { open };
  if (!isRecord(open) || !isRecord(open["use"]) || !Array.isArray(open["hours"])) return null;
  const hours = everyParsed(open["hours"], (each) => {
    if (!isRecord(each) || !isCount(each["hour"]) || !Array.isArray(each["rows"])) return null;
    const { hour, writer } = each;
    const rows = everyParsed(each["rows"], parseRow);
    return rows === null || typeof writer !== "string" ? null : { hour, writer, rows };
  });
  if (hours === null) return null;
  return { open: { hours, use: open["use"] as unknown as OpenHours["use"] } };
}

function parseStep(value: unknown): CountedStep | null {
  if (!isRecord(value) || !Array.isArray(value["rows"])) return null;
  const { atMs } = value;
  if (typeof atMs !== "number" || !Number.isFinite(atMs)) return null;
  const rows = everyParsed(value["rows"], parseRow);
  return rows === null ? null : { atMs, rows };
}

function parseRow(value: unknown): CountedRow | null {
  if (!isRecord(value)) return null;
  const { profile, chain, numbers } = value;
  if (typeof profile !== "string" || typeof chain !== "string") return null;
  const provider = parseProvider(value["provider"]);
  const of =
    value["class"] === null ? null : METHOD_CLASSES.find((name) => name === value["class"]);
  if (provider === undefined || of === undefined) return null;
  if (!Array.isArray(numbers) || numbers.length !== layoutOfRow({ provider }).width) return null;
  return numbers.every(isCount) ? { profile, chain, provider, class: of, numbers } : null;
}

function parseProvider(value: unknown): ProviderName | null | undefined {
  if (value === null) return null;
  if (!isRecord(value)) return undefined;
  const { id, alias } = value;
  return typeof id === "string" && typeof alias === "string" ? { id, alias } : undefined;
}

function parsePlace(value: unknown): HistoryQuery["chain"] | undefined {
  if (value === null) return null;
  if (!isRecord(value)) return undefined;
  const { profile, chain } = value;
  return typeof profile === "string" && typeof chain === "string" ? { profile, chain } : undefined;
}

function parseChanges(value: unknown): readonly ChangeEvent[] | null {
  if (!Array.isArray(value) || value.length > MAX_CHANGES) return null;
  return value.every(isChange) ? value : null;
}

function isSeries(value: unknown): value is SeriesReport {
  return isRecord(value) && typeof value["kind"] === "string" && Array.isArray(value["rows"]);
}

/** All parsed; null = one of them is not what it should be. */
function everyParsed<T>(
  values: readonly unknown[],
  parse: (value: unknown) => T | null,
): readonly T[] | null {
  const parsed = values.map(parse);
  const known = parsed.filter((value) => value !== null);
  return known.length === parsed.length ? known : null;
}

function isTextOrNull(value: unknown): value is string | null {
  return value === null || typeof value === "string";
}

function isCount(value: unknown): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0;
}
