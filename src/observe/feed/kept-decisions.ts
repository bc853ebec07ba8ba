// The decisions that a process keeps, within bytes. Failed or slow calls have a share of their own,
// and so have calls chosen by a reader's filter: ordinary calls never push them out.
import { type RoutingDecision, SLOW_MS } from "./decision.ts";

/** Bytes that the decisions of a process may take. */
export const MAX_DECISION_BYTES = 8_388_608;
/** Of these, for decisions that are notable, and for those that a filter chose. */
const NOTABLE_SHARE = 0.375;
const CHOSEN_SHARE = 0.25;

/** Measured: objects and numbers of a decision, of an attempt, and of a number in a list. */
const DECISION_BYTES = 720;
const ATTEMPT_BYTES = 150;
const NUMBER_BYTES = 8;

/** How much is kept, and since when. */
export interface DecisionUse {
  readonly decisions: number;
  readonly bytes: number;
  readonly maxBytes: number;
  /** Wall clock: since when none was dropped that no filter chose; null = since the start. */
  readonly goodSinceMs: number | null;
  readonly notableSinceMs: number | null;
}

/** Decisions by number, which grows from one to the next. */
export class KeptDecisions {
  readonly #maxBytes: number;
  readonly #good: DecisionQueue;
  readonly #notable: DecisionQueue;
  readonly #chosen: DecisionQueue;

  constructor(maxBytes: number = MAX_DECISION_BYTES) {
    this.#maxBytes = maxBytes;
    const notableBytes = Math.floor(maxBytes * NOTABLE_SHARE);
    const chosenBytes = Math.floor(maxBytes * CHOSEN_SHARE);
    this.#notable = new DecisionQueue(notableBytes);
    this.#chosen = new DecisionQueue(chosenBytes);
    this.#good = new DecisionQueue(maxBytes - notableBytes - chosenBytes);
  }

  /** `isChosen`: by a reader's filter. */
  add(decision: RoutingDecision, isChosen: boolean): void {
    if (isNotable(decision)) this.#notable.add(decision);
    else (isChosen ? this.#chosen : this.#good).add(decision);
  }

  find(number: number): RoutingDecision | null {
    return this.#good.find(number) ?? this.#chosen.find(number) ?? this.#notable.find(number);
  }

  /** Newest first. */
  all(): readonly RoutingDecision[] {
    const all = [this.#good, this.#chosen, this.#notable].flatMap((queue) => queue.list());
    return all.sort((left, right) => right.number - left.number);
  }

  use(): DecisionUse {
    return {
      decisions: this.#good.length + this.#chosen.length + this.#notable.length,
      bytes: this.#good.bytes + this.#chosen.bytes + this.#notable.bytes,
      maxBytes: this.#maxBytes,
      goodSinceMs: this.#good.sinceMs,
      notableSinceMs: this.#notable.sinceMs,
    };
  }
}

/** Entries that were dropped stay in the list until there are so many. */
const MAX_DROPPED = 1_024;

/**
 * Decisions in the order in which they came; the oldest are dropped. What is needed to drop one is
 * in lists of numbers: the decision itself has long left the caches of the processor.
 */
class DecisionQueue {
  readonly #maxBytes: number;
  /** Null = dropped; these come first. */
  #list: (RoutingDecision | null)[] = [];
  /** Of each in the list: its bytes, and when it ended. */
  #sizes: number[] = [];
  #ends: number[] = [];
  #dropped = 0;
  bytes = 0;
  /** Wall clock: when the latest one that was dropped ended; null = none was. */
  sinceMs: number | null = null;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  get length(): number {
    return this.#list.length - this.#dropped;
  }

  list(): readonly RoutingDecision[] {
    return this.#list.filter((decision) => decision !== null);
  }

  add(decision: RoutingDecision): void {
    const bytes = bytesOf(decision);
    this.#list.push(decision);
    this.#sizes.push(bytes);
    this.#ends.push(decision.wallMs);
    this.bytes += bytes;
    while (this.bytes > this.#maxBytes) this.#drop();
    if (this.#dropped < MAX_DROPPED) return;
    this.#list = this.#list.slice(this.#dropped);
    this.#sizes = this.#sizes.slice(this.#dropped);
    this.#ends = this.#ends.slice(this.#dropped);
    this.#dropped = 0;
  }

  find(number: number): RoutingDecision | null {
    let from = this.#dropped;
    let to = this.#list.length;
    while (from < to) {
      const middle = (from + to) >>> 1;
      if ((this.#list[middle]?.number ?? 0) < number) from = middle + 1;
      else to = middle;
    }
    const found = this.#list[from] ?? null;
    return found?.number === number ? found : null;
  }

  #drop(): void {
    const at = this.#dropped++;
    this.#list[at] = null;
    this.bytes -= this.#sizes[at] ?? 0;
    this.sinceMs = this.#ends[at] ?? null;
  }
}

function isNotable({ outcome, attempts, totalMs, isPanic }: RoutingDecision): boolean {
  const failed = outcome === "fault" || outcome === "cancelled";
  return failed || isPanic || attempts.length > 1 || totalMs >= SLOW_MS;
}

/** Numbers of a provider that a plan considered, and of a strategy's reading of it. */
const NUMBERS_CONSIDERED = 10;

/** Bytes of a decision, about. */
function bytesOf({ attempts, messages, inputs, excluded, order }: RoutingDecision): number {
  let numbers = order.length + 2 * excluded.length;
  if (inputs !== null) {
    const { considered, readings, drawn } = inputs;
    numbers += drawn.length + considered.length * (1 + readings.size) * NUMBERS_CONSIDERED;
  }
  let bytes = DECISION_BYTES + attempts.length * ATTEMPT_BYTES + numbers * NUMBER_BYTES;
  if (messages !== null) for (const message of messages) bytes += 2 * (message?.length ?? 0);
  return bytes;
}
