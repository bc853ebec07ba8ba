// The records of the console in the store, where all processes of a service find them.
import type { Selectable } from "kysely";
import { recordChange } from "../../shared/changes/change-log.ts";
import type { Tx } from "../../shared/ledger/ledger.ts";
import type { Store } from "../../shared/store/store.ts";
import type { OperatorActionTable } from "../../shared/store/tables-cluster.ts";

/** A session in the console; `used_link` = a sign-in link, which opens nothing any more. */
export interface ConsoleSession {
  /** SHA-256 of the id in the cookie, base64url. */
  readonly idHash: string;
  readonly role: "operator" | "account" | "used_link";
  /** What it ends with: the SHA-256 of the operator token, or the id of a management token. */
  readonly tokenRef: string;
  readonly createdAtMs: number;
  readonly expiresAtMs: number;
}

/** A provider of a profile on a chain, by its real id. */
export interface ProviderRef {
  /** The id of the profile: a slug, or `<account>/<slug>`. */
  readonly profile: string;
  readonly chain: string;
  readonly provider: string;
}

/**
 * The profile and the chain of a cordon for places where its provider does not stand yet. No name
 * in a configuration is like this.
 */
export const PLACES_TO_COME = "*";

/** A provider that an operator took out of use. */
export interface OperatorCordon extends ProviderRef {
  readonly reason: string | null;
  /** Who did it. */
  readonly actor: string;
  readonly atMs: number;
  /** When it ends by itself, by the wall clock; null = never. */
  readonly untilMs: number | null;
}

/** What an operator did. */
export interface OperatorAction {
  readonly id: string;
  readonly atMs: number;
  readonly actor: string;
  /** IP address of the caller. */
  readonly address: string;
  /** The id of the operation. */
  readonly action: string;
  readonly target: string | null;
  readonly detail: string | null;
  readonly outcome: "done" | "refused";
  /** Null = the service is one node. */
  readonly node: string | null;
}

/** Some of the actions, the newest first. */
export interface ActionPage {
  readonly actions: readonly OperatorAction[];
  /** Where the next page begins; null = there is none. */
  readonly next: string | null;
}

/** Selects actions: those older than `after`. */
export interface ActionQuery {
  readonly limit: number;
  readonly after: string | null;
}

/** Bounds of what is kept. */
export const RECORD_LIMITS = {
  /** Sessions opened with one token. */
  sessionsPerToken: 20,
  cordons: 1_000,
  actions: 10_000,
} as const;

/** What the other processes of the service read of it. */
const CORDONS_CHANGED = { topic: "operator", ref: JSON.stringify({ kind: "cordons" }) } as const;

