// Management tokens of accounts; each belongs to an agent. Knows their restrictions, not what they
// manage.
import type { Selectable, Transaction } from "kysely";
import { hashOf, newId, newSecret } from "../../secrets/secret.ts";
import type { Store } from "../../shared/store/store.ts";
import type { ManagementTokenTable, Tables } from "../../shared/store/tables.ts";
import { parseSlugs, slugsText } from "./key-profiles.ts";

/** An agent as the store has it. */
export interface ManagementToken {
  readonly id: string;
  readonly accountId: string;
  readonly name: string;
  /** Slugs that it is restricted to; null = all. */
  readonly profiles: readonly string[] | null;
  readonly readOnly: boolean;
  readonly expiresAtMs: number | null;
  readonly revokedAtMs: number | null;
}

/** An agent to be made. */
export type NewManagementToken = Omit<ManagementToken, "id" | "revokedAtMs">;

/** Makes an agent. The token is shown once. */
export async function insertManagementToken(
  tx: Transaction<Tables>,
  agent: NewManagementToken,
  nowMs: number,
): Promise<{ readonly agent: ManagementToken; readonly token: string }> {
  const token = newSecret("token");
  const id = newId("agt", nowMs);
  await tx
    .insertInto("agent")
    .values({
      id,
      account_id: agent.accountId,
      name: agent.name,
      token_hash: hashOf(token),
      profiles: slugsText(agent.profiles),
      read_only: agent.readOnly ? 1n : 0n,
      expires_at: agent.expiresAtMs === null ? null : BigInt(agent.expiresAtMs),
      created_at: BigInt(nowMs),
    })
    .execute();
  return { agent: { ...agent, id, revokedAtMs: null }, token };
}

/** The agent of a token, also one that has ended; null = unknown. */
export function managementTokenBySecret(
  store: Store,
  token: string,
): Promise<ManagementToken | null> {
  return agentBy(store, "token_hash", hashOf(token));
}

/** The agent with an id, also one that has ended; null = unknown. */
export function managementTokenById(store: Store, id: string): Promise<ManagementToken | null> {
  return agentBy(store, "id", id);
}

async function agentBy({ db }: Store, column: "id" | "token_hash", value: string) {
  const rows = db.selectFrom("agent").selectAll().where(column, "=", value);
  const row = await rows.executeTakeFirst();
  return row === undefined ? null : agentOf(row);
}

/** Whether an agent's token still works. */
export async function isManagementTokenValid(
  store: Store,
  id: string,
  nowMs: number,
): Promise<boolean> {
  const agent = await managementTokenById(store, id);
  return agent !== null && managementTokenEnd(agent, nowMs) === null;
}

/** Why an agent's token opens nothing any more; null = it does. */
export function managementTokenEnd(
  { revokedAtMs, expiresAtMs }: ManagementToken,
  nowMs: number,
): "revoked" | "expired" | null {
  if (revokedAtMs !== null) return "revoked";
  return expiresAtMs !== null && nowMs >= expiresAtMs ? "expired" : null;
}

function agentOf(row: Selectable<ManagementTokenTable>): ManagementToken {
  return {
    id: row.id,
    accountId: row.account_id,
    name: row.name,
    profiles: parseSlugs(row.profiles),
    readOnly: row.read_only !== 0n,
    expiresAtMs: row.expires_at === null ? null : Number(row.expires_at),
    revokedAtMs: row.revoked_at === null ? null : Number(row.revoked_at),
  };
}
