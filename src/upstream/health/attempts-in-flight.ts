// The attempts that are out on one channel, in the order in which they began. A linked list whose
// links are cut on removal: in a `Set` that lives long, tables that were replaced keep what they
// held alive past the young generation, and every attempt would be promoted with all that hangs on
// it.

/** An attempt that can stand in a list. */
export interface Linked<T> {
  before: T | null;
  after: T | null;
}

/** A list of attempts. */
export class AttemptsOut<T extends Linked<T>> {
  size = 0;
  /** The one that has been out longest; null = none is out. */
  first: T | null = null;
  #last: T | null = null;

  add(one: T): void {
    const last = this.#last;
    one.before = last;
    if (last === null) this.first = one;
    else last.after = one;
    this.#last = one;
    this.size++;
  }

  /** Takes out one that may stand in the list; no other list may hold it. */
  delete(one: T): void {
    const { before, after } = one;
    if (before === null && this.first !== one) return;
    if (before === null) this.first = after;
    else before.after = after;
    if (after === null) this.#last = before;
    else after.before = before;
    one.before = null;
    one.after = null;
    this.size--;
  }

  /** Those that are out now. */
  all(): readonly T[] {
    const all: T[] = [];
    for (let one = this.first; one !== null; one = one.after) all.push(one);
    return all;
  }
}
