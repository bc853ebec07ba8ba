// The credits of providers from the store, as this process leases them. A full disk does not end
// the service: while an embedded store cannot be written, each process hands out its part of what
// is left, and counts in memory. A server that does not answer hands out nothing.

import { setNewest } from "../../core/newest.ts";
import {
  creditsLeft,
  type QuotaRecord,
  recordAt,
  spent,
} from "../../core/provider/budget/quota.ts";
import type { Runtime } from "../../runtime.ts";
import {
  type CreditsRequest,
  leaseCredits,
  returnCredits,
} from "../../shared/leases/stored-quotas.ts";
import type { Store } from "../../shared/store/store.ts";
import type { QuotaLease, QuotaSource } from "../../upstream/budget/provider-quota.ts";

/** What credits are leased with. */
export interface StoredQuotaParts {
  readonly runtime: Pick<Runtime, "wallMs">;
  /** Processes of the service that share an embedded store. */
  readonly processes: number;
  /** Called once for each outage of the store. */
  readonly onError: (error: unknown) => void;
}

/** Most providers whose records are remembered; the oldest is forgotten first. */
const MAX_RECORDS = 65_536;

export class StoredQuotas implements QuotaSource {
  readonly #opened: Promise<Pick<Store, "engine" | "transaction">>;
  readonly #parts: StoredQuotaParts;
  readonly #underWay = new Set<Promise<unknown>>();
  /** The last record of each provider, as the store or an outage left it. */
  readonly #records = new Map<string, QuotaRecord>();
  #isFailing = false;

  constructor(opened: Promise<Pick<Store, "engine" | "transaction">>, parts: StoredQuotaParts) {
    this.#opened = opened;
    this.#parts = parts;
  }

  lease(request: CreditsRequest): Promise<QuotaLease | null> {
    return this.#counted(this.#lease(request));
  }

  giveBack(key: string, unspent: QuotaLease): void {
    const returning = this.#opened.then((store) => returnCredits(store, key, unspent));
    void this.#counted(returning.catch((error: unknown) => this.#failed(error)));
  }

  async close(): Promise<void> {
    // A lease that comes now is given back.
    while (this.#underWay.size > 0) await Promise.all(this.#underWay);
  }

  async #lease(request: CreditsRequest): Promise<QuotaLease | null> {
    const store = await this.#opened;
    try {
      const { credits, ...record } = await leaseCredits(store, request);
      this.#isFailing = false;
      setNewest(this.#records, request.key, record, MAX_RECORDS);
      return { ...record, credits };
    } catch (error) {
      this.#failed(error);
      return store.engine === "sqlite" ? this.#leaseInMemory(request) : null;
    }
  }

  #leaseInMemory({ key, limits, credits }: CreditsRequest): QuotaLease {
    const known = this.#records.get(key) ?? null;
    const record = recordAt(known, this.#parts.runtime.wallMs(), limits.resetsOn);
    const part = Math.floor(creditsLeft(record, limits) / this.#parts.processes);
    const granted = Math.min(credits, part);
    const after = spent(record, granted);
    setNewest(this.#records, key, after, MAX_RECORDS);
    return { ...after, credits: granted };
  }

  #failed(error: unknown): void {
    if (!this.#isFailing) this.#parts.onError(error);
    this.#isFailing = true;
  }

  #counted<T>(work: Promise<T>): Promise<T> {
    const ended: Promise<unknown> = work.then(() => void this.#underWay.delete(ended));
    this.#underWay.add(ended);
    return work;
  }
}
