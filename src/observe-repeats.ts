// Bounds log lines that say the same again and again: a few a minute for each cause, then a count. Knows nothing of what the lines say.
import type { World } from "./world.ts";

/** Lets a line of a cause through or holds it back. */
export interface RepeatLimiter {
  /** False = enough was said of this cause within the minute; it is counted. */
  mayLog(cause: string): boolean;
}

const WINDOW_MS = 60_000;
const LINES_PER_WINDOW = 3;
/** Causes told apart; beyond, all others are one. */
const MAX_CAUSES = 500;
const OTHER = "other";

interface Window {
  lines: number;
  held: number;
}

/** A limiter that reports each cause's count of lines held back once its minute is over. */
export function createRepeatLimiter(world: World, report: (cause: string, held: number) => void): RepeatLimiter {
  const windows = new Map<string, Window>();

  function open(cause: string): Window {
    const window: Window = { lines: 0, held: 0 };
    windows.set(cause, window);
    world.after(WINDOW_MS, () => {
      windows.delete(cause);
      if (window.held > 0) report(cause, window.held);
    });
    return window;
  }

  return {
    mayLog(cause) {
      const known = windows.has(cause) || windows.size < MAX_CAUSES ? cause : OTHER;
      const window = windows.get(known) ?? open(known);
      if (window.lines < LINES_PER_WINDOW) {
        window.lines++;
        return true;
      }
      window.held++;
      return false;
    },
  };
}
