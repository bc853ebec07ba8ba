// Providers, and the profiles that group them. Values only: nothing here changes while a profile is
// served.

import type { Category } from "../rpc/method.ts";
import type { LogVerification } from "../stream/log-verification.ts";
import type { BatchLimits } from "./budget/batch-limits.ts";
import type { BudgetLimits } from "./budget/budget-limits.ts";
import type { Chain } from "./chain.ts";
import type { StatedHistory } from "./history.ts";
import type { MethodScope } from "./method-scope.ts";
import type { RegionPreference } from "./region.ts";

/** How a provider is reached. Breakers, rate-limit state and latency are kept per transport. */
export type Transport = "http" | "ws";

/**
 * One operator rule that runs before the built-in classification; at least one of `code` and
 * `messageContains` is set.
 */
export interface ErrorRule {
  readonly code: number | null;
  /** Lower-cased substrings; any one of them matches. Empty = any message. */
  readonly messageContains: readonly string[];
  /** A category of the classification table. */
  readonly category: string;
}

/** One upstream entry of a profile on one chain. */
export interface Provider {
  /** Position in its `ProviderSet`: the key of every per-provider array. */
  readonly index: number;
  /** Unique per chain and profile. */
  readonly id: string;
  readonly name: string;
  /** Shown to callers of managed pools instead of the id. */
  readonly alias: string;
  /** Secret: may carry a key. Never logged or shown. */
  readonly url: string | null;
  readonly wsUrl: string | null;
  /** Who runs it: a vendor, else as far as its host tells: `operatorOf`. As secret as the URL. */
  readonly operator: string;
  /** Lower is tried first by the `priority` strategy. */
  readonly priority: number;
  /** Its share of the calls of `load-balanced`, beside the weights of the others. */
  readonly weight: number;
  /** Asked only where no other provider can be. */
  readonly backup: boolean;
  /** Its limits are those of all providers of the profile with this word; absent = its own. */
  readonly account?: string;
  /** What may be sent to it; null = no limit is declared. */
  readonly budget: BudgetLimits | null;
  /** How calls to it over HTTP are put together; null = each goes alone. */
  readonly batch: BatchLimits | null;
  /** Reads with short answers may be sent over a connection before the answers of others. */
  readonly pipelining: boolean;
  /** USD of a million of its credits; null = not declared. */
  readonly price: number | null;
  /** It has state, proofs and traces of any block. */
  readonly archival: boolean;
  /** The calls that it is asked for; absent or null = every call. */
  readonly scope?: MethodScope | null;
  /** How far back it has single resources, as declared. */
  readonly history: StatedHistory;
  /** Where it is; null = not stated. */
  readonly region: string | null;
  /** Secret header values sent upstream. */
  readonly headers: Readonly<Record<string, string>>;
  readonly unsupportedMethods: ReadonlySet<string>;
  readonly unsupportedCategories: ReadonlySet<Category>;
  /** Largest `eth_getLogs` block range accepted; null = not declared. */
  readonly maxBlockRange: number | null;
  /** Blocks behind the head that are still served; null = not declared. */
  readonly maxBlockAge: number | null;
  /** Methods that `maxBlockAge` binds; empty = every resource that is not in `history`. */
  readonly blockAgeMethods: ReadonlySet<string>;
  readonly errorRules: readonly ErrorRule[];
  /** Its addresses come from a user: connections to it are allowed to public addresses only. */
  readonly guarded: boolean;
}

/** How reads that take long are asked of a second provider as well. */
export interface HedgeSettings {
  /** Further calls, as a share of the calls that could be hedged. */
  readonly maxExtra: number;
  /** The least time after which a second provider is asked. */
  readonly floorMs: number;
  /** The longest such time; also the one where it is not known how long answers take. */
  readonly ceilingMs: number;
}

/**
 * Which view of the chain callers get. `tip`: one newest block for all providers, to which block
 * tags are resolved. `caller`: as well, no caller is shown an older block than before. `off`: block
 * tags go to the provider as written.
 */
export type Consistency = "tip" | "caller" | "off";

