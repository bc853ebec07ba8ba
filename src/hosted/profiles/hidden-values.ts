// What is secret in the document of a Custom profile, its addresses and header values: hidden in
// what owners are shown, and found again when a shown document comes back. Pure.
import type { Chain } from "../../core/provider/chain.ts";
import {
  canonicalName,
  HIDDEN,
  type ProfileDocument,
  type ProviderDocument,
  shownUrl,
} from "./document.ts";

/** The document as its owner is shown it: nothing in it is secret. */
export function withoutSecrets(document: ProfileDocument): ProfileDocument {
  return mapProviders(document, (provider) => ({
    ...provider,
    ...(provider.url === undefined ? {} : { url: shownUrl(provider.url) }),
    ...(provider.ws_url === undefined ? {} : { ws_url: shownUrl(provider.ws_url) }),
    headers: Object.fromEntries(Object.keys(provider.headers).map((name) => [name, HIDDEN])),
  }));
}

/**
 * The document with what is hidden in it taken from the saved one: from the provider of the same
 * name on the same chain. An address is kept where the same host is shown, a header value only
 * where all addresses are kept, so that no secret is sent to a host that it was not given for. What
 * cannot be kept stays hidden.
 */
export function withSavedSecrets(
  document: ProfileDocument,
  saved: ProfileDocument,
  chains: readonly Chain[],
): ProfileDocument {
  return mapProviders(document, (provider, chain) => {
    const name = canonicalName(chains, chain);
    const known = Object.hasOwn(saved.chains, name) ? saved.chains[name] : undefined;
    const before = known?.providers.find((each) => each.name === provider.name);
    return before === undefined ? provider : withSecretsOf(provider, before);
  });
}

function withSecretsOf(provider: ProviderDocument, before: ProviderDocument): ProviderDocument {
  const url = keptUrl(provider.url, before.url);
  const wsUrl = keptUrl(provider.ws_url, before.ws_url);
  const isSameHost = url === before.url && wsUrl === before.ws_url;
  const keptValue = (name: string, value: string): string =>
    value === HIDDEN && isSameHost && Object.hasOwn(before.headers, name)
      ? (before.headers[name] ?? value)
      : value;
  return {
    ...provider,
    ...(url === undefined ? {} : { url }),
    ...(wsUrl === undefined ? {} : { ws_url: wsUrl }),
    headers: Object.fromEntries(
      Object.entries(provider.headers).map(([name, value]) => [name, keptValue(name, value)]),
    ),
  };
}

function keptUrl(given: string | undefined, before: string | undefined): string | undefined {
  return before !== undefined && given === shownUrl(before) ? before : given;
}

function mapProviders(
  document: ProfileDocument,
  change: (provider: ProviderDocument, chain: string) => ProviderDocument,
): ProfileDocument {
  const chains = Object.entries(document.chains).map(
    ([name, chain]) =>
      [
        name,
        { ...chain, providers: chain.providers.map((provider) => change(provider, name)) },
      ] as const,
  );
  return { ...document, chains: Object.fromEntries(chains) };
}
