// The store's record of how often each legacy form is used, and which are switched off at the next
// start. Each node writes the legacy forms that it served; one node at a time counts quiet time.

import { LEGACY_FORM_NAMES, type LegacyFormName } from "../core/faults/legacy-form.ts";
import type { Runtime } from "../runtime.ts";
import type { JobClaims } from "../shared/nodes/job-claims.ts";
import type { Store } from "../shared/store/store.ts";

/** Which legacy forms are served: all, those still in use, none. */
export type LegacyFormPolicy = "on" | "auto" | "off";

/** What a record is kept with. */
export interface LegacyFormUsageParts {
  readonly store: Store;
  readonly runtime: Runtime;
  readonly policy: LegacyFormPolicy;
  /** Which node counts the time. */
  readonly claims: JobClaims;
  readonly onError: (error: unknown) => void;
}

const WRITE_MS = 60_000;
const QUIET_MS = 30 * 86_400_000;

/** Reads the record, decides what is off, and goes on recording. */
export async function openLegacyFormUsage(parts: LegacyFormUsageParts): Promise<LegacyFormUsage> {
  return new LegacyFormUsage(parts, await formsOff(parts.store, parts.policy));
}

/** The record while the service runs. */
export class LegacyFormUsage {
  /** Forms that are not served; fixed until the next start. */
  readonly off: ReadonlySet<LegacyFormName>;
  readonly #parts: LegacyFormUsageParts;
  readonly #seen = new Map<LegacyFormName, number>();
  #sinceMs: number;
  #writing: Promise<void> = Promise.resolve();
  #cancel: () => void;

  constructor(parts: LegacyFormUsageParts, off: ReadonlySet<LegacyFormName>) {
    this.#parts = parts;
    this.off = off;
    this.#sinceMs = parts.runtime.now();
    this.#cancel = parts.runtime.after(WRITE_MS, () => this.#again());
  }

  /** A request of a form was served. */
  saw(name: LegacyFormName): void {
    this.#seen.set(name, (this.#seen.get(name) ?? 0) + 1);
  }

  /** Writes what has been seen. */
  async close(): Promise<void> {
    this.#cancel();
    await this.#writeNext();
  }

  #again(): void {
    this.#cancel = this.#parts.runtime.after(WRITE_MS, () => this.#again());
    this.#writing = this.#writeNext();
  }

  #writeNext(): Promise<void> {
    return this.#writing.then(() => this.#write()).catch(this.#parts.onError);
  }

  /** What could not be written is written the next time. */
  async #write(): Promise<void> {
    const { store, runtime, claims } = this.#parts;
    const nowMs = runtime.now();
    const requests = new Map(this.#seen);
    const sinceWriteMs = Math.max(0, Math.floor(nowMs - this.#sinceMs));
    // Time that cannot be written counts for nobody: forms stay on for longer.
    this.#sinceMs = nowMs;
    // Of several processes one counts that minute.
    const run = async (): Promise<void> => {};
    const isCounting = await claims.runIfDue({ name: "legacy_forms", everyMs: WRITE_MS, run });
    const quietMs = isCounting ? BigInt(sinceWriteMs) : 0n;
    const wallMs = BigInt(Math.floor(runtime.wallMs()));
    await store.transaction(async (tx) => {
      for (const name of LEGACY_FORM_NAMES.filter((form) => !this.off.has(form))) {
        const count = requests.get(name) ?? 0;
        await tx
          .updateTable("old_form")
          .set((eb) =>
            count > 0
              ? { requests: eb("requests", "+", BigInt(count)), last_seen_at: wallMs, quiet_ms: 0n }
              : { quiet_ms: eb("quiet_ms", "+", quietMs) },
          )
          .where("name", "=", name)
          .execute();
      }
    });
    for (const [name, count] of requests) {
      const more = (this.#seen.get(name) ?? 0) - count;
      if (more > 0) this.#seen.set(name, more);
      else this.#seen.delete(name);
    }
  }
}

/**
 * Only time in which a form could be used counts: not while the service was stopped, and not while
 * the form was off.
 */
async function formsOff(
  store: Store,
  policy: LegacyFormPolicy,
): Promise<ReadonlySet<LegacyFormName>> {
  const rows = await store.transaction(async (tx) => {
    const fresh = LEGACY_FORM_NAMES.map((name) => ({ name, requests: 0n, quiet_ms: 0n }));
    await tx
      .insertInto("old_form")
      .values(fresh)
      .onConflict((conflict) => conflict.column("name").doNothing())
      .execute();
    return tx.selectFrom("old_form").selectAll().execute();
  });
  switch (policy) {
    case "on":
      return new Set();
    case "off":
      return new Set(LEGACY_FORM_NAMES);
    case "auto": {
      const quiet = new Set(
        rows.filter((row) => row.quiet_ms >= BigInt(QUIET_MS)).map((row) => row.name),
      );
      return new Set(LEGACY_FORM_NAMES.filter((name) => quiet.has(name)));
    }
  }
}