/** How a profile on a chain uses the cache. */
export interface SetCache {
  readonly isOn: boolean;
  /** Other profiles of the operator whose immutable answers and answers by hash it is given. */
  readonly shareWith: readonly string[];
}

/** The providers of one profile on one chain, with the settings of their selection. */
export interface ProviderSet {
  /** How it uses the cache; absent = as the service does. */
  readonly cache?: SetCache;
  readonly chain: Chain;
  readonly maxLagBlocks: number;
  readonly archivalThreshold: number;
  readonly regionPreference: RegionPreference;
  readonly probeIntervalMs: number;
  /** The service subscribes to heads on every provider's socket. */
  readonly socketHeads: boolean;
  readonly newHeadsTimeoutMs: number;
  readonly maxBackfillBlocks: number;
  readonly backfillTimeoutMs: number;
  /** Null = as the block time of the chain allows. */
  readonly logVerification: LogVerification | null;
  /** Calls per second that log checks may make. */
  readonly verificationBudget: number;
  /** How reads are hedged: null = not at all, absent = as those of all sets. */
  readonly hedge?: HedgeSettings | null;
  /** Which view of the chain its callers get; absent = as the service says. */
  readonly consistency?: Consistency;
  /** Names of further kinds of subscription that its providers serve; absent = none. */
  readonly subscriptionKinds?: readonly string[];
  readonly providers: readonly Provider[];
}

/** The transports of a provider for which it has an address. */
export function transportsOf({ url, wsUrl }: Provider): readonly Transport[] {
  if (wsUrl === null) return url === null ? [] : ["http"];
  return url === null ? ["ws"] : ["http", "ws"];
}

/** A named provider set with its own health, addressed by slug. */
export interface Profile {
  readonly slug: string;
  /** The account of a Custom profile; null = configured by the operator. */
  readonly owner: string | null;
  /**
   * Managed pools (`public`, `premium`) show provider aliases, all others show ids and exclusions.
   */
  readonly managed: boolean;
  /** The strategy of calls that name none, in any spelling; absent = the default one. */
  readonly defaultStrategy?: string;
  /** By chain name. */
  readonly chains: ReadonlyMap<string, ProviderSet>;
}

/**
 * The internal id of a profile, unique among all owners; never shown to callers.
 */
export function profileId({ owner, slug }: Pick<Profile, "owner" | "slug">): string {
  return owner === null ? slug : `${owner}/${slug}`;
}

/** The public label of a profile: `custom` for every profile of an account. */
export function publicLabel(id: string): string {
  return id.includes("/") ? "custom" : id;
}

/**
 * Parts of a provider's URLs and headers that may be keys: no text that contains one of them may
 * reach a caller or a log.
 */
export function secretsOf(provider: Provider): readonly string[] {
  const addresses = [provider.url, provider.wsUrl].filter((url) => url !== null);
  const parts = addresses.flatMap((address) =>
    address.replace(/^\w+:\/\/[^/]*/, "").split(/[/?&=#]/),
  );
  const values = Object.values(provider.headers).flatMap((value) => value.split(" "));
  const decoded = values.flatMap((value) =>
    Buffer.from(value, "base64").toString("latin1").split(":"),
  );
  const hosts = addresses
    .flatMap((address) => (/^\w+:\/\/([^/:]*)/.exec(address)?.[1] ?? "").split("."))
    .filter((label) => label.length >= KEY_LIKE_HOST);
  return [...parts, ...values, ...decoded, ...hosts].filter(
    (text) => text.length >= SHORTEST_SECRET,
  );
}

const SHORTEST_SECRET = 8;
/** Some vendors put the key into the host name; ordinary host labels are shorter. */
const KEY_LIKE_HOST = 20;

// Which view of the chain a caller gets: the modes, and the one that holds where nothing else is
// said. Values only: resolves no block.

/** The modes, as spelled in the configuration, in keys and in requests. */
export const CONSISTENCIES: readonly Consistency[] = ["tip", "caller", "off"];

/** The mode where neither request, key, profile nor service says another. */
export const DEFAULT_CONSISTENCY: Consistency = "tip";
