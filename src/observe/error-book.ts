// The errors of calls by shape, counted as calls end: the error that a caller got, and failures of
// providers that failover hid. Errors of all providers and chains are one shape if category, code,
// HTTP status and words are the same. Bounded; calls that go well cost nothing.
import { type CallEnd, callEndOf, isProviderFailure } from "../core/call-end.ts";
import type { Provider } from "../core/provider/profile.ts";
import { providerOf } from "../core/routing/answer-source.ts";
import { readError } from "../core/rpc/answer.ts";
import type { Runtime } from "../runtime.ts";
import type { Trace } from "../upstream/engine/call-context.ts";
import type { EndedCall } from "./feed/decision.ts";
import { redactedMessage, redactedMethod } from "./redacted-error.ts";

/** Calls that failed, calls that were wrong, and attempts whose failure a caller did not notice. */
export type ErrorKind = "failed" | "caller_error" | "hidden";

/** Shapes of each kind that are kept, and what is told apart of each. */
export const ERROR_BOUNDS = { shapes: 100, providers: 24, methods: 20, callers: 100 } as const;
/** Of so many shapes that were not seen for longest, the rarest gives way to a new one. */
const OLDEST_SHAPES = 8;
const SHAPE_CHARS = 200;
/** The trend is that of the last hour. */
export const TREND_STEPS = 30;
const STEP_MS = 120_000;

/** Counts by name of so many names; what has another name counts as others. */
export class Tally<Of> {
  readonly rows = new Map<string, { readonly of: Of; count: number }>();
  others = 0;
  readonly #most: number;

  constructor(most: number) {
    this.#most = most;
  }

  add(name: string, count: number, describe: () => Of): void {
    const known = this.rows.get(name);
    if (known !== undefined) known.count += count;
    else if (this.rows.size < this.#most) this.rows.set(name, { of: describe(), count });
    else this.others += count;
  }
}

/** What another process can be told of it. */
type Counted<Of> = Pick<Tally<Of>, "rows" | "others">;

/** One error, before it is redacted. */
interface RawError {
  readonly category: string;
  readonly code: number | null;
  /** 0 = there was none, or it was a good one. */
  readonly httpStatus: number;
  readonly message: string;
  /** Whose words these are; null = the service's. */
  readonly provider: Provider | null;
}

/** An error as it may be shown. */
export interface RedactedError extends Pick<RawError, "category" | "code" | "httpStatus"> {
  /** Redacted; null = nothing was said, or nothing that may be shown. */
  readonly sample: string | null;
}

/** Where an error came from; provider null = from no provider, or from one of a user. */
interface ErrorPlace {
  readonly profile: string;
  readonly chain: string;
  readonly provider: string | null;
}

/** A shape with its counts. */
export interface CountedShape extends RedactedError {
  /** Equal for equal shapes of one kind. */
  readonly key: string;
  readonly kind: ErrorKind;
  readonly end: CallEnd;
  /** What a provider had failed with before the service answered; null = none had. */
  readonly behind: RedactedError | null;
  /** Calls; of hidden failures attempts. */
  count: number;
  /** When it was first and last seen (wall clock, ms). */
  readonly firstMs: number;
  lastMs: number;
  readonly providers: Counted<ErrorPlace>;
  readonly methods: Counted<string>;
  /** Ids of keys by caller; null = the caller has none. */
  readonly callers: Counted<string | null>;
  /** By step of the wall clock modulo their number, up to that of `lastMs`. */
  readonly trend: Uint32Array;
}

/** Categories of errors that matched no rule. */
export const UNKNOWN_CATEGORIES: ReadonlySet<string> = new Set(["unknown", "tx_rejected"]);

/** The error of a shape that no rule knows; null = its errors are known. */
export function unknownIn(shape: CountedShape): RedactedError | null {
  const { category, code, httpStatus, sample, behind } = shape;
  if (UNKNOWN_CATEGORIES.has(category)) return { category, code, httpStatus, sample };
  return behind !== null && UNKNOWN_CATEGORIES.has(behind.category) ? behind : null;
}

/** A shape of this process. */
type Shape = ReturnType<typeof newShape>;

/** The errors of one process. */
export class ErrorBook {
  /** All errors, also those whose shapes are not kept. */
  readonly totals: Record<ErrorKind, number> = { failed: 0, caller_error: 0, hidden: 0 };
  readonly #shapes: Readonly<Record<ErrorKind, Map<string, Shape>>> = {
    failed: new Map(),
    caller_error: new Map(),
    hidden: new Map(),
  };
  readonly #runtime: Pick<Runtime, "wallMs">;

