// Those that wait to hear whether an answer was written to its end, such as filters that keep what
// was not. Knows no connection.

/** Hears whether an answer was written to its end. */
export type WriteListener = (written: boolean) => void;

/** The listeners of one answer. */
export class WriteListeners {
  #waiting: WriteListener[] = [];

  add(listener: WriteListener): void {
    this.#waiting.push(listener);
  }

  /** Tells each listener once. */
  tell(written: boolean): void {
    for (const listener of this.#waiting.splice(0)) listener(written);
  }
}
