// Limits repeated log lines: a few per minute for each cause, then one line with a count. Knows
// nothing of the content of lines.
import type { Runtime } from "../runtime.ts";

/** Decides whether a line may be logged. */
export interface RepeatLimiter {
  /**
   * False = the limit of this cause for the minute is used up, and the line is only counted. Causes
   * are distinguished up to a bound per profile, so that one profile cannot use up the lines of
   * another. `profile` is a label; all Custom profiles share one.
   */
  mayLog(profile: string, cause: string): boolean;
}

const WINDOW_MS = 60_000;
const LINES_PER_WINDOW = 3;
/** Most distinct causes per profile; further causes share one limit. */
const MAX_CAUSES = 100;

interface Window {
  lines: number;
  held: number;
}

/**
 * Creates a limiter. At the end of each minute it reports how many lines of each cause were
 * suppressed.
 */
export function createRepeatLimiter(
  runtime: Runtime,
  report: (cause: string, held: number) => void,
): RepeatLimiter {
  /** By profile and cause. */
  const profiles = new Map<string, Map<string, Window>>();

  function open(profile: string, windows: Map<string, Window>, cause: string): Window {
    const window: Window = { lines: 0, held: 0 };
    windows.set(cause, window);
    profiles.set(profile, windows);
    runtime.after(WINDOW_MS, () => {
      windows.delete(cause);
      if (windows.size === 0) profiles.delete(profile);
      if (window.held > 0) report(cause, window.held);
    });
    return window;
  }

  return {
    mayLog(profile, cause) {
      const windows = profiles.get(profile) ?? new Map<string, Window>();
      const known =
        windows.has(cause) || windows.size < MAX_CAUSES ? cause : `other causes of ${profile}`;
      const window = windows.get(known) ?? open(profile, windows, known);
      if (window.lines < LINES_PER_WINDOW) {
        window.lines++;
        return true;
      }
      window.held++;
      return false;
    },
  };
}
