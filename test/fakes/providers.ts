// Builders of provider sets, calls and verdicts for tests of routing: each has plain values that a
// test overrides where it matters.
import type { Effect, Step, Verdict } from "../../src/core/provider/attempt.ts";
import type { Provider, ProviderSet } from "../../src/core/provider/profile.ts";
import type { SelectionSettings } from "../../src/core/routing/strategy.ts";
import type { BlockRef, Call } from "../../src/core/rpc/call.ts";
import { methodOf } from "../../src/core/rpc/method.ts";
import { writeRequest } from "../../src/core/rpc/wire-request.ts";

/** Calls over ranges of blocks are asked for whole. */
export const WHOLE_RANGES = {
  split: false,
  maxBlocks: 1,
  maxParts: 1,
  maxKeylessParts: 1,
  maxBytes: 1,
} as const;

/** The specification's settings, without exploration so that orders are exact. */
export const SELECTION: SelectionSettings = {
  fastestMinCalls: 3,
  fastestMinSuccessRate: 0.9,
  lwBeta: 3,
  lwMsFloor: 30,
  lwExploreFloor: 0.05,
  lwMinCalls: 3,
  lwMinSuccessRate: 0.85,
  exploreShare: 0,
  region: null,
};

/**
 * A provider with both transports, an operator of its own, no archive and no declared limits; its
 * id is `p` and its index.
 */
export function fakeProvider(index: number, overrides: Partial<Provider> = {}): Provider {
  return {
    index,
    id: `p${index}`,
    name: `Provider ${index}`,
    alias: `a${index}`,
    url: `http://p${index}.test/`,
    wsUrl: `ws://p${index}.test/`,
    operator: `p${index}.test`,
    priority: 10,
    weight: 1,
    backup: false,
    budget: null,
    batch: null,
    pipelining: false,
    price: null,
    archival: false,
    history: {},
    region: null,
    headers: {},
    unsupportedMethods: new Set(),
    unsupportedCategories: new Set(),
    maxBlockRange: null,
    maxBlockAge: null,
    blockAgeMethods: new Set(),
    errorRules: [],
    guarded: false,
    ...overrides,
  };
}

/** A set on a chain of id 1 with a block every 12 s. */
export function fakeSet(
  providers: readonly Provider[],
  overrides: Partial<ProviderSet> = {},
): ProviderSet {
  return {
    chain: { chainId: 1, chainName: "test", name: "Test", aliases: [], blockTimeMs: 12_000 },
    maxLagBlocks: 5,
    archivalThreshold: 128,
    regionPreference: "prefer",
    probeIntervalMs: 12_000,
    socketHeads: true,
    newHeadsTimeoutMs: 42_000,
    maxBackfillBlocks: 100,
    backfillTimeoutMs: 30_000,
    logVerification: "off",
    verificationBudget: 5,
    providers,
    ...overrides,
  };
}

/** A call of a method that reads `block`. */
export function fakeCall(methodName: string, block: BlockRef = { kind: "none" }): Call {
  return { methodName, method: methodOf(methodName), block, ...writeRequest(methodName, null) };
}

/** A verdict with this effect; its category is the kind of the effect. */
export function verdict(effect: Effect, step: Step = "next"): Verdict {
  return { category: effect.kind, step, effect };
}
