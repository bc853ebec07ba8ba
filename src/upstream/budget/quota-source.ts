// The port to those who know what all processes together have spent of a provider's credits. They
// hand credits out; what was handed out counts as spent until it comes back.
import type { QuotaLimits, QuotaRecord } from "../../core/provider/budget/quota.ts";

/** A request for credits of one provider. */
export interface QuotaRequest {
  /** The provider, its profile and chain. */
  readonly key: string;
  readonly limits: QuotaLimits;
  /** As many as this, or fewer. */
  readonly credits: number;
}

/** Credits that were handed out, and what is spent with them. */
export interface QuotaLease extends QuotaRecord {
  readonly credits: number;
}

/** Hands out credits. */
export interface QuotaSource {
  /** Null = nobody answers now. */
  lease(request: QuotaRequest): Promise<QuotaLease | null>;
  /** Takes back what was not spent. */
  giveBack(key: string, unspent: QuotaLease): void;
  /** Ends when everything that was given back is kept. */
  close(): Promise<void>;
}
