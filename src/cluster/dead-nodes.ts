// Finds nodes whose heartbeat has not changed for too long, by the clock of this machine alone, and
// counting only time in which the store was read.
import type { Runtime } from "../runtime.ts";
import type { Store } from "../store/store.ts";
import { markDead, type NodeHeartbeat, othersAlive } from "./node-rows.ts";

/** What the others are watched with. */
export interface DeadNodeParts {
  readonly store: Store;
  readonly runtime: Runtime;
  readonly nodeId: string;
  readonly nodeTimeoutMs: number;
}

/** Marks nodes as dead that have been silent for the node timeout. */
export interface DeadNodeWatch {
  /** Looks at the others if it is time to; how many were found dead, null = it was not. */
  check(): Promise<number | null>;
}

interface ObservedHeartbeat extends NodeHeartbeat {
  readonly silentMs: number;
}

/** Checks of other nodes within the time after which they count as dead. */
const CHECKS_PER_TIMEOUT = 10;

/** A watch that has seen nobody yet. */
export function createDeadNodeWatch(parts: DeadNodeParts): DeadNodeWatch {
  const { store, runtime, nodeId, nodeTimeoutMs } = parts;
  const everyMs = nodeTimeoutMs / CHECKS_PER_TIMEOUT;
  let others: ReadonlyMap<string, ObservedHeartbeat> = new Map();
  let checkedAtMs = runtime.now();
  return {
    async check() {
      const sinceMs = runtime.now() - checkedAtMs;
      if (sinceMs < everyMs) return null;
      const alive = await othersAlive(store, nodeId);
      checkedAtMs = runtime.now();
      const seen = [...alive].map(
        ([id, now]) =>
          [id, observedAgain(others.get(id), now, Math.min(sinceMs, 2 * everyMs))] as const,
      );
      others = new Map(seen);
      const silent = seen.filter(([, { silentMs }]) => silentMs >= nodeTimeoutMs);
      for (const [id, heartbeat] of silent) await markDead(store, id, heartbeat);
      return silent.length;
    },
  };
}

function observedAgain(
  before: ObservedHeartbeat | undefined,
  now: NodeHeartbeat,
  sinceMs: number,
): ObservedHeartbeat {
  const isSilent = before?.epoch === now.epoch && before.flushSeq === now.flushSeq;
  return { ...now, silentMs: isSilent ? before.silentMs + sinceMs : 0 };
}
