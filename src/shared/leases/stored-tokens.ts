// The book of rate limits of several nodes: rows of the store, so that together the nodes never
// take more than a limit allows. One statement grants the tokens of many limits.
import { type RawBuilder, sql } from "kysely";
import type { RequestTokens, TokenGrant, TokenRequest } from "../../core/billing/shared-limit.ts";
import { databaseNow, isPostgres } from "../store/engine.ts";
import type { Store } from "../store/store.ts";

/** A demand that was not met counts for this long. */
const DEMAND_MS = 1_000;
const MAX_UNMET = 10_000;

/** Asks the book in a store, as one process. */
export function storedTokens(store: Pick<Store, "db">, processId: string): RequestTokens {
  /** Limits of which the last answer was less than was wanted. */
  const unmet = new Set<string>();
  return async (requests) => {
    // Every process writes in the same order, so that no two wait for each other.
    const sorted = [...requests].sort((a, b) => (a.scope < b.scope ? -1 : 1));
    const others = await demandsOfOthers(store, processId, { requests: sorted, unmet });
    const rows = await granted(store, sorted, others);
    if (unmet.size > MAX_UNMET) unmet.clear();
    return requests.map((request) => {
      const grant = grantOf(request, rows.get(request.scope));
      if (grant.granted < request.wanted) unmet.add(request.scope);
      else unmet.delete(request.scope);
      return grant;
    });
  };
}

interface LimitRow {
  readonly scope: string;
  readonly granted: number | bigint;
  /** Until the limit is full. */
  readonly full_in: number;
}

function grantOf({ size, wanted }: TokenRequest, row: LimitRow | undefined): TokenGrant {
  if (row === undefined) throw new Error("the store did not grant what it was asked for");
  const stepMs = 1_000 / size.perSecond;
  const count = Number(row.granted);
  const waitMs = Math.max(0, Number(row.full_in) - (size.burst - 1) * stepMs);
  return {
    granted: count,
    waitMs: count < wanted ? waitMs : 0,
    debt: Math.max(0, Number(row.full_in)) / stepMs,
  };
}

/** Writes this process's unmet demand for each limit; returns the sum of the others' demand. */
async function demandsOfOthers(
  { db }: Pick<Store, "db">,
  processId: string,
  {
    requests,
    unmet,
  }: { readonly requests: readonly TokenRequest[]; readonly unmet: ReadonlySet<string> },
): Promise<ReadonlyMap<string, number>> {
  const now = databaseNow(db);
  const rows = requests.map(
    ({ scope, wanted }) => sql`(cast(${scope} as text), cast(${processId} as text),
      cast(${unmet.has(scope) ? wanted : 0} as double precision), ${now})`,
  );
  const write = sql`insert into rate_demand (scope, node_id, wanted, at)
    values ${sql.join(rows)} on conflict (scope, node_id) do update
    set wanted = excluded.wanted, at = excluded.at`;
  const read = sql<{ readonly scope: string; readonly wanted: number }>`
    select scope, sum(wanted) as wanted from rate_demand
    where scope in (${sql.join(requests.map(({ scope }) => scope))}) and node_id <> ${processId}
      and at > ${now} - ${sql.lit(DEMAND_MS)} group by scope`;
  const result = await readAfter(db, write, read);
  return new Map(result.map(({ scope, wanted }) => [scope, Number(wanted)]));
}

/** One statement on a server; an embedded store changes nothing within a reading. */
export async function readAfter<T>(
  db: Store["db"],
  write: RawBuilder<unknown>,
  read: RawBuilder<T>,
): Promise<readonly T[]> {
  if (isPostgres(db)) return (await sql<T>`with written as (${write}) ${read}`.execute(db)).rows;
  await write.execute(db);
  return (await read.execute(db)).rows;
}

/**
 * Takes tokens out of the rows of limits. `full_at` is when a limit is full; `granted` and `part`
 * tell what the last statement gave, and which part of what was left it might.
 */
async function granted(
  { db }: Pick<Store, "db">,
  requests: readonly TokenRequest[],
  others: ReadonlyMap<string, number>,
): Promise<ReadonlyMap<string, LimitRow>> {
  const now = sql`cast(${databaseNow(db)} as double precision)`;
  const rows = requests.map(({ scope, size, wanted, owed }) => {
    const stepMs = 1_000 / size.perSecond;
    const { burst } = size;
    const part = wanted === 0 ? 1 : wanted / (wanted + (others.get(scope) ?? 0));
    // A limit without a row is full.
    const first = Math.max(0, Math.min(wanted, burst - owed, Math.ceil((burst - owed) * part)));
    const fullInMs = Math.min(burst, Math.max(0, first + owed)) * stepMs;
    return sql`(cast(${scope} as text), ${now} + cast(${fullInMs} as double precision),
      cast(${stepMs} as double precision), cast(${burst} as double precision),
      cast(${wanted} as double precision), cast(${owed} as double precision),
      cast(${part} as double precision), cast(${first} as double precision))`;
  });
  const least = isPostgres(db) ? sql`least` : sql`min`;
  const most = isPostgres(db) ? sql`greatest` : sql`max`;
  const end = sql`${now} + excluded.burst * excluded.step_ms`;
  const owing = sql`${least}(${most}(rate_limit.full_at, ${now})
    + excluded.owed * excluded.step_ms, ${end})`;
  const left = sql`${most}(0, floor((${end} - ${most}(${owing}, ${now})) / excluded.step_ms
    + 0.000001))`;
  const given = sql`${least}(excluded.wanted, ${left}, ceil(${left} * excluded.part))`;
  const result = await sql<LimitRow>`insert into rate_limit
    (scope, full_at, step_ms, burst, wanted, owed, part, granted) values ${sql.join(rows)}
    on conflict (scope) do update set granted = ${given},
      full_at = ${most}(${owing}, ${now}) + ${given} * excluded.step_ms
    returning scope, granted, full_at - ${now} as full_in`.execute(db);
  return new Map(result.rows.map((row) => [row.scope, row]));
}
