// Data that a component reads from the API and keeps current while the page can be seen.
import { useEffect, useRef, useState } from "preact/hooks";
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
 * Reads at once, when `key` changes, and then every `everyMs` (0 = never again), one reading at a
 * time. Nothing is read while the page is hidden. An answer that comes after `key` changed is
 * dropped.
 */
export function useResource<T>(
  key: string,
  everyMs: number,
  read: (signal: AbortSignal) => Promise<Result<T>>,
): Resource<T> {
  const [reading, setReading] = useState<Reading<T>>(unread(key));
  const latest = useRef(read);
  latest.current = read;
  const poll = useRef((_isChanged: boolean): void => {});
  useEffect(() => {
    const end = new AbortController();
    const { signal } = end;
    let isBusy = false;
    let isOutdated = false;
    const run = async (): Promise<void> => {
      isBusy = true;
      isOutdated = false;
      const result = await latest.current(signal);
      isBusy = false;
      if (signal.aborted) return;
      setReading((before) => after(before, key, result));
      if (isOutdated) await run();
    };
    poll.current = (isChanged) => {
      // A reading that is under way may not show what has changed: another one follows it.
      if (isBusy) isOutdated ||= isChanged;
      else if (!signal.aborted && (isChanged || !document.hidden)) void run();
    };
    poll.current(true);
    document.addEventListener("visibilitychange", () => poll.current(false), { signal });
    return () => end.abort();
  }, [key]);
  // Apart from the reading itself: another interval is no reason to read at once.
  useEffect(() => {
    if (everyMs === 0) return;
    const timer = setInterval(() => poll.current(false), everyMs);
    return () => clearInterval(timer);
  }, [key, everyMs]);
  const { data, readAtMs, failure } = reading.key === key ? reading : unread<T>(key);
  return { data, readAtMs, failure, reload: () => poll.current(true) };
}

function unread<T>(key: string): Reading<T> {
  return { key, data: null, readAtMs: null, failure: null };
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
