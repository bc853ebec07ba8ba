// The attempts in flight on one channel, in order of start. A linked list whose links are cleared
// on removal: a long-lived `Set` keeps old tables that hold removed attempts alive, so that every
// attempt would be promoted out of the young generation.

/** A member of a list. */
export interface Linked<T> {
  before: T | null;
  after: T | null;
}

/** A list of attempts. */
export class AttemptsOut<T extends Linked<T>> {
  size = 0;
  /** The oldest attempt; null = the list is empty. */
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

  /** Removes an attempt, if it is in the list; it must not be in another one. */
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

  /** All attempts in the list. */
  all(): readonly T[] {
    const all: T[] = [];
    for (let one = this.first; one !== null; one = one.after) all.push(one);
    return all;
  }
}
