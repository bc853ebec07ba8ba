// The settings of the hosted service: keys, tariff and limits, with their defaults and bounds.

import { z } from "zod";
import { type Tariff, tariffOf } from "../core/billing/price.ts";
import { byStrategy, STRATEGY_SPELLINGS, spellingsOf } from "../core/routing/strategy.ts";
import { METHODS } from "../core/rpc/method.ts";
import { count, flag, intervalMs, named, oneOf, operatorToken, section, whole } from "./kinds.ts";
import { payments, paymentsOf } from "./payments.ts";

const rate = (perSecond: number, burst: number, purpose: string) =>
  section({
    per_second: count(1, 1_000_000, perSecond).describe("Requests a second, for long."),
    burst: count(1, 10_000_000, burst).describe("Requests at once, after a pause."),
  }).describe(purpose);

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

const tariff = section({
  cu_per_usd: whole(1, 1_000_000_000)
    .refine((cu) => 1_000_000_000 % cu === 0)
    .meta({ title: "a divisor of 1000000000, so that a compute unit costs whole nano-USD" })
    .default(200_000)
    .describe("Compute units that one USD buys."),
  factors: section({ ...factorByStrategy, ...factorByOtherSpelling }).describe(
    "By how much a strategy multiplies the compute units of a call; rounded down, at least 1.",
  ),
  methods: z
    .partialRecord(z.enum(METHODS.map((method) => method.name)), count(0, 1_000_000, 1).unwrap())
    .default({})
    .describe(
      "Compute units of single methods, in place of those of the method table. `unknown` = every " +
        "method that is not in it.",
    ),
  notification_cu: count(0, 1_000_000, 3).describe(
    "Compute units of one notification of a subscription.",
  ),
}).describe("What calls cost.");

/** A share in percent; whole where the share has two decimals at most. */
function percentOf(share: number): number {
  return Number((share * 100).toFixed(9));
}

/** The hosted service: who is served, prices and limits. */
export const hosted = section({
  enabled: flag(false).describe(
    "Serves callers by key, meters and charges what they use. Needs profile `public`.",
  ),
  keyless: flag(false).describe(
    "Also serves callers without a key, unmetered, as a plain router does. For instances that " +
      "only you can reach.",
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
      "What an answer from the cache costs, as a share of the compute units of the call, rounded " +
        "up: 1 = as much as any other, 0 = nothing. A caller still needs credit for the whole " +
        "price.",
    ),
  buckets: section({
    managed: rate(100, 200, "With premium access."),
    reduced: rate(
      30,
      60,
      "On public providers because nothing is left to pay with, or by the free allowance.",
    ),
    public: rate(30, 60, "On profile `public` when it was asked for."),
    custom: rate(1_000, 2_000, "On each Custom profile."),
  }).describe("Rate limits of one account."),
  allow_private_providers: flag(false).describe(
    "Lets the providers of Custom profiles be at private and local addresses. For development " +
      "only: with it, users reach into your network.",
  ),
  max_keys: count(1, 100_000, 100).describe("Keys of one account."),
  max_profiles: count(0, 1_000, 5).describe("Custom profiles of one account."),
  max_loaded_profiles: count(1, 100_000, 500).describe(
    "Custom profiles in memory, each with the state of its providers; a process each. One is " +
      "loaded at its first call and leaves after ten minutes without one. Beyond it the one " +
      "unused for longest makes room once it has been unused for 30 s; until then a call gets " +
      "`not_prepared`.",
  ),
  old_forms: oneOf(["on", "auto", "off"], "auto").describe(
    "Older forms of requests: `on` = they are served, `auto` = those that nobody has used for 30 " +
      "days are not any more from the next start on, `off` = none is.",
  ),
  keys_per_hour: count(1, 1_000_000, 10).describe(
    "Keys that one IP address (IPv6: one /64) may create in an hour.",
  ),
  flush_interval_ms: intervalMs(1_000, 60_000).describe(
    "Time between two writes of what was used. What was served since the last one is not billed " +
      "if the process dies.",
  ),
  node_timeout_ms: intervalMs(30_000, 3_600_000).describe(
    "A process that was not heard of for this long is taken for dead, and its unspent credit is " +
      "returned.",
  ),
  payments,
}).describe("Keys, credit and payment.");

/** The settings of the hosted service. Holds secrets: never log it. */
export type HostedConfig = NonNullable<ReturnType<typeof hostedOf>>;

const DAY_MS = 86_400_000;
const NANO = 1_000_000_000;

/** Converts the settings into the form that the service uses; null = the hosted service is off. */
export function hostedOf(file: z.output<typeof hosted>) {
  const { operator_token: _, tariff, buckets, ...plain } = file;
  if (!file.enabled) return null;
  return {
    ...named(plain),
    fallbackMs: file.fallback_days * DAY_MS,
    tariff: tariffOf({
      weights: tariff.methods,
      notificationCu: tariff.notification_cu,
      nanoPerCu: NANO / tariff.cu_per_usd,
      factors: factorsOf(tariff.factors),
      cachePercent: percentOf(file.cache_price),
    }),
    /**
     * Rate limits: of `premium`, under a fallback or the free allowance, of `public`, of a Custom
     * profile.
     */
    buckets: {
      managed: named(buckets.managed),
      reduced: named(buckets.reduced),
      public: named(buckets.public),
      custom: named(buckets.custom),
    },
    /** Which legacy request forms are served: all, those still in use, or none. */
    legacyForms: file.old_forms,
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
