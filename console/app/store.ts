// A value that several components read and that changes over time.

/** Holds one value and tells its readers when it was replaced. */
export interface Store<T> {
  get(): T;
  set(value: T): void;
  /** Calls `listen` after each change; returns the function that ends this. */
  subscribe(listen: () => void): () => void;
}

/** Creates a store. Setting an identical value changes nothing. */
export function createStore<T>(initial: T): Store<T> {
  const state = { value: initial };
  const listeners = new Set<() => void>();
  return {
    get: () => state.value,
    set(value) {
      if (Object.is(value, state.value)) return;
      state.value = value;
      for (const listen of [...listeners]) listen();
    },
    subscribe(listen) {
      listeners.add(listen);
      return () => {
        listeners.delete(listen);
      };
    },
  };
}
