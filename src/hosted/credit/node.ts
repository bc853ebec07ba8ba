// What a node writes of its credit: what was spent and used, which is also its heartbeat, and the
// leases of nodes that are over. Knows no wallet.
import { type RawBuilder, sql } from "kysely";
import {
  inParts,
  isEmbedded,
  lockAccounts,
  ROWS_PER_STATEMENT,
  type Tx,
} from "../../shared/ledger/ledger.ts";
import type { Epoch } from "../../shared/nodes/node-rows.ts";
import { valueRows } from "../../shared/store/engine.ts";
import type { Store } from "../../shared/store/store.ts";
import type { AllowanceMonthTable, UsageHourRow } from "../../shared/store/tables.ts";
import { noteExhausted, type RunningOut } from "./lease.ts";
import { USED_COLUMNS } from "./usage-buffer.ts";

/** What a node spent and counted, written once under its number. */
export interface FlushBatch {
  readonly seq: bigint;
  /** By account, nano-USD. */
  readonly spent: readonly { readonly accountId: string; readonly amountN: bigint }[];
  /** Sorted, no row twice. */
  readonly usage: readonly UsageHourRow[];
  readonly free: readonly AllowanceMonthTable[];
  readonly runningOut: RunningOut;
}

/** Thrown to undo a batch whose leases are not there. */
class LeasesMissing extends Error {}

/** A batch, and the wall clock. */
export interface FlushInput {
  readonly batch: FlushBatch;
  readonly wallMs: number;
}

/** What became of a batch. */
export type FlushOutcome = "written" | "fenced" | "without leases";

/**
 * Writes a batch, or finds that an earlier try with a lost answer has written it. Otherwise nothing
 * is written: "fenced" = this epoch is over; "without leases" = the spending names leases that the
 * store lacks, so no repetition can succeed.
 */
export async function flush(store: Store, epoch: Epoch, input: FlushInput): Promise<FlushOutcome> {
  try {
    return await writeBatch(store, epoch, input);
  } catch (error) {
    if (error instanceof LeasesMissing) return "without leases";
    throw error;
  }
}

async function writeBatch(
  store: Store,
  epoch: Epoch,
  { batch, wallMs }: FlushInput,
): Promise<"written" | "fenced"> {
  return store.transaction(async (tx) => {
    if (isOneStatement(tx, batch)) return writeAtOnce(tx, epoch, { batch, wallMs });
    const { numUpdatedRows } = await tx
      .updateTable("node")
      .set({ flush_seq: batch.seq, heartbeat_at: BigInt(Math.floor(wallMs)) })
      .where("id", "=", epoch.nodeId)
      .where("epoch", "=", epoch.epoch)
      .where("state", "=", "alive")
      .where("flush_seq", "=", batch.seq - 1n)
      .executeTakeFirstOrThrow();
    if (numUpdatedRows === 0n)
      return (await isWritten(tx, epoch, batch.seq)) ? "written" : "fenced";
    await lockAccounts(tx, ...batch.runningOut.accountIds);
    await inParts(batch.spent, async (part) => {
      const { numAffectedRows } = await spentUpdate(epoch, part, ALONE).execute(tx);
      if (numAffectedRows !== BigInt(part.length)) throw new LeasesMissing();
    });
    await noteExhausted(tx, batch.runningOut);
    await inParts(
      batch.usage,
      async (part) => void (await usageInsertion(part, ALONE).execute(tx)),
    );
    await inParts(batch.free, async (part) => void (await freeInsertion(part, ALONE).execute(tx)));
    return "written";
  });
}

/**
 * Whether a server takes a batch in one statement: its usual form. Processes that serve one account
 * add to the same rows of usage: a transaction makes every other one wait until it ends.
 */
function isOneStatement(tx: Tx, { spent, usage, free, runningOut }: FlushBatch): boolean {
  if (isEmbedded(tx) || runningOut.accountIds.length > 0) return false;
  return Math.max(spent.length, usage.length, free.length) <= ROWS_PER_STATEMENT;
}

