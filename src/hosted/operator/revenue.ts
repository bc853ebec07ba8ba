// Revenue and usage of the instance by day: what was charged, paid in and granted. Reads what is
// written; knows no price.
import { sql } from "kysely";
import { usdText } from "../../core/billing/price.ts";
import type { Store } from "../../shared/store/store.ts";
import type { HourRange } from "../accounts/hour-range.ts";
import { NOTHING_USED, sumOf, type Used, usageSums, usedOf, usedView } from "../accounts/usage.ts";
import { timeText } from "../keys/key-fields.ts";

/** One day, UTC. */
interface RevenueDay extends Used {
  readonly dayMs: number;
  /** Incoming payments, and credit that operators gave for money received elsewhere. */
  readonly paidInN: bigint;
  /** Credit given for nothing. */
  readonly grantedN: bigint;
}

const DAY_MS = 86_400_000;
const HOURS = 24n;

/** As the operator is shown them: whole days, oldest first; also those without anything. */
export async function revenueByDay({ db }: Store, range: HourRange) {
  const firstDay = Math.floor(range.firstHour / Number(HOURS));
  const lastDay = Math.floor((range.endHour - 1) / Number(HOURS));
  const days = lastDay - firstDay + 1;
  const usage = await db
    .selectFrom("usage_hour")
    .select([sql<bigint>`cast(hour / ${sql.lit(Number(HOURS))} as bigint)`.as("day"), ...usageSums])
    .where("hour", ">=", BigInt(firstDay) * HOURS)
    .where("hour", "<", BigInt(lastDay + 1) * HOURS)
    .groupBy("day")
    .limit(days)
    .execute();
  const money = await db
    .selectFrom("ledger_tx")
    .innerJoin("ledger_entry", "ledger_entry.tx_id", "ledger_tx.id")
    .select([
      sql<bigint>`cast(created_at / ${sql.lit(DAY_MS)} as bigint)`.as("day"),
      taken("payments").as("paid_in_n"),
      taken("grants").as("granted_n"),
    ])
    .where("created_at", ">=", BigInt(firstDay * DAY_MS))
    .where("created_at", "<", BigInt((lastDay + 1) * DAY_MS))
    .where("book", "in", ["payments", "grants"])
    .groupBy("day")
    .limit(days)
    .execute();
  const usageOf = new Map(usage.map((row) => [Number(row.day), row]));
  const moneyOf = new Map(money.map((row) => [Number(row.day), row]));
  const rows = Array.from({ length: days }, (_, n): RevenueDay => {
    const day = firstDay + n;
    const [used, booked] = [usageOf.get(day), moneyOf.get(day)];
    return {
      dayMs: day * DAY_MS,
      ...usedOf(used ?? {}),
      paidInN: booked?.paid_in_n ?? 0n,
      grantedN: booked?.granted_n ?? 0n,
    };
  });
  return {
    from: timeText(firstDay * DAY_MS),
    to: timeText((lastDay + 1) * DAY_MS),
    days: rows.map((row) => ({ day: timeText(row.dayMs).slice(0, DAY_CHARS), ...moneyView(row) })),
    totals: moneyView(rows.reduce(sum, NOTHING)),
  };
}

const DAY_CHARS = "2026-11-28".length;

type Money = Omit<RevenueDay, "dayMs">;

const NOTHING: Money = { ...NOTHING_USED, paidInN: 0n, grantedN: 0n };

function sum(a: Money, b: Money): Money {
  const money = { paidInN: a.paidInN + b.paidInN, grantedN: a.grantedN + b.grantedN };
  return { ...sumOf(a, b), ...money };
}

function moneyView({ paidInN, grantedN, ...used }: Money) {
  const { usd, ...amounts } = usedView(used);
  const money = { paid_in_usd: usdText(paidInN), granted_usd: usdText(grantedN) };
  return { ...amounts, charged_usd: usd, ...money };
}

/** What left a book of the operator. */
function taken(book: "payments" | "grants") {
  return sql<bigint>`cast(coalesce(sum(case when book = ${sql.lit(book)} then -amount_n else 0 end),
    0) as bigint)`;
}
