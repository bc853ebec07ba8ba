// The errors of the whole service by shape, for the operator: those of all its processes, added up.
import {
  type CountedShape,
  ERROR_BOUNDS,
  type ErrorKind,
  type RedactedError,
  Tally,
  TREND_STEPS,
  trendOf,
  unknownIn,
} from "./error-book.ts";
import { errorRuleFor } from "./error-rule.ts";

/** Keys of a shape that are named. */
const MAX_KEYS = 10;

/** The errors of one process. */
export interface OwnErrors {
  readonly totals: Readonly<Record<ErrorKind, number>>;
  readonly shapes: readonly CountedShape[];
}

type ErrorShape = ReturnType<typeof shapeView>;

/** The errors of several processes. */
export function errorReport(answers: readonly OwnErrors[], nowMs: number) {
  const shapes = answers.flatMap((answer) => answer.shapes);
  const byKind = (count: (kind: ErrorKind) => number) => ({
    failed: count("failed"),
    caller_error: count("caller_error"),
    hidden: count("hidden"),
  });
  const total = (kind: ErrorKind): number => sumOf(answers.map(({ totals }) => totals[kind]));
  const kept = (kind: ErrorKind): number =>
    sumOf(shapes.map((shape) => (shape.kind === kind ? shape.count : 0)));
  const listed = (isHidden: boolean): readonly ErrorShape[] => {
    const own = shapes.filter(({ kind }) => (kind === "hidden") === isHidden);
    const same = Map.groupBy(own, ({ kind, key }) => `${kind} ${key}`);
    return Array.from(same.values(), (each) => shapeView(each, nowMs)).sort(byWeight);
  };
  return {
    totals: byKind(total),
    others: byKind((kind) => total(kind) - kept(kind)),
    seen: listed(false),
    hidden: listed(true),
  };
}

/** What no rule knows comes first, then what failed, then what came most often in the last hour. */
function byWeight(left: ErrorShape, right: ErrorShape): number {
  return (
    Number(right.unknown) - Number(left.unknown) ||
    Number(right.outcome === "failed") - Number(left.outcome === "failed") ||
    sumOf(right.trend) - sumOf(left.trend) ||
    right.count - left.count
  );
}

/** One shape of several processes; there is at least one. */
function shapeView(same: readonly CountedShape[], nowMs: number) {
  const [first] = same.toSorted((left, right) => left.firstMs - right.firstMs);
  if (first === undefined) throw new Error("a shape of no process");
  const providers = added(
    ERROR_BOUNDS.providers,
    same.map((shape) => shape.providers),
  );
  const methods = added(
    ERROR_BOUNDS.methods,
    same.map((shape) => shape.methods),
  );
  const callers = added(
    ERROR_BOUNDS.callers * same.length,
    same.map((shape) => shape.callers),
  );
  const keys = callers.rows.filter(({ of }) => of !== null);
  const trends = same.map((shape) => trendOf(shape, nowMs));
  const unknown = unknownIn(first);
  return {
    outcome: first.end.outcome,
    reason: first.end.reason,
    ...errorView(first),
    behind: first.behind === null ? null : errorView(first.behind),
    unknown: unknown !== null,
    count: sumOf(same.map(({ count }) => count)),
    first_seen: new Date(first.firstMs).toISOString(),
    last_seen: new Date(Math.max(...same.map(({ lastMs }) => lastMs))).toISOString(),
    trend: Array.from({ length: TREND_STEPS }, (_, at) => sumOf(trends.map((of) => of[at] ?? 0))),
    providers: providers.rows.map(({ of, count }) => ({ ...of, count })),
    methods: methods.rows.map(({ of, count }) => ({ method: of, count })),
    keys: keys.slice(0, MAX_KEYS).map(({ of, count }) => ({ key_id: of ?? "", count })),
    /** Null = no caller is known. */
    users: callers.rows.length === 0 ? null : callers.rows.length,
    more_keys: Math.max(0, keys.length - MAX_KEYS),
    others: { providers: providers.others, methods: methods.others, users: callers.others },
    rule: unknown?.sample == null ? null : errorRuleFor(unknown),
  };
}

function errorView({ category, code, httpStatus, sample }: RedactedError) {
  return { category, code, http_status: httpStatus === 0 ? null : httpStatus, sample };
}

/** Counts of several processes, the largest first. */
function added<Of>(most: number, all: readonly Pick<Tally<Of>, "rows" | "others">[]) {
  const sums = new Tally<Of>(most);
  for (const { rows } of all)
    for (const [name, { of, count }] of rows) sums.add(name, count, () => of);
  const rows = [...sums.rows.values()].sort((left, right) => right.count - left.count);
  return { rows, others: sums.others + sumOf(all.map(({ others }) => others)) };
}

function sumOf(numbers: readonly number[]): number {
  return numbers.reduce((sum, each) => sum + each, 0);
}
