// Renders Custom profiles for their owners: URLs and header values hidden, with the current status
// of each provider.
import { z } from "zod";
import {
  MAX_CHAIN_PROVIDERS,
  MAX_CHAINS,
  MAX_PROVIDERS,
  type ProfileDocument,
  type ProviderDocument,
  profileDocument,
  RESERVED_SLUGS,
  shownUrl,
} from "../../../hosted/profiles/document.ts";
import { type ProfileRecord, profileSlugs } from "../../../hosted/profiles/profiles.ts";
import type { ProfileRevision } from "../../../hosted/profiles/revisions.ts";
import * as shape from "../../contract/profiles.ts";
import type { HandlerParts } from "../parts.ts";
import type { StatusOf } from "../provider-status.ts";
import { instant, instantOrNull } from "./views.ts";

type ShownProfile = Pick<ProfileRecord, "slug" | "document"> & {
  readonly [Field in "revision" | "createdAtMs" | "updatedAtMs"]: number | null;
};

/** What is shown of a profile in addition to its document. */
export interface ShownFacts {
  readonly accountId: string;
  readonly isOpen: boolean;
  readonly status: StatusOf;
}

/**
 * Slugs of the profiles that the keys of an account can use; null = an account still to be created.
 */
export async function profilesOfAccount(
  { store, profiles }: Pick<HandlerParts, "store" | "profiles">,
  accountId: string | null,
): Promise<readonly string[]> {
  return accountId === null
    ? profiles()
    : [...profiles(), ...(await profileSlugs(store.db, accountId))];
}

/** Renders a stored profile, or one that was only checked, which has no revision and no times. */
export function profileView(
  { slug, revision, document, createdAtMs, updatedAtMs }: ShownProfile,
  { accountId, isOpen, status }: ShownFacts,
): z.output<typeof shape.profile> {
  const servedState = isOpen ? "active" : "suspended";
  return {
    slug,
    ...labelsOf(document),
    revision,
    state: document === null ? "unreadable" : servedState,
    chains: chainsView(document, (provider, chain) => ({
      ...hiddenProvider(provider),
      status: status({ accountId, slug, chain, provider: provider.name }),
    })),
    created_at: instantOrNull(createdAtMs),
    updated_at: instantOrNull(updatedAtMs),
  };
}

/** Renders a revision of a profile. */
export function revisionView(
  slug: string,
  { revision, savedAtMs, document }: ProfileRevision,
): z.output<typeof shape.revision> {
  const chains = chainsView(document, hiddenProvider);
  return { slug, revision, saved_at: instant(savedAtMs), ...labelsOf(document), chains };
}

function labelsOf(document: ProfileDocument | null) {
  return { name: document?.name ?? null, consistency: document?.consistency ?? null };
}

function chainsView<Shown>(
  document: ProfileDocument | null,
  shown: (provider: ProviderDocument, chain: string) => Shown,
) {
  return Object.fromEntries(
    Object.entries(document?.chains ?? {}).map(
      ([chain, { max_lag_blocks, block_protection = false, providers }]) => [
        chain,
        {
          max_lag_blocks,
          block_protection,
          providers: providers.map((provider) => shown(provider, chain)),
        },
      ],
    ),
  );
}

function hiddenProvider({ name, url, ws_url, headers, region, limits }: ProviderDocument) {
  return {
    name,
    url: url === undefined ? null : shownUrl(url),
    ws_url: ws_url === undefined ? null : shownUrl(ws_url),
    headers: Object.keys(headers),
    region: region ?? null,
    limits: { ...limits, methods_blocked: [...limits.methods_blocked] },
  };
}

/** The schema with the limits of this instance. */
export function configurationDocument({
  custom,
  ...parts
}: Pick<HandlerParts, "custom" | "chains">): z.output<typeof shape.configurationSchema> {
  const chains = parts.chains();
  return {
    schema: { ...z.toJSONSchema(profileDocument, { target: "draft-2020-12", io: "input" }) },
    limits: {
      max_profiles: custom.maxProfiles,
      max_chains: MAX_CHAINS,
      max_providers_per_chain: MAX_CHAIN_PROVIDERS,
      max_providers: MAX_PROVIDERS,
      max_document_bytes: shape.MAX_DOCUMENT_BYTES,
      requests_per_second: custom.requestsPerSecond,
      reserved_slugs: [...RESERVED_SLUGS],
    },
    chains: chains.map((chain) => ({ name: chain.chainName, chain_id: chain.chainId })),
    workload_recipes: recipesFor(chains[0]?.chainName ?? "ethereum"),
  };
}

type Recipe = z.output<typeof shape.configurationSchema>["workload_recipes"][number];

const HTTP = (name: string) => ({ name, url: `https://${name}.example.com/v1/YOUR-KEY` });
const BOTH = (name: string) => ({ ...HTTP(name), ws_url: `wss://${name}.example.com/v1/YOUR-KEY` });

function recipesFor(chain: string): Recipe[] {
  const documentOf = (providers: readonly object[], more: object = {}) => ({
    chains: { [chain]: { providers, ...more } },
  });
  const archive = { archival: true };
  return [
    {
      id: "archive-reads",
      purpose: "State of old blocks: balances, storage and calls at any height.",
      strategy: "load-balanced",
      advice:
        "Mark every provider that keeps all state with limits.archival: calls for old blocks " +
        "go to those only, and the others take the rest.",
      document: documentOf([
        { ...HTTP("archive-a"), limits: archive },
        { ...HTTP("archive-b"), limits: archive },
        HTTP("full-node"),
      ]),
    },
    {
      id: "logs-indexer",
      purpose: "eth_getLogs over long ranges, block after block.",
      strategy: "load-balanced",
      advice:
        "Declare the largest range that each provider takes as limits.logs_span: longer ones " +
        "go to the others first. Ask for whole receipts with eth_getBlockReceipts where you " +
        "need all logs.",
      document: documentOf([
        { ...HTTP("wide-range"), limits: { archival: true, logs_span: 10_000 } },
        { ...HTTP("narrow-range"), limits: { logs_span: 500 } },
      ]),
    },
    {
      id: "low-latency-trading",
      purpose: "The newest state and the fastest answer.",
      strategy: "fastest",
      advice:
        "Providers in several networks near you, and max_lag_blocks as small as your trades " +
        "need: one that falls behind is left out at once. eth_sendRawTransaction goes to one " +
        "provider at a time.",
      document: documentOf([BOTH("near-a"), BOTH("near-b"), BOTH("near-c")], { max_lag_blocks: 1 }),
    },
    {
      id: "websocket-feeds",
      purpose: "newHeads and logs subscriptions that survive a provider.",
      strategy: "priority",
      advice:
        "Give at least two providers a ws_url: a subscription goes on at the next one without " +
        "a gap. Their order is the order of preference.",
      document: documentOf([BOTH("feed-main"), BOTH("feed-spare")]),
    },
  ];
}
