// Callbacks that hear whether an answer was written completely. A filter, for example, keeps its
// events if the answer was lost. Knows no connection.

/** Called with whether the answer was written completely. */
export type WriteListener = (written: boolean) => void;

/** The listeners of one answer. */
export class WriteListeners {
  #listeners: WriteListener[] = [];

  add(listener: WriteListener): void {
    this.#listeners.push(listener);
  }

  /** Calls each listener once and removes it. */
  notify(written: boolean): void {
    for (const listener of this.#listeners.splice(0)) listener(written);
  }
}
