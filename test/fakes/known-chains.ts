// Chains that are known and that nobody configures, with addresses that a test serves.
import type { KnownChain } from "../../src/presets/chains.ts";

/** A chain with these addresses, found by its name, its aliases and its id. */
export function fakeKnownChain(
  chainId: number,
  urls: readonly string[],
  more: Partial<KnownChain> = {},
): KnownChain {
  return {
    chainId,
    chainName: `chain-${chainId}`,
    name: `Chain ${chainId}`,
    aliases: [`alias-${chainId}`],
    currency: { name: "Ether", symbol: "ETH", decimals: 18 },
    blockTimeMs: null,
    urls,
    wsUrls: [],
    explorer: null,
    isTestnet: false,
    isShared: false,
    ...more,
  };
}

/** Finds chains as the list of the package does. */
export function knownAmong(chains: readonly KnownChain[]): (text: string) => KnownChain | null {
  return (text) =>
    chains.find(({ chainId, chainName, aliases }) =>
      [String(chainId), chainName, ...aliases].includes(text.toLowerCase()),
    ) ?? null;
}
