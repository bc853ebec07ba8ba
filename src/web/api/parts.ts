// The services and settings that handlers of the HTTP API are built from.

import type { z } from "zod";
import type { ManagedSlug } from "../../core/billing/access.ts";
import type { AddressLimit, AwaitedAddressLimit } from "../../core/billing/address-limit.ts";
import type { Invalidations } from "../../core/billing/invalidations.ts";
import type { Tariff } from "../../core/billing/price.ts";
import type { Chain } from "../../core/provider/chain.ts";
import type { Profile } from "../../core/provider/profile.ts";
import type { AddressRules } from "../../core/public-address.ts";
import type { MethodTable } from "../../core/rpc/method-table.ts";
import type { AccountTerms } from "../../hosted/accounts/accounts.ts";
import type {
  OperatorAction,
  OperatorCordon,
  OperatorRecords,
  ProviderRef,
} from "../../hosted/operator/stored-records.ts";
import type { ProfileRef } from "../../hosted/profiles/profiles.ts";
import type { FeedHub } from "../../observe/feed/feed-hub.ts";
import type { ownCallOf } from "../../observe/feed/own-call.ts";
import type { HistoryReader } from "../../observe/history/service-history.ts";
import type { Incident } from "../../observe/incidents/incident.ts";
import type { OwnCallsQuery, ReadReport } from "../../observe/operator-report.ts";
import type { Payments } from "../../payments/payments.ts";
import type { Runtime } from "../../runtime.ts";
import type { Sealer } from "../../secrets/sealer.ts";
import type { Store } from "../../shared/store/store.ts";
import type { PurgeSelection } from "../../upstream/engine/cache/cached-answers.ts";
import type { ProviderCheck, QueryResult } from "../../upstream/provider-check.ts";
import type { ProfileRegistry } from "../../upstream/registry/profile-registry.ts";
import type {
  consoleSession,
  endedWaits,
  providerTest,
  purgedCache,
  reloaded,
} from "../contract/console.ts";
import type { Handlers, InstanceId, StoreId } from "../contract/contract.ts";
import type { nodes } from "../contract/history.ts";
import type { ConsoleSessions } from "./console-sessions.ts";
import type { StatusOf } from "./provider-status.ts";
import type { ProfileChecks, SharedAudit } from "./work-bounds.ts";

/** What bounds the use of operations over the store. */
export interface HandlerBounds {
  /** Limits created keys by address. */
  readonly creations: AwaitedAddressLimit;
  /** Limits changes by account. */
  readonly writes: AddressLimit;
  /** Limits connections that are asked for, by address. */
  readonly connectionRequests: AddressLimit;
  /** Limits feedback, by account or address. */
  readonly reports: AddressLimit;
  readonly profileChecks: ProfileChecks;
  readonly sharedAudit: SharedAudit;
}

export interface HandlerParts extends HandlerBounds {
  readonly runtime: Runtime;
  readonly store: Store;
  readonly changes: Invalidations;
  /**
   * Writes the usage of an account (null = of all) to the store, within a short time if possible.
   * False = nothing was pending.
   */
  readonly settle: (accountId: string | null) => Promise<boolean>;
  /** The configured chains, as of now. */
  readonly chains: () => readonly Chain[];
  /** Slugs of the profiles that every account can use. */
  readonly profiles: () => readonly string[];
  /**
   * Names of the chains that a managed profile serves to callers with a key, in the current
   * configuration.
   */
  readonly servedChains: (slug: ManagedSlug) => readonly string[];
  readonly settings: HandlerSettings;
  /** The method table of the current configuration. */
  readonly methods: () => MethodTable;
  readonly custom: CustomParts;
  /** True = a development instance: callers on this machine may create any number of keys. */
  readonly devnet: boolean;
  /** Null = nothing can be bought. */
  readonly payments: Payments | null;
  /** Writes a line for each change by the operator. */
  readonly recordAction: RecordAction;
  /** The latest calls with some keys; null = no worker answers. */
  readonly ownCalls: (
    query: OwnCallsQuery,
  ) => Promise<readonly ReturnType<typeof ownCallOf>[] | null>;
}

/** The handlers of operations over the store. */
export type StoreHandlers<Id extends StoreId = StoreId> = Handlers<Id, HandlerParts>;
/** The handlers of operations that every instance has. */
export type InstanceHandlers<Id extends InstanceId = InstanceId> = Handlers<Id, InstanceParts>;

