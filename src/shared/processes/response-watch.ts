// Watches whether a worker answers: asks it once a second, and notices when it falls silent,
// answers again, or has been silent for too long. Counts questions in place of time, so that a
// supervisor which stood still itself does not take its workers for silent.
import type { Runtime } from "../../runtime.ts";

/** What happens to a watched worker. */
export interface ResponseEvents {
  /** Asks the worker; any message of the worker counts as its answer. */
  ping(): void;
  fellSilent(): void;
  answersAgain(): void;
  /** It was silent for longer than it may be. Called once; the watch is over. */
  hung(): void;
}

/** The watch over one worker. */
export interface ResponseWatch {
  /** Records a message of the worker. */
  heard(): void;
  readonly isSilent: boolean;
  stop(): void;
}

const ASK_MS = 1_000;
/** A worker is silent while its oldest question has waited for so many intervals. */
const SILENT_AFTER = 3;

/** Begins to watch a worker; it has hung when it does not answer for `hungMs`. */
export function watchResponses(
  runtime: Pick<Runtime, "after">,
  hungMs: number,
  events: ResponseEvents,
): ResponseWatch {
  let unanswered = 0;
  let isSilent = false;
  let cancel = runtime.after(ASK_MS, look);

  function look(): void {
    if (unanswered >= SILENT_AFTER && unanswered * ASK_MS >= hungMs) return events.hung();
    if (unanswered >= SILENT_AFTER && !isSilent) {
      isSilent = true;
      events.fellSilent();
    }
    unanswered++;
    events.ping();
    cancel = runtime.after(ASK_MS, look);
  }

  return {
    get isSilent() {
      return isSilent;
    },
    heard() {
      unanswered = 0;
      if (!isSilent) return;
      isSilent = false;
      events.answersAgain();
    },
    stop: () => cancel(),
  };
}
