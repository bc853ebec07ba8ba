// The key and account of a secret as they are kept in memory, and why a secret is refused. Knows no
// call and no balance.
import type { ManagedSlug } from "../../core/billing/access.ts";
import type { SharedLimit } from "../../core/billing/shared-limit.ts";
import { type Fault, fault } from "../../core/faults/rpc-fault.ts";
import type { Consistency } from "../../core/provider/profile.ts";
import { hashOfDigest } from "../../secrets/secret.ts";
import type { Store } from "../../shared/store/store.ts";
import type { AccountKind } from "../../shared/store/tables.ts";
import type { OwnProfiles } from "../profiles/custom-access.ts";
import { parseSlugs } from "./key-profiles.ts";

/** The funding of an account that was paid for. */
export interface AccountFunding {
  /** Since when nothing is left; null = something is. */
  exhaustedAtMs: number | null;
  /** Total ever credited, in nano-USD. */
  readonly fundedN: number;
}

/** An open socket of a caller. */
export interface OpenSocket {
  /** The profile that it requested. */
  readonly profile: string;
  /** Whether a Custom profile served it at the last check. */
  custom: boolean;
  readonly close: (reason: SocketEnd) => void;
}

/** The restrictions of a secret. */
export interface KeyBounds {
  /** Null = every profile of its account. */
  readonly allowed: readonly string[] | null;
  /** When it ends, on the wall clock; null = it does not. */
  readonly validUntilMs: number | null;
  readonly revoked: boolean;
  /** True = it has changed and could not be read yet: refused until it is. */
  readonly doubtful: boolean;
}

/** The bounds of most secrets; one record for all of them, since there are many. */
export const UNBOUND: KeyBounds = {
  allowed: null,
  validUntilMs: null,
  revoked: false,
  doubtful: false,
};

/** Why a socket is closed on account of its key. */
export type SocketEnd =
  | "key_revoked"
  | "balance_exhausted"
  | "default_profile_changed"
  | "custom_access_expired"
  | "forbidden";

/** Why a known secret is refused now; null = it is valid. */
export function endOf({ bounds }: KeyContext, wallMs: number): Fault | null {
  const { revoked, validUntilMs, doubtful } = bounds;
  if (doubtful) return KEY_REFUSALS.unreachable;
  if (revoked) return KEY_REFUSALS.revoked;
  return validUntilMs !== null && wallMs >= validUntilMs ? KEY_REFUSALS.replaced : null;
}

const SEND_A_KEY =
  "create a key with POST /api/v1/agent/keys and send it in the path (/rpc/k/{key}/…), as " +
  "Authorization: Bearer or as X-Svc-Api-Key";

/** Why a secret is refused. */
export const KEY_REFUSALS = {
  malformed: fault("unauthorized", "this is not an RPC key: it is cut off or mistyped", {
    nextAction: SEND_A_KEY,
  }),
  notAKey: fault("unauthorized", "this is a management token, and RPC needs a key", {
    nextAction: SEND_A_KEY,
  }),
  unknown: fault("unauthorized", "no RPC key is like this one", { nextAction: SEND_A_KEY }),
  revoked: fault("key_revoked", "this RPC key has been revoked"),
  replaced: fault("key_revoked", "this RPC key was replaced when it was rotated"),
  busy: fault("unavailable", "too many keys are being looked up"),
  unreachable: fault("unavailable", "keys cannot be looked up right now"),
  cutOff: fault("unavailable", "this node has not reached its database for too long"),
} as const;

/** The row of a secret in the store. */
export type KeyContextRow = NonNullable<Awaited<ReturnType<typeof keyRow>>>;

/** Reads the row of a secret, by its digest. */
export function keyRow({ db }: Pick<Store, "db">, digest: string) {
  return db
    .selectFrom("key_secret")
    .innerJoin("api_key", "api_key.id", "key_secret.key_id")
    .innerJoin("account", "account.id", "api_key.account_id")
    .select([
      "api_key.id as key_id",
      "api_key.account_id",
      "api_key.default_profile",
      "api_key.allowed_profiles",
      "api_key.consistency",
      "api_key.revoked_at",
      "key_secret.valid_until",
      "account.kind",
      "account.first_paid_at",
      "account.exhausted_at",
      "account.funded_n",
    ])
    .where("key_secret.secret_hash", "=", hashOfDigest(digest))
    .executeTakeFirst();
}

/** The state of an account before its row is applied. */
export function accountStateOf(row: KeyContextRow): AccountState {
  return row.kind === "account"
    ? new OwnedAccount(row.account_id)
    : new AccountState(row.account_id);
}

/**
 * An account as the hot path sees it: an anonymous one. What all accounts of a kind have in common
 * is not stored with each of the many.
 */
export class AccountState {
  readonly id: string;
  /** Null = nobody ever paid for it. */
  paid: AccountFunding | null = null;
  /** Its Custom profiles; null = it never had any. */
  own: OwnProfiles | null = null;
  /** When its rate limits have all their tokens again, by name; null = none was used. */
  fullAtMs: Map<string, number> | null = null;
  /** Buckets that nodes share now, by their names; null or absent = none. */
  shared?: Map<string, SharedLimit> | null = null;

  constructor(id: string) {
    this.id = id;
  }

  get kind(): AccountKind {
    return "anonymous";
  }
}

class OwnedAccount extends AccountState {
  override get kind(): AccountKind {
    return "account";
  }
}

/** A caller with a key, by one secret of it. Changes when the key does. */
export class KeyContext {
  readonly keyId: string;
  /** Replaced when the key is claimed. */
  account: AccountState;
  /** The profile of URLs that name none. */
  defaultProfile = "";
  /** Which view of the chain its calls get; null = as the profile says. */
  consistency: Consistency | null = null;
  bounds = UNBOUND;
  /** Its open sockets; null = it has none. */
  openSockets: Set<OpenSocket> | null = null;
  /** The recheck after which it was read last; see `KeyCache.recheck`. */
  checked = 0;

  constructor(keyId: string, account: AccountState) {
    this.keyId = keyId;
    this.account = account;
  }

  get kind(): "key" {
    return "key";
  }
}

/** Applies the row of the store. */
export function update(keyContext: KeyContext, row: KeyContextRow, own: OwnProfiles | null): void {
  const { account } = keyContext;
  keyContext.defaultProfile = row.default_profile ?? ("premium" satisfies ManagedSlug);
  keyContext.consistency = row.consistency;
  keyContext.bounds = boundsOf(row);
  account.own = own;
  if (account.fullAtMs !== null) dropRateLimits(account.fullAtMs, own);
  account.paid =
    row.first_paid_at === null
      ? null
      : { exhaustedAtMs: msOf(row.exhausted_at), fundedN: Number(row.funded_n) };
}

/** Drops the rate limits of deleted profiles. */
function dropRateLimits(fullAtMs: Map<string, number>, own: OwnProfiles | null): void {
  const names = ["managed", "public", ...(own?.slugs ?? [])];
  for (const name of fullAtMs.keys()) if (!names.includes(name)) fullAtMs.delete(name);
}

function boundsOf(row: KeyContextRow): KeyBounds {
  if (row.allowed_profiles === null && row.valid_until === null && row.revoked_at === null)
    return UNBOUND;
  return {
    allowed: parseSlugs(row.allowed_profiles),
    validUntilMs: msOf(row.valid_until),
    revoked: row.revoked_at !== null,
    doubtful: false,
  };
}

function msOf(at: bigint | null): number | null {
  return at === null ? null : Number(at);
}
