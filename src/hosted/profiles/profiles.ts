// The Custom profiles of accounts in the store: read, write, delete, each change in one
// transaction. Documents are sealed. Contacts no provider: callers check documents before they save
// them.

import { type ApiFault, apiFault } from "../../core/faults/api-fault.ts";
import { isRecord } from "../../core/fields.ts";
import type { Sealer } from "../../secrets/sealer.ts";
import { newId } from "../../secrets/secret.ts";
import { type Change, recordChange } from "../../shared/changes/change-log.ts";
import { lockAccounts, type Tx } from "../../shared/ledger/ledger.ts";
import { mergedInto } from "../../shared/ledger/merged-accounts.ts";
import type { SealedColumn } from "../../shared/nodes/resealing.ts";
import type { Store } from "../../shared/store/store.ts";
import type { ProfileTable } from "../../shared/store/tables.ts";
import { customUntilMs, MAX_DELETED } from "./custom-access.ts";
import { type ProfileDocument, parseDocument } from "./document.ts";
import {
  earlierRevision,
  earlierRevisions,
  forgetRevisions,
  keepRevision,
  type ProfileRevision,
  type RevisionEntry,
  SEALED_REVISIONS,
} from "./revisions.ts";

/** What profiles are stored with. */
export interface ProfileParts {
  readonly store: Store;
  readonly sealer: Sealer;
  /** Profiles per account. */
  readonly maxProfiles: number;
}

/** A Custom profile. */
export interface ProfileRecord {
  readonly kind: "profile";
  readonly slug: string;
  readonly revision: number;
  /** Null = it cannot be unsealed: it was sealed with a secret that this service does not have. */
  readonly document: ProfileDocument | null;
  readonly createdAtMs: number;
  readonly updatedAtMs: number;
}

/** A profile by account and slug. */
export interface ProfileRef {
  readonly accountId: string;
  readonly slug: string;
}

/**
 * The revision that a change expects: a number, any existing one, none stated, or one that cannot
 * exist.
 */
export type ExpectedRevision = number | "any" | "none_named" | "no_such";

/** A profile by its slug; null = none. */
export async function profileBySlug(
  { store, sealer }: Pick<ProfileParts, "store" | "sealer">,
  ref: ProfileRef,
): Promise<ProfileRecord | null> {
  const row = await rowOf(store.db, ref);
  return row === undefined || row.sealed === null ? null : recordOf(sealer, row);
}

/** The profiles of an account, ordered by slug. */
export async function listProfiles(
  { store, sealer }: ProfileParts,
  accountId: string,
): Promise<readonly ProfileRecord[]> {
  const rows = await store.db
    .selectFrom("profile")
    .selectAll()
    .where("account_id", "=", accountId)
    .where("sealed", "is not", null)
    .orderBy("slug")
    .limit(MAX_LISTED)
    .execute();
  return rows.map((row) => recordOf(sealer, row));
}

/** The revisions of a profile, the present one first; null = there is no such profile. */
export async function profileRevisions(
  { store }: Pick<ProfileParts, "store">,
  ref: ProfileRef,
): Promise<readonly RevisionEntry[] | null> {
  const row = await rowOf(store.db, ref);
  if (row === undefined || row.sealed === null) return null;
  const present = { revision: Number(row.revision), savedAtMs: Number(row.updated_at) };
  return [present, ...(await earlierRevisions(store.db, row.id))];
}

/** A revision of a profile, without secrets; null = it is not known. */
export async function profileRevision(
  parts: Pick<ProfileParts, "store" | "sealer">,
  ref: ProfileRef,
  revision: number,
): Promise<ProfileRevision | null> {
  const row = await rowOf(parts.store.db, ref);
  if (row === undefined || row.sealed === null) return null;
  return Number(row.revision) === revision
    ? revisionOf(recordOf(parts.sealer, row))
    : earlierRevision(parts, { profileId: row.id, revision });
}

