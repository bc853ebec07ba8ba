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

const ASK_MS = 1_000;
/** A worker is silent while its oldest question has waited for so many intervals. */
const SILENT_AFTER = 3;

/** Watches a worker, which has hung when it does not answer for `hungMs`. */
export class ResponseWatch {
  isSilent = false;
  /** Ends the watch. */
  stop: () => void;
  readonly #events: ResponseEvents;
  #unanswered = 0;

  constructor(runtime: Pick<Runtime, "after">, hungMs: number, events: ResponseEvents) {
    this.#events = events;
    this.stop = runtime.after(ASK_MS, () => this.#look(runtime, hungMs));
  }

  /** Records a message of the worker. */
  heard(): void {
    this.#unanswered = 0;
    if (!this.isSilent) return;
    this.isSilent = false;
    this.#events.answersAgain();
  }

  #look(runtime: Pick<Runtime, "after">, hungMs: number): void {
    const isLate = this.#unanswered >= SILENT_AFTER;
    if (isLate && this.#unanswered * ASK_MS >= hungMs) return this.#events.hung();
    if (isLate && !this.isSilent) {
      this.isSilent = true;
      this.#events.fellSilent();
    }
    this.#unanswered++;
    this.#events.ping();
    this.stop = runtime.after(ASK_MS, () => this.#look(runtime, hungMs));
  }
}
