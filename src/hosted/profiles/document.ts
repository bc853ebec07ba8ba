// The document of a Custom profile, and the provider sets built from it. Pure; knows no table and
// shows no address.
import { parse as lookUpSuffix } from "tldts";
import { z } from "zod";
import { type ApiFault, apiFault } from "../../core/faults/api-fault.ts";
import { NO_CONTROLS } from "../../core/fields.ts";
import type { Chain } from "../../core/provider/chain.ts";
import { operatorOf } from "../../core/provider/operator.ts";
import {
  CONSISTENCIES,
  type Profile,
  type Provider,
  type ProviderSet,
  type Transport,
} from "../../core/provider/profile.ts";
import { type AddressRules, readUserUrl } from "../../core/public-address.ts";
import { namesOf, STRATEGIES } from "../../core/routing/strategy.ts";

/** Chains per profile. */
export const MAX_CHAINS = 20;

/** Providers per chain of a profile. */
export const MAX_CHAIN_PROVIDERS = 16;

const METHOD = z.string().regex(/^[A-Za-z][A-Za-z0-9_]{0,99}$/);

const MANAGED_HEADERS: ReadonlySet<string> = new Set(
  (
    "connection content-length content-type content-encoding accept-encoding expect host " +
    "keep-alive proxy-connection te trailer transfer-encoding upgrade"
  ).split(" "),
);

const headerName = z
  .string()
  .regex(/^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}$/)
  .refine(
    (name) =>
      !MANAGED_HEADERS.has(name.toLowerCase()) && !name.toLowerCase().startsWith("sec-websocket"),
  );

const headerValue = z
  .string()
  .max(4_096)
  .regex(/^(?:[\t\x20-\x7e\x80-\xff]*|…)$/);

const provider = z
  .strictObject({
    name: z
      .string()
      .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/)
      .describe(
        "What you call it: unique on its chain, used in pins and shown in `svc_meta`. Letters, " +
          "digits, `-`, `_`, `.`.",
      ),
    url: z
      .string()
      .max(2_048)
      .optional()
      .describe(
        "https:// or http:// address for JSON-RPC over HTTP. Write-only. One of `url` and `ws_url` " +
          "is needed.",
      ),
    ws_url: z
      .string()
      .max(2_048)
      .optional()
      .describe(
        "wss:// or ws:// address for JSON-RPC over WebSocket, for subscriptions. Write-only.",
      ),
    headers: z
      .record(headerName, headerValue)
      .refine((headers) => Object.keys(headers).length <= 20)
      .default({})
      .describe("Sent with every request to this provider, 20 at most. Write-only."),
    region: z
      .string()
      .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/)
      .optional()
      .describe(
        "Where it is: one of `cluster.regions` in `GET /api/health`. Nodes of that region ask it " +
          "first where the strategy has no better reason.",
      ),
    limits: z
      .strictObject({
        archival: z
          .boolean()
          .default(false)
          .describe("Serves state, proofs and traces of any block, however old."),
        logs_span: z
          .int()
          .min(1)
          .max(1_000_000_000)
          .nullable()
          .default(null)
          .describe("Largest block range of `eth_getLogs`; null = not known."),
        methods_blocked: z
          .array(METHOD)
          .max(200)
          .default([])
          .describe("Methods that are not sent to it while another provider serves them."),
      })
      .prefault({})
      .describe("What it cannot do."),
  })
  .meta({ id: "ProfileProvider", description: "One of your own endpoints." });

const chain = z
  .strictObject({
    providers: z
      .array(provider)
      .min(1)
      .max(MAX_CHAIN_PROVIDERS)
      .describe("Your endpoints, the preferred one first: strategy `priority` keeps this order."),
    max_lag_blocks: z
      .int()
      .min(0)
      .max(100_000)
      .default(5)
      .describe("A provider further behind the others than this is left out."),
    block_protection: z
      .boolean()
      .default(false)
      .describe(
        "Leaves out every provider that has not reached the newest block known, regardless of " +
          "`max_lag_blocks`: no read is answered from a block behind while one that has it can be " +
          "asked.",
      ),
  })
  .meta({ id: "ProfileChain", description: "Your endpoints on one chain." });

/** The document of a Custom profile, as its owner writes it. */
export const profileDocument = z
  .strictObject({
    name: z.string().min(1).max(100).regex(NO_CONTROLS).optional().describe("A label for you."),
    consistency: z
      .enum(CONSISTENCIES)
      .optional()
      .describe(
        "Which view of the chain callers get. `tip`: one newest block for all providers, to which " +
          "`latest` is resolved. `caller`: as well, no caller is shown an older block than before. " +
          "`off`: block tags go to the provider as written. Default: as the service says.",
      ),
    chains: z
      .record(z.string().min(1).max(64), chain)
      .refine(
        (chains) => Object.keys(chains).length >= 1 && Object.keys(chains).length <= MAX_CHAINS,
      )
      .describe("By name or decimal id of the chain."),
  })
  .meta({
    id: "ProfileDocument",
    description:
      "A Custom profile: your own providers behind this service's routing, failover and health.",
  });

/** A Custom profile as its owner wrote it. Contains secrets: never log it. */
export type ProfileDocument = z.output<typeof profileDocument>;
/** The providers of a profile on one chain. */
export type ChainDocument = z.output<typeof chain>;
/** A provider. At least one of `url` and `ws_url` is set. */
export type ProviderDocument = z.output<typeof provider>;

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
    logVerification: null,
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
    pipelining: false,
    price: null,
    archival: limits.archival,
    history: {},
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
