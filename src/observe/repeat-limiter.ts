// Bounds log lines that say the same again and again: a few a minute for each cause, then a count.
// Knows nothing of what the lines say.
import type { Runtime } from "../runtime.ts";

/** Lets a line of a cause through or holds it back. */
export interface RepeatLimiter {
  /**
   * False = enough was said of this cause within the minute; it is counted. Causes are told apart
   * up to a bound for each profile: those that one profile's owner makes up cost no other profile
   * its lines. `profile` is a label: those of accounts are one.
   */
  mayLog(profile: string, cause: string): boolean;
}

const WINDOW_MS = 60_000;
const LINES_PER_WINDOW = 3;
/** Causes of one profile told apart; beyond, all others of it are one. */
const MAX_CAUSES = 100;

interface Window {
  lines: number;
  held: number;
}

/** A limiter that reports each cause's count of lines held back once its minute is over. */
export function createRepeatLimiter(
  runtime: Runtime,
  report: (cause: string, held: number) => void,
): RepeatLimiter {
  /** By profile and cause; profiles without one are gone. */
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
