// How many requests a second a provider bears, learned from its refusals where nobody declared it:
// halved when it refuses, raised a little every second. It excludes nobody: a provider beyond
// it is asked after others.
import { SecondWindow } from "./second-window.ts";

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

/** What was learned of the rate that a provider bears; at first nothing. */
export class LearnedRate {
  readonly #window = new SecondWindow();
  /** What was learned at the last refusal; null = nothing, or no longer. */
  #refusal: Refusal | null = null;

  /** Counts a request that is sent now. */
  count(nowMs: number): void {
    this.#window.count(1, nowMs);
  }

  /** Learns from a refusal for the rate of requests. */
  refused(nowMs: number): void {
    const refusal = this.#refusal;
    if (refusal !== null && nowMs >= refusal.atMs && nowMs - refusal.atMs < SAME_BURST_MS) return;
    const sent = Math.max(1, this.#window.sentWithin(nowMs));
    const before = Math.min(sent, this.limit(nowMs) ?? sent);
    this.#refusal = { atMs: nowMs, sent, limit: Math.max(1, Math.floor(before / 2)) };
  }

  /** Requests a second that the provider seems to bear; null = nothing is known. */
  limit(nowMs: number): number | null {
    const refusal = this.#refusal;
    if (refusal === null) return null;
    const seconds = Math.floor((nowMs - refusal.atMs) / 1_000);
    const limit = refusal.limit + seconds * Math.max(1, refusal.sent * RISE);
    // If the clock jumped back, the refusal lies in the future and is forgotten.
    if (seconds >= 0 && limit <= FORGET_AT * refusal.sent) return Math.floor(limit);
    this.#refusal = null;
    return null;
  }

  /** Whether one request more would be beyond what the provider seems to bear. */
  isBeyond(nowMs: number): boolean {
    if (this.#refusal === null) return false;
    const limit = this.limit(nowMs);
    return limit !== null && this.#window.sentWithin(nowMs) >= limit;
  }
}