/** The slugs of an account's profiles. */
export async function profileSlugs(
  db: Pick<Store["db"], "selectFrom">,
  accountId: string,
): Promise<readonly string[]> {
  const rows = await db
    .selectFrom("profile")
    .select("slug")
    .where("account_id", "=", accountId)
    .where("sealed", "is not", null)
    .orderBy("slug")
    .execute();
  return rows.map(({ slug }) => slug);
}

/** Why a profile is not written. */
export type ProfileRefusal = ApiFault<
  | "custom_access_required"
  | "profile_suspended"
  | "profile_limit"
  | "revision_conflict"
  | "account_merged"
>;

/** A change of a profile. */
export interface ProfileChange extends ProfileRef {
  readonly expected: ExpectedRevision;
  readonly nowMs: number;
}

/** Why a profile may not be written now; null = it may. */
export function writeRefusal(
  { store, maxProfiles }: ProfileParts,
  change: ProfileChange,
): Promise<ProfileRefusal | null> {
  return store.transaction((tx) => refusalOf(tx, maxProfiles, change));
}

/** Writes a profile. Writing the current document again creates no new revision. */
export function saveProfile(
  parts: ProfileParts,
  change: ProfileChange,
  document: ProfileDocument,
): Promise<ProfileRecord | ProfileRefusal> {
  const { store, sealer, maxProfiles } = parts;
  return store.transaction(async (tx) => {
    await lockAccounts(tx, change.accountId);
    const refusal = await refusalOf(tx, maxProfiles, change);
    if (refusal !== null) return refusal;
    const before = await rowOf(tx, change);
    if (
      before !== undefined &&
      before.sealed !== null &&
      textOf(recordOf(sealer, before).document) === textOf(document)
    )
      return recordOf(sealer, before);
    const row = rowAfter(sealer, before, change, document);
    const replaced = before === undefined ? null : revisionOf(recordOf(sealer, before));
    await tx
      .insertInto("profile")
      .values(row)
      .onConflict((conflict) => conflict.column("id").doUpdateSet(row))
      .execute();
    // A version without revisions left the revisions of a profile that it deleted.
    if (before?.sealed === null) await forgetRevisions(tx, row.id);
    if (replaced !== null) await keepRevision(tx, sealer, row.id, replaced);
    await recordChange(tx, ...changesOf(change));
    return recordOf(sealer, row);
  });
}

/**
 * Deletes a profile, if it exists. Its slug is kept, so that its callers are served by another
 * profile. `false` = it never existed.
 */
export function deleteProfile(
  { store }: ProfileParts,
  change: ProfileChange,
): Promise<boolean | ApiFault<"revision_conflict">> {
  return store.transaction(async (tx) => {
    await lockAccounts(tx, change.accountId);
    const row = await rowOf(tx, change);
    const conflict = conflictOf(change.expected, row);
    if (row === undefined || row.sealed === null) return conflict ?? row !== undefined;
    if (conflict !== null) return conflict;
    const deleted = {
      sealed: null,
      revision: row.revision + 1n,
      updated_at: BigInt(Math.floor(change.nowMs)),
    };
    await tx.updateTable("profile").set(deleted).where("id", "=", row.id).execute();
    await forgetRevisions(tx, row.id);
    await forgetOldest(tx, change.accountId);
    await recordChange(tx, ...changesOf(change));
    return true;
  });
}

/** What other nodes hear: the account's list of profiles, and the profile. */
function changesOf({ accountId, slug }: ProfileRef): readonly Change[] {
  return [
    { topic: "account", ref: accountId },
    { topic: "profile", ref: `${accountId}/${slug}` },
  ];
}

/** The sealed documents of profiles, and of their earlier revisions. */
export const SEALED_PROFILES: readonly SealedColumn[] = [
  { table: "profile", column: "sealed", key: ["id"], contextOf },
  SEALED_REVISIONS,
];

const MAX_LISTED = 1_000;

