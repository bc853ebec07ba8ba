// The settings of the hosted service: keys, tariff and limits, with their defaults and bounds.
import { z } from "zod";
import type { RateLimitSize } from "../core/billing/gcra.ts";
import { type Tariff, tariffOf } from "../core/billing/price.ts";
import { byStrategy, STRATEGY_SPELLINGS, spellingsOf } from "../core/routing/strategy.ts";
import { METHODS } from "../core/rpc/method.ts";
import type { PaymentSettings } from "../payments/rails/rails.ts";
import { count, intervalMs, operatorToken } from "./kinds.ts";
import { payments, paymentsOf } from "./payments.ts";

const rate = (perSecond: number, burst: number, purpose: string) =>
  z
    .strictObject({
      per_second: count(1, 1_000_000, perSecond).describe("Requests a second, for long."),
      burst: count(1, 10_000_000, burst).describe("Requests at once, after a pause."),
    })
    .prefault({})
    .describe(purpose);

const factor = z.number().min(0.01).max(1_000);
const factorByStrategy = byStrategy((row) => factor.default(row.factor).describe(row.summary));
const factorByOtherSpelling = Object.fromEntries(
  [...STRATEGY_SPELLINGS]
    .filter(([spelling, name]) => spelling !== name)
    .map(([spelling, name]) => [
      spelling,
      factor.optional().describe(`Another spelling of \`${name}\`.`),
    ]),
);

const tariff = z
  .strictObject({
    cu_per_usd: z
      .int()
      .min(1)
      .max(1_000_000_000)
      .refine((cu) => 1_000_000_000 % cu === 0)
      .meta({ title: "a divisor of 1000000000, so that a compute unit costs whole nano-USD" })
      .default(200_000)
      .describe("Compute units that one USD buys."),
    factors: z
      .strictObject({ ...factorByStrategy, ...factorByOtherSpelling })
      .prefault({})
      .describe(
        "By how much a strategy multiplies the compute units of a call; rounded down, at least 1.",
      ),
    methods: z
      .partialRecord(z.enum(METHODS.map((method) => method.name)), count(0, 1_000_000, 1).unwrap())
      .default({})
      .describe(
        "Compute units of single methods, in place of those of the method table. `unknown` = " +
          "every method that is not in it.",
      ),
    notification_cu: count(0, 1_000_000, 3).describe(
      "Compute units of one notification of a subscription.",
    ),
  })
  .prefault({})
  .describe("What calls cost.");

/** A share in percent; whole where the share has two decimals at most. */
function percentOf(share: number): number {
  return Number((share * 100).toFixed(9));
}

/** The hosted service: who is served, prices and limits. */
export const hosted = z
  .strictObject({
    enabled: z
      .boolean()
      .default(false)
      .describe("Serves callers by key, meters and charges what they use. Needs profile `public`."),
    keyless: z
      .boolean()
      .default(false)
      .describe(
        "Also serves callers without a key, unmetered, as a plain router does. For instances " +
          "that only you can reach.",
      ),
    operator_token: operatorToken.describe("Another name of `server.operator_token`."),
    starting_grant_cu: count(0, 1_000_000_000, 5_000).describe(
      "Compute units that a new anonymous key starts with.",
    ),
    free_cu_per_month: count(0, 1_000_000_000_000, 1_000_000).describe(
      "Compute units an account may use each month on public providers without paying.",
    ),
    fallback_days: count(0, 3_650, 30).describe(
      "Days for which an account that has paid before is served on public providers after its " +
        "balance ran out.",
    ),
    tariff,
    cache_price: z
      .number()
      .min(0)
      .max(1)
      .refine((share) => Number.isInteger(percentOf(share)))
      .meta({ title: "a number from 0 to 1 in steps of 0.01" })
      .default(1)
      .describe(
        "What an answer from the cache costs, as a share of the compute units of the call, " +
          "rounded up: 1 = as much as any other, 0 = nothing. A caller still needs credit for " +
          "the whole price.",
      ),
    buckets: z
      .strictObject({
        managed: rate(100, 200, "With premium access."),
        reduced: rate(
          30,
          60,
          "On public providers because nothing is left to pay with, or by the free allowance.",
        ),
        public: rate(30, 60, "On profile `public` when it was asked for."),
        custom: rate(1_000, 2_000, "On each Custom profile."),
      })
      .prefault({})
      .describe("Rate limits of one account."),
    allow_private_providers: z
      .boolean()
      .default(false)
      .describe(
        "Lets the providers of Custom profiles be at private and local addresses. For " +
          "development only: with it, users reach into your network.",
      ),
    max_keys: count(1, 100_000, 100).describe("Keys of one account."),
    max_profiles: count(0, 1_000, 5).describe("Custom profiles of one account."),
    max_loaded_profiles: count(1, 100_000, 500).describe(
      "Custom profiles in memory, each with the state of its providers; a process each. One is " +
        "loaded at its first call and leaves after ten minutes without one. Beyond it the one " +
        "unused for longest makes room once it has been unused for 30 s; until then a call gets " +
        "`not_prepared`.",
    ),
    old_forms: z
      .enum(["on", "auto", "off"])
      .default("auto")
      .describe(
        "Older forms of requests: `on` = they are served, `auto` = those that nobody has used " +
          "for 30 days are not any more from the next start on, `off` = none is.",
      ),
    keys_per_hour: count(1, 1_000_000, 10).describe(
      "Keys that one IP address (IPv6: one /64) may create in an hour.",
    ),
    flush_interval_ms: intervalMs(1_000, 60_000).describe(
      "Time between two writes of what was used. What was served since the last one is not " +
        "billed if the process dies.",
    ),
    node_timeout_ms: intervalMs(30_000, 3_600_000).describe(
      "A process that was not heard of for this long is taken for dead, and its unspent credit " +
        "is returned.",
    ),
    payments,
  })
  .prefault({})
  .describe("Keys, credit and payment.");

