// The providers that vendors' entries stand for, on one chain: entries in the chain's own list, and
// those of its profile that name the chain or no chain at all.
import type { z } from "zod";
import type { Chain } from "../core/provider/chain.ts";
import { VENDORS, vendorProviders } from "../presets/vendors.ts";
import { type ConfigFile, provider as providerTable } from "./schema.ts";
import type { VendorSettings } from "./vendor-entry.ts";

type Items = NonNullable<ConfigFile["profiles"][string]["chains"][string]["providers"]>;

/** The settings of one provider. Secret. */
export type ProviderFile = z.output<typeof providerTable> & {
  /** The entry of a profile that it comes from: the limits of a plan are for all its chains. */
  readonly account?: string;
};

/** A chain as entries name it. */
type NamedChain = Pick<Chain, "chainId" | "chainName" | "aliases">;

/** The providers of a chain: those of its own list, then those of the entries of its profile. */
export function providersOn(
  chain: NamedChain,
  own: Items,
  joining: readonly VendorSettings[],
): readonly ProviderFile[] {
  const found = own.flatMap((each) => (isVendorEntry(each) ? vendorProvider(each, chain) : [each]));
  const joined = joining.filter((entry) => joins(entry, chain));
  const added = joined
    .flatMap((entry) => vendorProvider(entry, chain))
    .map((provider) => ({ ...provider, account: provider.id }));
  return [...found, ...added];
}

/** Whether an entry of a profile is for a chain. */
function joins({ chains }: VendorSettings, chain: NamedChain): boolean {
  return chains === undefined || names(chains, chain);
}

function isVendorEntry(item: Items[number]): item is VendorSettings {
  return "vendor" in item;
}

/** The provider that an entry stands for on a chain, if any. */
function vendorProvider(entry: VendorSettings, chain: NamedChain): readonly ProviderFile[] {
  const endpoints = Object.entries(entry.endpoints ?? {});
  const [, endpoint] = endpoints.find(([word]) => names([word], chain)) ?? [];
  const raw = vendorProviders({ ...entry, endpoint }, chain);
  return raw === null ? [] : [providerTable.parse(raw)];
}

/** Whether some of the words lead to a chain, letter case ignored. */
function names(words: readonly string[], { chainId, chainName, aliases }: NamedChain): boolean {
  const own = [chainName, ...aliases, String(chainId)].map((word) => word.toLowerCase());
  return words.some((word) => own.includes(word.toLowerCase()));
}

/** An entry of a vendor in a file, and what becomes of it. */
export interface VendorUse {
  readonly path: readonly (string | number)[];
  readonly vendor: string;
  /** Whether it says itself which chains it is for. */
  readonly isNarrow: boolean;
  /** Chains to which it adds no provider, of those that it is for. */
  readonly lacks: readonly string[];
}

/** Every entry of a vendor in a file. */
export function vendorUses(
  { profiles }: ConfigFile,
  chains: readonly Chain[],
): readonly VendorUse[] {
  return Object.entries(profiles).flatMap(([slug, profile]) => [
    ...profile.providers.map((entry, index): VendorUse => {
      const isFor = chains.filter((chain) => joins(entry, chain));
      const lacking = isFor.filter((chain) => vendorProvider(entry, chain).length === 0);
      return {
        path: ["profiles", slug, "providers", index],
        vendor: entry.vendor,
        isNarrow: entry.chains !== undefined,
        lacks: lacking.map(({ chainName }) => chainName),
      };
    }),
    ...Object.entries(profile.chains).flatMap(([chain, { providers = [] }]) =>
      providers.flatMap((item, index): readonly VendorUse[] => {
        if (!isVendorEntry(item)) return [];
        const path = ["profiles", slug, "chains", chain, "providers", index];
        return [{ path, vendor: item.vendor, isNarrow: true, lacks: [] }];
      }),
    ),
  ]);
}

/** The vendor whose addresses are under a registrable domain, else the domain itself. */
export function vendorOfDomain(domain: string): string {
  return DOMAINS.get(domain) ?? domain;
}

const DOMAINS: ReadonlyMap<string, string> = new Map(
  [...VENDORS].map(([word, { domain }]) => [domain, word]),
);
