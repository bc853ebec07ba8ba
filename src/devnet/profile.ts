// Adds the local chain to a configuration: chain `local` with one provider per node, in the managed
// profile `public`.
import type { Config } from "../config/config.ts";
import { OWN_OPERATOR } from "../core/provider/operator.ts";
import type { Profile, Provider, ProviderSet } from "../core/provider/profile.ts";
import { usualVerification } from "../core/stream/log-verification.ts";
import type { Devnet } from "./devnet.ts";

/** The configuration with the local chain added. */
export function withDevnet(config: Config, devnet: Devnet): Config {
  const { chain } = devnet;
  const set: ProviderSet = {
    chain,
    maxLagBlocks: 2,
    archivalThreshold: 64,
    regionPreference: "prefer",
    probeIntervalMs: 2_000,
    socketHeads: true,
    newHeadsTimeoutMs: 42_000,
    maxBackfillBlocks: 100,
    backfillTimeoutMs: 30_000,
    logVerification: usualVerification(chain.blockTimeMs),
    verificationBudget: 5,
    providers: devnet.providers.map(providerOf),
  };
  const pool = config.profiles.find((profile) => profile.slug === "public");
  const extended: Profile = {
    slug: "public",
    owner: null,
    managed: true,
    chains: new Map([...(pool?.chains ?? []), [chain.chainName, set]]),
  };
  return {
    ...config,
    chains: [chain, ...config.chains],
    profiles: [extended, ...config.profiles.filter((profile) => profile !== pool)],
  };
}

function providerOf({ id, url, wsUrl }: Devnet["providers"][number], index: number): Provider {
  return {
    index,
    id,
    url,
    wsUrl,
    operator: OWN_OPERATOR,
    name: id,
    alias: `p${index + 1}`,
    priority: index,
    weight: 1,
    backup: false,
    budget: null,
    batch: null,
    price: null,
    archival: false,
    region: null,
    headers: {},
    unsupportedMethods: new Set(),
    unsupportedCategories: new Set(),
    maxBlockRange: null,
    maxBlockAge: null,
    blockAgeMethods: new Set(),
    errorRules: [],
    guarded: false,
  };
}
