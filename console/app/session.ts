// Who is signed in: asks the service, signs in and out. The credential goes to the service once and
// is kept by nobody here; the browser keeps a cookie that script cannot read.
import type { Client, Failure } from "../api/client.ts";
import type { AnswerOf } from "../api/contract-types.ts";
import { createStore, type Store } from "./store.ts";

/** What the service says of the session. */
export type SessionState = AnswerOf<"GET /api/v1/console/session">;

/** The session of this browser. */
export interface Session {
  /** Null = not known yet. */
  readonly state: Store<SessionState | null>;
  /** Counts how often another one than before came to be signed in, or nobody. */
  readonly reader: Store<number>;
  refresh(): Promise<void>;
  /** Null = signed in. */
  signIn(token: string): Promise<Failure | null>;
  signOut(): Promise<Failure | null>;
}

/** Creates the session. */
export function createSession(client: Client): Session {
  const state = createStore<SessionState | null>(null);
  const reader = createStore(0);
  let last: SessionState | null = null;
  function become(next: SessionState): void {
    const isOther = last?.role !== next.role || last.account_id !== next.account_id;
    if (last !== null && isOther) reader.set(reader.get() + 1);
    last = next;
    state.set(next);
  }
  async function refresh(): Promise<void> {
    const result = await client.call("GET /api/v1/console/session", {});
    if (result.kind !== "ok") return;
    // The answer that told of the end took the cookie away: only this page knows that it was there,
    // and several answers may tell of the same end.
    const { ended: wasEnded, role } = state.get() ?? { ended: false, role: "none" };
    const isKnown = result.body.ended || wasEnded || role !== "none";
    const ended = result.body.role === "none" && isKnown;
    become({ ...result.body, ended });
  }
  return {
    state,
    reader,
    refresh,
    async signIn(token) {
      const result = await client.call("POST /api/v1/console/session", { body: { token } });
      if (result.kind === "failed") return result.failure;
      become(result.body);
      return null;
    },
    async signOut() {
      const result = await client.call("DELETE /api/v1/console/session", {});
      if (result.kind === "failed") return result.failure;
      state.set(null);
      await refresh();
      return null;
    },
  };
}
