// Claim links: created for an account, shown, used once. An account has one open link at a time.
// Knows only the token, not who claims.
import { sql } from "kysely";
import type { Invalidations } from "../../core/billing/invalidations.ts";
import { type ApiFault, apiFault } from "../../core/faults/api-fault.ts";
import { hashOf, newSecret, readSecret } from "../../secrets/secret.ts";
import { leasedN } from "../../shared/ledger/leased-credit.ts";
import { lockAccounts, type Tx } from "../../shared/ledger/ledger.ts";
import type { Store } from "../../shared/store/store.ts";
import type { AccountKind, ClaimLinkTable } from "../../shared/store/tables.ts";
import { insertAccount } from "../keys/create.ts";
import { keyBySecret } from "../keys/keys.ts";
import { insertManagementToken } from "../keys/management-token.ts";
import type { Owner } from "./accounts.ts";
import { type MergeRefusal, merge } from "./merge.ts";

/** How long a link is open. */
export const CLAIM_LINK_MS = 600_000;

/**
 * If the clock steps back by more than this, open links end: none may be open for longer than it
 * should.
 */
const CLOCK_STEP_MS = 60_000;

/** Whether a time span contains this moment. */
export function isOpen(fromAt: bigint, untilAt: bigint, nowMs: number): boolean {
  return nowMs < Number(untilAt) && nowMs >= Number(fromAt) - CLOCK_STEP_MS;
}

/** A new link. */
export interface NewClaimLink {
  readonly kind: "claim_link";
  /** Shown once. */
  readonly token: string;
  readonly keyPrefix: string;
  readonly balanceN: bigint;
}

/** Creates the link of an account, shown under its oldest valid key; the previous link ends. */
export function createClaimLink(
  store: Store,
  accountId: string,
  nowMs: number,
): Promise<NewClaimLink | ApiFault<"already_claimed" | "key_revoked">> {
  return store.transaction(async (tx) => {
    const account = await lockedAccount(tx, accountId);
    if (account.merged_into !== null)
      return apiFault(
        "already_claimed",
        "this account has been claimed: its keys and its balance belong to another account now",
        {
          nextAction: "manage with a token from the owning account",
        },
      );
    const key = await oldestKey(tx, accountId);
    if (key === undefined)
      return apiFault("key_revoked", "every key of the account has been deleted");
    const links = tx.deleteFrom("claim_link").where("account_id", "=", accountId);
    await links
      .where((eb) => eb.or([eb("ended", "is not", null), eb("expires_at", "<=", BigInt(nowMs))]))
      .execute();
    await tx
      .updateTable("claim_link")
      .set({ ended: "cancelled" })
      .where("account_id", "=", accountId)
      .where("ended", "is", null)
      .execute();
    const token = newSecret("claim");
    await tx
      .insertInto("claim_link")
      .values({
        token_hash: hashOf(token),
        account_id: accountId,
        key_id: key.id,
        created_at: BigInt(nowMs),
        expires_at: BigInt(nowMs + CLAIM_LINK_MS),
      })
      .execute();
    return {
      kind: "claim_link",
      token,
      keyPrefix: key.prefix,
      balanceN: account.balance_n + account.leased_n,
    };
  });
}

async function lockedAccount(tx: Tx, accountId: string) {
  await lockAccounts(tx, accountId);
  return tx
    .selectFrom("account")
    .select(["merged_into", "balance_n", leasedN.as("leased_n")])
    .where("id", "=", accountId)
    .executeTakeFirstOrThrow();
}

function oldestKey(tx: Tx, accountId: string) {
  const keys = tx
    .selectFrom("api_key")
    .select(["id", "prefix"])
    .where("account_id", "=", accountId)
    .where("revoked_at", "is", null);
  return keys.orderBy("id").limit(1).executeTakeFirst();
}

/** Why a link is not open: it was used, a later one replaced it, or it expired. */
export type LinkEnd = "used" | "cancelled" | "expired";

/** A link, and the account that it hands over. */
export interface ClaimLink {
  readonly end: LinkEnd | null;
  readonly accountId: string;
  readonly accountKind: AccountKind;
  readonly keyPrefix: string;
  readonly name: string;
  /** Keys of the account that work. */
  readonly keys: number;
  readonly balanceN: bigint;
  readonly createdAtMs: number;
  readonly expiresAtMs: number;
}

/** The link of a token; null = there is none (any more). */
export async function claimLinkOf(
  { db }: Pick<Store, "db">,
  token: string,
  nowMs: number,
): Promise<ClaimLink | null> {
  if (readSecret(token) !== "claim") return null;
  const row = await db
    .selectFrom("claim_link")
    .innerJoin("account", "account.id", "claim_link.account_id")
    .innerJoin("api_key", "api_key.id", "claim_link.key_id")
    .select([
      "claim_link.created_at",
      "claim_link.expires_at",
      "claim_link.ended",
      "account.id",
      "account.kind",
      "account.balance_n",
      "api_key.prefix",
      "api_key.name",
      "account.merged_into",
      leasedN.as("leased_n"),
    ])
    .select(
      sql<bigint>`(select count(*) from api_key as live_key where live_key.account_id = account.id and live_key.revoked_at is null)`.as(
        "keys",
      ),
    )
    .where("claim_link.token_hash", "=", hashOf(token))
    .executeTakeFirst();
  if (row === undefined) return null;
  return {
    end: row.merged_into === null ? endOf(row, nowMs) : "used",
    accountId: row.id,
    accountKind: row.kind,
    keyPrefix: row.prefix,
    name: row.name,
    keys: Number(row.keys),
    balanceN: row.balance_n + row.leased_n,
    createdAtMs: Number(row.created_at),
    expiresAtMs: Number(row.expires_at),
  };
}

