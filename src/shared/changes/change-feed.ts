// Hears of changes that other nodes made: reads the change log when it is told to, and every second
// without that. Says for how long the database has not answered. Knows no key.
import { type Runtime, shared, within } from "../../runtime.ts";
import type { Store } from "../store/store.ts";
import { type ChangePosition, type ChangesRead, readChanges } from "./change-log.ts";

/** Something that says that there may be changes to read. */
export interface ChangeSignal {
  /** Calls back after changes were written; the result cancels. */
  subscribe(run: () => void): () => void;
}

/** What a feed works with. */
export interface ChangeFeedParts {
  readonly store: Pick<Store, "db">;
  readonly runtime: Runtime;
  readonly signal: ChangeSignal;
  readonly pollMs: number;
  /** From where it reads. */
  readonly from: ChangePosition;
  /**
   * Passes changes on: when it returns, nothing that was changed is used as it was. Where it
   * throws, the same changes are read and passed on once more.
   */
  readonly apply: (read: ChangesRead) => void;
  readonly onError: (error: unknown) => void;
}

/** Signals within this time are one. */
const SPACING_MS = 10;
/** A reading that has not answered for this long is given up, and another one begins. */
const GIVEN_UP_MS = 2_000;

/** A running feed. */
export class ChangeFeed {
  readonly #parts: ChangeFeedParts;
  #position: ChangePosition;
  #heardAtMs: number;
  #readAtMs = Number.NEGATIVE_INFINITY;
  /** Counts readings: one that was given up changes nothing. */
  #turn = 0;
  #isFailing = false;
  #isClosed = false;
  #cancelTimer: () => void;
  readonly #unsubscribe: () => void;

  constructor(parts: ChangeFeedParts) {
    this.#parts = parts;
    this.#position = parts.from;
    this.#heardAtMs = parts.runtime.now();
    this.#cancelTimer = parts.runtime.after(parts.pollMs, () => this.#poll());
    this.#unsubscribe = parts.signal.subscribe(() => this.#signalled());
  }

  /** For how long nothing could be read. */
  silentMs(): number {
    return Math.max(0, this.#parts.runtime.now() - this.#heardAtMs);
  }

  /** Reads now; resolves when everything that was committed before has been passed on. */
  readonly read = shared(async () => {
    if (!this.#isClosed) await this.#readOnce().catch((error: unknown) => this.#failed(error));
  });

  close(): void {
    this.#isClosed = true;
    this.#cancelTimer();
    this.#unsubscribe();
  }

  #poll(): void {
    this.#arm(this.#parts.pollMs);
    void this.read();
  }

  #arm(ms: number): void {
    this.#cancelTimer();
    if (!this.#isClosed) this.#cancelTimer = this.#parts.runtime.after(ms, () => this.#poll());
  }

  #signalled(): void {
    const sinceMs = this.#parts.runtime.now() - this.#readAtMs;
    this.#arm(Math.max(0, SPACING_MS - sinceMs));
  }

  async #readOnce(): Promise<void> {
    const { store, runtime, apply } = this.#parts;
    const startedAtMs = runtime.now();
    this.#readAtMs = startedAtMs;
    const turn = ++this.#turn;
    const reading = readChanges(store, this.#position);
    const answer = await within(runtime, GIVEN_UP_MS, "reading the log of changes", reading);
    if (turn !== this.#turn) return;
    if (answer.read.kind === "all" || answer.read.changes.length > 0) apply(answer.read);
    this.#position = answer.position;
    this.#heardAtMs = startedAtMs;
    this.#isFailing = false;
  }

  /** Told once; how long it lasts stands in the health of the cluster. */
  #failed(error: unknown): void {
    if (!this.#isFailing && !this.#isClosed) this.#parts.onError(error);
    this.#isFailing = true;
  }
}
