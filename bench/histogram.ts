// A histogram of latencies in fixed memory: steps of 1 µs up to 20 ms, of 0.1 ms up to 2 s.

const FINE_STEPS = 20_000;
const COARSE_STEPS = 19_800;
const COARSE_MS = 0.1;

/** A bounded record of durations. */
export class Histogram {
  readonly #counts = new Uint32Array(FINE_STEPS + COARSE_STEPS + 1);
  #total = 0;
  #maxMs = 0;

  get total(): number {
    return this.#total;
  }

  get maxMs(): number {
    return this.#maxMs;
  }

  add(ms: number): void {
    this.#total++;
    if (ms > this.#maxMs) this.#maxMs = ms;
    const fine = Math.floor(ms * 1_000);
    const at =
      fine < FINE_STEPS
        ? Math.max(0, fine)
        : FINE_STEPS + Math.min(COARSE_STEPS, Math.floor((ms - FINE_STEPS / 1_000) / COARSE_MS));
    this.#counts[at] = (this.#counts[at] ?? 0) + 1;
  }

  /**
   * The duration in ms that a share `q` of the records does not exceed, with the precision of a
   * step; 0 without records.
   */
  quantileMs(q: number): number {
    const rank = Math.max(1, Math.ceil(q * this.#total));
    let seen = 0;
    for (let at = 0; at < this.#counts.length; at++) {
      seen += this.#counts[at] ?? 0;
      if (seen >= rank && seen > 0)
        return at < FINE_STEPS
          ? (at + 0.5) / 1_000
          : FINE_STEPS / 1_000 + (at - FINE_STEPS + 0.5) * COARSE_MS;
    }
    return 0;
  }
}
