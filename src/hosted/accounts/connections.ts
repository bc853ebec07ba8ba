// Connections: a client requests a management token, the owner of an account decides on a page, and
// the client fetches the token once. Knows no URL. The agent is created when its token is fetched:
// a token is stored nowhere.
import { type ApiFault, apiFault } from "../../core/faults/api-fault.ts";
import { hashOf, newId, newSecret, readSecret } from "../../secrets/secret.ts";
import { isEmbedded, lockAccounts, type Tx } from "../../shared/ledger/ledger.ts";
import type { Store } from "../../shared/store/store.ts";
import type { ConnectionTable } from "../../shared/store/tables.ts";
import { parseSlugs, slugsText } from "../keys/key-profiles.ts";
import { insertManagementToken } from "../keys/management-token.ts";
import type { Owner } from "./accounts.ts";
import { isOpen } from "./claim-links.ts";

/** How long a connection may be decided, and how long after that its token may be fetched. */
export const CONNECTION_MS = 900_000;
/** Shortest time between two polls of the client. */
export const POLL_MS = 5_000;
/** Approved and unrevoked connections of one account. */
export const MAX_CONNECTIONS = 100;
const MAX_PENDING = 10_000;
const KEPT_MS = 86_400_000;

/** The restrictions of a connection's agent. */
export interface Restrictions {
  readonly profiles: readonly string[] | null;
  readonly readOnly: boolean;
  readonly expiresAtMs: number | null;
}

/** A connection as its owner sees it. */
export interface ConnectionRecord extends Restrictions {
  readonly id: string;
  readonly name: string;
  readonly status: "pending" | "approved" | "denied" | "expired";
  readonly accountId: string | null;
  readonly agentId: string | null;
  readonly createdAtMs: number;
  readonly decidedAtMs: number | null;
  /** Until when it may be decided, or its token be fetched. */
  readonly openUntilMs: number;
}

/** A new connection. */
export interface NewConnection {
  readonly kind: "new_connection";
  readonly id: string;
  /** The secret of the client's polls, and the secret of the page; each shown once. */
  readonly token: string;
  readonly approval: string;
}

/** Requests a connection. */
export function requestConnection(
  store: Store,
  name: string,
  nowMs: number,
): Promise<NewConnection | ApiFault<"unavailable">> {
  return store.transaction(async (tx) => {
    await tx
      .deleteFrom("connection")
      .where("state", "in", ["pending", "denied", "revoked"])
      .where("expires_at", "<", BigInt(nowMs - KEPT_MS))
      .execute();
    const pending = tx
      .selectFrom("connection")
      .where("state", "=", "pending")
      .where("expires_at", ">", BigInt(nowMs));
    const { count } = await pending
      .select((eb) => eb.fn.countAll<bigint>().as("count"))
      .executeTakeFirstOrThrow();
    if (count >= BigInt(MAX_PENDING))
      return apiFault("unavailable", "too many connections wait to be approved", {
        retryAfterMs: 60_000,
      });
    const made = {
      kind: "new_connection",
      id: newId("con", nowMs),
      token: newSecret("connection"),
      approval: newSecret("approval"),
    } as const;
    await tx
      .insertInto("connection")
      .values({
        id: made.id,
        state: "pending",
        read_only: 0n,
        token_hash: hashOf(made.token),
        approval_hash: hashOf(made.approval),
        name,
        created_at: BigInt(nowMs),
        expires_at: BigInt(nowMs + CONNECTION_MS),
      })
      .execute();
    return made;
  });
}

/** The connection that a page's secret belongs to; null = there is none. */
export async function connectionToDecide(
  { db }: Pick<Store, "db">,
  approval: string,
  nowMs: number,
): Promise<ConnectionRecord | null> {
  if (readSecret(approval) !== "approval") return null;
  return connectionBy(db, { column: "approval_hash", secret: approval }, nowMs);
}

/** The connection that a poll's secret belongs to; null = there is none. */
export function connectionByToken(
  { db }: Pick<Store, "db">,
  token: string,
  nowMs: number,
): Promise<ConnectionRecord | null> {
  return connectionBy(db, { column: "token_hash", secret: token }, nowMs);
}

