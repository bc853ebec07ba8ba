// What a subscriber was told, judged event by event and at the end against the chain itself. Knows
// neither the service nor how the events came.

/** A block as heads tell of it. */
export interface Block {
  readonly number: string;
  readonly hash: string;
  readonly parentHash: string;
}

/** A log; `removed` = taken back. */
export interface Log {
  readonly address: string;
  readonly topics: readonly string[];
  readonly blockNumber: string;
  readonly blockHash: string;
  readonly logIndex: string;
  readonly removed?: boolean | undefined;
}

/** Ways of breaking the promise. */
export interface Breaches {
  gaps: number;
  duplicates: number;
  disorder: number;
  /** The first ones, in words. */
  readonly words: string[];
}

const KEPT_WORDS = 20;

/** No breach yet. */
export function noBreaches(): Breaches {
  return { gaps: 0, duplicates: 0, disorder: 0, words: [] };
}

function breach(breaches: Breaches, kind: "gaps" | "duplicates" | "disorder", words: string): void {
  breaches[kind]++;
  if (breaches.words.length < KEPT_WORDS) breaches.words.push(words);
}

/** Heads of one subscription, applied as a client with reorgs in mind would. */
export class HeadLedger {
  delivered = 0;
  reorgs = 0;
  readonly #name: string;
  readonly #breaches: Breaches;
  #view: Block[] = [];

  constructor(name: string, breaches: Breaches) {
    this.#name = name;
    this.#breaches = breaches;
  }

  get tip(): string | null {
    return this.#view.at(-1)?.hash ?? null;
  }

  hear(head: Block): void {
    this.delivered++;
    const [first] = this.#view;
    const at = first === undefined ? 0 : Number(head.number) - Number(first.number);
    if (this.#view[at]?.hash === head.hash) return this.#breach("duplicates", head, "came again");
    // Nothing is known of what lies before the first one.
    if (at <= 0) this.#view = [head];
    else if (this.#view[at - 1]?.hash === head.parentHash) {
      if (at < this.#view.length) this.reorgs++;
      this.#view.splice(at, this.#view.length, head);
    } else {
      this.#breach("gaps", head, `does not follow what was told (${this.tip})`);
      this.#view = [head];
    }
  }

  /** Compares with the chain as it is now, from the first head told. */
  settle(chain: readonly Block[]): void {
    const [first] = this.#view;
    if (first === undefined) return this.#breach("gaps", null, "was told nothing");
    const expected = chain.slice(Number(first.number)).map((it) => it.hash);
    const told = this.#view.map((it) => it.hash);
    if (told.join() !== expected.join())
      this.#breach(
        "gaps",
        null,
        `ends with ${told.length} blocks from ${first.number} on, the chain has ${expected.length}`,
      );
  }

  #breach(kind: "gaps" | "duplicates" | "disorder", head: Block | null, what: string): void {
    breach(
      this.#breaches,
      kind,
      `${this.#name}: ` +
        `${head === null ? "the view" : `head ${Number(head.number)} ${head.hash}`} ${what}`,
    );
  }
}

/** Logs of one subscription: what stands after all that was taken back. */
export class LogLedger {
  delivered = 0;
  takenBack = 0;
  readonly #name: string;
  readonly #breaches: Breaches;
  readonly #wanted: (log: Log) => boolean;
  /** False for a library that keeps to itself which logs were taken back. */
  readonly #takesBack: boolean;
  /** In order. */
  readonly #standing: Log[] = [];
  readonly #keys = new Set<string>();

  constructor(
    name: string,
    breaches: Breaches,
    {
      wanted,
      takesBack = true,
    }: { readonly wanted: (log: Log) => boolean; readonly takesBack?: boolean },
  ) {
    this.#name = name;
    this.#breaches = breaches;
    this.#wanted = wanted;
    this.#takesBack = takesBack;
  }

  hear(log: Log): void {
    this.delivered++;
    if (!this.#wanted(log)) this.#breach("disorder", log, "was not asked for");
    if (log.removed === true) return this.#takeBack(log);
    // Told again after it was taken back: only where take-backs are heard of can this be told from
    // a repeat.
    if (this.#keys.has(keyOf(log)))
      return this.#takesBack ? this.#breach("duplicates", log, "came again") : undefined;
    const last = this.#standing.at(-1);
    if (last !== undefined && this.#takesBack && !follows(last, log))
      this.#breach("disorder", log, `came after ${wordsFor(last)}`);
    this.#standing.push(log);
    this.#keys.add(keyOf(log));
  }

  /** Whether what stands is what the chain has. */
  agrees(logs: readonly Log[]): boolean {
    if (!this.#takesBack) return logs.every((it) => !this.#wanted(it) || this.#keys.has(keyOf(it)));
    return this.#standing.map(keyOf).join() === logs.filter(this.#wanted).map(keyOf).join();
  }

  /** Compares with the logs of the chain as it is now. */
  settle(logs: readonly Log[]): void {
    if (this.agrees(logs)) return;
    const expected = new Set(logs.filter(this.#wanted).map(keyOf));
    for (const log of logs.filter((it) => this.#wanted(it) && !this.#keys.has(keyOf(it))))
      this.#breach("gaps", log, "was never told");
    if (!this.#takesBack) return;
    for (const log of this.#standing.filter((it) => !expected.has(keyOf(it))))
      this.#breach("disorder", log, "was not taken back");
    if (expected.size === this.#keys.size)
      this.#breach("disorder", null, "in another order than the chain");
  }

  #takeBack(log: Log): void {
    this.takenBack++;
    if (!this.#keys.delete(keyOf(log)))
      return this.#breach("disorder", log, "was taken back without having been told");
    const at = this.#standing.findLastIndex((it) => keyOf(it) === keyOf(log));
    if (at !== this.#standing.length - 1)
      this.#breach("disorder", log, "was taken back before newer ones");
    this.#standing.splice(at, 1);
  }

  #breach(kind: "gaps" | "duplicates" | "disorder", log: Log | null, what: string): void {
    breach(
      this.#breaches,
      kind,
      `${this.#name}: ${log === null ? "the logs are" : wordsFor(log)} ${what}`,
    );
  }
}

function keyOf({ blockHash, logIndex }: Log): string {
  return `${blockHash}:${Number(logIndex)}`;
}

/** Whether `next` may be told while `last` stands. */
function follows(last: Log, next: Log): boolean {
  const blocks = Number(next.blockNumber) - Number(last.blockNumber);
  return (
    blocks > 0 ||
    (blocks === 0 &&
      next.blockHash === last.blockHash &&
      Number(next.logIndex) > Number(last.logIndex))
  );
}

function wordsFor({ blockNumber, blockHash, logIndex }: Log): string {
  return `log ${Number(logIndex)} of block ${Number(blockNumber)} ${blockHash}`;
}