function rowOf(
  db: Pick<Store["db"], "selectFrom">,
  { accountId, slug }: ProfileRef,
): Promise<ProfileTable | undefined> {
  return db
    .selectFrom("profile")
    .selectAll()
    .where("account_id", "=", accountId)
    .where("slug", "=", slug)
    .executeTakeFirst();
}

function rowAfter(
  sealer: Sealer,
  before: ProfileTable | undefined,
  { accountId, slug, nowMs }: ProfileChange,
  document: ProfileDocument,
): ProfileTable {
  const id = before?.id ?? newId("prf", nowMs);
  const at = BigInt(Math.floor(nowMs));
  const isNew = before === undefined || before.sealed === null;
  return {
    id,
    account_id: accountId,
    slug,
    revision: (before?.revision ?? 0n) + 1n,
    sealed: sealer.seal(textOf(document), contextOf(id)),
    created_at: isNew ? at : before.created_at,
    updated_at: at,
  };
}

function recordOf(sealer: Sealer, row: ProfileTable): ProfileRecord {
  const text = row.sealed === null ? null : sealer.open(row.sealed, contextOf(row.id));
  return {
    kind: "profile",
    slug: row.slug,
    revision: Number(row.revision),
    document: text === null ? null : parseDocument(text),
    createdAtMs: Number(row.created_at),
    updatedAtMs: Number(row.updated_at),
  };
}

/** A record as a revision; null = its document cannot be unsealed. */
function revisionOf({ revision, document, updatedAtMs }: ProfileRecord): ProfileRevision | null {
  return document === null ? null : { revision, savedAtMs: updatedAtMs, document };
}

function contextOf(id = ""): string {
  return `profile ${id}`;
}

/** Canonical text of a document, independent of the order of fields. */
function textOf(document: ProfileDocument | null): string {
  return JSON.stringify(document, (_, value: unknown) =>
    isRecord(value)
      ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
      : value,
  );
}

async function refusalOf(
  tx: Tx,
  maxProfiles: number,
  change: ProfileChange,
): Promise<ProfileRefusal | null> {
  if ((await mergedInto(tx, change.accountId)) != null)
    return apiFault("account_merged", "the account of this token was merged into another one");
  const row = await rowOf(tx, change);
  const exists = row !== undefined && row.sealed !== null;
  const untilMs = await customUntilMs(tx, change.accountId);
  if (untilMs === null || untilMs <= change.nowMs) {
    if (exists)
      return apiFault(
        "profile_suspended",
        "the Custom access of the account has ended, and the profile rests",
      );
    return apiFault("custom_access_required", "the account has no Custom access");
  }
  const conflict = conflictOf(change.expected, row);
  if (conflict !== null || exists) return conflict;
  const has = (await profileSlugs(tx, change.accountId)).length;
  return has < maxProfiles
    ? null
    : apiFault(
        "profile_limit",
        `the account has ${has} profiles, and ${maxProfiles} is the most it may have`,
      );
}

function conflictOf(
  expected: ExpectedRevision,
  row: ProfileTable | undefined,
): ApiFault<"revision_conflict"> | null {
  const revision = row === undefined || row.sealed === null ? null : Number(row.revision);
  if (
    expected === "none_named" ||
    (expected === "any" && revision !== null) ||
    expected === revision
  )
    return null;
  return apiFault(
    "revision_conflict",
    revision === null ? "the profile does not exist" : `the profile is at revision ${revision}`,
  );
}

/** Deletes the oldest kept names of deleted profiles. */
async function forgetOldest(tx: Tx, accountId: string): Promise<void> {
  const oldest = await tx
    .selectFrom("profile")
    .select("id")
    .where("account_id", "=", accountId)
    .where("sealed", "is", null)
    .orderBy("updated_at", "desc")
    .orderBy("id", "desc")
    .limit(MAX_FORGOTTEN)
    .offset(MAX_DELETED)
    .execute();
  if (oldest.length === 0) return;
  const ids = oldest.map(({ id }) => id);
  await tx.deleteFrom("profile").where("id", "in", ids).execute();
}

const MAX_FORGOTTEN = 100;