/** The records of a store. A call that fails throws as a store does. */
export class OperatorRecords {
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
  }

  /**
   * Adds a session; the oldest of the same token beyond the bound end. False = there is one with
   * this id.
   */
  addSession(session: ConsoleSession): Promise<boolean> {
    const { idHash, role, tokenRef, createdAtMs, expiresAtMs } = session;
    return this.#store.transaction(async (tx) => {
      await tx
        .deleteFrom("console_session")
        .where("expires_at", "<=", BigInt(createdAtMs))
        .execute();
      const beyond = await tx
        .selectFrom("console_session")
        .select("id_hash")
        .where("token_ref", "=", tokenRef)
        .orderBy("created_at", "desc")
        .orderBy("id_hash")
        .limit(RECORD_LIMITS.sessionsPerToken)
        .offset(RECORD_LIMITS.sessionsPerToken - 1)
        .execute();
      const ended = beyond.map((row) => row.id_hash);
      if (ended.length > 0)
        await tx.deleteFrom("console_session").where("id_hash", "in", ended).execute();
      const added = await tx
        .insertInto("console_session")
        .values({
          id_hash: idHash,
          role,
          token_ref: tokenRef,
          created_at: BigInt(createdAtMs),
          expires_at: BigInt(expiresAtMs),
        })
        .onConflict((conflict) => conflict.column("id_hash").doNothing())
        .executeTakeFirst();
      return added.numInsertedOrUpdatedRows === 1n;
    });
  }

  /** Null = unknown, ended or expired. */
  async session(idHash: string, nowMs: number): Promise<ConsoleSession | null> {
    const row = await this.#store.db
      .selectFrom("console_session")
      .selectAll()
      .where("id_hash", "=", idHash)
      .where("expires_at", ">", BigInt(nowMs))
      .executeTakeFirst();
    if (row === undefined) return null;
    const { role, token_ref: tokenRef, created_at, expires_at } = row;
    const times = { createdAtMs: Number(created_at), expiresAtMs: Number(expires_at) };
    return { idHash, role, tokenRef, ...times };
  }

  async endSession(idHash: string): Promise<void> {
    await this.#store.db.deleteFrom("console_session").where("id_hash", "=", idHash).execute();
  }

  /** Also those that have ended since the last one was added. */
  async cordons(): Promise<readonly OperatorCordon[]> {
    const rows = await this.#store.db
      .selectFrom("operator_cordon")
      .selectAll()
      .orderBy("created_at")
      .limit(RECORD_LIMITS.cordons)
      .execute();
    return rows.map(({ created_at, until_at, ...cordon }) => {
      const untilMs = until_at === null ? null : Number(until_at);
      return { ...cordon, atMs: Number(created_at), untilMs };
    });
  }

  /** Adds or replaces cordons, all or none. False = there would be more than may be. */
  cordon(...cordons: readonly OperatorCordon[]): Promise<boolean> {
    const nowMs = Math.max(...cordons.map(({ atMs }) => atMs));
    return this.#store.transaction(async (tx) => {
      await tx.deleteFrom("operator_cordon").where("until_at", "<=", BigInt(nowMs)).execute();
      const stored = await tx
        .selectFrom("operator_cordon")
        .select(["profile", "chain", "provider"])
        .execute();
      const places = new Set([...stored, ...cordons].map(placeOf));
      if (places.size > RECORD_LIMITS.cordons) return false;
      for (const { profile, chain, provider, reason, actor, ...times } of cordons) {
        const values = {
          ...{ reason, actor, created_at: BigInt(times.atMs) },
          until_at: times.untilMs === null ? null : BigInt(times.untilMs),
        };
        await tx
          .insertInto("operator_cordon")
          .values({ profile, chain, provider, ...values })
          .onConflict((of) => of.columns(["profile", "chain", "provider"]).doUpdateSet(values))
          .execute();
      }
      await recordChange(tx, CORDONS_CHANGED);
      return true;
    });
  }

  /** The places to come of these providers are open as well. False = there was no cordon. */
  uncordon(...refs: readonly ProviderRef[]): Promise<boolean> {
    return this.#store.transaction(async (tx) => {
      let removed = 0n;
      const toCome = { profile: PLACES_TO_COME, chain: PLACES_TO_COME };
      for (const ref of refs) {
        removed += await removeCordon(tx, ref);
        await removeCordon(tx, { ...ref, ...toCome });
      }
      await recordChange(tx, CORDONS_CHANGED);
      return removed > 0n;
    });
  }

  /** Adds an action; the oldest beyond the bound are dropped. */
  addAction({ atMs, ...action }: OperatorAction): Promise<void> {
    return this.#store.transaction(async (tx) => {
      await tx
        .insertInto("operator_action")
        .values({ ...action, created_at: BigInt(atMs) })
        .execute();
      await dropOldest(tx, "operator_action", RECORD_LIMITS.actions);
    });
  }

  async actions({ limit, after }: ActionQuery): Promise<ActionPage> {
    const rows = await this.#store.db
      .selectFrom("operator_action")
      .selectAll()
      .$if(after !== null, (query) => query.where("id", "<", after ?? ""))
      .orderBy("id", "desc")
      .limit(limit + 1)
      .execute();
    const actions = rows.slice(0, limit).map(actionOf);
    return { actions, next: rows.length > limit ? (actions.at(-1)?.id ?? null) : null };
  }
}

function placeOf({ profile, chain, provider }: ProviderRef): string {
  return `${profile} ${chain} ${provider}`;
}

/** How many there were. */
async function removeCordon(tx: Tx, { profile, chain, provider }: ProviderRef): Promise<bigint> {
  const { numDeletedRows } = await tx
    .deleteFrom("operator_cordon")
    .where("profile", "=", profile)
    .where("chain", "=", chain)
    .where("provider", "=", provider)
    .executeTakeFirstOrThrow();
  return numDeletedRows;
}

/** Deletes the oldest rows of a table beyond a number of them. */
export async function dropOldest(
  tx: Tx,
  table: "operator_action" | "feedback",
  maxKept: number,
): Promise<void> {
  const beyond = await tx
    .selectFrom(table)
    .select("id")
    .orderBy("id", "desc")
    .limit(1)
    .offset(maxKept)
    .executeTakeFirst();
  if (beyond !== undefined) await tx.deleteFrom(table).where("id", "<=", beyond.id).execute();
}

function actionOf({ created_at, ...action }: Selectable<OperatorActionTable>): OperatorAction {
  return { ...action, atMs: Number(created_at) };
}
