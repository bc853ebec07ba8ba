// Creates keys: anonymous keys with a grant, keys with a new account, and further keys of an
// account. Enforces only the number of keys.
import type { Transaction } from "kysely";
import { type ApiFault, apiFault } from "../../core/faults/api-fault.ts";
import { hashOf, newId, newSecret, prefixOf } from "../../secrets/secret.ts";
import { lockAccounts, post } from "../../shared/ledger/ledger.ts";
import { mergedInto } from "../../shared/ledger/merged-accounts.ts";
import type { Store } from "../../shared/store/store.ts";
import type { AccountKind, Tables } from "../../shared/store/tables.ts";
import { type ChosenFields, columnsOf, UNCHOSEN } from "./key-fields.ts";
import { liveKeys } from "./keys.ts";
import { insertManagementToken } from "./management-token.ts";

/** A new key. The secret is shown once. */
export interface NewKey {
  readonly kind: "new_key";
  readonly id: string;
  readonly accountId: string;
  readonly secret: string;
  readonly prefix: string;
  /** The management token if an account was created for the key; also shown once. */
  readonly token: string | null;
}

/** Creates an anonymous key: an account of its own with a starting grant in nano-USD. */
export function createAnonymousKey(
  store: Store,
  { name, grantN }: { readonly name: string; readonly grantN: bigint },
  nowMs: number,
): Promise<NewKey> {
  return store.transaction(async (tx) => {
    const key = await insertAnonymousKey(tx, name, nowMs);
    const { accountId } = key;
    if (grantN > 0n)
      await post(tx, {
        kind: "grant",
        idemKey: `grant:${accountId}`,
        accountId,
        amountN: grantN,
        atMs: nowMs,
      });
    return key;
  });
}

/** Creates an anonymous key and its account without balance, within the caller's transaction. */
export async function insertAnonymousKey(
  tx: Transaction<Tables>,
  name: string,
  nowMs: number,
): Promise<NewKey> {
  const accountId = await insertAccount(tx, "anonymous", nowMs);
  return insertKey(tx, { ...UNCHOSEN, accountId, agentId: null, name }, nowMs);
}

/** Creates an account without balance, its agent and its first key. */
export function createAccount(store: Store, chosen: ChosenFields, nowMs: number): Promise<NewKey> {
  return store.transaction(async (tx) => {
    const accountId = await insertAccount(tx, "account", nowMs);
    const made = await insertManagementToken(
      tx,
      { accountId, name: chosen.name, profiles: null, readOnly: false, expiresAtMs: null },
      nowMs,
    );
    const key = await insertKey(tx, { ...chosen, accountId, agentId: made.agent.id }, nowMs);
    return { ...key, token: made.token };
  });
}

/** Creates another key of an account, up to `maxKeys`. */
export function addKey(
  store: Store,
  key: NewKeyRow & { readonly maxKeys: number },
  nowMs: number,
): Promise<NewKey | ApiFault<"key_limit" | "already_claimed">> {
  return store.transaction(async (tx) => {
    // Serialises concurrent additions, so that both are counted.
    await lockAccounts(tx, key.accountId);
    if ((await mergedInto(tx, key.accountId)) != null)
      return apiFault(
        "already_claimed",
        "the account has been claimed: it has no keys of its own any more",
      );
    if ((await liveKeys(tx, key.accountId)) >= key.maxKeys)
      return apiFault(
        "key_limit",
        `the account has ${key.maxKeys} keys, which is the most it may have`,
      );
    return insertKey(tx, key, nowMs);
  });
}

/** A key to be created. */
export interface NewKeyRow extends ChosenFields {
  readonly accountId: string;
  /** Null for anonymous keys. */
  readonly agentId: string | null;
}

/** Creates an account without balance; returns its id. */
export async function insertAccount(
  tx: Transaction<Tables>,
  kind: AccountKind,
  nowMs: number,
): Promise<string> {
  const id = newId("acc", nowMs);
  const row = { id, kind, balance_n: 0n, funded_n: 0n, created_at: BigInt(nowMs) };
  await tx.insertInto("account").values(row).execute();
  return id;
}

/** Creates a key within the caller's transaction; counts nothing. */
export async function insertKey(
  tx: Transaction<Tables>,
  { accountId, agentId, ...chosen }: NewKeyRow,
  nowMs: number,
): Promise<NewKey> {
  const secret = newSecret("key");
  const key = {
    kind: "new_key",
    id: newId("key", nowMs),
    accountId,
    secret,
    prefix: prefixOf(secret),
    token: null,
  } as const;
  await tx
    .insertInto("api_key")
    .values({
      id: key.id,
      account_id: accountId,
      agent_id: agentId,
      prefix: key.prefix,
      ...columnsOf(chosen),
      revision: 1n,
      created_at: BigInt(nowMs),
    })
    .execute();
  await insertSecret(tx, key.id, secret, nowMs);
  return key;
}

/** Adds a secret to a key. */
export async function insertSecret(
  tx: Transaction<Tables>,
  keyId: string,
  secret: string,
  nowMs: number,
): Promise<void> {
  const row = { secret_hash: hashOf(secret), key_id: keyId, created_at: BigInt(nowMs) };
  await tx.insertInto("key_secret").values(row).execute();
}
