// Hands out the credits of providers for the whole service, and keeps what was handed out before it
// does: after a crash, what nobody can tell of counts as spent, so that no limit is ever exceeded.
// Knows no file.
import {
  creditsLeft,
  type QuotaRecord,
  recordAt,
  returned,
  spent,
} from "../../core/provider/quota.ts";
import type { Runtime } from "../../runtime.ts";
import type { QuotaLease, QuotaRequest, QuotaSource } from "./quota-source.ts";

/** What was spent at each provider. */
export type QuotaRecords = ReadonlyMap<string, QuotaRecord>;

/** What a ledger works with. */
export interface QuotaLedgerParts {
  readonly runtime: Pick<Runtime, "wallMs" | "after">;
  /** What was kept last. */
  readonly records: QuotaRecords;
  /** Keeps records beyond the end of this process. */
  readonly keep: (records: QuotaRecords) => Promise<void>;
  /** Nothing could be kept: limits hold until this process ends. */
  readonly onError: (error: unknown) => void;
}

/** Least time between the ends of two writes and the next one. */
const WRITE_EVERY_MS = 50;
/** Most providers that are remembered; beyond it the one not asked for the longest is forgotten. */
const MAX_RECORDS = 65_536;

/** Creates a ledger. */
export function createQuotaLedger(parts: QuotaLedgerParts): QuotaSource {
  return new KeptLedger(parts);
}

class KeptLedger implements QuotaSource {
  readonly #parts: QuotaLedgerParts;
  readonly #records: Map<string, QuotaRecord>;
  /** Those who wait until the present records are kept. */
  #waiting: (() => void)[] = [];
  #isDirty = false;
  #writing: Promise<void> | null = null;
  #cancelPause: (() => void) | null = null;

  constructor(parts: QuotaLedgerParts) {
    this.#parts = parts;
    this.#records = new Map(parts.records);
  }

  lease({ key, limits, credits }: QuotaRequest): Promise<QuotaLease | null> {
    const record = recordAt(
      this.#records.get(key) ?? null,
      this.#parts.runtime.wallMs(),
      limits.resetsOn,
    );
    const granted = Math.min(credits, creditsLeft(record, limits));
    const after = spent(record, granted);
    if (granted === 0) return Promise.resolve({ ...after, credits: 0 });
    this.#put(key, after);
    return new Promise((resolve) => {
      this.#waiting.push(() => resolve({ ...after, credits: granted }));
      this.#write();
    });
  }

  giveBack(key: string, unspent: QuotaLease): void {
    const record = this.#records.get(key);
    if (record === undefined) return;
    this.#put(key, returned(record, unspent.credits, unspent));
    this.#write();
  }

  async close(): Promise<void> {
    await this.#writing;
    this.#endPause();
    this.#write();
    await this.#writing;
    this.#endPause();
  }

  #endPause(): void {
    this.#cancelPause?.();
    this.#cancelPause = null;
  }

  #put(key: string, record: QuotaRecord): void {
    this.#isDirty = true;
    this.#records.delete(key);
    this.#records.set(key, record);
    const [oldest = key] = this.#records.keys();
    if (this.#records.size > MAX_RECORDS) this.#records.delete(oldest);
  }

  /** Keeps the records, unless that is under way or was done a moment ago. */
  #write(): void {
    if (this.#writing !== null || this.#cancelPause !== null || !this.#isDirty) return;
    this.#isDirty = false;
    const waiting = this.#waiting;
    this.#waiting = [];
    this.#writing = this.#parts
      .keep(new Map(this.#records))
      .catch(this.#parts.onError)
      .then(() => {
        this.#writing = null;
        this.#cancelPause = this.#parts.runtime.after(WRITE_EVERY_MS, () => {
          this.#cancelPause = null;
          this.#write();
        });
        for (const resolve of waiting) resolve();
      });
  }
}
