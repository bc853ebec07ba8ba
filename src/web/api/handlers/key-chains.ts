// Decides which chains a key can call without naming a profile, and which chain its ready-made URLs
// use.
import type { ManagedSlug } from "../../../core/billing/access.ts";
import type { Chain } from "../../../core/provider/chain.ts";
import { exampleChain } from "../../../core/provider/example-chain.ts";
import { DEFAULT_PROFILE } from "../../../hosted/keys/key-profiles.ts";
import { profileBySlug } from "../../../hosted/profiles/profiles.ts";
import type { HandlerParts } from "../parts.ts";

type ChainParts = Pick<HandlerParts, "chains" | "servedChains" | "store" | "custom">;

/** The account of a key (null = a new account) and its default profile (null = `premium`). */
export interface KeyDefaults {
  readonly accountId: string | null;
  readonly profile: string | null;
}

/**
 * The chains that a new key can call without naming a profile, in the order of the configuration.
 */
export function defaultChains({
  chains,
  servedChains,
}: Pick<HandlerParts, "chains" | "servedChains">): readonly Chain[] {
  const served = servedChains(DEFAULT_PROFILE);
  return chains.filter((chain) => served.includes(chain.chainName));
}

/** The chain in the URLs of a key whose default profile is managed. */
export function chainOfManaged(
  { chains, servedChains }: Pick<ChainParts, "chains" | "servedChains">,
  slug: ManagedSlug,
): string {
  const served = servedChains(slug);
  const ordered = chains.map((chain) => chain.chainName).filter((name) => served.includes(name));
  return exampleChain(ordered, servedChains("public")) ?? chains[0]?.chainName ?? "ethereum";
}

/** The chain in the URLs of a key: one that its default profile serves. */
export async function chainOfKey(
  parts: ChainParts,
  { accountId, profile }: KeyDefaults,
): Promise<string> {
  const slug = profile ?? DEFAULT_PROFILE;
  if (slug === "premium" || slug === "public") return chainOfManaged(parts, slug);
  const record =
    accountId === null
      ? null
      : await profileBySlug(
          { store: parts.store, sealer: parts.custom.sealer },
          { accountId, slug },
        );
  const own = Object.keys(record?.document?.chains ?? {});
  const ordered = parts.chains.filter(({ chainName, chainId, aliases }) =>
    own.some(
      (segment) =>
        segment === chainName || segment === String(chainId) || aliases.includes(segment),
    ),
  );
  // Without Custom access, `premium` serves the profile.
  return (
    exampleChain(
      ordered.map((chain) => chain.chainName),
      parts.servedChains("premium"),
    ) ?? chainOfManaged(parts, "premium")
  );
}
