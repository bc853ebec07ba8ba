// Bounds costly work of handlers: audits of the books, which requests share, and checks of the
// providers of profiles.
import { type ApiFault, apiFault } from "../../core/faults/api-fault.ts";
import type { AuditFindings } from "../../hosted/audit/audit.ts";
import type { Runtime } from "../../runtime.ts";

/** Longest wait of one request for an audit. */
const WAIT_MS = 20_000;
/** How long the result of an audit is kept that no request waited for. */
const KEPT_MS = 60_000;

/** The result of an audit, and when it ended. */
interface Finished {
  readonly findings: AuditFindings;
  readonly atMs: number;
  readonly wallMs: number;
}

/** Runs at most one audit at a time; concurrent requests share it. */
export class SharedAudit {
  readonly #runtime: Runtime;
  readonly #audit: () => Promise<AuditFindings>;
  #running: Promise<Finished> | null = null;
  /** The last result that no request waited for; it is for one that comes soon after. */
  #unseen: Finished | null = null;

  constructor(runtime: Runtime, audit: () => Promise<AuditFindings>) {
    this.#runtime = runtime;
    this.#audit = audit;
  }

  /** Null = it takes longer than a request may wait, and continues in the background. */
  async read(): Promise<Finished | null> {
    const { now, after } = this.#runtime;
    if (this.#unseen !== null && now() - this.#unseen.atMs < KEPT_MS) return this.#unseen;
    this.#running ??= this.#run();
    let cancel = (): void => {};
    const late = new Promise<null>((resolve) => {
      cancel = after(WAIT_MS, () => resolve(null));
    });
    const finished = await Promise.race([this.#running, late]).finally(() => cancel());
    // A waiting request receives the result, so the next request starts a new audit.
    if (finished !== null) this.#unseen = null;
    return finished;
  }

  async #run(): Promise<Finished> {
    const { now, wallMs } = this.#runtime;
    try {
      this.#unseen = { findings: await this.#audit(), atMs: now(), wallMs: wallMs() };
      return this.#unseen;
    } finally {
      this.#running = null;
    }
  }
}

/** Concurrent checks of one account and of all accounts. */
const MAX_CHECKS_OF_ACCOUNT = 4;
const MAX_CHECKS = 32;
const BUSY_MS = 5_000;

/**
 * Limits concurrent checks, because each one connects to user-supplied addresses; refuses the
 * others.
 */
export class ProfileChecks {
  readonly #running: string[] = [];

  async run<T>(accountId: string, check: () => Promise<T>): Promise<T | ApiFault<"rate_limited">> {
    const own = this.#running.filter((other) => other === accountId).length;
    if (own >= MAX_CHECKS_OF_ACCOUNT || this.#running.length >= MAX_CHECKS)
      return apiFault("rate_limited", "too many profiles are being checked at once", {
        retryAfterMs: BUSY_MS,
      });
    this.#running.push(accountId);
    try {
      return await check();
    } finally {
      this.#running.splice(this.#running.indexOf(accountId), 1);
    }
  }
}
