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
export type DecisionUse = ReturnType<KeptDecisions["use"]>;

/** Decisions by number, which grows from one to the next. */
export class KeptDecisions {
  readonly #notable = new DecisionQueue(MAX_DECISION_BYTES * NOTABLE_SHARE);
  readonly #chosen = new DecisionQueue(MAX_DECISION_BYTES * CHOSEN_SHARE);
  readonly #good = new DecisionQueue(MAX_DECISION_BYTES * (1 - NOTABLE_SHARE - CHOSEN_SHARE));

  /** `isChosen`: by a reader's filter. */
  add(decision: RoutingDecision, isChosen: boolean): void {
    if (isNotable(decision)) this.#notable.add(decision);
    else (isChosen ? this.#chosen : this.#good).add(decision);
  }

  /** Newest first. */
  all(): readonly RoutingDecision[] {
    const all = [this.#good, this.#chosen, this.#notable].flatMap(({ list }) => list);
    return all.sort((left, right) => right.number - left.number);
  }

  use() {
    const all = [this.#good, this.#chosen, this.#notable];
    return {
      decisions: all.reduce((sum, { list }) => sum + list.length, 0),
      bytes: all.reduce((sum, { bytes }) => sum + bytes, 0),
      maxBytes: MAX_DECISION_BYTES,
      /** Wall clock: since when none was dropped that no filter chose; null = since the start. */
      goodSinceMs: this.#good.sinceMs,
      notableSinceMs: this.#notable.sinceMs,
    };
  }
}

/** Decisions in the order in which they came; the oldest are dropped. */
class DecisionQueue {
  readonly #maxBytes: number;
  readonly list: RoutingDecision[] = [];
  bytes = 0;
  /** Wall clock: when the latest one that was dropped ended; null = none was. */
  sinceMs: number | null = null;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  add(decision: RoutingDecision): void {
    this.list.push(decision);
    this.bytes += bytesOf(decision);
    while (this.bytes > this.#maxBytes) this.#drop();
  }

  #drop(): void {
    const oldest = this.list.shift();
    if (oldest === undefined) return;
    this.bytes -= bytesOf(oldest);
    this.sinceMs = oldest.wallMs;
  }
}

function isNotable({ outcome, attempts, totalMs, isPanic }: RoutingDecision): boolean {
  const failed = outcome === "failed" || outcome === "cancelled";
  return failed || isPanic || attempts.length > 1 || (totalMs ?? 0) >= SLOW_MS;
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
