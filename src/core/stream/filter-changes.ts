// The unread changes of a filter: everything since the last answer that was written, in order,
// within bounds. No change is ever dropped; when the bounds are exceeded the filter ends. Pure
// except for the record that it changes.

/** Unread changes of one filter. Changed in place, only by the functions of this file. */
export class FilterChanges {
  /** JSON texts, oldest first. */
  texts: string[] = [];
  /** Changes that were taken for an answer that could not be written, oldest first. */
  returned: TakenChanges[] = [];
  /** Number of unread changes, including those taken for an answer that is not yet written. */
  count = 0;
  bytes = 0;
  /** Number of changes taken so far. */
  taken = 0;
}

/** The changes of one answer, until it is known whether the answer was written. */
export interface TakenChanges {
  /** Position of the first of them among all changes ever taken. */
  readonly first: number;
  readonly texts: readonly string[];
  readonly bytes: number;
}

/** Most changes that may be unread, and most bytes of them. */
const MAX_UNREAD_CHANGES = 10_000;
const MAX_UNREAD_BYTES = 4_194_304;

/**
 * Adds a change, as JSON with one character per byte. False = there is no room, and the filter must
 * end.
 */
export function addChange(changes: FilterChanges, text: string): boolean {
  if (changes.count + 1 > MAX_UNREAD_CHANGES || changes.bytes + text.length > MAX_UNREAD_BYTES)
    return false;
  changes.texts.push(text);
  changes.count++;
  changes.bytes += text.length;
  return true;
}

/** Takes all unread changes for an answer; `settleChanges` must report what became of it. */
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

/** Settles an answer: if it was not written, its changes become part of the next one. */
export function settleChanges(changes: FilterChanges, batch: TakenChanges, written: boolean): void {
  if (!written) {
    if (batch.texts.length === 0) return;
    changes.returned.push(batch);
    changes.returned.sort((left, right) => left.first - right.first);
    return;
  }
  changes.count -= batch.texts.length;
  changes.bytes -= batch.bytes;
}

/** The JSON of an answer. */
export function changesJson({ texts }: TakenChanges): Buffer {
  return Buffer.from(`[${texts.join(",")}]`, "latin1");
}

function sizeOf(texts: readonly string[]): number {
  let bytes = 0;
  for (const text of texts) bytes += text.length;
  return bytes;
}
