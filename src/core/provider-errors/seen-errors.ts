// The errors of providers that were seen lately, by provider and category, each with a redacted
// sample, so that an operator sees what fails and how. Bounded: the one not seen for longest is
// dropped first. Knows no clock.

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
  // In the order of use.
  seen.delete(key);
  const [oldest] = seen.keys();
  if (seen.size >= MAX_SEEN && oldest !== undefined) seen.delete(oldest);
  seen.set(key, {
    ...described,
    count: (known?.count ?? 0) + 1,
    firstMs: known?.firstMs ?? wallMs,
    lastMs: wallMs,
  });
}
