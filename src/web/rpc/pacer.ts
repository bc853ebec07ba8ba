// Paces a batch: items beyond the caller's rate wait until the rate admits them or the batch's deadline passes. Knows no rate but what a refusal says.
import type { Gate } from "../../hosted/gate.ts";
import type { Holder } from "../../hosted/holder.ts";
import type { Alarm, Wheel } from "../../upstream/wheel.ts";
import type { World } from "../../world.ts";

/** From its arrival on, the items of a batch may wait this long; whatever the rate does not admit then is refused. */
export const BATCH_DEADLINE_MS = 30_000;

/** What pacing needs. */
export interface PacerParts {
  readonly world: Pick<World, "now">;
  readonly wheel: Wheel;
  readonly gate: Pick<Gate, "batches"> | null;
}

/** How long the next token takes, and every one after it, in milliseconds. */
export interface TokenWait {
  readonly waitMs: number;
  readonly tokenMs: number;
}

/** The pace of one batch. */
export interface Pacer {
  /** True while the batch waits: no further item is to be started. */
  readonly waiting: boolean;
  /** Waits for the next token, then calls `resume` once; `itemsLeft` says how many items have yet to begin. False = the batch may not wait: its deadline has passed, or too many batches of the account wait. */
  wait(token: TokenWait, itemsLeft: () => number, resume: () => void): boolean;
  /** Ends the wait. */
  stop(): void;
}

/** The pace of a batch that arrives now; null = no rate limits its caller. */
export function createPacer({ world, wheel, gate }: PacerParts, holder: Holder | null): Pacer | null {
  if (gate === null || holder === null) return null;
  const deadlineMs = world.now() + BATCH_DEADLINE_MS;
  let tokenMs = 0;
  let left: () => number = () => 0;
  const batch = { aloneMs: () => left() * tokenMs, latestMs: () => Math.max(0, deadlineMs - world.now()) };
  let leave: (() => void) | null = null;
  let alarm: Alarm | null = null;
  return {
    get waiting() {
      return alarm !== null;
    },
    wait(token, itemsLeft, resume) {
      const leftMs = deadlineMs - world.now();
      if (leftMs <= 0) return false;
      leave ??= gate.batches.enter(holder.payer, batch);
      if (leave === null) return false;
      tokenMs = token.tokenMs;
      left = itemsLeft;
      alarm ??= wheel.set(Math.min(token.waitMs, leftMs), () => {
        alarm = null;
        resume();
      });
      return true;
    },
    stop() {
      alarm?.clear();
      alarm = null;
      leave?.();
      leave = null;
    },
  };
}
