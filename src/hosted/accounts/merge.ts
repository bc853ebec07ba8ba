// Merges an account into another one: its keys and its money move, once. Credit that nodes still
// lease of it follows when they return it. Knows accounts and keys, not who requests it.

import { recordChange } from "../../shared/changes/change-log.ts";
import { lockAccounts, post, type Tx } from "../../shared/ledger/ledger.ts";
import { type KeyProfiles, parseSlugs, slugsText } from "../keys/key-profiles.ts";
import { liveKeys } from "../keys/keys.ts";
import { customUntilMs } from "../profiles/custom-access.ts";

/** The source and the target of a merge. */
export interface Merge {
  readonly sourceId: string;
  readonly targetId: string;
  /** Slugs that the moved keys may use; null = every profile of the account. */
  readonly profiles: readonly string[] | null;
  /** Keys that an account may have. */
  readonly maxKeys: number;
  readonly nowMs: number;
}

/**
 * Why nothing was merged: the source is part of an account already; the target is no account of
 * somebody, or not any more; it would have too many keys; the source has Custom profiles, which do
 * not move; both are the same.
 */
export type MergeRefusal = "claimed" | "no_account" | "full" | "profiles" | "same";

/** Merges an account into another one. */
export async function merge(
  tx: Tx,
  { sourceId, targetId, profiles, maxKeys, nowMs }: Merge,
): Promise<"merged" | MergeRefusal> {
  if (sourceId === targetId) return "same";
  await lockAccounts(tx, sourceId, targetId);
  const rows = await tx
    .selectFrom("account")
    .selectAll()
    .where("id", "in", [sourceId, targetId])
    .execute();
  const source = rows.find((row) => row.id === sourceId);
  const target = rows.find((row) => row.id === targetId);
  if (source === undefined || source.merged_into !== null) return "claimed";
  if (target === undefined || target.merged_into !== null || target.kind !== "account")
    return "no_account";
  if ((await liveKeys(tx, sourceId)) + (await liveKeys(tx, targetId)) > maxKeys) return "full";
  if (await hasProfiles(tx, sourceId)) return "profiles";
  if (source.balance_n > 0n)
    await post(tx, {
      kind: "move",
      idemKey: `claim:${sourceId}`,
      fromId: sourceId,
      toId: targetId,
      amountN: source.balance_n,
      atMs: nowMs,
    });
  const paidAt =
    [source.first_paid_at, target.first_paid_at]
      .filter((paidAt) => paidAt !== null)
      .sort((a, b) => Number(a - b))[0] ?? null;
  await tx
    .updateTable("account")
    .set((eb) => ({
      funded_n: eb("funded_n", "+", source.funded_n),
      first_paid_at: paidAt,
      // A grace period that has begun continues; the merge does not start a new one.
      exhausted_at:
        source.balance_n > 0n
          ? null
          : (target.exhausted_at ?? (target.first_paid_at === null ? source.exhausted_at : null)),
    }))
    .where("id", "=", targetId)
    .execute();
  await moveKeys(tx, { sourceId, targetId, profiles });
  await moveCustomAccess(tx, { sourceId, targetId, nowMs });
  // Accounts merged into the source before now point to the target, so that nobody has to follow a
  // chain.
  await tx
    .updateTable("account")
    .set({ merged_into: targetId })
    .where((eb) => eb.or([eb("id", "=", sourceId), eb("merged_into", "=", sourceId)]))
    .execute();
  await recordChange(tx, { topic: "account", ref: sourceId }, { topic: "account", ref: targetId });
  return "merged";
}

async function moveKeys(
  tx: Tx,
  { sourceId, targetId, profiles }: Pick<Merge, "sourceId" | "targetId" | "profiles">,
): Promise<void> {
  const keys = await tx
    .selectFrom("api_key")
    .select(["id", "default_profile", "allowed_profiles"])
    .where("account_id", "=", sourceId)
    .orderBy("id")
    .execute();
  for (const key of keys) {
    const own = {
      defaultProfile: key.default_profile,
      allowedProfiles: parseSlugs(key.allowed_profiles),
    };
    const { defaultProfile, allowedProfiles } = restrictedTo(own, profiles);
    await tx
      .updateTable("api_key")
      .set((eb) => ({
        account_id: targetId,
        agent_id: null,
        default_profile: defaultProfile,
        allowed_profiles: slugsText(allowedProfiles),
        revision: eb("revision", "+", 1n),
      }))
      .where("id", "=", key.id)
      .execute();
  }
}

async function hasProfiles(tx: Tx, accountId: string): Promise<boolean> {
  const row = await tx
    .selectFrom("profile")
    .select("id")
    .where("account_id", "=", accountId)
    .where("sealed", "is not", null)
    .limit(1)
    .executeTakeFirst();
  return row !== undefined;
}

/** Remaining days are appended to those of the other account. */
async function moveCustomAccess(
  tx: Tx,
  { sourceId, targetId, nowMs }: Pick<Merge, "sourceId" | "targetId"> & { readonly nowMs: number },
): Promise<void> {
  const endOf = async (id: string): Promise<bigint> =>
    BigInt(Math.max(nowMs, (await customUntilMs(tx, id)) ?? 0));
  const leftMs = (await endOf(sourceId)) - BigInt(nowMs);
  if (leftMs <= 0n) return;
  const from = await endOf(targetId);
  await tx
    .insertInto("custom_access")
    .values({
      account_id: targetId,
      source: `claim:${sourceId}`,
      from_at: from,
      until_at: from + leftMs,
    })
    .execute();
}

/** The profiles of a key, within those of its new owner. */
function restrictedTo(key: KeyProfiles, restriction: readonly string[] | null): KeyProfiles {
  if (restriction === null) return key;
  const shared = (key.allowedProfiles ?? restriction).filter((slug) => restriction.includes(slug));
  const allowedProfiles = shared.length === 0 ? restriction : shared;
  return {
    allowedProfiles,
    defaultProfile: allowedProfiles.includes(key.defaultProfile ?? "premium")
      ? key.defaultProfile
      : (allowedProfiles[0] ?? null),
  };
}
