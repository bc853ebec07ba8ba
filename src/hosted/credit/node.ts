// The life of a node in the store: it joins, flushes what it spent (which is also its heartbeat),
// leaves, or is declared dead by other nodes. Knows no wallet.
import { sql } from "kysely";
import { inParts, lockAccount, lockAccounts, type Tx } from "../../ledger/ledger.ts";
import type { Store } from "../../store/store.ts";
import type { AllowanceMonthTable, UsageHourTable } from "../../store/tables.ts";
import { closeLeases, type Epoch, noteExhausted, type RunningOut } from "./lease.ts";

/** The name of a node and where it runs. */
export interface NodeIdentity {
  readonly id: string;
  readonly region: string;
}

/** What a node spent and counted, written once under its number. */
export interface FlushBatch {
  readonly seq: bigint;
  /** By account, nano-USD. */
  readonly spent: readonly { readonly accountId: string; readonly amountN: bigint }[];
  /** Sorted, no row twice. */
  readonly usage: readonly UsageHourTable[];
  readonly free: readonly AllowanceMonthTable[];
  readonly runningOut: RunningOut;
}

/** Starts a new epoch of a node, and closes the leases of earlier ones. */
export async function join(
  store: Store,
  { id, region }: NodeIdentity,
  wallMs: number,
): Promise<Epoch> {
  const at = BigInt(Math.floor(wallMs));
  const fresh = { region, state: "alive", flush_seq: 0n, heartbeat_at: at } as const;
  const { epoch } = await store.transaction((tx) =>
    tx
      .insertInto("node")
      .values({ id, epoch: 1n, ...fresh })
      .onConflict((conflict) =>
        conflict.column("id").doUpdateSet({ epoch: sql<bigint>`node.epoch + 1`, ...fresh }),
      )
      .returning("epoch")
      .executeTakeFirstOrThrow(),
  );
  await closeEnded(store, wallMs);
  return { nodeId: id, epoch };
}

/**
 * Writes a batch, or finds that an earlier try with a lost answer has written it; "fenced" = this
 * epoch is over, and nothing is written.
 */
export async function flush(
  store: Store,
  epoch: Epoch,
  { batch, wallMs }: { readonly batch: FlushBatch; readonly wallMs: number },
): Promise<"written" | "fenced"> {
  return store.transaction(async (tx) => {
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
    const { accountIds } = batch.runningOut;
    if (accountIds.length === 1) await lockAccount(tx, accountIds[0] ?? "");
    else await lockAccounts(tx, accountIds);
    await writeSpent(tx, epoch, batch.spent);
    await noteExhausted(tx, batch.runningOut);
    await inParts(batch.usage, (part) => addUsage(tx, part));
    await inParts(batch.free, (part) => addFree(tx, part));
    return "written";
  });
}

async function isWritten(tx: Tx, { nodeId, epoch }: Epoch, seq: bigint): Promise<boolean> {
  const node = await tx.selectFrom("node").selectAll().where("id", "=", nodeId).executeTakeFirst();
  return node?.epoch === epoch && node.state === "alive" && node.flush_seq === seq;
}

async function writeSpent(
  tx: Tx,
  { nodeId, epoch }: Epoch,
  spent: FlushBatch["spent"],
): Promise<void> {
  await inParts(spent, async (part) => {
    const rows = part.map(
      (row) => sql`(cast(${row.accountId} as text), cast(${row.amountN} as bigint))`,
    );
    const { numAffectedRows } = await sql`
      update credit_lease set spent_n = spent_n + change.column2
      from (values ${sql.join(rows)}) as change
      where account_id = change.column1 and node_id = ${nodeId} and epoch = ${epoch}`.execute(tx);
    if (numAffectedRows !== BigInt(part.length))
      throw new Error(`node ${nodeId} spent of leases that the store does not have`);
  });
}

async function addUsage(tx: Tx, rows: readonly UsageHourTable[]): Promise<void> {
  await tx
    .insertInto("usage_hour")
    .values(rows)
    .onConflict((conflict) =>
      conflict.columns(["account_id", "hour", "key_id", "method"]).doUpdateSet({
        calls: sql<bigint>`usage_hour.calls + excluded.calls`,
        cu: sql<bigint>`usage_hour.cu + excluded.cu`,
        charge_n: sql<bigint>`usage_hour.charge_n + excluded.charge_n`,
      }),
    )
    .execute();
}

async function addFree(tx: Tx, rows: readonly AllowanceMonthTable[]): Promise<void> {
  await tx
    .insertInto("allowance_month")
    .values(rows)
    .onConflict((conflict) =>
      conflict
        .columns(["account_id", "month"])
        .doUpdateSet({ used_cu: sql<bigint>`allowance_month.used_cu + excluded.used_cu` }),
    )
    .execute();
}

/** Marks a node as left; leases that are still open are closed by the next sweep. */
export async function leave(store: Store, { nodeId, epoch }: Epoch): Promise<void> {
  await store.db
    .updateTable("node")
    .set({ state: "left" })
    .where("id", "=", nodeId)
    .where("epoch", "=", epoch)
    .execute();
}

/** The heartbeat of another node. */
export interface NodeHeartbeat {
  readonly epoch: bigint;
  readonly flushSeq: bigint;
}

/** All nodes that count as alive except one. */
export async function othersAlive(
  store: Store,
  nodeId: string,
): Promise<ReadonlyMap<string, NodeHeartbeat>> {
  const rows = await store.db
    .selectFrom("node")
    .selectAll()
    .where("state", "=", "alive")
    .where("id", "!=", nodeId)
    .execute();
  return new Map(rows.map((row) => [row.id, { epoch: row.epoch, flushSeq: row.flush_seq }]));
}

/** Declares a node dead unless its heartbeat has changed since it was read. */
export async function markDead(
  store: Store,
  nodeId: string,
  { epoch, flushSeq }: NodeHeartbeat,
): Promise<void> {
  await store.db
    .updateTable("node")
    .set({ state: "dead" })
    .where("id", "=", nodeId)
    .where("epoch", "=", epoch)
    .where("flush_seq", "=", flushSeq)
    .where("state", "=", "alive")
    .execute();
}

/** Leases that one sweep closes at most: 200 a step. */
const MAX_STEPS = 10_000;

/** Closes every lease of epochs that are over. */
export async function closeEnded(store: Store, wallMs: number): Promise<void> {
  for (let step = 0; step < MAX_STEPS; step++) {
    if ((await store.transaction((tx) => closeLeases(tx, { kind: "ended" }, wallMs))) === 0) return;
  }
}
