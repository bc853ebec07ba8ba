// Who is signed in: asks the service, signs in and out. The credential goes to the service once and
// is kept by nobody here; the browser keeps a cookie that script cannot read.
import type { Client, Result } from "../api/client.ts";
import type { AnswerOf } from "../api/contract-types.ts";
import { Store } from "./store.ts";

/** What the service says of the session. */
export type SessionState = AnswerOf<"GET /api/v1/console/session">;

const LOOK_MS = 30_000;

/** The session of this browser. */
export class Session {
  /** Null = not known yet. */
  readonly state = new Store<SessionState | null>(null);
  /** Counts how often another one than before came to be signed in, or nobody. */
  readonly reader = new Store(0);
  readonly #client: Client;
  readonly #others = new BroadcastChannel("svc-session");
  #last: SessionState | null = null;

  constructor(client: Client) {
    this.#client = client;
  }

  /**
   * Asks now, and again where a session may have ended elsewhere: when another tab says so, when
   * the page is looked at again, and from time to time, since pages for everyone are never refused.
   */
  watch(): Promise<void> {
    const look = (): void => {
      if (!document.hidden) void this.refresh();
    };
    this.#others.addEventListener("message", () => void this.refresh());
    document.addEventListener("visibilitychange", look);
    setInterval(look, LOOK_MS);
    return this.refresh();
  }

  async refresh(): Promise<void> {
    const result = await this.#client.call("GET /api/v1/console/session", {});
    if (result.kind !== "ok") return;
    // The answer that told of the end took the cookie away: only this page knows that it was there,
    // and several answers may tell of the same end.
    const { ended: wasEnded, role } = this.state.get() ?? { ended: false, role: "none" };
    const isKnown = result.body.ended || wasEnded || role !== "none";
    const ended = result.body.role === "none" && isKnown;
    this.#become({ ...result.body, ended });
  }

  async signIn(token: string): Promise<Result<SessionState>> {
    const result = await this.#client.call("POST /api/v1/console/session", { body: { token } });
    if (result.kind === "ok") {
      this.#become(result.body);
      this.#others.postMessage("");
    }
    return result;
  }

  async signOut(): Promise<Result<unknown>> {
    const result = await this.#client.call("DELETE /api/v1/console/session", {});
    if (result.kind === "failed") return result;
    this.state.set(null);
    await this.refresh();
    this.#others.postMessage("");
    return result;
  }

  #become(next: SessionState): void {
    const isOther = this.#last?.role !== next.role || this.#last.account_id !== next.account_id;
    if (this.#last !== null && isOther) this.reader.set(this.reader.get() + 1);
    this.#last = next;
    this.state.set(next);
  }
}
