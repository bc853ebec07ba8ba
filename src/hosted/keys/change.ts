// Changes to existing keys: fields, rotation, deletion. Each is one transaction followed by an
// invalidation. Changes to one key are serialised.
import { isDeepStrictEqual } from "node:util";
import { sql, type Transaction } from "kysely";
import type { z } from "zod";
import type { Invalidations } from "../../core/billing/invalidations.ts";
import { type ApiFault, apiFault } from "../../core/faults/api-fault.ts";
import { newSecret, prefixOf } from "../../secrets/secret.ts";
import { recordChange } from "../../shared/changes/change-log.ts";
import type { Store } from "../../shared/store/store.ts";
import type { ApiKeyTable, Tables } from "../../shared/store/tables.ts";
import { insertSecret } from "./create.ts";
import { choose, columnsOf, type keyInput } from "./key-fields.ts";
import { type KeyRecord, type KeyScope, keyById } from "./keys.ts";

export interface ChangeParts {
  readonly store: Store;
  readonly changes: Invalidations;
  readonly nowMs: number;
}

/** A key, and the account and profiles it must belong to. */
export interface KeyRef {
  readonly id: string;
  readonly scope: KeyScope;
}

/** The changes requested for a key. */
export interface KeyPatch {
  /** The request's fields; omitted ones are unchanged. */
  readonly input: z.output<typeof keyInput>;
  /** Slugs of the account's profiles. */
  readonly known: readonly string[];
}

/** Why a key is not changed. */
export type KeyRefusal = ApiFault<"not_found" | "key_revoked">;

/** Applies the requested changes; a request without a difference creates no revision. */
export async function patchKey(
  parts: ChangeParts,
  ref: KeyRef,
  { input, known }: KeyPatch,
): Promise<KeyRecord | KeyRefusal | ApiFault<"invalid_field">> {
  const { nowMs } = parts;
  return changed(parts, ref, async (tx) => {
    const key = await lockedKey(parts, tx, ref);
    if ("kind" in key) return key;
    const current = { ...key, profiles: key };
    const chosen = choose(current, input, { known, restriction: ref.scope.profiles });
    if ("kind" in chosen) return chosen;
    const columns = columnsOf(chosen);
    if (isDeepStrictEqual(columns, columnsOf(current))) return key;
    await revise(tx, ref.id, columns);
    return (await keyById(tx, ref.id, ref.scope, nowMs)) ?? notFound();
  });
}

/**
 * Runs a change in one transaction and invalidates the key unless it was refused. Also invalidates
 * after a failure, because the commit may have succeeded.
 */
async function changed<T>(
  { store, changes }: ChangeParts,
  { id }: KeyRef,
  run: (tx: Transaction<Tables>) => Promise<T>,
): Promise<T> {
  let isRefused = false;
  try {
    const result = await store.transaction(async (tx) => {
      const done = await run(tx);
      if (!isFault(done)) await recordChange(tx, { topic: "key", ref: id });
      return done;
    });
    isRefused = isFault(result);
    return result;
  } finally {
    if (!isRefused) await changes.key(id);
  }
}

function isFault(result: unknown): boolean {
  return (
    typeof result === "object" && result !== null && "kind" in result && result.kind === "api_fault"
  );
}

/** A new secret. */
export interface Rotated {
  readonly secret: string;
  readonly prefix: string;
  /** Until when the previous secret is valid. */
  readonly previousValidUntilMs: number;
}

/**
 * Gives a key a new secret. The current one stays valid for `graceMs`; one left over from an
 * earlier rotation ends at once.
 */
export async function rotateKey(
  parts: ChangeParts,
  ref: KeyRef,
  graceMs: number,
): Promise<Rotated | KeyRefusal> {
  const { nowMs } = parts;
  const secret = newSecret("key");
  const prefix = prefixOf(secret);
  const previousValidUntilMs = nowMs + graceMs;
  return changed(parts, ref, async (tx) => {
    const key = await lockedKey(parts, tx, ref);
    if ("kind" in key) return key;
    await endSecrets(tx, ref.id, {
      nowMs,
      validUntil: graceMs === 0 ? ENDED : BigInt(previousValidUntilMs),
    });
    await insertSecret(tx, ref.id, secret, nowMs);
    await revise(tx, ref.id, { prefix });
    return { secret, prefix, previousValidUntilMs };
  });
}

/** Ends a key for good; a key that has ended is left as it is. */
export async function deleteKey(
  parts: ChangeParts,
  ref: KeyRef,
): Promise<"deleted" | ApiFault<"not_found">> {
  return changed(parts, ref, async (tx) => {
    const key = await lockedKey(parts, tx, ref);
    if ("kind" in key) return key.code === "not_found" ? notFound() : "deleted";
    await revise(tx, ref.id, { revoked_at: BigInt(parts.nowMs) });
    return "deleted";
  });
}

/** In the past by any clock. */
const ENDED = 0n;

/**
 * Deletes ended secrets, ends the one from the previous rotation, and sets the end of the current
 * one to `validUntil`.
 */
async function endSecrets(
  tx: Transaction<Tables>,
  keyId: string,
  { nowMs, validUntil }: { readonly nowMs: number; readonly validUntil: bigint },
): Promise<void> {
  await tx
    .deleteFrom("key_secret")
    .where("key_id", "=", keyId)
    .where("valid_until", "<=", BigInt(nowMs))
    .execute();
  await sql`update key_secret
    set valid_until = case when valid_until is null then cast(${validUntil} as bigint) else 0 end
    where key_id = ${keyId}`.execute(tx);
}

async function revise(
  tx: Transaction<Tables>,
  id: string,
  columns: Partial<ApiKeyTable>,
): Promise<void> {
  await tx
    .updateTable("api_key")
    .set((eb) => ({ ...columns, revision: eb("revision", "+", 1n) }))
    .where("id", "=", id)
    .execute();
}

/** A valid key, locked until the transaction ends. */
async function lockedKey(
  { store, nowMs }: ChangeParts,
  tx: Transaction<Tables>,
  { id, scope }: KeyRef,
): Promise<KeyRecord | KeyRefusal> {
  await tx
    .selectFrom("api_key")
    .select("id")
    .where("id", "=", id)
    .where("account_id", "=", scope.accountId)
    .$if(store.engine === "postgres", (query) => query.forNoKeyUpdate())
    .execute();
  const key = await keyById(tx, id, scope, nowMs);
  if (key === null) return notFound();
  return key.revokedAtMs === null ? key : apiFault("key_revoked", "the key has been deleted");
}

function notFound(): ApiFault<"not_found"> {
  return apiFault("not_found", "no key of the account has this id", {
    nextAction: "GET /api/v1/keys lists the keys with their ids",
  });
}
