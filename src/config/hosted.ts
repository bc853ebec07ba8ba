// The settings of the hosted service: keys, tariff, limits and payments, with their defaults and
// bounds.
import { z } from "zod";
import { parseUsd, type Tariff, tariffOf } from "../core/billing/price.ts";
import { byStrategy, STRATEGY_SPELLINGS, spellingsOf } from "../core/routing/strategy.ts";
import { METHODS } from "../core/rpc/method.ts";
import type { PaymentSettings, RailSettings } from "../payments/rails/rails.ts";
import {
  count,
  flag,
  intervalMs,
  named,
  oneOf,
  operatorToken,
  pattern,
  section,
  settings,
  text,
  whole,
} from "./kinds.ts";

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

const usd = (fallback: string) =>
  z
    .string()
    .refine((text) => nanoUsdOf(text) > 0n && nanoUsdOf(text) % 1_000n === 0n)
    .meta({ title: 'USD as text, like "0.10", with at most six places' })
    .default(fallback);

const address = pattern(/^0x[0-9a-fA-F]{40}$/).meta({ title: "an address, 0x and 40 hex digits" });

const walletKey = pattern(/^0x[0-9a-fA-F]{64}$/).meta({
  title: "a private key, 0x and 64 hex digits",
});

const wei = pattern(/^\d{1,30}$/).meta({ title: "wei as text of digits" });

const common = {
  rpc_url: z
    .url({ protocol: /^https?$/ })
    .max(2_048)
    .describe("A node of the payment chain."),
  chain_id: whole(1, Number.MAX_SAFE_INTEGER),
  recipient: address.describe("Address that receives payments."),
};

const confirmations = (fallback: number) =>
  count(0, 1_000, fallback).describe("Blocks that have to follow before money counts as received.");
const tip20 = address.describe("TIP-20 token that is paid in, a stablecoin in USD.");

const tempo = settings({
  kind: z.literal("tempo"),
  ...common,
  token: tip20,
  modes: z
    .array(z.enum(["pull", "push"]))
    .min(1)
    .max(2)
    .default(["pull", "push"])
    .describe(
      "`pull` = the service sends the transaction that the client signed; `push` = the client " +
        "sends it and shows its hash.",
    ),
  confirmations: confirmations(0),
}).describe("MPP `tempo`/`charge`.");

const evm = settings({
  kind: z.literal("evm"),
  ...common,
  token: settings({
    address,
    name: text(1, 64),
    version: text(1, 16),
  }).describe("Token with EIP-3009, and the name and version of its EIP-712 domain."),
  wallet_key: walletKey.describe(
    "Secret key of the settlement wallet, which holds nothing but gas.",
  ),
  confirmations: confirmations(3),
  low_gas_wei: wei
    .default("10000000000000000")
    .describe("Below this much in the settlement wallet the operator is alarmed."),
  max_gas_wei: wei
    .default("2000000000000000")
    .describe(
      "The most that the gas of one settlement may cost; while it costs more, payments wait and " +
        "nothing is offered by this rail.",
    ),
}).describe("EIP-3009 authorizations: MPP `evm`/`charge` and x402 `exact`.");

const session = settings({
  kind: z.literal("session"),
  ...common,
  token: tip20,
  wallet_key: walletKey.describe(
    "Secret key of the recipient's wallet, which settles and closes channels.",
  ),
  confirmations: confirmations(0),
  escrow: address.optional().describe("Channel contract. Default: the precompile of the chain."),
  deposit_usd: usd("1").describe("Deposit that is suggested to clients."),
  settle_usd: usd("0.5").describe("A channel is settled once this much is owed."),
  settle_after_ms: intervalMs(600_000).describe(
    "A channel is settled when something has been owed for this long.",
  ),
}).describe("MPP `tempo`/`session`, for pay-per-call at `/rpc/session/…`.");

type RailFile = z.output<typeof tempo> | z.output<typeof evm> | z.output<typeof session>;

/** The wallet of a rail, as text: rails must not share one, or they would use the same nonces. */
function walletOf(rail: RailFile): readonly string[] {
  return rail.kind === "tempo" ? [] : [`${rail.wallet_key.toLowerCase()} ${rail.chain_id}`];
}

function isDistinct(texts: readonly string[]): boolean {
  return new Set(texts).size === texts.length;
}

/** Payments by machines. */
export const payments = settings({
  rails: z
    .array(z.discriminatedUnion("kind", [tempo, evm, session]))
    .max(8)
    .refine(
      (rails) =>
        isDistinct(rails.map((rail) => `${rail.kind} ${rail.chain_id}`)) &&
        isDistinct(rails.flatMap(walletOf)),
    )
    .meta({
      title:
        "at most 8 rails, each of its kind once for a chain, and each with a wallet of its own " +
        "there",
    })
    .default([])
    .describe("Ways to pay. None = nothing can be bought."),
  min_usd: usd("0.1").describe("Smallest purchase."),
  max_usd: usd("100").describe("Largest purchase."),
  custom_day_usd: usd("1.3").describe("Price of a day of Custom access."),
  max_custom_days: count(1, 366, 30).describe("Days of Custom access in one purchase."),
  wait_ms: intervalMs(5_000, 60_000).describe(
    "How long a paying request waits for its chain before it is answered `payment_pending`.",
  ),
  offer_ms: intervalMs(300_000, 3_600_000).describe("How long an offer may be taken up."),
})
  .refine((file) => nanoUsdOf(file.min_usd) <= nanoUsdOf(file.max_usd))
  .meta({ title: "ranges whose `min_usd` is not above `max_usd`" })
  .prefault({})
  .describe("Payments by machines: MPP and x402.");

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

/** Converts the settings into the form that the service uses. */
export function paymentsOf(file: z.output<typeof payments>): PaymentSettings {
  const { rails, min_usd, max_usd, custom_day_usd, ...plain } = file;
  return {
    ...named(plain),
    rails: rails.map(railOf),
    minN: nanoUsdOf(min_usd),
    maxN: nanoUsdOf(max_usd),
    customDayN: nanoUsdOf(custom_day_usd),
  };
}

function railOf(file: RailFile): RailSettings {
  if (file.kind === "evm") {
    const gas = { lowGasWei: BigInt(file.low_gas_wei), maxGasWei: BigInt(file.max_gas_wei) };
    return { ...named(file), ...gas, local: false };
  }
  const { token: address, ...rest } = file;
  const token = { address, name: "", version: "" };
  if (rest.kind === "tempo") return { ...named(rest), token, local: false };
  const { deposit_usd, settle_usd, settle_after_ms: settleMs, ...plain } = rest;
  const [depositN, settleN] = [nanoUsdOf(deposit_usd), nanoUsdOf(settle_usd)];
  const escrow = plain.escrow ?? null;
  return { ...named(plain), token, escrow, depositN, settleN, settleMs, local: false };
}

/** A valid amount in nano-USD. */
function nanoUsdOf(text: string): bigint {
  return parseUsd(text) ?? 0n;
}
