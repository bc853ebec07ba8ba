// A caller with a key and the account that pays: what is kept of them in memory, how they are read from the store, and why a secret opens nothing.
import type { ManagedSlug } from "../core/access.ts";
import { FULL_MS } from "../core/bucket.ts";
import { type Fault, fault } from "../core/fault.ts";
import type { Store } from "./store.ts";
import type { AccountKind } from "./tables.ts";

/** An account as the hot path sees it. */
export interface Payer {
  readonly id: string;
  kind: AccountKind;
  /** When a payment first credited it; null = never. */
  firstPaidAtMs: number | null;
  /** Since when nothing is left; null = something is. */
  exhaustedAtMs: number | null;
  /** When its buckets are full again. */
  managedFullAtMs: number;
  publicFullAtMs: number;
  /** Keys of it in memory. */
  holders: number;
}

/** A caller with a key, by one secret of it. Changes when the key does. */
export interface Holder {
  readonly kind: "holder";
  readonly keyId: string;
  readonly payer: Payer;
  /** The profile of URLs that name none. */
  home: string;
  /** Null = every profile of its account. */
  allowed: readonly string[] | null;
  /** When its secret ends, on the wall clock; null = it does not. */
  validUntilMs: number | null;
  revoked: boolean;
  /** How its open sockets are closed; null = it has none. */
  seats: Set<(reason: SocketEnd) => void> | null;
}

/** Why a socket is closed for a reason of its key. */
export type SocketEnd = "key_revoked" | "balance_exhausted" | "default_profile_changed";

/** Why a secret does not open anything any more; null = it does. */
export function endOf({ revoked, validUntilMs }: Holder, wallMs: number): Fault | null {
  if (revoked) return CLOSED.revoked;
  return validUntilMs !== null && wallMs >= validUntilMs ? CLOSED.replaced : null;
}

const SUPPLY = "create a key with POST /api/v1/agent/keys and send it in the path (/rpc/k/{key}/…), as Authorization: Bearer or as X-Svc-Api-Key";

/** Why a secret opens nothing. */
export const CLOSED = {
  malformed: fault("unauthorized", "this is not an RPC key: it is cut off or mistyped", { nextAction: SUPPLY }),
  notAKey: fault("unauthorized", "this is a management token, and RPC needs a key", { nextAction: SUPPLY }),
  unknown: fault("unauthorized", "no RPC key is like this one", { nextAction: SUPPLY }),
  revoked: fault("key_revoked", "this RPC key has been revoked"),
  replaced: fault("key_revoked", "this RPC key was replaced when it was rotated"),
  busy: fault("unavailable", "too many keys are being looked up"),
  unreachable: fault("unavailable", "keys cannot be looked up right now"),
} as const;

/** What the store says of a secret. */
export type KeyRow = NonNullable<Awaited<ReturnType<typeof keyRow>>>;

/** Reads what the store says of a secret, by its hash. */
export function keyRow({ db }: Pick<Store, "db">, hash: string) {
  return db
    .selectFrom("key_secret")
    .innerJoin("api_key", "api_key.id", "key_secret.key_id")
    .innerJoin("account", "account.id", "api_key.account_id")
    .select(["api_key.id as key_id", "api_key.account_id", "api_key.default_profile", "api_key.allowed_profiles", "api_key.revoked_at"])
    .select(["key_secret.valid_until", "account.kind", "account.first_paid_at", "account.exhausted_at"])
    .where("key_secret.secret_hash", "=", hash)
    .executeTakeFirst();
}

/** An account nothing is known of yet. */
export function payerOf(row: KeyRow): Payer {
  return {
    id: row.account_id,
    kind: row.kind,
    firstPaidAtMs: null,
    exhaustedAtMs: null,
    managedFullAtMs: FULL_MS,
    publicFullAtMs: FULL_MS,
    holders: 0,
  };
}

/** Takes over what the store says. */
export function update(holder: Holder, row: KeyRow): void {
  const { payer } = holder;
  holder.home = row.default_profile ?? ("premium" satisfies ManagedSlug);
  holder.allowed = row.allowed_profiles === null ? null : parseSlugs(row.allowed_profiles);
  holder.validUntilMs = msOf(row.valid_until);
  holder.revoked = row.revoked_at !== null;
  payer.kind = row.kind;
  payer.firstPaidAtMs = msOf(row.first_paid_at);
  payer.exhaustedAtMs = msOf(row.exhausted_at);
}

function msOf(at: bigint | null): number | null {
  return at === null ? null : Number(at);
}

/** The slugs of a stored list. */
function parseSlugs(json: string): readonly string[] {
  return JSON.parse(json) as readonly string[];
}
