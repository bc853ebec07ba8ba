// The services and settings that handlers of operations of every instance are built from, hosted or
// not.
import type { z } from "zod";
import type { MethodTable } from "../../core/rpc/method-table.ts";
import type { OpenAddressLimit } from "../../core/workers/shared-address-limits.ts";
import type { OperatorRecords } from "../../hosted/operator/records.ts";
import type { FeedHub } from "../../observe/feed/feed-hub.ts";
import type { HistoryReader } from "../../observe/history/service-history.ts";
import type { OperatorReports } from "../../observe/operator-report.ts";
import type { Runtime } from "../../runtime.ts";
import type { PurgeSelection } from "../../upstream/engine/cache/cached-answers.ts";
import type { ProfileRegistry } from "../../upstream/registry/profile-registry.ts";
import type { nodes } from "../contract/history.ts";
import type { RecordAction } from "./action-log.ts";
import type { ConsoleSessions } from "./console-sessions.ts";
import type { OperatorProviders } from "./operator-providers.ts";

export interface InstanceParts {
  readonly runtime: Runtime;
  readonly sessions: ConsoleSessions;
  readonly summary: () => InstanceSummary;
  readonly recordAction: RecordAction;
  readonly records: Pick<OperatorRecords, "actions">;
  readonly providers: OperatorProviders;
  /** The method table of the current configuration. */
  readonly methods: () => MethodTable;
  /** Opens the limits of calls that operators send to providers. */
  readonly openLimit: OpenAddressLimit;
  readonly purgeCache: PurgeCache;
  /** What the operator sees of the running service. */
  readonly live: LiveView;
}

/** What the operator sees of the running service, and its history. */
export interface LiveView {
  readonly runtime: Pick<Runtime, "wallMs" | "after">;
  readonly reports: OperatorReports;
  readonly history: HistoryReader;
  readonly nodes: () => Promise<z.output<typeof nodes>>;
  readonly hub: FeedHub;
  readonly registry: Pick<ProfileRegistry, "profile">;
  readonly version: string;
  /** This worker, and how many there are. */
  readonly worker: string;
  readonly workers: number;
}

/** Removes kept answers, in this process and wherever else they are. */
export type PurgeCache = (selection: PurgeSelection) => Promise<PurgeResult>;

/** What became of it. */
export type PurgeResult =
  | { readonly kind: "unknown"; readonly what: "profile" | "chain" }
  | {
      readonly kind: "purged";
      /** The name of the chain; null = all chains. */
      readonly chain: string | null;
      /** Every worker of this service has removed them. */
      readonly isComplete: boolean;
      /** Whether the second tier has, too; null = there is none. */
      readonly secondTier: { readonly isGone: boolean } | null;
    };

/** What an instance tells those who sign in. */
export interface InstanceSummary {
  readonly version: string;
  readonly hosted: boolean;
  readonly devnet: boolean;
  /** Whether status pages are open to everyone. */
  readonly isPublic: boolean;
  /** This node by its alias; null = it serves alone. */
  readonly node: string | null;
}
