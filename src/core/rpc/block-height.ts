// Block heights as numbers: which ones can be one.

/** A height that can be one: a safe, non-negative integer. */
export function isHeight(height: number): boolean {
  return Number.isSafeInteger(height) && height >= 0;
}
