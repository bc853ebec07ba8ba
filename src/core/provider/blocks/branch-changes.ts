// Counts the reorganisations of a chain, and tells which heights none of them has touched since a
// given count: facts about a block hold only until its height is touched, even if its branch comes
// back.

/** How many reorganisations are remembered; facts that are older count as touched. */
export const REMEMBERED_CHANGES = 64;

/** The reorganisations that the providers of one set have told of. */
export class BranchChanges {
  #epoch = 0;
  /** By count modulo `REMEMBERED_CHANGES`: the lowest height touched since then. */
  readonly #lowest: number[] = [];

  /** How many there have been. */
  get epoch(): number {
    return this.#epoch;
  }

  /** Blocks from this height on may have been abandoned. */
  abandon(height: number): void {
    this.#lowest[this.#epoch % REMEMBERED_CHANGES] = height;
    for (const [slot, lowest] of this.#lowest.entries())
      if (height < lowest) this.#lowest[slot] = height;
    this.#epoch += 1;
  }

  /** Whether nothing at or below this height was abandoned since the count was `epoch`. */
  isUntouched(height: number, epoch: number): boolean {
    if (epoch === this.#epoch) return true;
    if (this.#epoch - epoch > REMEMBERED_CHANGES) return false;
    return height < (this.#lowest[epoch % REMEMBERED_CHANGES] ?? 0);
  }
}