/** All parts hang on the first one: where this epoch is over, nothing is written. */
async function writeAtOnce(
  tx: Tx,
  epoch: Epoch,
  { batch, wallMs }: FlushInput,
): Promise<"written" | "fenced"> {
  const { spent, usage, free } = batch;
  const parts = [
    spent.length === 0
      ? sql`spent as (select 1 where false)`
      : sql`spent as (${spentUpdate(epoch, spent, BEAT)} returning account_id)`,
    ...(usage.length === 0 ? [] : [sql`used as (${usageInsertion(usage, BEAT)})`]),
    ...(free.length === 0 ? [] : [sql`freed as (${freeInsertion(free, BEAT)})`]),
  ];
  const { rows } = await sql<{ readonly beats: bigint; readonly leases: bigint }>`
    with beat as (
      update node set flush_seq = ${batch.seq}, heartbeat_at = ${BigInt(Math.floor(wallMs))}
      where id = ${epoch.nodeId} and epoch = ${epoch.epoch} and state = 'alive'
        and flush_seq = ${batch.seq - 1n}
      returning id
    ), ${sql.join(parts)}
    select (select count(*) from beat) as beats, (select count(*) from spent) as leases`.execute(
    tx,
  );
  const [written] = rows;
  if (written === undefined || written.beats === 0n)
    return (await isWritten(tx, epoch, batch.seq)) ? "written" : "fenced";
  if (written.leases !== BigInt(batch.spent.length)) throw new LeasesMissing();
  return "written";
}

/** In a statement that hangs on the heartbeat, and in one of its own. */
const BEAT = sql`, beat`;
const ALONE = sql``;

function spentUpdate(
  { nodeId, epoch }: Epoch,
  spent: FlushBatch["spent"],
  besides: RawBuilder<unknown>,
) {
  const rows = spent.map(({ accountId, amountN }) => [accountId, amountN] as const);
  return sql`update credit_lease set spent_n = spent_n + change.column2
    from (values ${valueRows(rows)}) as change${besides}
    where account_id = change.column1 and node_id = ${nodeId} and epoch = ${epoch}`;
}

function usageInsertion(usage: FlushBatch["usage"], besides: RawBuilder<unknown>) {
  const rows = usage.map((row) => [...USAGE_KEY, ...USED_COLUMNS].map((column) => row[column]));
  return sql`insert into usage_hour (${columnsOf(USAGE_KEY)}, ${columnsOf(USED_COLUMNS)})
    select added.* from (values ${valueRows(rows)}) as added${besides} where true
    on conflict (${columnsOf(USAGE_KEY)}) do update set ${sql.join(
      USED_COLUMNS.map((column) => {
        const [was, more] = [sql.ref(`usage_hour.${column}`), sql.ref(`excluded.${column}`)];
        return sql`${sql.ref(column)} = ${was} + ${more}`;
      }),
    )}`;
}

const USAGE_KEY = ["account_id", "hour", "key_id", "method"] as const;

function columnsOf(names: readonly string[]): RawBuilder<unknown> {
  return sql.join(names.map((name) => sql.ref(name)));
}

function freeInsertion(free: FlushBatch["free"], besides: RawBuilder<unknown>) {
  const rows = free.map(({ account_id, month, used_cu }) => [account_id, month, used_cu] as const);
  return sql`insert into allowance_month (account_id, month, used_cu)
    select added.* from (values ${valueRows(rows)}) as added${besides} where true
    on conflict (account_id, month) do update set
      used_cu = allowance_month.used_cu + excluded.used_cu`;
}

async function isWritten(tx: Tx, { nodeId, epoch }: Epoch, seq: bigint): Promise<boolean> {
  const node = await tx.selectFrom("node").selectAll().where("id", "=", nodeId).executeTakeFirst();
  return node?.epoch === epoch && node.state === "alive" && node.flush_seq === seq;
}
