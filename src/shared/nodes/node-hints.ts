// Hints between the nodes of a cluster, by notifications of the database: one statement for all
// that is to be told within a moment, and nothing is stored. A hint may be lost; where the database
// is silent nothing waits and nothing fails. A hint that is too long for one notification comes in
// parts.

import { sql } from "kysely";
import { keepNewest } from "../../core/newest.ts";
import type { HintPort } from "../../core/workers/hint-port.ts";
import type { Runtime } from "../../runtime.ts";
import type { Store } from "../store/store.ts";

/** The channel on which nodes tell each other. */
export const HINT_CHANNEL = "svc_hints";

/** Hears the notifications of a channel. */
export interface HintSignal {
  /** The result cancels. */
  onHint(receive: (payload: string) => void): () => void;
}

/** What hints are told with. */
export interface NodeHintParts {
  readonly store: Pick<Store, "db">;
  readonly runtime: Pick<Runtime, "after">;
  readonly signal: HintSignal;
  /** Unique among the living processes; without spaces. */
  readonly self: string;
  readonly onError: (error: unknown) => void;
}

/** A notification has at most 7,999 bytes; what is told is ASCII, the head of a part is short. */
const PART_CHARS = 7_600;
const MAX_PARTS = 32;
/** Hints within this time are told by one statement. */
const GATHERED_MS = 5;
const MAX_QUEUED = 1_024;
/** Notifications of one statement. */
const MAX_AT_ONCE = 256;
/** Hints of others of which a part has come. */
const MAX_OPEN = 64;
const PART = /^(\S+) (\d+) (\d+) (\d+) (.*)$/s;

/** Hints of one process that are open. */
export class NodeHints implements HintPort {
  readonly #parts: NodeHintParts;
  readonly #listeners = new Set<(hint: string) => void>();
  readonly #queue: (readonly string[])[] = [];
  readonly #open = new Map<string, string[]>();
  readonly #stop: () => void;
  #count = 0;
  #isTelling = false;
  #isFailing = false;
  #cancelTimer: (() => void) | null = null;

  constructor(parts: NodeHintParts) {
    this.#parts = parts;
    this.#stop = parts.signal.onHint((payload) => this.#heard(payload));
  }

  tell(hint: string): void {
    const ascii = hint.replace(/[\u0080-\uffff]/g, escaped);
    const of = Math.ceil(ascii.length / PART_CHARS);
    if (of > MAX_PARTS) return;
    const id = ++this.#count;
    const payloads = Array.from({ length: of }, (_, at) => {
      const text = ascii.slice(at * PART_CHARS, (at + 1) * PART_CHARS);
      return `${this.#parts.self} ${id} ${at} ${of} ${text}`;
    });
    this.#queue.push(payloads);
    if (this.#queue.length > MAX_QUEUED) this.#queue.shift();
    this.#tellSoon();
  }

  subscribe(receive: (hint: string) => void): () => void {
    this.#listeners.add(receive);
    return () => void this.#listeners.delete(receive);
  }

  close(): void {
    this.#stop();
    this.#cancelTimer?.();
    this.#queue.length = 0;
  }

  #tellSoon(): void {
    if (this.#isTelling || this.#queue.length === 0) return;
    this.#cancelTimer ??= this.#parts.runtime.after(GATHERED_MS, () => {
      this.#cancelTimer = null;
      void this.#tellQueued();
    });
  }

  /** One statement at a time: what comes meanwhile waits for the next. */
  async #tellQueued(): Promise<void> {
    this.#isTelling = true;
    const payloads: string[] = [];
    for (let next = this.#queue[0]; next !== undefined; next = this.#queue[0]) {
      if (payloads.length > 0 && payloads.length + next.length > MAX_AT_ONCE) break;
      payloads.push(...next);
      this.#queue.shift();
    }
    await sql`select pg_notify(${HINT_CHANNEL}, payload)
      from unnest(cast(${payloads} as text[])) as payload`
      .execute(this.#parts.store.db)
      .then(
        () => {
          this.#isFailing = false;
        },
        (error: unknown) => this.#failed(error),
      );
    this.#isTelling = false;
    this.#tellSoon();
  }

  /** Said once: what was to be told is lost. */
  #failed(error: unknown): void {
    if (!this.#isFailing) this.#parts.onError(error);
    this.#isFailing = true;
  }

  #heard(payload: string): void {
    const [, from, id, at, of, text] = PART.exec(payload) ?? [];
    if (from === undefined || text === undefined || from === this.#parts.self) return;
    const count = Number(of);
    if (count > MAX_PARTS) return;
    const hint =
      count === 1 ? text : this.#joined(`${from} ${id}`, { at: Number(at), count, text });
    if (hint !== null) for (const receive of [...this.#listeners]) receive(hint);
  }

  /** The whole hint, with its last part; parts of one hint come in their order. */
  #joined(
    key: string,
    { at, count, text }: { readonly at: number; readonly count: number; readonly text: string },
  ): string | null {
    const before = this.#open.get(key) ?? [];
    this.#open.delete(key);
    if (before.length !== at) return null;
    const texts = [...before, text];
    if (texts.length === count) return texts.join("");
    this.#open.set(key, texts);
    keepNewest(this.#open, MAX_OPEN);
    return null;
  }
}

function escaped(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
}
