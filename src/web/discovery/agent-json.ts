// `/agent.json`: describes an instance with its current values: chains, strategies, prices, limits
// and endpoints. A pure function of its facts and base URL.

import type { RateLimitSize } from "../../core/billing/gcra.ts";
import {
  cacheShareOf,
  cuOf,
  estimatedRequests,
  notificationCuOf,
  rangePriceOf,
  type Tariff,
  usdText,
} from "../../core/billing/price.ts";
import { byStrategy, STRATEGY_NAMES, type Strategy } from "../../core/routing/strategy.ts";
import type { MethodTable } from "../../core/rpc/method-table.ts";
import { SUBSCRIPTION_KINDS } from "../../core/stream/subscription.ts";
import type { OperationTag } from "../contract/operation.ts";
import { MAX_DOCUMENT_BYTES } from "../contract/profiles.ts";
import { MAX_BODY_BYTES } from "../http/body.ts";
import {
  type DocumentFacts,
  type HostedFacts,
  paymentsJson,
  rpcForms,
  SESSION_FORM,
  type Site,
  sellsCalls,
  servedOperations,
} from "./facts.ts";
import { INTERFACE_VERSION } from "./openapi.ts";
import type { Json } from "./openapi-parts.ts";
import { DOCUMENT_PATHS } from "./paths.ts";

const DAY_MS = 86_400_000;
const NANO = 1_000_000_000;

/** Methods whose prices are shown as examples. */
export const PRICE_EXAMPLES: readonly string[] = [
  "eth_blockNumber",
  "eth_call",
  "eth_getBlockByNumber",
  "eth_getLogs",
  "debug_traceTransaction",
];

/** The document. */
export function agentDocument(facts: DocumentFacts, site: Site): Json {
  const { hosted } = facts;
  return {
    name: "svc",
    description: "JSON-RPC for EVM chains, routed over several providers.",
    version: facts.version,
    interface_version: INTERFACE_VERSION,
    base_url: site.baseUrl,
    documents: Object.fromEntries(
      Object.entries(DOCUMENT_PATHS).map(([name, path]) => [name, site.baseUrl + path]),
    ),
    error_catalog_url: site.baseUrl + DOCUMENT_PATHS.errors,
    chains: facts.chains.map((chain) => ({
      name: chain.name,
      chain_id: chain.chainId,
      title: chain.title,
      aliases: chain.aliases,
      strategies: STRATEGY_NAMES,
      subscriptions: chain.subscriptions.length > 0,
      subscription_kinds: chain.subscriptions,
    })),
    strategies: STRATEGY_NAMES,
    default_strategy: facts.defaultStrategy,
    transports: ["http", "websocket"],
    subscriptions: SUBSCRIPTION_KINDS,
    profiles: facts.profiles.map((profile) => ({
      slug: profile.slug,
      managed: profile.managed,
      chains: profile.chains,
    })),
    default_profile: {
      with_key: facts.defaultProfile.withKey,
      without_key: facts.defaultProfile.withoutKey,
    },
    url_forms: urlForms(facts, site),
    authentication: authentication(hosted),
    features: {
      keys: hosted !== null,
      accounts: hosted !== null,
      keyless_rpc: hosted === null || hosted.keyless,
      routing_evidence: true,
      batches: true,
      payments: hosted !== null && hosted.payments !== null,
      custom_profiles: hosted !== null,
      key_claims: hosted !== null,
    },
    ...(hosted === null ? {} : terms(hosted, facts.methods)),
    limits: limits(facts),
    payments: paymentsJson(hosted?.payments ?? null, site.baseUrl),
    endpoints: endpoints(facts, site),
  };
}

/** The price of one call, by strategy. */
export function priceOf(
  tariff: Tariff,
  cuAt: (strategy: Strategy) => number,
): Readonly<Record<Strategy, { readonly cu: number; readonly usd: string }>> {
  return byStrategy(({ name }) => {
    const cu = cuAt(name);
    return { cu, usd: usdText(cu * tariff.nanoPerCu) };
  });
}

/** Compute units per US dollar. */
export function cuPerUsd({ nanoPerCu }: Tariff): number {
  return NANO / nanoPerCu;
}

