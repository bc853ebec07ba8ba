// The document of a Custom profile, and the provider sets built from it. Pure; knows no table and
// shows no address.
import { parse as lookUpSuffix } from "tldts";
import { type ApiFault, apiFault } from "../../core/faults/api-fault.ts";
import type { Chain } from "../../core/provider/chain.ts";
import { operatorOf } from "../../core/provider/operator.ts";
import type {
  Consistency,
  Profile,
  Provider,
  ProviderSet,
  Transport,
} from "../../core/provider/profile.ts";
import { type AddressRules, readUserUrl } from "../../core/public-address.ts";
import { namesOf, STRATEGIES } from "../../core/routing/strategy.ts";
import { usualVerification } from "../../core/stream/log-verification.ts";

/** A Custom profile as its owner wrote it. Contains secrets: never log it. */
export interface ProfileDocument {
  readonly name?: string | undefined;
  /** Which view of the chain callers get; absent = as the service says. */
  readonly consistency?: Consistency | undefined;
  /** By name, alias or decimal id of the chain. */
  readonly chains: Readonly<Record<string, ChainDocument>>;
}

/** The providers of a profile on one chain. */
export interface ChainDocument {
  readonly providers: readonly ProviderDocument[];
  readonly max_lag_blocks: number;
  /** True = providers behind the newest known block are not used. */
  readonly block_protection?: boolean | undefined;
}

/** A provider. At least one of `url` and `ws_url` is set. */
export interface ProviderDocument {
  readonly name: string;
  readonly url?: string | undefined;
  readonly ws_url?: string | undefined;
  readonly headers: Readonly<Record<string, string>>;
  readonly region?: string | undefined;
  readonly limits: {
    readonly archival: boolean;
    readonly logs_span: number | null;
    readonly methods_blocked: readonly string[];
  };
}

/** What a document is read with. */
export interface DocumentParts {
  readonly chains: readonly Chain[];
  readonly rules: AddressRules;
}

/** The owner and name of the resulting profile. */
export interface ProfileName {
  readonly accountId: string;
  readonly slug: string;
}

/**
 * Slugs that no Custom profile may have: managed profiles, strategies, words of the URL grammar,
 * and names used in headers and metrics.
 */
export const RESERVED_SLUGS: ReadonlySet<string> = new Set([
  ..."public premium managed free payment custom default none all operator".split(" "),
  ...STRATEGIES.flatMap(namesOf),
  ..."k key keys session profile profiles provider providers ws rpc api current".split(" "),
]);

/** Providers of one profile, over all its chains. */
export const MAX_PROVIDERS = 64;
const ARCHIVAL_THRESHOLD = 128;
const PROBE_BLOCKS = 2;
const MIN_PROBE_MS = 6_000;
const MAX_PROBE_MS = 30_000;
const NEW_HEADS_BLOCKS = 3.5;
const MIN_NEW_HEADS_MS = 10_000;
const MAX_BACKFILL_BLOCKS = 100;
const BACKFILL_MS = 30_000;

/** Why a document is invalid. */
export type ProfileDocumentFault = ApiFault<"invalid_config" | "unknown_chain">;

/** The profile described by a document, with canonical chain names, or all its faults. */
export function readDocument(
  parts: DocumentParts,
  { accountId, slug }: ProfileName,
  document: ProfileDocument,
): Profile | ProfileDocumentFault {
  const entries = Object.entries(document.chains).map(([name, chain]) => ({
    name,
    chain,
    known: chainOf(parts.chains, name),
  }));
  const unknown = entries
    .filter((entry) => entry.known === undefined)
    .map((entry) => `chains.${entry.name}`);
  if (unknown.length > 0) {
    const nextAction =
      "use a name or decimal id of: " +
      `${parts.chains.map((chain) => `${chain.chainName} (${chain.chainId})`).join(", ")}`;
    return apiFault("unknown_chain", `no chain of this service is called so: ${listed(unknown)}`, {
      details: unknown.slice(0, MAX_NAMED),
      nextAction,
    });
  }
  const consistency =
    document.consistency === undefined ? {} : { consistency: document.consistency };
  const problems: Problem[] = [];
  const sets = new Map<string, ProviderSet>();
  for (const { name, chain, known } of entries) {
    if (known === undefined) continue;
    const at = `chains.${name}`;
    if (sets.has(known.chainName)) problems.push([at, `must not be ${known.chainName} once more`]);
    problems.push(...problemsOf(chain, at, parts.rules));
    sets.set(known.chainName, { ...setOf(known, chain, parts.rules), ...consistency });
  }
  const providers = [...sets.values()].reduce((sum, set) => sum + set.providers.length, 0);
  if (providers > MAX_PROVIDERS)
    problems.push(["chains", `must not have more than ${MAX_PROVIDERS} providers in all`]);
  if (problems.length > 0) return invalid(problems);
  return { slug, owner: accountId, managed: false, chains: sets };
}

/** The document with canonical chain names. */
export function namedByChain(chains: readonly Chain[], document: ProfileDocument): ProfileDocument {
  const entries = Object.entries(document.chains).map(
    ([name, chain]) => [canonicalName(chains, name), chain] as const,
  );
  return { ...document, chains: Object.fromEntries(entries) };
}

/** The document without chains that the service has dropped since it was written. */
export function servedPart(document: ProfileDocument, chains: readonly Chain[]): ProfileDocument {
  const entries = Object.entries(document.chains).filter(
    ([name]) => chainOf(chains, name) !== undefined,
  );
  return { ...document, chains: Object.fromEntries(entries) };
}