async function connectionBy(
  db: Store["db"],
  { column, secret }: { readonly column: "approval_hash" | "token_hash"; readonly secret: string },
  nowMs: number,
): Promise<ConnectionRecord | null> {
  const rows = db.selectFrom("connection").selectAll().where(column, "=", hashOf(secret));
  const row = await rows.executeTakeFirst();
  return row === undefined ? null : recordOf(row, nowMs);
}

/** The owner's decision. */
export type Decision =
  | { readonly kind: "deny" }
  | { readonly kind: "approve"; readonly owner: Owner; readonly restrictions: Restrictions };

/** Decides a connection, once; returns its new state, or why nothing was decided. */
export function decideConnection(
  store: Store,
  { approval, decision }: Deciding,
  nowMs: number,
): Promise<ConnectionRecord | "unknown" | "decided" | "full"> {
  return store.transaction(async (tx) => {
    const row = await lockedRow(tx, "approval_hash", hashOf(approval));
    if (row === undefined) return "unknown";
    if (recordOf(row, nowMs).status !== "pending") return "decided";
    if (decision.kind === "deny")
      return save(tx, { ...row, state: "denied", decided_at: BigInt(nowMs) }, nowMs);
    const { owner, restrictions } = decision;
    await lockAccounts(tx, owner.accountId);
    if ((await listed(tx, owner.accountId, nowMs)).length >= MAX_CONNECTIONS) return "full";
    const { profiles, readOnly, expiresAtMs } = narrowed(restrictions, owner);
    const changed = {
      state: "approved",
      account_id: owner.accountId,
      profiles: slugsText(profiles),
      read_only: readOnly ? 1n : 0n,
      agent_expires_at: expiresAtMs === null ? null : BigInt(expiresAtMs),
      decided_at: BigInt(nowMs),
      expires_at: BigInt(nowMs + CONNECTION_MS),
    } as const;
    return save(tx, { ...row, ...changed }, nowMs);
  });
}

/** A decision and what it is about. */
export interface Deciding {
  readonly approval: string;
  readonly decision: Decision;
}

/**
 * The restrictions of a connection, within those of its approver: a key cannot grant management of
 * its account, which it does not have.
 */
export function narrowed(
  { profiles, readOnly, expiresAtMs }: Restrictions,
  owner: Owner,
): Restrictions {
  const shared =
    profiles === null || owner.profiles === null
      ? (profiles ?? owner.profiles)
      : profiles.filter((slug) => owner.profiles?.includes(slug));
  const ends = [expiresAtMs, owner.expiresAtMs].filter((endMs) => endMs !== null);
  return {
    profiles: shared,
    readOnly: readOnly || !owner.manages,
    expiresAtMs: ends.length === 0 ? null : Math.min(...ends),
  };
}

/** Whether an agent's token was fetched by a connection, so that it is not the owner's own. */
export async function cameByConnection({ db }: Store, agentId: string): Promise<boolean> {
  return (
    (await db
      .selectFrom("connection")
      .select("id")
      .where("agent_id", "=", agentId)
      .limit(1)
      .executeTakeFirst()) !== undefined
  );
}

/** The answer to a poll. */
export type Polled =
  | {
      readonly kind: "polled";
      readonly status: ConnectionRecord["status"];
      readonly token: string | null;
    }
  | ApiFault<"not_found" | "rate_limited">;

/**
 * Answers a poll. The token of an approved connection is created at the first poll after the
 * approval, and shown once.
 */
export function pollConnection(
  store: Store,
  { id, token }: { readonly id: string; readonly token: string },
  nowMs: number,
): Promise<Polled> {
  return store.transaction(async (tx) => {
    const row = await lockedRow(tx, "token_hash", hashOf(token));
    if (row === undefined || row.id !== id)
      return apiFault("not_found", "the token is not of the connection with this id");
    const sinceMs = row.polled_at === null ? POLL_MS : nowMs - Number(row.polled_at);
    // A clock that stepped back delays nobody.
    if (sinceMs >= 0 && sinceMs < POLL_MS)
      return apiFault("rate_limited", "a connection may be asked for every 5 seconds", {
        retryAfterMs: POLL_MS - sinceMs,
      });
    const polled = { ...row, polled_at: BigInt(nowMs) };
    const { status, ...record } = recordOf(row, nowMs);
    if (status !== "approved" || row.agent_id !== null || row.account_id === null) {
      await save(tx, polled, nowMs);
      return { kind: "polled", status, token: null };
    }
    const { profiles, readOnly, expiresAtMs } = record;
    const agent = { accountId: row.account_id, name: row.name, profiles, readOnly, expiresAtMs };
    const made = await insertManagementToken(tx, agent, nowMs);
    await save(tx, { ...polled, agent_id: made.agent.id }, nowMs);
    return { kind: "polled", status, token: made.token };
  });
}