/** The settings of the hosted service. Holds a secret: never log it. */
export interface HostedConfig {
  /** Whether callers without a key are served, unmetered. */
  readonly keyless: boolean;
  readonly startingGrantCu: number;
  readonly freeCuPerMonth: number;
  readonly fallbackMs: number;
  readonly tariff: Tariff;
  /**
   * Rate limits: of `premium`, under a fallback or the free allowance, of `public`, of a Custom
   * profile.
   */
  readonly buckets: Readonly<Record<"managed" | "reduced" | "public" | "custom", RateLimitSize>>;
  /** Custom profiles may name private and local addresses. */
  readonly allowPrivateProviders: boolean;
  readonly maxKeys: number;
  /** Most Custom profiles of one account. */
  readonly maxProfiles: number;
  /** Custom profiles in memory of a process. */
  readonly maxLoadedProfiles: number;
  /** Which legacy request forms are served: all, those still in use, or none. */
  readonly legacyForms: "on" | "auto" | "off";
  readonly keysPerHour: number;
  readonly flushIntervalMs: number;
  readonly nodeTimeoutMs: number;
  /** Settings of payments; without rails nothing can be bought. */
  readonly payments: PaymentSettings;
}

const DAY_MS = 86_400_000;
const NANO = 1_000_000_000;

/** Converts the settings into the form that the service uses; null = the hosted service is off. */
export function hostedOf(file: z.output<typeof hosted>): HostedConfig | null {
  if (!file.enabled) return null;
  const { tariff, buckets } = file;
  const sizeOf = (size: {
    readonly per_second: number;
    readonly burst: number;
  }): RateLimitSize => ({
    perSecond: size.per_second,
    burst: size.burst,
  });
  return {
    keyless: file.keyless,
    startingGrantCu: file.starting_grant_cu,
    freeCuPerMonth: file.free_cu_per_month,
    fallbackMs: file.fallback_days * DAY_MS,
    tariff: tariffOf({
      weights: tariff.methods,
      notificationCu: tariff.notification_cu,
      nanoPerCu: NANO / tariff.cu_per_usd,
      factors: factorsOf(tariff.factors),
      cachePercent: percentOf(file.cache_price),
    }),
    buckets: {
      managed: sizeOf(buckets.managed),
      reduced: sizeOf(buckets.reduced),
      public: sizeOf(buckets.public),
      custom: sizeOf(buckets.custom),
    },
    allowPrivateProviders: file.allow_private_providers,
    maxKeys: file.max_keys,
    maxProfiles: file.max_profiles,
    maxLoadedProfiles: file.max_loaded_profiles,
    legacyForms: file.old_forms,
    keysPerHour: file.keys_per_hour,
    flushIntervalMs: file.flush_interval_ms,
    nodeTimeoutMs: file.node_timeout_ms,
    payments: paymentsOf(file.payments),
  };
}

/** Other spellings and former names of strategies are accepted. */
function factorsOf(factors: z.output<typeof tariff>["factors"]): Tariff["factors"] {
  const given = new Map(Object.entries(factors));
  return byStrategy((row) => {
    const others = spellingsOf(row).filter((spelling) => spelling !== row.name);
    const spelling = others.find((other) => given.get(other) !== undefined) ?? row.name;
    return given.get(spelling) ?? row.factor;
  });
}
