// Data that a component reads from the API and keeps current while the page can be seen.
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import type { Failure, Result } from "./client.ts";

/** The latest that is known. */
export interface Resource<T> {
  /** Null = nothing was read yet. Stays when a later reading fails. */
  readonly data: T | null;
  /** When `data` was read, by the clock of this browser; null = never. */
  readonly readAtMs: number | null;
  /** Why the latest reading failed; null = it did not. */
  readonly failure: Failure | null;
  /** Reads it now. */
  readonly reload: () => void;
}

interface Reading<T> extends Omit<Resource<T>, "reload"> {
  readonly key: string;
}

/**
 * Reads at once, when `key` changes, and then every `everyMs` (0 = never again). Nothing is read
 * while the page is hidden. An answer that comes after `key` changed is dropped.
 */
export function useResource<T>(
  key: string,
  everyMs: number,
  read: (signal: AbortSignal) => Promise<Result<T>>,
): Resource<T> {
  const [reading, setReading] = useState<Reading<T>>(unread(key));
  const latest = useRef(read);
  latest.current = read;
  const current = useRef<Poll<T> | null>(null);
  useEffect(() => {
    const poll = new Poll<T>(
      (signal) => latest.current(signal),
      (result) => setReading((before) => after(before, key, result)),
    );
    current.current = poll;
    poll.run();
    document.addEventListener("visibilitychange", poll.runIfVisible);
    return () => {
      poll.end();
      document.removeEventListener("visibilitychange", poll.runIfVisible);
    };
  }, [key]);
  // Apart from the reading itself: another interval is no reason to read at once.
  useEffect(() => {
    const again = (): void => current.current?.runIfVisible();
    const timer = everyMs > 0 ? setInterval(again, everyMs) : null;
    return () => {
      if (timer !== null) clearInterval(timer);
    };
  }, [key, everyMs]);
  const reload = useCallback(() => current.current?.runAgain(), []);
  const { data, readAtMs, failure } = reading.key === key ? reading : unread<T>(key);
  return { data, readAtMs, failure, reload };
}

function unread<T>(key: string): Reading<T> {
  return { key, data: null, readAtMs: null, failure: null };
}

/** Reads again and again; at most one reading is under way. */
class Poll<T> {
  readonly #abort = new AbortController();
  readonly #read: (signal: AbortSignal) => Promise<Result<T>>;
  readonly #done: (result: Result<T>) => void;
  #isBusy = false;
  #isOutdated = false;

  constructor(
    read: (signal: AbortSignal) => Promise<Result<T>>,
    done: (result: Result<T>) => void,
  ) {
    this.#read = read;
    this.#done = done;
  }

  run(): void {
    const { signal } = this.#abort;
    if (this.#isBusy || signal.aborted) return;
    this.#isBusy = true;
    this.#isOutdated = false;
    void this.#read(signal).then((result) => {
      this.#isBusy = false;
      if (signal.aborted) return;
      this.#done(result);
      if (this.#isOutdated) this.run();
    });
  }

  /** Also where a reading is under way, which may not show what has changed: after its end. */
  runAgain(): void {
    this.#isOutdated = this.#isBusy;
    this.run();
  }

  readonly runIfVisible = (): void => {
    if (!document.hidden) this.run();
  };

  end(): void {
    this.#abort.abort();
  }
}

function after<T>(before: Reading<T>, key: string, result: Result<T>): Reading<T> {
  if (result.kind === "ok") return { key, data: result.body, readAtMs: Date.now(), failure: null };
  const kept = before.key === key ? before : unread<T>(key);
  return { ...kept, failure: result.failure };
}

/** A request that changes something: whether it is under way, and why the last one failed. */
export interface Action {
  readonly busy: boolean;
  readonly failure: Failure | null;
  readonly run: <T>(request: Promise<Result<T>>, then: (body: T) => void) => void;
}

/** An action of a component. */
export function useAction(): Action {
  const [busy, setBusy] = useState(false);
  const [failure, setFailure] = useState<Failure | null>(null);
  return {
    busy,
    failure,
    run(request, then) {
      setBusy(true);
      setFailure(null);
      void request.then((result) => {
        setBusy(false);
        if (result.kind === "ok") then(result.body);
        else setFailure(result.failure);
      });
    },
  };
}
