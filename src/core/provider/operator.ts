// Who runs a provider, told by the host of its address: providers of one operator err together, so
// they count as one voice. The list of public suffixes is handed in. Resolves no names.
import { bareHost } from "../public-address.ts";
import type { Provider } from "./profile.ts";

/** What the list of public suffixes says of a host. */
interface FoundSuffix {
  readonly domain: string | null;
  readonly publicSuffix: string | null;
  /** Whether the suffix is in the list's section of registries, or in that of companies. */
  readonly isIcann: boolean | null;
  readonly isPrivate: boolean | null;
}

/** Looks up a host in the list of public suffixes: `parse` of `tldts`. */
export type SuffixLookup = (
  host: string,
  options: { readonly allowPrivateDomains: boolean; readonly validateHostname: boolean },
) => FoundSuffix;

/** The operator of every host without a public suffix: nodes that are somebody's own. */
export const OWN_OPERATOR = "own";

/**
 * The operator of a provider: the registrable domain of the host of its HTTP address, or of its
 * WebSocket address if that is its only one. A part of the address, and as secret.
 */
export function operatorOf(
  { url, wsUrl }: Pick<Provider, "url" | "wsUrl">,
  lookup: SuffixLookup,
): string {
  const hostname = URL.parse(url ?? wsUrl ?? "")?.hostname ?? "";
  // Names with odd labels, which resolvers accept, have a domain as well.
  const found = lookup(bareHost(hostname), { allowPrivateDomains: true, validateHostname: false });
  return isPublic(found) ? (found.domain ?? found.publicSuffix) : OWN_OPERATOR;
}

/**
 * Whether the internet knows the host. The list also has `dev`, which as a whole host name is a
 * machine of a local network, and `home.arpa`, which is reserved for such networks.
 */
function isPublic(found: FoundSuffix): found is FoundSuffix & { readonly publicSuffix: string } {
  const { domain, publicSuffix, isIcann, isPrivate } = found;
  if (publicSuffix === null || (isIcann !== true && isPrivate !== true)) return false;
  return (domain ?? publicSuffix).includes(".") && !/(?:^|\.)arpa$/.test(publicSuffix);
}

/** Whose word a report about the newest block is: own nodes count one by one. */
export function tipOperatorOf({ operator, id }: Pick<Provider, "operator" | "id">): string {
  return operator === OWN_OPERATOR ? `${OWN_OPERATOR} ${id}` : operator;
}
