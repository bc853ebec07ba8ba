// What a filter has still to tell its caller: everything since the last answer that was written, in
// order, within bounds. Nothing is ever dropped from it: past its bounds it is full, and the filter
// ends. Pure but for the record it changes.

/** Unread changes of one filter; changed in place, and only by the functions of this file. */
export interface FilterChanges {
  /** JSON texts, oldest first. */
  texts: string[];
  /** Answers that were taken and could not be written, oldest first. */
  returned: TakenChanges[];
  /** Of all that is unread, also of what was taken and may yet come back. */
  count: number;
  bytes: number;
  /** Changes taken so far. */
  taken: number;
}

/** The changes of one answer, until it is known whether that was written. */
export interface TakenChanges {
  /** Position of the first one among all that were taken. */
  readonly first: number;
  readonly texts: readonly string[];
  readonly bytes: number;
}

/** Most changes that may be unread, and most bytes of them. */
const MAX_UNREAD_CHANGES = 10_000;
const MAX_UNREAD_BYTES = 4_194_304;

/** Nothing to tell yet. */
export function createChanges(): FilterChanges {
  return { texts: [], returned: [], count: 0, bytes: 0, taken: 0 };
}

/**
 * Adds a change: JSON text, one character per byte. False = there is no room for it, and the filter
 * has to end.
 */
export function addChange(changes: FilterChanges, text: string): boolean {
  if (changes.count + 1 > MAX_UNREAD_CHANGES || changes.bytes + text.length > MAX_UNREAD_BYTES)
    return false;
  changes.texts.push(text);
  changes.count++;
  changes.bytes += text.length;
  return true;
}

/** Takes everything unread for an answer; `settleChanges` has to say what became of it. */
export function takeChanges(changes: FilterChanges): TakenChanges {
  const { returned, texts } = changes;
  const first = returned[0]?.first ?? changes.taken;
  const all =
    returned.length === 0 ? texts : [...returned.flatMap((batch) => batch.texts), ...texts];
  changes.taken += texts.length;
  changes.texts = [];
  changes.returned = [];
  return { first, texts: all, bytes: sizeOf(all) };
}

/** The answer was written, or was not: then its changes are part of the next one. */
export function settleChanges(changes: FilterChanges, batch: TakenChanges, written: boolean): void {
  if (!written) {
    changes.returned.push(batch);
    changes.returned.sort((left, right) => left.first - right.first);
    return;
  }
  changes.count -= batch.texts.length;
  changes.bytes -= batch.bytes;
}

/** The answer itself, as JSON. */
export function changesJson({ texts }: TakenChanges): Buffer {
  return Buffer.from(`[${texts.join(",")}]`, "latin1");
}

function sizeOf(texts: readonly string[]): number {
  let bytes = 0;
  for (const text of texts) bytes += text.length;
  return bytes;
}