function terms(
  { tariff, startingGrantCu, freeCuPerMonth, fallbackMs }: HostedFacts,
  methods: MethodTable,
): Json {
  const examples = [
    ...PRICE_EXAMPLES,
    ...methods.rows.filter(({ origin }) => origin === "configured").map(({ name }) => name),
  ];
  return {
    pricing: {
      unit: "CU",
      cu_per_usd: cuPerUsd(tariff),
      strategy_factors: tariff.factors,
      rounding: "down to whole CU per call, at least 1",
      charged:
        "calls that a provider answered, with a result or an error, and calls that were sent " +
        "to one and left by their caller before the answer; never refusals, nor answers that " +
        "the service cut off",
      cache_price: {
        share: cacheShareOf(tariff),
        applies_to:
          "calls answered from the cache: this share of their CU, rounded up; credit for the " +
          "whole price is needed to make them",
      },
      ranges: rangePriceOf(cuOf(tariff, methods.of("eth_getLogs"), "load-balanced")),
      examples: Object.fromEntries(
        examples.map((name) => [
          name,
          priceOf(tariff, (strategy) => cuOf(tariff, methods.of(name), strategy)),
        ]),
      ),
      subscription_notification: priceOf(tariff, (strategy) => notificationCuOf(tariff, strategy)),
    },
    starting_grant: {
      applies_to: "each anonymous key",
      cu: startingGrantCu,
      usd: usdText(startingGrantCu * tariff.nanoPerCu),
      estimated_requests: estimatedRequests(startingGrantCu),
    },
    free_allowance: {
      applies_to: "each account that is not anonymous",
      cu_per_month: freeCuPerMonth,
      access: "public",
      strategies: ["load-balanced"],
    },
    fallback: {
      applies_to: "accounts that have paid before",
      days: fallbackMs / DAY_MS,
      access: "public",
      strategies: ["load-balanced"],
    },
  };
}

function urlForms(facts: DocumentFacts, { baseUrl, socketUrl }: Site): Json {
  const forms = rpcForms(facts);
  const paid = sellsCalls(facts.hosted?.payments ?? null) ? [SESSION_FORM] : [];
  return {
    http: [...forms, ...paid].map((form) => baseUrl + form),
    websocket: forms.map((form) => `${socketUrl}/ws${form}`),
  };
}

function authentication(hosted: HostedFacts | null): Json {
  if (hosted === null) return { rpc: "none" };
  return {
    rpc: hosted.keyless ? "optional" : "required",
    rpc_key: {
      prefix: "svc_ak_",
      carried_in: ["path /rpc/k/{key}/…", "Authorization: Bearer", "X-Svc-Api-Key", "query key"],
    },
    management_token: { prefix: "svc_mt_", carried_in: ["Authorization: Bearer"] },
  };
}

function limits({ limits, hosted }: DocumentFacts): Json {
  return {
    body_bytes: limits.maxBodyBytes,
    batch_items: limits.maxBatchItems,
    websocket: {
      requests_in_flight: limits.maxSocketRequests,
      bytes_in_flight: limits.maxSocketBytes,
      subscriptions: limits.maxSocketSubscriptions,
    },
    ...(hosted === null ? {} : hostedLimits(hosted)),
  };
}

function hostedLimits({ buckets, keysPerHour, maxKeys, maxProfiles }: HostedFacts): Json {
  const size = ({ perSecond, burst }: RateLimitSize, name: string, applies: string) => ({
    name,
    applies,
    per_second: perSecond,
    burst,
  });
  return {
    management_body_bytes: MAX_BODY_BYTES,
    keys_per_account: maxKeys,
    profiles_per_account: maxProfiles,
    profile_document_bytes: MAX_DOCUMENT_BYTES,
    key_creations_per_hour_per_address: keysPerHour,
    rate_limits_per_account: [
      size(buckets.managed, "managed", "premium access"),
      size(buckets.reduced, "managed", "public providers by fallback or free allowance"),
      size(buckets.public, "public", "profile public when it was asked for"),
      size(buckets.custom, "the slug of the profile", "each Custom profile"),
    ],
  };
}

/** Tags of operations, grouped by their users. */
const GROUPS: Readonly<Record<string, readonly OperationTag[]>> = {
  instance: ["instance"],
  agent: ["agent"],
  account_resources: ["keys", "accounts", "profiles"],
  operator: ["operator"],
  console: ["console"],
};

function endpoints(facts: DocumentFacts, { baseUrl }: Site): Json {
  const operations = servedOperations(facts);
  const groups = Object.entries(GROUPS).map(([group, tags]): readonly [string, Json] => {
    const some = operations.filter((operation) => tags.includes(operation.tag));
    return [
      group,
      Object.fromEntries(some.map(({ id, method, path }) => [id, { method, url: baseUrl + path }])),
    ];
  });
  return Object.fromEntries(groups.filter(([, some]) => Object.keys(some).length > 0));
}
