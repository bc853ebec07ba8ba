// Counts the further calls to providers that keep one view of the chain for all callers.

/**
 * Why a provider was asked again. `missing`: the one before lacked the block of the view. `stale`:
 * nobody had it, so the tag went out as it was written. `own`: a provider did not know a
 * transaction that this service had handed in.
 */
export type ReaskReason = "missing" | "stale" | "own";

export const REASK_REASONS: readonly ReaskReason[] = ["missing", "stale", "own"];

/** Counts of one process. */
export class ViewReasks {
  readonly #counts = new Map<ReaskReason, number>();

  count(reason: ReaskReason): void {
    this.#counts.set(reason, this.of(reason) + 1);
  }

  of(reason: ReaskReason): number {
    return this.#counts.get(reason) ?? 0;
  }
}
