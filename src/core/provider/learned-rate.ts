// How many requests a second a provider bears, learned from its refusals where nobody declared it:
// halved when it refuses, raised a little every second. It excludes nobody: a provider beyond
// it is asked after others. Changed in place.
import { countSent, SecondWindow, sentWithin } from "./second-window.ts";

/** What was learned of the rate that a provider bears. */
export class LearnedRate {
  readonly window = new SecondWindow();
  /** What was learned at the last refusal; null = nothing, or no longer. */
  refusal: Refusal | null = null;
}

/** A refusal, and the rate at which it came. */
interface Refusal {
  readonly atMs: number;
  /** Requests of the second before it. */
  readonly sent: number;
  /** Half of them, or of what was learned before. */
  readonly limit: number;
}

/** Refusals within this time are about the same burst. */
const SAME_BURST_MS = 1_000;
/** Part of the rate of the refusal by which the limit rises every second, at least by one. */
const RISE = 0.01;
/** From this multiple of the rate of the refusal on, nothing is known. */
const FORGET_AT = 2;

/** Counts a request that is sent now. */
export function countRequest({ window }: LearnedRate, nowMs: number): void {
  countSent(window, 1, nowMs);
}

/** Learns from a refusal for the rate of requests. */
export function learnRefusal(rate: LearnedRate, nowMs: number): void {
  const { refusal } = rate;
  if (refusal !== null && nowMs >= refusal.atMs && nowMs - refusal.atMs < SAME_BURST_MS) return;
  const sent = Math.max(1, sentWithin(rate.window, nowMs));
  const before = Math.min(sent, learnedLimit(rate, nowMs) ?? sent);
  rate.refusal = { atMs: nowMs, sent, limit: Math.max(1, Math.floor(before / 2)) };
}

/** Requests a second that the provider seems to bear; null = nothing is known. */
export function learnedLimit(rate: LearnedRate, nowMs: number): number | null {
  const { refusal } = rate;
  if (refusal === null) return null;
  const seconds = Math.floor((nowMs - refusal.atMs) / 1_000);
  const limit = refusal.limit + seconds * Math.max(1, refusal.sent * RISE);
  // A clock that jumped back: what was learned later is not waited for.
  if (seconds >= 0 && limit <= FORGET_AT * refusal.sent) return Math.floor(limit);
  rate.refusal = null;
  return null;
}

/** Whether one request more would be beyond what the provider seems to bear. */
export function isBeyondLearned(rate: LearnedRate, nowMs: number): boolean {
  if (rate.refusal === null) return false;
  const limit = learnedLimit(rate, nowMs);
  return limit !== null && sentWithin(rate.window, nowMs) >= limit;
}
