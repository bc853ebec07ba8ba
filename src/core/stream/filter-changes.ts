// The unread changes of a filter: everything since the last answer that was written, in order,
// within bounds. No change is ever dropped; when the bounds are exceeded the filter ends. Pure
// except for the record that it changes.

import type { StreamMark } from "./stream-mark.ts";

/** The changes of one answer, until it is known whether the answer was written. */
export interface TakenChanges {
  /** Position of the first of them among all changes ever taken, and of the next one after them. */
  readonly first: number;
  readonly end: number;
  readonly texts: readonly string[];
  readonly bytes: number;
  /** What the caller has been told once the answer is written; null = it tells nothing. */
  readonly mark: StreamMark | null;
  isWritten: boolean;
}

/** Most changes that may be unread, and most bytes of them. */
const MAX_UNREAD_CHANGES = 10_000;
const MAX_UNREAD_BYTES = 4_194_304;

/** Unread changes of one filter. */
export class FilterChanges {
  /** Number of unread changes, including those taken for an answer that is not yet written. */
  count = 0;
  bytes = 0;
  /** JSON texts, oldest first. */
  #texts: string[] = [];
  /** Changes that were taken for an answer that could not be written, oldest first. */
  #returned: TakenChanges[] = [];
  /** Answers behind one of which it is not known whether it was written, oldest first. */
  readonly #answers = new Set<TakenChanges>();
  /** Number of changes taken so far. */
  #taken = 0;

  /**
   * Adds a change, as JSON with one character per byte. False = there is no room, and the filter
   * must end.
   */
  add(text: string): boolean {
    if (this.count + 1 > MAX_UNREAD_CHANGES || this.bytes + text.length > MAX_UNREAD_BYTES)
      return false;
    this.#texts.push(text);
    this.count++;
    this.bytes += text.length;
    return true;
  }

  /** Takes all unread changes for an answer; `settle` must report what became of it. */
  take(mark: StreamMark | null = null): TakenChanges {
    const first = this.#returned[0]?.first ?? this.#taken;
    const texts = [...this.#returned.flatMap((batch) => batch.texts), ...this.#texts];
    this.#taken += this.#texts.length;
    this.#texts = [];
    this.#returned = [];
    const bytes = texts.reduce((sum, text) => sum + text.length, 0);
    const batch = { first, end: this.#taken, texts, bytes, mark, isWritten: false };
    this.#answers.add(batch);
    return batch;
  }

  /**
   * Settles an answer: if it was not written, its changes become part of the next one. Returns what
   * the caller has been told by answers before which nothing is open; null = nothing new.
   */
  settle(batch: TakenChanges, written: boolean): StreamMark | null {
    batch.isWritten = written;
    if (written) {
      this.count -= batch.texts.length;
      this.bytes -= batch.bytes;
    } else {
      this.#answers.delete(batch);
      if (batch.texts.length > 0) this.#returned.push(batch);
      this.#returned.sort((left, right) => left.first - right.first);
    }
    let delivered: StreamMark | null = null;
    for (const answer of this.#answers) {
      if (!answer.isWritten) break;
      this.#answers.delete(answer);
      if (!this.#returned.some(({ first }) => first < answer.end))
        delivered = answer.mark ?? delivered;
    }
    return delivered;
  }
}

/** The JSON of an answer. */
export function changesJson({ texts }: TakenChanges): Buffer {
  return Buffer.from(`[${texts.join(",")}]`, "latin1");
}
