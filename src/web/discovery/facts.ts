// The facts that discovery documents state about an instance, as one record read from its
// configuration. Contains no secret and no address of a provider.
import type { RateLimitSize } from "../../core/billing/gcra.ts";
import type { Tariff } from "../../core/billing/price.ts";
import { type Chain, exampleChain } from "../../core/provider/chain.ts";
import type { Profile, ProviderSet } from "../../core/provider/profile.ts";
import {
  DEFAULT_STRATEGY,
  STRATEGY_SPELLINGS,
  type Strategy,
} from "../../core/routing/strategy.ts";
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
import type { RailTerms } from "../../payments/rails/rail-kind.ts";
import { type PaymentSettings, railTerms } from "../../payments/rails/rails.ts";
import {
  CONTRACT,
  type NamedOperation,
  OPERATIONS,
  type OperationId,
} from "../contract/contract.ts";
import { CURRENT_FORMS } from "../rpc/target.ts";

/** A chain that callers can use. */
export interface ChainFacts {
  /** Its name in paths. */
  readonly name: string;
  readonly title: string;
  readonly chainId: number;
  readonly aliases: readonly string[];
  /**
   * Subscription kinds that some profile supports: all of them if a provider has a WebSocket,
   * otherwise those that can be polled.
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

/** Limits that callers may hit. */
export interface LimitFacts {
  readonly maxBodyBytes: number;
  readonly maxBatchItems: number;
  readonly maxSocketRequests: number;
  readonly maxSocketBytes: number;
  readonly maxSocketSubscriptions: number;
}

/** Terms of the hosted service. */
export interface HostedFacts {
  readonly keyless: boolean;
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
 * Everything that documents state about an instance. Every document is a function of this record
 * and the base URL.
 */
export interface DocumentFacts {
  /** Version of the service. */
  readonly version: string;
  readonly chains: readonly ChainFacts[];
  readonly profiles: readonly ProfileFacts[];
  /**
   * The profile of URLs that name none; null = the instance has no such callers. A key may have
   * another default.
   */
  readonly defaultProfile: { readonly withKey: string | null; readonly withoutKey: string | null };
  /** The strategy of calls to the default profile that name none. */
  readonly defaultStrategy: Strategy;
  readonly limits: LimitFacts;
  readonly methods: MethodTable;
  /** Whether an operator token is configured. */
  readonly operator: boolean;
  /** Null = a router without hosted service. */
  readonly hosted: HostedFacts | null;
}

/** The chain used in examples of a profile; null = the profile has none. */
export function chainIn({ chains, profiles }: DocumentFacts, slug: string | null): string | null {
  const namesOf = (profile: string | null): readonly string[] =>
    profiles.find(({ slug }) => slug === profile)?.chains ?? [];
  const served = namesOf(slug);
  return exampleChain(
    chains.map((chain) => chain.name).filter((name) => served.includes(name)),
    namesOf("public"),
  );
}

/** The part of the configuration that facts are read from. */
export interface FactsSource {
  readonly chains: readonly Chain[];
  readonly profiles: readonly Profile[];
  readonly limits: LimitFacts;
  readonly methods: readonly ConfiguredMethod[];
  readonly server: { readonly operatorToken: string | null };
  readonly hosted: (Omit<HostedFacts, "payments"> & { readonly payments: PaymentSettings }) | null;
}

/** Reads the facts of a configuration. */
export function factsOf(source: FactsSource, version: string): DocumentFacts {
  const { chains, profiles, limits, hosted, server } = source;
  const reachable =
    hosted === null || hosted.keyless ? profiles : profiles.filter((profile) => profile.managed);
  const slugs = profiles.map((profile) => profile.slug);
  const firstProfile = slugs.includes("public") ? "public" : (slugs[0] ?? null);
  return {
    version,
    chains: chains.flatMap((chain) => chainFacts(chain, reachable)),
    profiles: profileFacts(reachable, hosted !== null),
    defaultProfile: {
      withKey: hosted === null ? null : "premium",
      withoutKey: hosted === null || hosted.keyless ? firstProfile : null,
    },
    defaultStrategy: strategyOf(
      profiles.find(({ slug }) => hosted !== null && slug === "premium") ??
        profiles.find(({ slug }) => slug === firstProfile),
    ),
    limits,
    methods: methodTable(source.methods),
    operator: server.operatorToken !== null,
    hosted: hosted === null ? null : hostedFacts(hosted),
  };
}

function strategyOf(profile: Profile | undefined): Strategy {
  return STRATEGY_SPELLINGS.get(profile?.defaultStrategy ?? "") ?? DEFAULT_STRATEGY;
}

/** Callers with a key may name `premium`, which `public` serves if `premium` is not configured. */
function profileFacts(profiles: readonly Profile[], keys: boolean): readonly ProfileFacts[] {
  const known = profiles.map(({ slug, managed, chains }) => ({
    slug,
    managed,
    chains: [...chains.keys()],
  }));
  const open = known.find((profile) => profile.slug === "public");
  return !keys || open === undefined || known.some((profile) => profile.slug === "premium")
    ? known
    : [{ ...open, slug: "premium" }, ...known];
}

function hasSocket({ providers }: ProviderSet): boolean {
  return providers.some((provider) => provider.wsUrl !== null);
}

function chainFacts(
  { chainName, name, chainId, aliases }: Chain,
  profiles: readonly Profile[],
): readonly ChainFacts[] {
  const sets = profiles.flatMap((profile) => profile.chains.get(chainName) ?? []);
  if (sets.length === 0) return [];
  const subscriptions = sets.some(hasSocket) ? SUBSCRIPTION_KINDS : POLLED_KINDS;
  return [{ name: chainName, title: name, chainId, aliases, subscriptions }];
}

/** Without what the settings of payments keep secret. */
function hostedFacts({ payments, ...terms }: NonNullable<FactsSource["hosted"]>): HostedFacts {
  return { ...terms, payments: payments.rails.length === 0 ? null : termsOf(payments) };
}

/** The base URLs of an instance, without a trailing slash. */
export interface Site {
  readonly baseUrl: string;
  /** The base URL for WebSockets. */
  readonly socketUrl: string;
}

/** The site at a base URL. */
export function siteOf(baseUrl: string): Site {
  return { baseUrl, socketUrl: baseUrl.replace(/^http/, "ws") };
}

/**
 * The operations of an instance. Where nobody can authenticate as the operator, those that take
 * nothing else are left out.
 */
export function servedOperations({ hosted, operator }: DocumentFacts): readonly NamedOperation[] {
  return OPERATIONS.filter(({ servedBy }) => servedBy !== "api" || hosted !== null)
    .map((row) => ({ ...row, auth: row.auth.filter((way) => operator || way !== "operator") }))
    .filter(({ auth }) => auth.length > 0);
}

/** Path of one operation. */
export function pathOf(id: OperationId): string {
  return CONTRACT[id].endpoint.replace(/^\w+ /, "");
}

/** The URL form of pay-per-call: HTTP only, without a key. */
export const SESSION_FORM = "/rpc/session/{strategy}/{chain}";

/** The path of a call that is paid for by itself, as examples show it. */
export function sessionPath(facts: DocumentFacts): string {
  const chain = chainIn(facts, facts.defaultProfile.withKey) ?? "{chain}";
  return SESSION_FORM.replace("{strategy}", DEFAULT_STRATEGY).replace("{chain}", chain);
}

/** The other current URL forms of JSON-RPC over HTTP without a key. */
export const PLAIN_FORMS: readonly string[] = CURRENT_FORMS.filter((form) => form !== SESSION_FORM);

/** The URL forms of JSON-RPC over HTTP with a key in the path. */
export const KEYED_FORMS: readonly string[] = PLAIN_FORMS.map((form) =>
  form.replace("/rpc/", "/rpc/k/{key}/"),
);

/**
 * The URL forms that work on this instance; forms without a key come first if callers without a key
 * are served.
 */
export function rpcForms({ hosted }: DocumentFacts): readonly string[] {
  if (hosted === null) return PLAIN_FORMS;
  return [...KEYED_FORMS, ...PLAIN_FORMS];
}

/** What is sold, in which range, and how it is paid for. */
export interface PaymentTerms
  extends Pick<PaymentSettings, "minN" | "maxN" | "customDayN" | "maxCustomDays"> {
  readonly rails: readonly RailTerms[];
}

/** Reads the terms from settings. */
function termsOf({ rails, minN, maxN, customDayN, maxCustomDays }: PaymentSettings): PaymentTerms {
  return { rails: rails.map(railTerms), minN, maxN, customDayN, maxCustomDays };
}

/** Whether pay-per-call is available. */
export function sellsCalls(terms: PaymentTerms | null): boolean {
  return terms?.rails.some((rail) => rail.intent === "session") ?? false;
}
