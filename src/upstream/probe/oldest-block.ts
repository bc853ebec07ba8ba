// Finds by halving how far back an endpoint has something. Asks through a function that says
// whether one block has it; knows no methods.

/**
 * Whether an endpoint has something of a block: it has shown it, it lacks it, or the block holds
 * nothing to be shown.
 */
export type BlockPresence = "present" | "absent" | "empty";

/** Blocks behind the head at which the search begins. */
const FIRST_STEP = 64;
const STEP_FACTOR = 4;
/** The result is exact for windows of this many blocks, and to this share for longer ones. */
const EXACTNESS = 256;
/** Blocks that are asked for where the oldest are empty. */
const MORE_LOOKS = 8;

/**
 * The oldest block that has it; null = none of those that were asked had any, so nothing is known.
 * The genesis block is not asked for, since nodes keep it for other reasons: where block 1 has it,
 * the answer is 0.
 */
export async function oldestBlock(
  head: number,
  look: (block: number) => Promise<BlockPresence>,
): Promise<number | null> {
  const newest = await look(head);
  if (newest === "absent") return null;
  const first = await look(Math.min(1, head));
  if (first === "present") return 0;
  let hasShown = newest === "present";
  let served = head;
  let missing = first === "absent" ? 0 : -1;
  for (let step = FIRST_STEP; step < head; step *= STEP_FACTOR) {
    const found = await look(head - step);
    hasShown ||= found === "present";
    if (found === "absent") {
      missing = head - step;
      break;
    }
    served = head - step;
  }
  // The oldest blocks are empty, which shows nothing: more of those before are asked for.
  for (let more = 0; missing < 0 && more < MORE_LOOKS && served > 1; more++) {
    const middle = Math.floor(served / 2);
    const found = await look(middle);
    hasShown ||= found === "present";
    if (found === "absent") missing = middle;
    else served = middle;
  }
  if (!hasShown) return null;
  if (missing < 0) return 0;
  while (served - missing > Math.max(1, Math.floor((head - served) / EXACTNESS))) {
    const middle = Math.floor((served + missing) / 2);
    if ((await look(middle)) === "absent") missing = middle;
    else served = middle;
  }
  return served;
}
