// What everything about the channels of one rail works with.
import type { Logger } from "pino";
import type { SessionRailSettings } from "../../../core/payment.ts";
import type { World } from "../../../world.ts";
import type { Store } from "../../store.ts";
import type { ChannelRecord } from "./channel-record.ts";
import type { Escrow } from "./escrow.ts";
import type { LiveChannels } from "./live.ts";
import type { Settler } from "./settler.ts";
import type { SessionTerms } from "./terms.ts";
import type { TransactionRecord } from "./transaction-record.ts";
import type { VoucherCheck } from "./voucher-check.ts";

/** When what is owed is taken out, and how often the chain is looked at. */
export interface SettlePolicy {
  /** Once this much is owed, in base units, or after this time. */
  readonly settleUnits: bigint;
  readonly settleMs: number;
  /** Between two looks at a channel that owes something. */
  readonly watchMs: number;
}

/** What a rail works with. */
export interface SessionParts {
  readonly world: World;
  readonly store: Store;
  readonly log: Pick<Logger, "info" | "warn" | "error">;
  readonly settings: SessionRailSettings;
  readonly terms: SessionTerms;
  readonly policy: SettlePolicy;
  readonly escrow: Escrow;
  readonly settler: Settler;
  readonly vouchers: VoucherCheck;
  readonly channels: ChannelRecord;
  readonly transactions: TransactionRecord;
  readonly live: LiveChannels;
  /** How long a request waits for its chain before it is told to ask again. */
  readonly waitMs: number;
}

/** Resolves after `ms`. */
export function pause(world: World, ms: number): Promise<void> {
  return new Promise((resolve) => world.after(ms, resolve));
}
