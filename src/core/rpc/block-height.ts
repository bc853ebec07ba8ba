// Which numbers can be block heights.

/** Whether a number can be a block height: a safe, non-negative integer. */
export function isHeight(height: number): boolean {
  return Number.isSafeInteger(height) && height >= 0;
}