/** Uses a link, once: null = used now, else why it is not open. The account must be locked. */
async function takeClaimLink(tx: Tx, token: string, nowMs: number): Promise<LinkEnd | null> {
  const row = await tx
    .selectFrom("claim_link")
    .selectAll()
    .where("token_hash", "=", hashOf(token))
    .executeTakeFirst();
  const end = row === undefined ? "cancelled" : endOf(row, nowMs);
  if (end !== null) return end;
  const { numUpdatedRows } = await tx
    .updateTable("claim_link")
    .set({ ended: "used" })
    .where("token_hash", "=", hashOf(token))
    .where("ended", "is", null)
    .executeTakeFirstOrThrow();
  return numUpdatedRows === 1n ? null : "used";
}

function endOf(
  { ended, created_at, expires_at }: Pick<ClaimLinkTable, "ended" | "created_at" | "expires_at">,
  nowMs: number,
): LinkEnd | null {
  return ended ?? (isOpen(created_at, expires_at, nowMs) ? null : "expired");
}

/** What claims need. */
export interface ClaimParts {
  readonly store: Store;
  readonly changes: Invalidations;
  /** Keys that an account may have. */
  readonly maxKeys: number;
  readonly nowMs: number;
}

/** The result of a claim. */
export interface Claimed {
  readonly kind: "claimed";
  readonly accountId: string;
  readonly keyPrefix: string;
  /** The management token if an account was created; shown once. */
  readonly token: string | null;
}

/** Claims an anonymous key by its secret. */
export async function claimKey(
  parts: ClaimParts,
  secret: string,
  owner: Owner,
): Promise<Claimed | MergeRefusal | "unknown"> {
  const { store, nowMs } = parts;
  const key = await keyBySecret(store, secret, nowMs);
  if (key === null) return "unknown";
  if (key.type !== "anonymous") return "claimed";
  const { accountId: targetId, profiles } = owner;
  const outcome = await store.transaction((tx) =>
    merge(tx, { ...parts, sourceId: key.accountId, targetId, profiles }),
  );
  if (outcome !== "merged") return outcome;
  await invalidate(parts, key.accountId, targetId);
  return { kind: "claimed", accountId: targetId, keyPrefix: key.prefix, token: null };
}

/**
 * Claims the account of a link: into the account of `owner`, or (null) into a new one.
 */
export async function claimByLink(
  parts: ClaimParts,
  token: string,
  owner: Owner | null,
): Promise<Claimed | MergeRefusal | LinkEnd | "unknown"> {
  const { store, nowMs } = parts;
  const link = await claimLinkOf(store, token, nowMs);
  if (link === null) return "unknown";
  const done = await store
    .transaction(
      async (tx): Promise<Omit<Claimed, "keyPrefix" | "kind"> | MergeRefusal | LinkEnd> => {
        const made = owner === null ? await insertOwner() : null;
        const targetId = owner?.accountId ?? made?.accountId ?? "";
        await lockAccounts(tx, link.accountId, targetId);
        const end = await takeClaimLink(tx, token, nowMs);
        if (end !== null) throw new Refused(end);
        const outcome = await merge(tx, {
          ...parts,
          sourceId: link.accountId,
          targetId,
          profiles: owner?.profiles ?? null,
        });
        if (outcome !== "merged") throw new Refused(outcome);
        return { accountId: targetId, token: made?.token ?? null };

        async function insertOwner() {
          const accountId = await insertAccount(tx, "account", nowMs);
          const agent = await insertManagementToken(
            tx,
            { accountId, name: "owner", profiles: null, readOnly: false, expiresAtMs: null },
            nowMs,
          );
          return { accountId, token: agent.token };
        }
      },
    )
    .catch(refusalOf);
  if (typeof done === "string") return done;
  await invalidate(parts, link.accountId, done.accountId);
  return { kind: "claimed", keyPrefix: link.keyPrefix, ...done };
}

/** Rolls back the transaction of a refused claim. */
class Refused extends Error {
  readonly why: MergeRefusal | LinkEnd;

  constructor(why: MergeRefusal | LinkEnd) {
    super(why);
    this.why = why;
  }
}

function refusalOf(error: unknown): MergeRefusal | LinkEnd {
  if (error instanceof Refused) return error.why;
  throw error;
}

async function invalidate(
  { changes }: ClaimParts,
  sourceId: string,
  targetId: string,
): Promise<void> {
  await changes.account(sourceId);
  await changes.account(targetId);
}
