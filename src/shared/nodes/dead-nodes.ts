// Finds nodes whose heartbeat has not changed for too long, by the clock of this machine alone, and
// counting only time in which the store was read.
import type { NodeTimeout } from "./job-claims.ts";
import { markDead, type NodeHeartbeat, othersAlive } from "./node-rows.ts";

interface ObservedHeartbeat extends NodeHeartbeat {
  readonly silentMs: number;
}

/** Checks of other nodes within the time after which they count as dead. */
const CHECKS_PER_TIMEOUT = 10;

/** Marks nodes as dead that have been silent for the node timeout. */
export class DeadNodeWatch {
  readonly #parts: NodeTimeout;
  readonly #everyMs: number;
  #others: ReadonlyMap<string, ObservedHeartbeat> = new Map();
  #checkedAtMs: number;

  constructor(parts: NodeTimeout) {
    this.#parts = parts;
    this.#everyMs = parts.nodeTimeoutMs / CHECKS_PER_TIMEOUT;
    this.#checkedAtMs = parts.runtime.now();
  }

  /** Looks at the others if it is time to; how many were found dead, null = it was not. */
  async check(): Promise<number | null> {
    const { store, runtime, nodeId, nodeTimeoutMs } = this.#parts;
    const sinceMs = runtime.now() - this.#checkedAtMs;
    if (sinceMs < this.#everyMs) return null;
    const alive = await othersAlive(store, nodeId);
    this.#checkedAtMs = runtime.now();
    const seen = [...alive].map(
      ([id, now]) =>
        [
          id,
          observedAgain(this.#others.get(id), now, Math.min(sinceMs, 2 * this.#everyMs)),
        ] as const,
    );
    this.#others = new Map(seen);
    const silent = seen.filter(([, { silentMs }]) => silentMs >= nodeTimeoutMs);
    for (const [id, heartbeat] of silent) await markDead(store, id, heartbeat);
    return silent.length;
  }
}

function observedAgain(
  before: ObservedHeartbeat | undefined,
  now: NodeHeartbeat,
  sinceMs: number,
): ObservedHeartbeat {
  const isSilent = before?.epoch === now.epoch && before.flushSeq === now.flushSeq;
  return { ...now, silentMs: isSilent ? before.silentMs + sinceMs : 0 };
}
