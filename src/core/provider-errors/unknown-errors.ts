// Samples of provider errors that match no rule, so that an operator can write an `error_rules`
// entry. Texts come from providers and may repeat what callers sent, so samples are short and
// redacted. The number of shapes is bounded: the rarest is dropped first. Knows no clock.
import { beginningOf } from "../beginning.ts";

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
  let found = "";
  let least: UnknownError | null = null;
  for (const [key, shape] of shapes) {
    if (
      least !== null &&
      (shape.count > least.count || (shape.count === least.count && shape.lastMs >= least.lastMs))
    )
      continue;
    found = key;
    least = shape;
  }
  return found;
}
