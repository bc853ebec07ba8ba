// The earlier revisions of Custom profiles: the last ones of each, without addresses and header
// values. Sealed like profiles themselves, because names of hosts can be telling.

import type { Chain } from "../../core/provider/chain.ts";
import type { Sealer } from "../../secrets/sealer.ts";
import type { Tx } from "../../shared/ledger/ledger.ts";
import type { SealedColumn } from "../../shared/nodes/resealing.ts";
import type { Store } from "../../shared/store/store.ts";
import {
  canonicalName,
  HIDDEN,
  type ProfileDocument,
  type ProviderDocument,
  parseDocument,
  shownUrl,
} from "./document.ts";

/** Revisions that are known of a profile, the present one among them. */
export const MAX_REVISIONS = 20;

/** A revision of a profile. */
export interface RevisionRef {
  readonly profileId: string;
  readonly revision: number;
}

/** When a revision was saved. */
export interface RevisionEntry {
  readonly revision: number;
  readonly savedAtMs: number;
}

/** A revision with its document, without secrets. */
export interface ProfileRevision extends RevisionEntry {
  readonly document: ProfileDocument;
}

/** Keeps a revision that is being replaced, and forgets those beyond the bound. */
export async function keepRevision(
  tx: Tx,
  sealer: Sealer,
  profileId: string,
  { revision, savedAtMs, document }: ProfileRevision,
): Promise<void> {
  const context = contextOf({ profileId, revision });
  await tx
    .insertInto("profile_revision")
    .values({
      profile_id: profileId,
      revision: BigInt(revision),
      sealed: sealer.seal(JSON.stringify(withoutSecrets(document)), context),
      saved_at: BigInt(savedAtMs),
    })
    .onConflict((conflict) => conflict.doNothing())
    .execute();
  // Numbers have no gaps: deleting a profile forgets its revisions.
  await tx
    .deleteFrom("profile_revision")
    .where("profile_id", "=", profileId)
    .where("revision", "<=", BigInt(revision - (MAX_REVISIONS - 1)))
    .execute();
}

/** The earlier revisions of a profile, the latest first. */
export async function earlierRevisions(
  db: Pick<Store["db"], "selectFrom">,
  profileId: string,
): Promise<readonly RevisionEntry[]> {
  const rows = await db
    .selectFrom("profile_revision")
    .select(["revision", "saved_at"])
    .where("profile_id", "=", profileId)
    .orderBy("revision", "desc")
    .limit(MAX_REVISIONS)
    .execute();
  return rows.map((row) => ({ revision: Number(row.revision), savedAtMs: Number(row.saved_at) }));
}

/** An earlier revision; null = it is not kept, or cannot be unsealed any more. */
export async function earlierRevision(
  { store, sealer }: { readonly store: Pick<Store, "db">; readonly sealer: Sealer },
  ref: RevisionRef,
): Promise<ProfileRevision | null> {
  const row = await store.db
    .selectFrom("profile_revision")
    .selectAll()
    .where("profile_id", "=", ref.profileId)
    .where("revision", "=", BigInt(ref.revision))
    .executeTakeFirst();
  const text = row === undefined ? null : sealer.open(row.sealed, contextOf(ref));
  if (row === undefined || text === null) return null;
  return {
    revision: ref.revision,
    savedAtMs: Number(row.saved_at),
    document: parseDocument(text),
  };
}

/** Forgets the earlier revisions of a profile. */
export async function forgetRevisions(tx: Tx, profileId: string): Promise<void> {
  await tx.deleteFrom("profile_revision").where("profile_id", "=", profileId).execute();
}

/** The sealed documents of revisions. */
export const SEALED_REVISIONS: SealedColumn = {
  table: "profile_revision",
  column: "sealed",
  key: ["profile_id", "revision"],
  contextOf: (profileId = "", revision) => contextOf({ profileId, revision: Number(revision) }),
};

function contextOf({ profileId, revision }: RevisionRef): string {
  return `profile ${profileId} revision ${revision}`;
}

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