  constructor(runtime: Pick<Runtime, "wallMs">) {
    this.#runtime = runtime;
  }

  shapes(): readonly CountedShape[] {
    return Object.values(this.#shapes).flatMap((shapes) => [...shapes.values()]);
  }

  /** Counts a call by the error that its caller got. */
  answered(call: EndedCall, outcome: "failed" | "caller_error"): CountedShape {
    const { answer, route } = call;
    const error = answeredError(call);
    // An error of a provider stands for itself, one of the service for those before it.
    const failed = answer?.outcome.kind === "error" ? [] : (route?.traces.filter(isFailed) ?? []);
    const shape = this.#count(outcome, call, error, failed.at(-1));
    const source = error.provider ?? (answer === null ? null : providerOf(answer.source));
    if (failed.length === 0) addPlace(shape, call, source);
    for (const provider of new Set(failed.map(({ attempt }) => attempt.provider)))
      addPlace(shape, call, provider);
    return shape;
  }

  /** Counts an attempt that a provider failed, which the caller of its call did not notice. */
  hid(call: EndedCall, trace: Trace): CountedShape {
    const shape = this.#count("hidden", call, attemptError(trace));
    addPlace(shape, call, trace.attempt.provider);
    return shape;
  }

  /** `cause`: the failure of a provider before the service answered. */
  #count(kind: ErrorKind, call: EndedCall, error: RawError, cause?: Trace): Shape {
    const wallMs = this.#runtime.wallMs();
    const { category, code, httpStatus, message } = error;
    const shapes = this.#shapes[kind];
    const key = `${category} ${code} ${httpStatus} ${wordsOf(message)}`;
    const known = shapes.get(key);
    if (known !== undefined) shapes.delete(key);
    else if (shapes.size >= ERROR_BOUNDS.shapes) shapes.delete(rarestOfOldest(shapes));
    const end = kind === "hidden" ? callEndOf({ kind: "error", category }) : call.end;
    const behind = () => (cause === undefined ? null : shown(attemptError(cause)));
    const about = { kind, key, end, firstMs: wallMs };
    const shape = known ?? newShape({ ...about, ...shown(error), behind: behind() });
    shapes.set(key, shape);
    this.totals[kind]++;
    const { route, asked } = call;
    const method = route?.request.call.methodName ?? asked?.methodName;
    if (method !== undefined) shape.methods.add(method, 1, () => redactedMethod(method));
    const keyId = route?.request.caller.keyId ?? asked?.keyId ?? null;
    const caller = keyId ?? route?.request.caller.key;
    if (caller !== undefined) shape.callers.add(caller, 1, () => keyId);
    addStep(shape, wallMs);
    return shape;
  }
}

function newShape(
  about: Omit<CountedShape, "count" | "lastMs" | "providers" | "methods" | "callers" | "trend">,
) {
  return {
    ...about,
    ...{ count: 0, lastMs: about.firstMs },
    providers: new Tally<ErrorPlace>(ERROR_BOUNDS.providers),
    methods: new Tally<string>(ERROR_BOUNDS.methods),
    callers: new Tally<string | null>(ERROR_BOUNDS.callers),
    trend: new Uint32Array(TREND_STEPS),
  };
}

