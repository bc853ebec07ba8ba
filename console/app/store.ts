// A value that several components read and that changes over time.

/** Holds one value and tells its readers when it was replaced. */
export class Store<T> {
  #value: T;
  readonly #listeners = new Set<() => void>();

  constructor(initial: T) {
    this.#value = initial;
  }

  get(): T {
    return this.#value;
  }

  /** An identical value changes nothing. */
  set(value: T): void {
    if (Object.is(value, this.#value)) return;
    this.#value = value;
    for (const listen of [...this.#listeners]) listen();
  }

  /** Calls `listen` after each change; returns the function that ends this. */
  subscribe(listen: () => void): () => void {
    this.#listeners.add(listen);
    return () => void this.#listeners.delete(listen);
  }
}
