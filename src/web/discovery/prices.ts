// What calls cost on an instance, as text and as live values.
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
import type { Method } from "../../core/rpc/method.ts";
import type { MethodTable } from "../../core/rpc/method-table.ts";
import { type HostedFacts, pathOf } from "./facts.ts";
import { named, type Section, table } from "./sections.ts";

const DAY_MS = 86_400_000;
const NANO = 1_000_000_000;

/** Methods whose prices are shown as examples. */
const EXAMPLES: readonly string[] = [
  "eth_blockNumber",
  "eth_call",
  "eth_getBlockByNumber",
  "eth_getLogs",
  "debug_traceTransaction",
];

/** The prices of a tariff, as every document and the catalogue tell them. */
export function pricesOf(tariff: Tariff, methods: MethodTable) {
  const price = (cuAt: (strategy: Strategy) => number) =>
    byStrategy(({ name }) => {
      const cu = cuAt(name);
      return { cu, usd: usdText(cu * tariff.nanoPerCu) };
    });
  return {
    cuPerUsd: NANO / tariff.nanoPerCu,
    cacheShare: cacheShareOf(tariff),
    ranges: rangePriceOf(cuOf(tariff, methods.of("eth_getLogs"), "load-balanced")),
    /** The price of one call, by strategy. */
    of: (method: Method) => price((strategy) => cuOf(tariff, method, strategy)),
    notification: price((strategy) => notificationCuOf(tariff, strategy)),
  };
}

/** The section on prices. */
export function priceSection(hosted: HostedFacts, methods: MethodTable): Section {
  const { tariff, startingGrantCu, freeCuPerMonth } = hosted;
  const prices = pricesOf(tariff, methods);
  const { example } = prices.ranges;
  const cached =
    prices.cacheShare === 1
      ? ""
      : ` An answer from the cache costs ${tariff.cachePercent} % of its CU, rounded up; credit ` +
        "for the whole price is needed to ask.";
  const rows = [
    ...EXAMPLES.map((name) => [`\`${name}\``, prices.of(methods.of(name))] as const),
    ["a notification", prices.notification] as const,
  ].map(([name, price]) => [
    name,
    ...STRATEGY_NAMES.map((strategy) => `${price[strategy].cu} CU, ${price[strategy].usd} USD`),
  ]);
  return {
    title: "Prices",
    text: [
      `${prices.cuPerUsd} CU cost 1 USD. Calls that a provider answered are charged, and calls ` +
        `that were sent to one and left before the answer.${cached} A new anonymous key has ` +
        `${startingGrantCu} CU; an account may use ${freeCuPerMonth} CU a month on public ` +
        `providers. All methods: \`GET ${pathOf("getPricing")}\`.`,
      `Ranges of blocks (${named(prices.ranges.methods)}): ${prices.ranges.rule}. Example: ` +
        `\`${example.method}\` over ${example.blocks} blocks, of which a provider accepts ` +
        `${example.blocks_per_part}, has ${example.parts} parts and costs ${example.cu} CU.`,
      table(["Call", ...STRATEGY_NAMES], rows),
    ],
    values: { pricing: priceValues(hosted, methods), ...termValues(hosted) },
  };
}

function priceValues({ tariff }: HostedFacts, methods: MethodTable) {
  const prices = pricesOf(tariff, methods);
  const configured = methods.rows.filter(({ origin }) => origin === "configured");
  const examples = [...EXAMPLES, ...configured.map(({ name }) => name)];
  return {
    unit: "CU",
    cu_per_usd: prices.cuPerUsd,
    strategy_factors: tariff.factors,
    rounding: "down to whole CU per call, at least 1",
    charged:
      "calls that a provider answered, with a result or an error, and calls that were sent " +
      "to one and left by their caller before the answer; never refusals, nor answers that " +
      "the service cut off",
    cache_price: {
      share: prices.cacheShare,
      applies_to:
        "calls answered from the cache: this share of their CU, rounded up; credit for the " +
        "whole price is needed to make them",
    },
    ranges: prices.ranges,
    examples: Object.fromEntries(examples.map((name) => [name, prices.of(methods.of(name))])),
    subscription_notification: prices.notification,
  };
}

/** What is served without paying. */
function termValues({ tariff, startingGrantCu, freeCuPerMonth, fallbackMs }: HostedFacts) {
  const served = { access: "public", strategies: ["load-balanced"] };
  return {
    starting_grant: {
      applies_to: "each anonymous key",
      cu: startingGrantCu,
      usd: usdText(startingGrantCu * tariff.nanoPerCu),
      estimated_requests: estimatedRequests(startingGrantCu),
    },
    free_allowance: {
      applies_to: "each account that is not anonymous",
      cu_per_month: freeCuPerMonth,
      ...served,
    },
    fallback: {
      applies_to: "accounts that have paid before",
      days: fallbackMs / DAY_MS,
      ...served,
    },
  };
}
