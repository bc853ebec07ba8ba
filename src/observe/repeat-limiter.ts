// Limits repeated log lines: a few per minute for each cause, then one line with a count. Knows
// nothing of the content of lines.
import type { Runtime } from "../runtime.ts";

const WINDOW_MS = 60_000;
const LINES_PER_WINDOW = 3;
/** Most distinct causes per profile; further causes share one limit. */
const MAX_CAUSES = 100;

interface Window {
  lines: number;
  held: number;
}

/** Decides whether a line may be logged. */
export class RepeatLimiter {
  readonly #runtime: Runtime;
  readonly #report: (cause: string, held: number) => void;
  /** By profile and cause. */
  readonly #profiles = new Map<string, Map<string, Window>>();

  /** At the end of each minute, `report` hears how many lines of each cause were suppressed. */
  constructor(runtime: Runtime, report: (cause: string, held: number) => void) {
    this.#runtime = runtime;
    this.#report = report;
  }

  /**
   * False = the limit of this cause for the minute is used up, and the line is only counted. Causes
   * are distinguished up to a bound per profile, so that one profile cannot use up the lines of
   * another. `profile` is a label; all Custom profiles share one.
   */
  mayLog(profile: string, cause: string): boolean {
    const windows = this.#profiles.get(profile) ?? new Map<string, Window>();
    const known =
      windows.has(cause) || windows.size < MAX_CAUSES ? cause : `other causes of ${profile}`;
    const window = windows.get(known) ?? this.#open(profile, windows, known);
    if (window.lines < LINES_PER_WINDOW) {
      window.lines++;
      return true;
    }
    window.held++;
    return false;
  }

  #open(profile: string, windows: Map<string, Window>, cause: string): Window {
    const window: Window = { lines: 0, held: 0 };
    windows.set(cause, window);
    this.#profiles.set(profile, windows);
    this.#runtime.after(WINDOW_MS, () => {
      windows.delete(cause);
      if (windows.size === 0) this.#profiles.delete(profile);
      if (window.held > 0) this.#report(cause, window.held);
    });
    return window;
  }
}
