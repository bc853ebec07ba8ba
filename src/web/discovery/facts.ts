// What the discovery documents tell of an instance, as one record, read from its configuration.
// Takes no secret and no provider's address along.

import type { RateLimitSize } from "../../core/billing/gcra.ts";
import type { PaymentSettings } from "../../core/billing/payment.ts";
import type { Tariff } from "../../core/billing/price.ts";
import type { Chain } from "../../core/provider/chain.ts";
import { exampleChain } from "../../core/provider/example-chain.ts";
import type { Profile, ProviderSet } from "../../core/provider/profile.ts";
import type { Strategy } from "../../core/routing/strategy.ts";
import {
  type ConfiguredMethod,
  type MethodTable,
  methodTable,
} from "../../core/rpc/method-table.ts";
import {
  POLLED_KINDS,
  SUBSCRIPTION_KINDS,
  type SubscriptionKind,
} from "../../core/stream/subscription.ts";
import { type PaymentTerms, termsOf } from "./payment-terms.ts";

/** The strategies, the default one first. */
export const STRATEGIES: readonly Strategy[] = [
  "load-balanced",
  "latency-weighted",
  "fastest",
  "priority",
];

/** A chain that callers can reach. */
export interface ChainFacts {
  /** As it stands in paths. */
  readonly name: string;
  readonly title: string;
  readonly chainId: number;
  readonly aliases: readonly string[];
  /**
   * Kinds of subscription that some profile serves: all where a provider has a WebSocket, otherwise
   * those that are polled.
   */
  readonly subscriptions: readonly SubscriptionKind[];
}

/** A profile that callers can name in paths. */
export interface ProfileFacts {
  readonly slug: string;
  readonly managed: boolean;
  /** Names of its chains. */
  readonly chains: readonly string[];
}

/** Bounds that callers meet. */
export interface LimitFacts {
  readonly maxBodyBytes: number;
  readonly maxBatchItems: number;
  readonly maxSocketRequests: number;
  readonly maxSocketBytes: number;
  readonly maxSocketSubscriptions: number;
}

/** The terms of the hosted service. */
export interface HostedFacts {
  readonly keyless: boolean;
  readonly operator: boolean;
  readonly startingGrantCu: number;
  readonly freeCuPerMonth: number;
  readonly fallbackMs: number;
  readonly tariff: Tariff;
  readonly buckets: Readonly<Record<"managed" | "reduced" | "public" | "custom", RateLimitSize>>;
  readonly maxKeys: number;
  readonly maxProfiles: number;
  readonly keysPerHour: number;
  /** Null = nothing can be bought. */
  readonly payments: PaymentTerms | null;
}

/**
 * Everything that documents tell of an instance. Every document is a function of this and of the
 * address it is reached by.
 */
export interface DocumentFacts {
  /** Of the service. */
  readonly version: string;
  readonly chains: readonly ChainFacts[];
  readonly profiles: readonly ProfileFacts[];
  /**
   * The profile of URLs that name none; null = there are no such callers. A key may have another
   * one.
   */
  readonly defaultProfile: { readonly withKey: string | null; readonly withoutKey: string | null };
  readonly limits: LimitFacts;
  readonly methods: MethodTable;
  /** Null = a plain router. */
  readonly hosted: HostedFacts | null;
}

/** Name of the chain that examples call in a profile; null = there is none. */
export function chainIn({ chains, profiles }: DocumentFacts, slug: string | null): string | null {
  const namesOf = (profile: string | null): readonly string[] =>
    profiles.find((it) => it.slug === profile)?.chains ?? [];
  const served = namesOf(slug);
  return exampleChain(
    chains.map((it) => it.name).filter((it) => served.includes(it)),
    namesOf("public"),
  );
}

/** The part of a configuration that facts are read from. */
export interface FactsSource {
  readonly chains: readonly Chain[];
  readonly profiles: readonly Profile[];
  readonly limits: LimitFacts;
  readonly methods: readonly ConfiguredMethod[];
  readonly server: { readonly operatorToken: string | null };
  readonly hosted: HostedSource | null;
}

/** The part of the hosted settings that facts are read from. */
export interface HostedSource extends Omit<HostedFacts, "operator" | "payments"> {
  readonly payments: PaymentSettings;
}

/** Reads the facts of a configuration. */
export function factsOf(source: FactsSource, version: string): DocumentFacts {
  const { chains, profiles, limits, hosted, server } = source;
  const reachable =
    hosted === null || hosted.keyless ? profiles : profiles.filter((it) => it.managed);
  const slugs = profiles.map((it) => it.slug);
  return {
    version,
    chains: chains.flatMap((it) => chainFacts(it, reachable)),
    profiles: profileFacts(reachable, hosted !== null),
    defaultProfile: {
      withKey: hosted === null ? null : "premium",
      withoutKey:
        hosted === null || hosted.keyless
          ? slugs.includes("public")
            ? "public"
            : (slugs[0] ?? null)
          : null,
    },
    limits: {
      maxBodyBytes: limits.maxBodyBytes,
      maxBatchItems: limits.maxBatchItems,
      maxSocketRequests: limits.maxSocketRequests,
      maxSocketBytes: limits.maxSocketBytes,
      maxSocketSubscriptions: limits.maxSocketSubscriptions,
    },
    methods: methodTable(source.methods),
    hosted: hosted === null ? null : hostedFacts(hosted, server.operatorToken !== null),
  };
}

/** Whoever has a key may name `premium`: where it is not configured, `public` serves it. */
function profileFacts(profiles: readonly Profile[], keys: boolean): readonly ProfileFacts[] {
  const known = profiles.map(({ slug, managed, chains }) => ({
    slug,
    managed,
    chains: [...chains.keys()],
  }));
  const open = known.find((it) => it.slug === "public");
  return !keys || open === undefined || known.some((it) => it.slug === "premium")
    ? known
    : [{ ...open, slug: "premium" }, ...known];
}

function hasSocket({ providers }: ProviderSet): boolean {
  return providers.some((it) => it.wsUrl !== null);
}

function chainFacts(
  { chainName, name, chainId, aliases }: Chain,
  profiles: readonly Profile[],
): readonly ChainFacts[] {
  const sets = profiles.flatMap((it) => it.chains.get(chainName) ?? []);
  if (sets.length === 0) return [];
  const subscriptions = sets.some(hasSocket) ? SUBSCRIPTION_KINDS : POLLED_KINDS;
  return [{ name: chainName, title: name, chainId, aliases, subscriptions }];
}

function hostedFacts(it: HostedSource, operator: boolean): HostedFacts {
  const { managed, reduced, public: open, custom } = it.buckets;
  return {
    keyless: it.keyless,
    operator,
    startingGrantCu: it.startingGrantCu,
    freeCuPerMonth: it.freeCuPerMonth,
    fallbackMs: it.fallbackMs,
    tariff: it.tariff,
    buckets: { managed, reduced, public: open, custom },
    maxKeys: it.maxKeys,
    maxProfiles: it.maxProfiles,
    keysPerHour: it.keysPerHour,
    payments: it.payments.rails.length === 0 ? null : termsOf(it.payments),
  };
}
