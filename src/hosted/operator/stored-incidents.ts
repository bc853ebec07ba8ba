// Incidents in the store: each is written under its id by the service that saw it, again while it
// lasts, and kept for 90 days. Knows nothing of what an incident is.
import type { Store } from "../../shared/store/store.ts";
import type { IncidentTable } from "../../shared/store/tables-cluster.ts";

/** Writes incidents; what was written of each before is replaced. */
export async function writeIncidents(
  { db }: Store,
  incidents: readonly IncidentTable[],
): Promise<void> {
  if (incidents.length === 0) return;
  await db
    .insertInto("incident")
    .values([...incidents])
    .onConflict((conflict) =>
      conflict.column("id").doUpdateSet((eb) => ({
        state: eb.ref("excluded.state"),
        words: eb.ref("excluded.words"),
        ended_at: eb.ref("excluded.ended_at"),
        good_since: eb.ref("excluded.good_since"),
        seen_at: eb.ref("excluded.seen_at"),
        attempts: eb.ref("excluded.attempts"),
        failed: eb.ref("excluded.failed"),
        failed_calls: eb.ref("excluded.failed_calls"),
        users: eb.ref("excluded.users"),
      })),
    )
    .execute();
}

/** The incidents of all services on the store, those that began last first. */
export function readIncidents({ db }: Store, most: number): Promise<readonly IncidentTable[]> {
  return db
    .selectFrom("incident")
    .selectAll()
    .orderBy("started_at", "desc")
    .orderBy("id", "desc")
    .limit(most)
    .execute();
}
