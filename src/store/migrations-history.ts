// The step of a store that is about history. A step that was released is never changed.
import type { Kysely } from "kysely";

/** Hours of history. */
export async function createHistory(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable("history_hour")
    .addColumn("profile", "text", (column) => column.notNull())
    .addColumn("chain", "text", (column) => column.notNull())
    .addColumn("hour", "bigint", (column) => column.notNull())
    .addColumn("provider", "text", (column) => column.notNull())
    .addColumn("class", "text", (column) => column.notNull())
    .addColumn("writer", "text", (column) => column.notNull())
    .addColumn("alias", "text", (column) => column.notNull())
    .addColumn("counts", "text", (column) => column.notNull())
    .addPrimaryKeyConstraint("history_hour_pk", [
      "profile",
      "chain",
      "hour",
      "provider",
      "class",
      "writer",
    ])
    .execute();
  await db.schema.createIndex("history_hour_by_time").on("history_hour").column("hour").execute();
}
