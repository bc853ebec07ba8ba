// The text of a Custom profile in the editor: made from what is saved, as far as that is shown, and
// read back. Pure.
import type { AnswerOf } from "../../api/contract-types.ts";
import { isObject, type SchemaProblem } from "../../editor/schema-check.ts";

type Revision = AnswerOf<"GET /api/v1/profiles/{slug}/revisions/{revision}">;
type Provider = Revision["chains"][string]["providers"][number];

/** What is shown of a profile or of a revision of it. */
export type Shown = Pick<Revision, "name" | "consistency" | "chains">;

/** Stands for what is hidden. */
const HIDDEN = "…";

/** The document of a saved profile as text: addresses and header values are hidden. */
export function draftOf({ name, consistency, chains }: Shown): string {
  const shown = Object.entries(chains).map(([chain, { providers, ...rest }]) => [
    chain,
    { ...rest, providers: providers.map(providerOf) },
  ]);
  return textOf({
    name: name ?? undefined,
    consistency: consistency ?? undefined,
    chains: Object.fromEntries(shown),
  });
}

/** A provider as the document has it; JSON leaves out members that are undefined. */
function providerOf({ name, url, ws_url, headers, region, limits }: Provider): object {
  const hidden = Object.fromEntries(headers.map((header) => [header, HIDDEN]));
  return {
    name,
    url: url ?? undefined,
    ws_url: ws_url ?? undefined,
    headers: headers.length === 0 ? undefined : hidden,
    region: region ?? undefined,
    limits,
  };
}

/** A document as text. */
export function textOf(document: unknown): string {
  return JSON.stringify(document, null, 2);
}

/** Providers of a document by chain, as far as it has any. */
export function providersOf(
  document: unknown,
): readonly { readonly chain: string; readonly path: string; readonly provider: Fields }[] {
  const chains = fieldsOf(fieldsOf(document)["chains"]);
  return Object.entries(chains).flatMap(([chain, value]) => {
    const { providers } = fieldsOf(value);
    return (Array.isArray(providers) ? providers : []).map((provider: unknown, at) => ({
      chain,
      path: `chains.${chain}.providers[${at}]`,
      provider: fieldsOf(provider),
    }));
  });
}

type Fields = Readonly<Record<string, unknown>>;

function fieldsOf(value: unknown): Fields {
  return isObject(value) ? value : {};
}

/**
 * What is hidden in a document and cannot be kept: the service keeps an address where the same host
 * is saved, and a header value where all addresses are kept.
 */
export function hiddenProblems(document: unknown, saved: Shown | null): readonly SchemaProblem[] {
  return providersOf(document).flatMap(({ chain, path, provider }) => {
    const known = saved !== null && Object.hasOwn(saved.chains, chain) ? saved.chains[chain] : null;
    const before = known?.providers.find(({ name }) => name === provider["name"]) ?? null;
    const isKept = (field: "url" | "ws_url"): boolean =>
      (provider[field] ?? null) === (before?.[field] ?? null);
    const addresses = (["url", "ws_url"] as const)
      .filter((field) => String(provider[field] ?? "").includes(HIDDEN) && !isKept(field))
      .map((field) => ({ path: `${path}.${field}`, message: "was hidden: type it again" }));
    const headers = Object.entries(fieldsOf(provider["headers"]))
      .filter(([, value]) => value === HIDDEN)
      .filter(([name]) => !(isKept("url") && isKept("ws_url") && before?.headers.includes(name)))
      .map(([name]) => ({
        path: `${path}.headers.${name}`,
        message: "was hidden, and is kept only while the addresses are: type it again",
      }));
    return [...addresses, ...headers];
  });
}
