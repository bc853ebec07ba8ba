// Proves ownership of an account with a management token or an API key. Knows what each of the two
// may decide, not what is decided.

import { readSecret } from "../../secrets/secret.ts";
import type { Store } from "../../store/store.ts";
import { keyBySecret } from "../keys/keys.ts";
import { managementTokenBySecret, managementTokenEnd } from "../keys/management-token.ts";

/** A proven owner of an account. */
export interface Owner {
  readonly kind: "owner";
  readonly accountId: string;
  /** Slugs that the secret may use; null = all. */
  readonly profiles: readonly string[] | null;
  /** Whether the secret manages the account; a key may only call. */
  readonly manages: boolean;
  /** When the secret ends; null = it does not. */
  readonly expiresAtMs: number | null;
}

/**
 * Why a secret proves no ownership: not a secret of this service; unknown; ended; its account is
 * anonymous or was merged; read-only.
 */
export type NoOwner = "malformed" | "unknown" | "ended" | "no_account" | "read_only";

/**
 * A key may be known to more people than its account's token: a grant made with a key ends after a
 * day, even if the key stays valid.
 */
const KEY_GRANT_MS = 86_400_000;

/** The owner that a management token or RPC key proves, or why it proves none. */
export async function ownerOf(
  store: Store,
  secret: string,
  nowMs: number,
): Promise<Owner | NoOwner> {
  const kind = readSecret(secret);
  if (kind === "token") return agentOwner(store, secret, nowMs);
  if (kind !== "key") return "malformed";
  const key = await keyBySecret(store, secret, nowMs);
  if (key === null) return "unknown";
  if (key.type !== "account") return "no_account";
  return {
    kind: "owner",
    accountId: key.accountId,
    profiles: key.allowedProfiles,
    manages: false,
    expiresAtMs: nowMs + KEY_GRANT_MS,
  };
}

async function agentOwner(store: Store, token: string, nowMs: number): Promise<Owner | NoOwner> {
  const agent = await managementTokenBySecret(store, token);
  if (agent === null) return "unknown";
  if (managementTokenEnd(agent, nowMs) !== null) return "ended";
  if (agent.readOnly) return "read_only";
  const account = await store.db
    .selectFrom("account")
    .select("merged_into")
    .where("id", "=", agent.accountId)
    .executeTakeFirst();
  if (account === undefined || account.merged_into !== null) return "no_account";
  return {
    kind: "owner",
    accountId: agent.accountId,
    profiles: agent.profiles,
    manages: true,
    expiresAtMs: agent.expiresAtMs,
  };
}
