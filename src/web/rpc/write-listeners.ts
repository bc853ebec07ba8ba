// Callbacks that are told whether an answer was written to its end: a filter, for example, keeps
// the events of an answer that was not. Knows no connection.

/** Called with whether an answer was written to its end. */
export type WriteListener = (written: boolean) => void;

/** The listeners of one answer. */
export class WriteListeners {
  #listeners: WriteListener[] = [];

  add(listener: WriteListener): void {
    this.#listeners.push(listener);
  }

  /** Calls each listener once, and forgets it. */
  notify(written: boolean): void {
    for (const listener of this.#listeners.splice(0)) listener(written);
  }
}
