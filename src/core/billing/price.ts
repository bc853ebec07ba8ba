// What calls cost: compute units by method and strategy, and their price in whole nano-USD. Knows
// no account.
import type { Strategy } from "../routing/strategy.ts";
import { METHODS, type Method } from "../rpc/method.ts";

/** What is charged. */
export interface Tariff {
  /** Compute units by method index, at factor 1; null = those of the method's row. */
  readonly cu: readonly (number | null)[];
  /** Compute units of a subscription notification, at factor 1. */
  readonly notificationCu: number;
  readonly factors: Readonly<Record<Strategy, number>>;
  /** Nano-USD per compute unit: a whole number. */
  readonly nanoPerCu: number;
  /** The price of an answer from the cache: whole percent, 0 to 100, of its call's units. */
  readonly cachePercent: number;
}

/** A tariff from the method table; `weights` replaces the compute units of single methods. */
export function tariffOf({
  weights,
  ...rest
}: Omit<Tariff, "cu"> & { readonly weights: Readonly<Partial<Record<string, number>>> }): Tariff {
  return { ...rest, cu: METHODS.map((method) => weights[method.name] ?? null) };
}

/** Compute units of one call: rounded down, at least 1. */
export function cuOf(tariff: Tariff, method: Method, strategy: Strategy): number {
  return scaled(plainCuOf(tariff, method), tariff.factors[strategy]);
}

/** Compute units of a call without the factor of a strategy. */
export function plainCuOf(tariff: Pick<Tariff, "cu">, method: Method): number {
  return tariff.cu[method.index] ?? method.cu;
}

/** Compute units of one notification of a subscription. */
export function notificationCuOf(tariff: Tariff, strategy: Strategy): number {
  return scaled(tariff.notificationCu, tariff.factors[strategy]);
}

const RANGE_METHODS = ["eth_getLogs", "eth_getFilterLogs", "trace_filter"] as const;
const EXAMPLE_PARTS = 10;
const EXAMPLE_BLOCKS = 100;

/** How calls over ranges of blocks are priced. */
export const RANGE_RULE =
  "a call over more blocks than any provider accepts at once is asked for in parts, and costs " +
  "the price of its method for each part that is planned when it begins, at most for those " +
  "that were sent; so does one that is refused with log_range_limit after a part was sent, " +
  "and one that is cut off for that; where providers failed it is free; x-svc-cu tells it";

/** The price of calls over ranges of blocks; `cu` = that of an `eth_getLogs` of one part. */
export function rangePriceOf(cu: number) {
  return {
    methods: RANGE_METHODS,
    rule: RANGE_RULE,
    example: {
      method: RANGE_METHODS[0],
      blocks: EXAMPLE_PARTS * EXAMPLE_BLOCKS,
      /** Most blocks that a provider accepts. */
      blocks_per_part: EXAMPLE_BLOCKS,
      parts: EXAMPLE_PARTS,
      cu: EXAMPLE_PARTS * cu,
    },
  };
}

const PERCENT = 100;

/** Units of a call of `cu` units that is answered from the cache: rounded up, 0 at 0 percent. */
export function cachedCuOf({ cachePercent }: Pick<Tariff, "cachePercent">, cu: number): number {
  return cachePercent === PERCENT ? cu : Math.ceil((cu * cachePercent) / PERCENT);
}

/** The price of an answer from the cache, as a share of the compute units of its call. */
export function cacheShareOf({ cachePercent }: Pick<Tariff, "cachePercent">): number {
  return cachePercent / PERCENT;
}

/**
 * The price of the cheapest routed call that is not answered from the cache, nano-USD: what an
 * account has to have for any call.
 */
export function smallestPriceN({ cu, notificationCu, nanoPerCu }: Tariff): number {
  const weights = METHODS.filter((method) => method.handling === "route").map(
    (method) => cu[method.index] ?? method.cu,
  );
  return Math.max(1, Math.min(notificationCu, ...weights)) * nanoPerCu;
}

function scaled(cu: number, factor: number): number {
  return Math.max(1, Math.floor(cu * factor));
}

/** Number of whole compute units that an amount buys. */
export function cuFor(tariff: Tariff, nanoUsd: bigint): number {
  return Number(nanoUsd / BigInt(tariff.nanoPerCu));
}

/**
 * How many cheap (1 CU), standard (3 CU) and heavy (15 CU) reads an amount of compute units pays
 * for.
 */
export function estimatedRequests(cu: number) {
  return { cheap_reads: cu, standard_reads: Math.floor(cu / 3), heavy_reads: Math.floor(cu / 15) };
}

const NANO_DIGITS = 9;
const ZERO = 48;
const NANO = 10n ** BigInt(NANO_DIGITS);

/** An amount as a plain decimal in USD, without trailing zeros. */
export function usdText(nanoUsd: bigint | number): string {
  if (nanoUsd === 0) return "0";
  const digits = String(nanoUsd < 0 ? -nanoUsd : nanoUsd).padStart(NANO_DIGITS + 1, "0");
  let end = digits.length;
  const point = end - NANO_DIGITS;
  while (end > point && digits.charCodeAt(end - 1) === ZERO) end--;
  const text =
    end === point
      ? digits.slice(0, point)
      : `${digits.slice(0, point)}.${digits.slice(point, end)}`;
  return nanoUsd < 0 ? `-${text}` : text;
}

/**
 * Parses a plain decimal of USD with up to nine digits before and after the point; null = it is not
 * one.
 */
export function parseUsd(text: string): bigint | null {
  const parts = /^(\d{1,9})(?:\.(\d{1,9}))?$/.exec(text);
  if (parts === null) return null;
  return BigInt(parts[1] ?? "0") * NANO + BigInt((parts[2] ?? "").padEnd(NANO_DIGITS, "0"));
}
