// Samples of provider errors, so that an operator sees what fails and how: of every category that
// was seen lately, and of the shapes that match no rule, for which an `error_rules` entry can be
// written. Texts come from providers and may repeat what callers sent, so samples are short and
// redacted. Both collections are bounded. Knows no clock.
import { beginningOf } from "../fields.ts";
import { setNewest } from "../newest.ts";

/** The errors of one provider in one category. */
export interface SeenError {
  readonly provider: string;
  readonly category: string;
  /** Of the sample, as the rest. */
  readonly method: string;
  readonly code: number | null;
  readonly httpStatus: number;
  /** Redacted; null = the provider said nothing, or nothing that may be shown. */
  readonly sample: string | null;
  /** When it was taken (wall clock, ms). */
  readonly sampledMs: number;
  readonly count: number;
  /** When it was first and last seen (wall clock, ms). */
  readonly firstMs: number;
  readonly lastMs: number;
}

/** Errors by provider and category. Changed in place by `noteSeen`. */
export type SeenErrors = Map<string, SeenError>;

/** One error. */
export interface ErrorOccurrence
  extends Pick<SeenError, "provider" | "category" | "code" | "httpStatus"> {
  /** Called only where a sample is taken: the method and the message, redacted. */
  readonly describe: () => Pick<SeenError, "method" | "sample">;
}

const MAX_SEEN = 1_000;
/** A sample that is older gives way to a newer one. */
const SAMPLE_MS = 60_000;

/** Counts an error. */
export function noteSeen(
  seen: SeenErrors,
  { describe, ...about }: ErrorOccurrence,
  wallMs: number,
): void {
  const key = `${about.provider} ${about.category}`;
  const known = seen.get(key);
  const isStale = known === undefined || Math.abs(wallMs - known.sampledMs) >= SAMPLE_MS;
  const described = isStale ? { ...about, ...describe(), sampledMs: wallMs } : known;
  const count = (known?.count ?? 0) + 1;
  const error = { ...described, count, firstMs: known?.firstMs ?? wallMs, lastMs: wallMs };
  setNewest(seen, key, error, MAX_SEEN);
}

/** A shape of errors that match no rule. */
export interface UnknownError {
  /** Id of the provider that sent it first. */
  readonly provider: string;
  readonly method: string;
  readonly code: number | null;
  readonly httpStatus: number;
  /** The first message of this shape, without secrets and hex. */
  readonly sample: string;
  readonly count: number;
  /** When it was last seen (wall clock, ms). */
  readonly lastMs: number;
}

/** One error that matches no rule. */
export interface UnknownOccurrence extends Omit<UnknownError, "sample" | "count" | "lastMs"> {
  readonly message: string;
  /** Removes secrets. */
  readonly redact: (text: string) => string;
}

/** Shapes by provider, code and words. Changed in place by `noteUnknown`. */
export class UnknownErrors {
  readonly shapes = new Map<string, UnknownError>();
  /** Number of errors counted, including those of dropped shapes. */
  total = 0;
}

const MAX_SHAPES = 64;
/**
 * Characters of a message that are read: more than a sample, so that no secret is cut before it is
 * recognised.
 */
const MAX_MESSAGE_CHARS = 1_000;
const SAMPLE_CHARS = 200;
const METHOD_CHARS = 64;

/** Counts an error. Returns its shape if the shape is new. */
export function noteUnknown(
  errors: UnknownErrors,
  { message, redact, ...about }: UnknownOccurrence,
  wallMs: number,
): UnknownError | null {
  errors.total++;
  const key = `${about.provider} ${about.code} ${wordsOf(message)}`;
  const known = errors.shapes.get(key);
  if (known !== undefined) {
    errors.shapes.set(key, { ...known, count: known.count + 1, lastMs: wallMs });
    return null;
  }
  if (errors.shapes.size >= MAX_SHAPES) errors.shapes.delete(rarest(errors.shapes));
  const sample = withoutHex(redact(beginningOf(message, MAX_MESSAGE_CHARS))).slice(0, SAMPLE_CHARS);
  const shape = {
    ...about,
    method: withoutHex(redact(about.method)).slice(0, METHOD_CHARS),
    sample,
    count: 1,
    lastMs: wallMs,
  };
  errors.shapes.set(key, shape);
  return shape;
}

/** Shapes, the most frequent first. */
export function unknownShapes({ shapes }: UnknownErrors): readonly UnknownError[] {
  return [...shapes.values()].sort((a, b) => b.count - a.count || b.lastMs - a.lastMs);
}

/** The shape of a message: its words without its numbers. */
function wordsOf(message: string): string {
  return withoutHex(beginningOf(message, SAMPLE_CHARS)).toLowerCase().replace(/\d+/g, "#");
}

/** A text without hex: addresses, hashes, data of calls. Unchanged where it was removed before. */
export function withoutHex(text: string): string {
  return text.replace(/\b0x[0-9a-f]*…?|\b[0-9a-f]{16,}\b/gi, "0x…");
}

/** The key of the shape with the fewest errors; among equals, the one not seen for longest. */
function rarest(shapes: ReadonlyMap<string, UnknownError>): string {
  const [first] = [...shapes].sort(([, a], [, b]) => a.count - b.count || a.lastMs - b.lastMs);
  return first?.[0] ?? "";
}
