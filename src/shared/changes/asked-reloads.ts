// The last reload that an operator asked every node for: one row beside the log of changes, so that
// a node that missed the change still finds it. Knows no configuration.
import { sql } from "kysely";
import { newId } from "../../secrets/secret.ts";
import { databaseNow } from "../store/engine.ts";
import type { Store } from "../store/store.ts";
import { recordChange } from "./change-log.ts";

/** Who asked every node to reload its configuration, and where. */
export interface ReloadRequest {
  /** The node at which it was asked for. */
  readonly node: string;
  readonly actor: string;
  /** IP address of the caller. */
  readonly address: string;
}

/** A reload that was asked for. */
export interface AskedReload extends ReloadRequest {
  /** Tells it from every other one. */
  readonly id: string;
  /** For how long it has been asked for, by the clock of the database. */
  readonly ageMs: number;
}

/** Asks every node for a reload; `ref` is what the change log says of it. */
export function requestReload(
  store: Store,
  { node, actor, address }: ReloadRequest,
  { ref, wallMs }: { readonly ref: string; readonly wallMs: number },
): Promise<void> {
  const id = newId("rld", wallMs);
  return store.transaction(async (tx) => {
    await sql`insert into operator_reload (slot, id, node, actor, address, asked_at)
      values ('last', ${id}, ${node}, ${actor}, ${address}, ${databaseNow(tx)})
      on conflict (slot) do update set id = excluded.id, node = excluded.node,
        actor = excluded.actor, address = excluded.address, asked_at = excluded.asked_at`.execute(
      tx,
    );
    await recordChange(tx, { topic: "operator", ref });
  });
}

/** The last reload that was asked for; null = none ever was. */
export async function lastAskedReload({ db }: Pick<Store, "db">): Promise<AskedReload | null> {
  const row = await db
    .selectFrom("operator_reload")
    .select(["id", "node", "actor", "address", "asked_at"])
    .select(databaseNow(db).as("now"))
    .executeTakeFirst();
  if (row === undefined) return null;
  const { id, node, actor, address, asked_at: askedAt, now } = row;
  return { id, node, actor, address, ageMs: Number(BigInt(now) - BigInt(askedAt)) };
}