/** What operations on Custom profiles need. */
export interface CustomParts {
  readonly sealer: Sealer;
  /** Which addresses providers may have. */
  readonly rules: AddressRules;
  /** Profiles per account. */
  readonly maxProfiles: number;
  /** Rate limit of each Custom profile. */
  readonly requestsPerSecond: number;
  /** Contacts every provider of a profile. */
  readonly check: (profile: Profile) => Promise<readonly ProviderCheck[]>;
  readonly status: StatusOf;
  /** Called after a profile was written or deleted; resolves once that has taken effect. */
  readonly changed: (ref: ProfileRef) => Promise<void>;
}

/** Settings of the hosted service that handlers read. */
export interface HandlerSettings extends AccountTerms {
  readonly startingGrantCu: number;
  readonly tariff: Tariff;
  readonly maxKeys: number;
}

export interface InstanceParts {
  readonly runtime: Runtime;
  readonly sessions: ConsoleSessions;
  readonly summary: () => InstanceSummary;
  readonly recordAction: RecordAction;
  readonly records: Pick<OperatorRecords, "actions">;
  readonly providers: OperatorProviders;
  /** The method table of the current configuration. */
  readonly methods: () => MethodTable;
  /** Limits of calls that operators send to providers. */
  readonly tests: AddressLimit;
  readonly comparisons: AddressLimit;
  readonly purgeCache: PurgeCache;
  /** What the operator sees of the running service. */
  readonly live: LiveView;
}

/** What the operator sees of the running service, and its history. */
export interface LiveView {
  readonly runtime: Pick<Runtime, "wallMs" | "after">;
  readonly report: ReadReport;
  readonly history: HistoryReader;
  /** All that are kept, of all nodes; null = the process that has them does not answer. */
  readonly incidents: () => Promise<readonly Incident[] | null>;
  readonly nodes: () => Promise<z.output<typeof nodes>>;
  readonly hub: FeedHub;
  readonly registry: Pick<ProfileRegistry, "profile" | "profiles">;
  readonly version: string;
  /** This worker, and how many there are. */
  readonly worker: string;
  readonly workers: number;
}

/** Removes kept answers, in this process and wherever else they are. */
export type PurgeCache = (selection: PurgeSelection) => Promise<PurgeResult>;

/** What became of it; `unknown`: the selection names no such thing. */
export type PurgeResult =
  | { readonly kind: "unknown"; readonly what: "profile" | "chain" }
  | (Pick<z.output<typeof purgedCache>, "chain" | "complete" | "redis"> & {
      readonly kind: "purged";
    });

/** What an instance tells those who sign in. */
export type InstanceSummary = Omit<
  z.output<typeof consoleSession>["instance"],
  "operator_sign_in" | "account_sign_in"
>;

/** A call that is asked of every provider of a set. */
export interface Comparison {
  readonly profile: string;
  readonly chain: string;
  readonly method: string;
  /** The JSON array of parameters. */
  readonly params: string;
}

/** What one provider answered. */
export interface ComparedAnswer {
  readonly provider: string;
  readonly alias: string;
  readonly transport: "http" | "ws";
  /** `skipped`: it was not asked, for this reason. */
  readonly answer: QueryResult | { readonly kind: "skipped"; readonly reason: string };
}

/** What came of reading the configuration again. */
export type ReloadOutcome = Pick<z.output<typeof reloaded>, "problem" | "revision">;

/** Who asked for something, as the lines of actions say. */
export interface Requester {
  readonly actor: string;
  readonly address: string;
}

/** What operators do. Null as a result = the provider, or its profile and chain, is not served. */
export interface OperatorProviders {
  /** Those that hold. */
  cordons(): Promise<readonly OperatorCordon[]>;
  /**
   * Where a provider stands: profiles that are configured, and their chains; and the places to
   * come. Empty = it stands nowhere.
   */
  placesOf(provider: string): readonly ProviderRef[];
  /** All or none. `full`: there would be more cordons than may be. */
  cordon(...cordons: readonly OperatorCordon[]): Promise<"done" | "unknown" | "full">;
  uncordon(...refs: readonly ProviderRef[]): Promise<void>;
  endWaits(ref: ProviderRef): z.output<typeof endedWaits>["transports"] | null;
  test(ref: ProviderRef): Promise<z.output<typeof providerTest>["results"] | null>;
  compare(comparison: Comparison): Promise<readonly ComparedAnswer[] | null>;
  /**
   * Reads the configuration again and applies it; where that was done, the other nodes of a cluster
   * are asked to do the same with theirs.
   */
  reload(by: Requester): Promise<Omit<z.output<typeof reloaded>, "reloaded">>;
}

/** Writes a line; never fails: what was done is done. */
export type RecordAction = (
  action: Pick<OperatorAction, "actor" | "address" | "action" | "target" | "detail" | "outcome">,
) => Promise<void>;