/** Approved connections of an account, oldest first. */
export async function listConnections(
  { db }: Pick<Store, "db">,
  accountId: string,
  nowMs: number,
): Promise<readonly ConnectionRecord[]> {
  return (await listed(db, accountId, nowMs)).map((row) => recordOf(row, nowMs));
}

/** A connection, and the account that it must belong to. */
export interface ConnectionRef {
  readonly id: string;
  readonly accountId: string;
}

/**
 * Ends a connection of an account and the agent that it became; does nothing to one that has ended.
 */
export function revokeConnection(
  store: Store,
  { id, accountId }: ConnectionRef,
  nowMs: number,
): Promise<"revoked" | "unknown"> {
  return store.transaction(async (tx) => {
    const row = await lockedRow(tx, "id", id);
    if (row === undefined || row.account_id !== accountId) return "unknown";
    if (row.state === "revoked") return "revoked";
    if (row.agent_id !== null)
      await tx
        .updateTable("agent")
        .set({ revoked_at: BigInt(nowMs) })
        .where("id", "=", row.agent_id)
        .where("revoked_at", "is", null)
        .execute();
    await save(tx, { ...row, state: "revoked" }, nowMs);
    return "revoked";
  });
}

/** Approved connections whose token works or may still be fetched. */
function listed(
  db: Store["db"],
  accountId: string,
  nowMs: number,
): Promise<readonly ConnectionTable[]> {
  const now = BigInt(nowMs);
  const rows = db
    .selectFrom("connection")
    .selectAll()
    .where("account_id", "=", accountId)
    .where("state", "=", "approved");
  return rows
    .where((eb) =>
      eb.or([
        eb("agent_id", "is", null).and("expires_at", ">", now),
        eb("agent_id", "is not", null).and(
          eb.or([eb("agent_expires_at", "is", null), eb("agent_expires_at", ">", now)]),
        ),
      ]),
    )
    .orderBy("id")
    .limit(MAX_CONNECTIONS)
    .execute();
}

function lockedRow(tx: Tx, column: "id" | "token_hash" | "approval_hash", value: string) {
  const row = tx.selectFrom("connection").selectAll().where(column, "=", value);
  return (isEmbedded(tx) ? row : row.forNoKeyUpdate()).executeTakeFirst();
}

async function save(tx: Tx, row: ConnectionTable, nowMs: number): Promise<ConnectionRecord> {
  await tx.updateTable("connection").set(row).where("id", "=", row.id).execute();
  return recordOf(row, nowMs);
}

function recordOf(row: ConnectionTable, nowMs: number): ConnectionRecord {
  return {
    id: row.id,
    name: row.name,
    status: statusOf(row, nowMs),
    accountId: row.account_id,
    agentId: row.agent_id,
    profiles: parseSlugs(row.profiles),
    readOnly: row.read_only !== 0n,
    expiresAtMs: row.agent_expires_at === null ? null : Number(row.agent_expires_at),
    createdAtMs: Number(row.created_at),
    decidedAtMs: row.decided_at === null ? null : Number(row.decided_at),
    openUntilMs: Number(row.expires_at),
  };
}

function statusOf(row: ConnectionTable, nowMs: number): ConnectionRecord["status"] {
  switch (row.state) {
    case "pending":
      return isOpen(row.created_at, row.expires_at, nowMs) ? "pending" : "expired";
    case "approved":
      return row.agent_id !== null ||
        isOpen(row.decided_at ?? row.created_at, row.expires_at, nowMs)
        ? "approved"
        : "expired";
    case "denied":
    case "revoked":
      return "denied";
  }
}
