// Claims: merges an anonymous account into the account of an owner, by its key or by a claim link.
// Knows no URL and no page.

import type { Invalidations } from "../../core/billing/invalidations.ts";
import { lockAccounts } from "../../ledger/ledger.ts";
import type { Store } from "../../store/store.ts";
import { insertAccount } from "../keys/create.ts";
import { keyBySecret } from "../keys/keys.ts";
import { insertManagementToken } from "../keys/management-token.ts";
import { claimLinkOf, type LinkEnd, takeClaimLink } from "./claim-links.ts";
import { type MergeRefusal, merge } from "./merge.ts";
import type { Owner } from "./ownership.ts";

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
        await lockAccounts(tx, [link.accountId, targetId]);
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
