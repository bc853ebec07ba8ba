// The records of the console in the memory of one process. What has to outlive it is handed to a
// function that keeps it.
import {
  type OperatorAction,
  type OperatorCordon,
  type OperatorRecords,
  type ProviderRef,
  RECORD_LIMITS,
} from "./records.ts";

/** What outlives the process; sessions do not. */
export interface LastingRecords {
  readonly cordons: readonly OperatorCordon[];
  /** The oldest first. */
  readonly actions: readonly OperatorAction[];
}

/** What the records begin with. */
export interface MemoryRecordsParts {
  readonly kept: LastingRecords;
  /** Keeps the records; called one at a time, with the newest. Reports its own failures. */
  readonly keep: (records: LastingRecords) => Promise<void>;
}

/** Actions that are kept here: fewer than in a store, since all are written each time. */
const MAX_ACTIONS = 1_000;

/** Creates records. */
export function createMemoryRecords({ kept, keep }: MemoryRecordsParts): OperatorRecords {
  const sessions = new Map<string, SessionRecord>();
  const cordons = new Map(kept.cordons.map((cordon) => [refText(cordon), cordon]));
  let actions = kept.actions.slice(-MAX_ACTIONS);
  let writing: Promise<void> | null = null;
  let isStale = false;

  async function write(): Promise<void> {
    while (isStale) {
      isStale = false;
      await keep({ cordons: [...cordons.values()], actions });
    }
    writing = null;
  }

  function changed(): Promise<void> {
    isStale = true;
    writing ??= write();
    return writing;
  }

  return {
    async addSession(session) {
      if (sessions.has(session.idHash)) return false;
      dropSessions(sessions, session);
      sessions.set(session.idHash, session);
      return true;
    },
    async session(idHash, nowMs) {
      const found = sessions.get(idHash);
      return found === undefined || nowMs >= found.expiresAtMs ? null : found;
    },
    async endSession(idHash) {
      sessions.delete(idHash);
    },
    cordons: async () => [...cordons.values()],
    async cordon(cordon) {
      const key = refText(cordon);
      if (!cordons.has(key) && cordons.size >= RECORD_LIMITS.cordons) return false;
      cordons.set(key, cordon);
      await changed();
      return true;
    },
    async uncordon(ref) {
      if (!cordons.delete(refText(ref))) return false;
      await changed();
      return true;
    },
    addAction(action) {
      actions = [...actions, action].slice(-MAX_ACTIONS);
      return changed();
    },
    async actions({ limit, after }) {
      const older = actions.filter(({ id }) => after === null || id < after).reverse();
      const page = older.slice(0, limit);
      return { actions: page, next: older.length > limit ? (page.at(-1)?.id ?? null) : null };
    },
  };
}

type SessionRecord = Parameters<OperatorRecords["addSession"]>[0];

/** Makes room for a session: without those that expired, and within the bounds. */
function dropSessions(
  sessions: Map<string, SessionRecord>,
  { createdAtMs: nowMs, tokenRef }: SessionRecord,
): void {
  for (const [id, { expiresAtMs }] of sessions) if (nowMs >= expiresAtMs) sessions.delete(id);
  const ofToken = [...sessions.values()].filter((session) => session.tokenRef === tokenRef);
  const surplus = ofToken.length - RECORD_LIMITS.sessionsPerToken + 1;
  for (const { idHash } of ofToken.slice(0, Math.max(0, surplus))) sessions.delete(idHash);
  for (const oldest of sessions.keys()) {
    if (sessions.size < RECORD_LIMITS.sessions) break;
    sessions.delete(oldest);
  }
}

function refText({ profile, chain, provider }: ProviderRef): string {
  return JSON.stringify([profile, chain, provider]);
}
