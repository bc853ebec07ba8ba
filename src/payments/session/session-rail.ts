// The parts of one session rail that all work on its channels shares.
import type { Logger } from "pino";
import type { Runtime } from "../../runtime.ts";
import type { Store } from "../../shared/store/store.ts";
import type { SessionRailSettings } from "../rails/rail-kind.ts";
import type { Escrow } from "./chain/escrow.ts";
import type { Settler } from "./chain/settlement-wallet.ts";
import type { TransactionRecord } from "./chain/transaction-record.ts";
import type { ChannelRecord } from "./channel-record.ts";
import type { ChannelWriter } from "./channel-writer.ts";
import type { LiveChannels } from "./live-channels.ts";
import type { SessionTerms } from "./terms.ts";
import type { VoucherChecker } from "./voucher-checker.ts";

/** When what is owed is settled, and how often the chain is read. */
export interface SettlePolicy {
  /** Settles at this amount owed, in base units, or after this time. */
  readonly settleUnits: bigint;
  readonly settleMs: number;
  /** Between two checks of a channel that owes something. */
  readonly watchMs: number;
}

/** The parts of a rail. */
export interface SessionRail {
  readonly runtime: Runtime;
  readonly store: Store;
  readonly log: Pick<Logger, "info" | "warn" | "error">;
  readonly settings: SessionRailSettings;
  readonly terms: SessionTerms;
  readonly policy: SettlePolicy;
  readonly escrow: Escrow;
  readonly settler: Settler;
  readonly vouchers: Pick<VoucherChecker, "isSigned">;
  readonly channels: ChannelRecord;
  readonly transactions: TransactionRecord;
  readonly live: LiveChannels;
  readonly writer: ChannelWriter;
  /** How long a request waits for its chain before its caller is told to repeat it. */
  readonly waitMs: number;
}