/** The canonical name of a chain by any of its names; an unknown one is returned as it is. */
export function canonicalName(chains: readonly Chain[], name: string): string {
  return chainOf(chains, name)?.chainName ?? name;
}

/** A stored document; it was validated before it was sealed. */
export function parseDocument(text: string): ProfileDocument {
  return JSON.parse(text) as ProfileDocument;
}

type Problem = readonly [path: string, message: string];

function problemsOf(
  { providers }: ChainDocument,
  at: string,
  rules: AddressRules,
): readonly Problem[] {
  const names = new Set<string>();
  return providers.flatMap((provider, i) => {
    const path = `${at}.providers[${i}]`;
    const found: Problem[] = [];
    if (names.has(provider.name))
      found.push([`${path}.name`, "must not be the name of another provider of the chain"]);
    names.add(provider.name);
    if (provider.url === undefined && provider.ws_url === undefined)
      found.push([`${path}.url`, "must be given, or ws_url must"]);
    found.push(...urlProblem(`${path}.url`, provider.url, { transport: "http", rules }));
    found.push(...urlProblem(`${path}.ws_url`, provider.ws_url, { transport: "ws", rules }));
    for (const [name, value] of Object.entries(provider.headers))
      if (value === HIDDEN) found.push([`${path}.headers.${name}`, SEND_AGAIN]);
    return found;
  });
}

function urlProblem(
  path: string,
  text: string | undefined,
  { transport, rules }: UrlKind,
): readonly Problem[] {
  if (text === undefined) return [];
  if (text.includes(HIDDEN)) return [[path, SEND_AGAIN]];
  const read = readUserUrl(text, rules);
  if (read.kind === "refused") return [[path, read.reason]];
  const schemes = transport === "http" ? "https:// or http://" : "wss:// or ws://";
  return read.transport === transport ? [] : [[path, `must begin with ${schemes}`]];
}

const SEND_AGAIN = "must not be the shortened form that is shown; send the whole of it again";

interface UrlKind {
  readonly transport: Transport;
  readonly rules: AddressRules;
}

/** Replaces hidden parts of URLs, and values of headers. */
export const HIDDEN = "…";

/** A URL as shown to its owner: scheme and host only. */
export function shownUrl(text: string): string {
  const url = URL.parse(text);
  return url === null ? HIDDEN : `${url.protocol}//${url.host}/${HIDDEN}`;
}

/** Log checks per second that may call user-supplied providers. */
const VERIFICATION_BUDGET = 5;

function chainOf(chains: readonly Chain[], name: string): Chain | undefined {
  return chains.find(
    (chain) =>
      chain.chainName === name || String(chain.chainId) === name || chain.aliases.includes(name),
  );
}

function setOf(
  chain: Chain,
  { providers, max_lag_blocks, block_protection }: ChainDocument,
  rules: AddressRules,
): ProviderSet {
  const { blockTimeMs } = chain;
  return {
    chain,
    maxLagBlocks: block_protection === true ? 0 : max_lag_blocks,
    archivalThreshold: ARCHIVAL_THRESHOLD,
    regionPreference: "prefer",
    probeIntervalMs: Math.min(MAX_PROBE_MS, Math.max(MIN_PROBE_MS, blockTimeMs * PROBE_BLOCKS)),
    socketHeads: false,
    newHeadsTimeoutMs: Math.max(MIN_NEW_HEADS_MS, Math.round(blockTimeMs * NEW_HEADS_BLOCKS)),
    maxBackfillBlocks: MAX_BACKFILL_BLOCKS,
    backfillTimeoutMs: BACKFILL_MS,
    logVerification: usualVerification(blockTimeMs),
    verificationBudget: VERIFICATION_BUDGET,
    providers: providers.map((provider, index) => providerOf(provider, index, rules)),
  };
}

function providerOf(
  { name, url, ws_url, headers, region, limits }: ProviderDocument,
  index: number,
  rules: AddressRules,
): Provider {
  const read = (text: string | undefined): string | null => {
    const address = text === undefined ? null : readUserUrl(text, rules);
    return address?.kind === "url" ? address.url : null;
  };
  const addresses = { url: read(url), wsUrl: read(ws_url) };
  return {
    index,
    id: name,
    name,
    alias: name,
    ...addresses,
    operator: operatorOf(addresses, lookUpSuffix),
    priority: index,
    weight: 1,
    backup: false,
    budget: null,
    batch: null,
    price: null,
    archival: limits.archival,
    region: region ?? null,
    headers,
    unsupportedMethods: new Set(limits.methods_blocked),
    unsupportedCategories: new Set(),
    maxBlockRange: limits.logs_span,
    maxBlockAge: null,
    blockAgeMethods: new Set(),
    errorRules: [],
    guarded: true,
  };
}

function invalid(problems: readonly Problem[]): ApiFault<"invalid_config"> {
  const named = problems.slice(0, MAX_NAMED);
  const paths = [...new Set(named.map(([path]) => path))];
  const nextAction = named.map(([path, message]) => `${path} ${message}`).join("; ");
  return apiFault("invalid_config", `the profile is not right: ${listed(paths)}`, {
    details: paths,
    nextAction,
  });
}

const MAX_NAMED = 20;

function listed(names: readonly string[]): string {
  return names.slice(0, MAX_NAMED).join(", ") + (names.length > MAX_NAMED ? ", …" : "");
}
