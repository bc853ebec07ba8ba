// A mark of a block that a caller has seen, as text: `X-Svc-Seen`. Callers send it back as they
// received it. Knows no header, and not whether the block is in the chain.

/** A block that a caller has seen. */
export interface SeenBlock {
  readonly number: number;
  /** In lower case; null = not known. */
  readonly hash: string | null;
}

const MARK = /^(0|[1-9]\d{0,15})(?:-(0x[0-9a-f]{64}))?$/i;

/** The block that a mark names; null = the text is no mark. */
export function parseSeen(text: string): SeenBlock | null {
  const [, digits, hash] = MARK.exec(text) ?? [];
  const number = Number(digits);
  return Number.isSafeInteger(number) ? { number, hash: hash?.toLowerCase() ?? null } : null;
}

/** The mark of a block. */
export function seenText({ number, hash }: SeenBlock): string {
  return hash === null ? String(number) : `${number}-${hash}`;
}
