// Provider errors that no rule knows, as samples that an operator can write an `error_rules` entry
// from. Texts come from providers and may repeat what callers sent: samples are short and redacted,
// shapes are bounded, and those that were seen once go before those that come again. Knows no
// clock.

/** A shape of errors that no rule knows. */
export interface UnknownError {
  /** Id of the provider that said it first. */
  readonly provider: string;
  readonly method: string;
  readonly code: number | null;
  readonly httpStatus: number;
  /** The first message of this shape, without secrets and hex. */
  readonly sample: string;
  readonly count: number;
  /** Wall clock. */
  readonly lastMs: number;
}

/** One error that no rule knows. */
export interface UnknownOccurrence extends Omit<UnknownError, "sample" | "count" | "lastMs"> {
  readonly message: string;
  /** Removes secrets. */
  readonly redact: (text: string) => string;
}

/** Shapes by provider, code and words; changed in place by `noteUnknown`. */
export interface UnknownErrors {
  readonly shapes: Map<string, UnknownError>;
  /** All that were noted, also of shapes that are gone. */
  total: number;
}

const MAX_SHAPES = 64;
/**
 * Read of a message; more than a sample, so that no secret is cut in two before it is known as one.
 */
const MAX_MESSAGE_CHARS = 1_000;
const SAMPLE_CHARS = 200;
const METHOD_CHARS = 64;

/** Nothing noted. */
export function createUnknownErrors(): UnknownErrors {
  return { shapes: new Map(), total: 0 };
}

/** Counts an error; returns its shape where it is new. */
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
  const sample = withoutHex(redact(message.slice(0, MAX_MESSAGE_CHARS))).slice(0, SAMPLE_CHARS);
  const shape = {
    ...about,
    method: withoutHex(redact(about.method.slice(0, METHOD_CHARS))),
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
  return withoutHex(message.slice(0, SAMPLE_CHARS)).toLowerCase().replace(/\d+/g, "#");
}

function withoutHex(text: string): string {
  return text.replace(/\b0x[0-9a-f]*|\b[0-9a-f]{16,}\b/gi, "0x…");
}

/** The one with the fewest errors, of several the one that was silent for longest. */
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
