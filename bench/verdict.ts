// Whether a build is slower than another, judged from interleaved rounds of both and of a second
// instance of the base. Pure: measures nothing.
import { median } from "./figures.ts";

/** One round, as ratios of what a call cost in it. */
export interface PairedRound {
  /**
   * The build that is judged, over each instance of the base. Over their mean it would look better
   * than it is: what a call costs is skewed, and a mean of two is more often high than one.
   */
  readonly ratios: readonly number[];
  /** The second instance of the base over the first: the same build, so all of it is error. */
  readonly control: number;
}

/** What the rounds so far say. `more`: they do not decide yet. */
export interface Judgement {
  readonly verdict: "passed" | "worse" | "undecided" | "more";
  /** The median ratio of the two builds. */
  readonly ratio: number;
  /** The median ratio of the two instances of the base. */
  readonly control: number;
  /** How far from 1 the median ratio of one and the same build may lie. */
  readonly spread: number;
}

/** A build may cost this share more than the base, beyond the spread. */
export const TOLERANCE = 0.03;
/** A wider spread does not let a build pass. */
export const WIDEST_SPREAD = 0.03;
export const LEAST_ROUNDS = 9;
export const MOST_ROUNDS = 25;
/** The chance that an interval of a median misses it. */
const MISS = 0.05;

/**
 * Judges the rounds so far. A build that costs more than the tolerance beyond the spread is worse,
 * however wide the spread is; it passes only under a narrow one.
 */
export function judge(
  rounds: readonly PairedRound[],
  mayGoOn = rounds.length < MOST_ROUNDS,
): Judgement {
  const ratio = median(rounds.flatMap((round) => round.ratios));
  const controls = rounds.map((round) => round.control);
  const [low, high] = medianInterval(controls);
  const spread = Math.max(Math.abs(1 - low), Math.abs(high - 1));
  const figures = { ratio, control: median(controls), spread };
  const isEnough = rounds.length >= LEAST_ROUNDS;
  if (isEnough && ratio > 1 + TOLERANCE + spread) return { verdict: "worse", ...figures };
  if (isEnough && spread <= WIDEST_SPREAD) return { verdict: "passed", ...figures };
  return { verdict: mayGoOn ? "more" : "undecided", ...figures };
}

/**
 * The interval that holds the median of what the values were drawn from, with 95 % confidence
 * where there are at least six: it ends at values of the sample, so it assumes no distribution.
 */
export function medianInterval(values: readonly number[]): readonly [low: number, high: number] {
  const sorted = values.toSorted((a, b) => a - b);
  const count = sorted.length;
  // The chance that at most `at` of the values lie below the median: binomial, with equal odds.
  let chance = 0.5 ** count;
  let term = chance;
  let at = 0;
  while (at + 1 < count / 2) {
    term *= (count - at) / (at + 1);
    if (2 * (chance + term) > MISS) break;
    chance += term;
    at++;
  }
  return [sorted[at] ?? Number.NaN, sorted[count - 1 - at] ?? Number.NaN];
}