/** The key of a shape that gives way: what comes again outlasts what callers make up. */
function rarestOfOldest(shapes: ReadonlyMap<string, Shape>): string {
  const oldest = [...shapes.values().take(OLDEST_SHAPES)];
  return oldest.reduce((rarest, each) => (each.count < rarest.count ? each : rarest)).key;
}

function isFailed({ attempt: { verdict } }: Trace): boolean {
  return verdict !== null && isProviderFailure(verdict.category);
}

/** What the caller got. */
function answeredError({ answer, end, route }: EndedCall): RawError {
  const outcome = answer?.outcome;
  const nothing = { code: null, httpStatus: 0, message: "", provider: null };
  if (outcome?.kind === "fault") {
    const { code, rpcCode, message } = outcome.fault;
    return { ...nothing, category: code, code: rpcCode, message };
  }
  if (outcome?.kind !== "error") return { ...nothing, category: end.reason ?? end.outcome };
  const { category, raw } = outcome;
  const given = route?.traces.findLast(({ attempt, failure }) => {
    return failure !== null && attempt.verdict?.category === category;
  });
  if (given !== undefined) return attemptError(given);
  const provider = answer === null ? null : providerOf(answer.source);
  const { code, message } = readError(raw);
  return { ...nothing, category, code, message: wordsFrom(provider, message), provider };
}

/** What a provider failed with. */
function attemptError({ attempt: { provider, verdict }, failure }: Trace): RawError {
  const { code = null, httpStatus: status = 0, message = "" } = failure ?? {};
  const category = verdict?.category ?? "";
  const words = wordsFrom(provider, String(message));
  return { category, code, httpStatus: status < 300 ? 0 : status, message: words, provider };
}

/** Messages of users' own providers are theirs alone. */
function wordsFrom(provider: Provider | null, message: string): string {
  return provider === null || provider.guarded ? "" : message;
}

function shown({ category, code, httpStatus, message, provider }: RawError): RedactedError {
  const sample = message === "" ? null : redactedMessage(provider, message);
  return { category, code, httpStatus, sample };
}

/** The words of a message, without what differs: numbers, ids, hashes, names of hosts. */
function wordsOf(message: string): string {
  return message
    .slice(0, SHAPE_CHARS)
    .toLowerCase()
    .replace(/[\w.:-]+/g, (word) => (/\d|[a-z]\.[a-z]/.test(word) ? "#" : word));
}

function addPlace({ providers }: Shape, { series }: EndedCall, provider: Provider | null): void {
  const { profile, chain } = series;
  const id = provider === null || provider.guarded ? null : provider.id;
  providers.add(`${profile} ${chain} ${id}`, 1, () => ({ profile, chain, provider: id }));
}

function addStep(shape: Shape, wallMs: number): void {
  const { trend } = shape;
  const last = stepOf(shape.lastMs);
  const step = stepOf(wallMs);
  // Also where the clock was set.
  if (Math.abs(step - last) >= TREND_STEPS) trend.fill(0);
  else for (let passed = last + 1; passed <= step; passed++) trend[passed % TREND_STEPS] = 0;
  trend[step % TREND_STEPS] = (trend[step % TREND_STEPS] ?? 0) + 1;
  shape.count++;
  shape.lastMs = wallMs;
}

/** How many were seen in each step of the last hour, the present one last. */
export function trendOf({ trend, lastMs }: CountedShape, nowMs: number): readonly number[] {
  const last = stepOf(lastMs);
  return Array.from(trend, (_, nth) => {
    const step = stepOf(nowMs) - TREND_STEPS + 1 + nth;
    const isValid = step <= last && step > last - TREND_STEPS;
    return isValid ? (trend[step % TREND_STEPS] ?? 0) : 0;
  });
}

function stepOf(wallMs: number): number {
  return Math.floor(wallMs / STEP_MS);
}
