// Counts for history until another process has taken them: numbered batches, each sent again until
// it is acknowledged. Bounded: of steps that nobody takes, old ones are added up.
import type { ChangeEvent } from "../feed/feed-event.ts";
import { MAX_CHANGES } from "../feed/recent-changes.ts";
import { type CountedStep, RowSums } from "./history-counts.ts";
import type { StepEvidence } from "./step-evidence.ts";

/** What a process hands over. */
export interface StepBatch {
  /** Unique for each start of a process. */
  readonly process: string;
  /** Goes up by one; begins at 1. */
  readonly number: number;
  readonly steps: readonly CountedStep[];
  readonly changes: readonly ChangeEvent[];
}

/** Steps that are kept apart. */
export const MAX_STEPS = 12;

/** The steps that are to be handed over. */
export class StepOutbox {
  readonly #process: string;
  #steps: CountedStep[] = [];
  #changes: readonly ChangeEvent[] = [];
  #sent: StepBatch | null = null;
  #number = 0;

  constructor(process: string) {
    this.#process = process;
  }

  add(step: CountedStep): void {
    this.#steps.push(step);
    const [first, second, ...later] = this.#steps;
    if (first === undefined || second === undefined || this.#steps.length <= MAX_STEPS) return;
    this.#steps = [addedUp(first, second), ...later];
  }

  /** The next batch, once the one before was taken; else that one. */
  batch(taken: number, changes: readonly ChangeEvent[]): StepBatch {
    this.#changes = [...this.#changes, ...changes].slice(-MAX_CHANGES);
    if (this.#sent !== null && this.#sent.number > taken) return this.#sent;
    this.#sent = {
      process: this.#process,
      number: ++this.#number,
      steps: this.#steps,
      changes: this.#changes,
    };
    this.#steps = [];
    this.#changes = [];
    return this.#sent;
  }
}

/** Two steps as one, at the time of the later one. */
function addedUp(first: CountedStep, second: CountedStep): CountedStep {
  const sums = new RowSums();
  for (const row of [...first.rows, ...second.rows]) sums.add(row);
  const added = { atMs: second.atMs, rows: sums.list() };
  return second.evidence === undefined ? added : { ...added, evidence: joined(first, second) };
}

/** Failures that are kept of added steps. */
const MAX_FAILURES = 1_000;

function joined({ evidence: first }: CountedStep, { evidence: second }: CountedStep): StepEvidence {
  const failures = [...(first?.failures ?? []), ...(second?.failures ?? [])];
  return { chains: second?.chains ?? [], failures: failures.slice(-MAX_FAILURES) };
}
