// Renders Custom profiles for their owners: URLs and header values hidden, with the current status
// of each provider.

import type { z } from "zod";
import {
  type ProfileDocument,
  type ProviderDocument,
  shownUrl,
} from "../../../hosted/profiles/document.ts";
import { type ProfileRecord, profileSlugs } from "../../../hosted/profiles/profiles.ts";
import type { ProfileRevision } from "../../../hosted/profiles/revisions.ts";
import type * as shape from "../../contract/profiles.ts";
import type { HandlerParts } from "../parts.ts";
import type { StatusOf } from "../provider-status.ts";
import { instant, instantOrNull } from "./views.ts";

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

/** Renders a stored profile. */
export function profileView(
  record: ProfileRecord,
  facts: ShownFacts,
): z.output<typeof shape.profile> {
  const { slug, revision, document } = record;
  const servedState = facts.isOpen ? "active" : "suspended";
  return {
    slug,
    name: document?.name ?? null,
    consistency: document?.consistency ?? null,
    revision,
    state: document === null ? "unreadable" : servedState,
    chains: document === null ? {} : chainsView(document, slug, facts),
    created_at: instantOrNull(record.createdAtMs),
    updated_at: instantOrNull(record.updatedAtMs),
  };
}

/** Renders a revision of a profile. */
export function revisionView(
  slug: string,
  { revision, savedAtMs, document }: ProfileRevision,
): z.output<typeof shape.revision> {
  const chains = Object.entries(document.chains).map(
    ([chain, { max_lag_blocks, block_protection = false, providers }]) =>
      [
        chain,
        { max_lag_blocks, block_protection, providers: providers.map(hiddenProvider) },
      ] as const,
  );
  return {
    slug,
    revision,
    saved_at: instant(savedAtMs),
    name: document.name ?? null,
    consistency: document.consistency ?? null,
    chains: Object.fromEntries(chains),
  };
}

/** Renders a profile that was checked but not stored (dry run). */
export function dryView(slug: string, document: ProfileDocument): z.output<typeof shape.profile> {
  const facts: ShownFacts = { accountId: "", isOpen: true, status: () => "verified" };
  return {
    slug,
    name: document.name ?? null,
    consistency: document.consistency ?? null,
    revision: null,
    state: "active",
    chains: chainsView(document, slug, facts),
    created_at: null,
    updated_at: null,
  };
}

function chainsView(
  document: ProfileDocument,
  slug: string,
  { accountId, status }: ShownFacts,
): z.output<typeof shape.profile>["chains"] {
  return Object.fromEntries(
    Object.entries(document.chains).map(
      ([chain, { max_lag_blocks, block_protection = false, providers }]) => {
        const shown = providers.map((provider) => ({
          ...hiddenProvider(provider),
          status: status({ accountId, slug, chain, provider: provider.name }),
        }));
        return [chain, { max_lag_blocks, block_protection, providers: shown }];
      },
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
