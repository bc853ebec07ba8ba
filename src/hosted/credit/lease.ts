// The statements that move money between an account and the lease of a node, in both directions.
// They always lock accounts first, then leases. Knows no node's memory.
import { type RawBuilder, sql } from "kysely";
import {
  chunks,
  isEmbedded,
  type LedgerEvent,
  lockAccounts,
  postAll,
  type Tx,
} from "../../shared/ledger/ledger.ts";
import { moveOn, withTargets } from "../../shared/ledger/merged-accounts.ts";
import type { Epoch } from "../../shared/nodes/node-rows.ts";
import { valueRows } from "../../shared/store/engine.ts";

/** A node's request for one account; nano-USD. */
export interface LeaseRequest {
  readonly accountId: string;
  /** The price of all waiting calls. */
  readonly shortN: number;
  /** The price of the largest of them; 0 = no call waits. */
  readonly needN: number;
  /** The amount requested ahead of need. */
  readonly wantedN: number;
  /** The unspent amount that this node has of the account. */
  readonly hereN: number;
  /** The total that this node knows to be granted on this lease. */
  readonly grantedN: number;
}

/** The answer to a lease request. */
export interface LeaseGrant {
  /** The total granted on the lease, which includes a grant whose answer was lost. */
  readonly grantedN: number;
  /** The balance that no node has leased. */
  readonly leftN: number;
  /** Whether a call waits that it does not pay for, while other nodes have some of the balance. */
  readonly isDry: boolean;
  /** Free compute units used this month. */
  readonly usedCu: number;
  /**
   * Since when no credit for a call is left on any node; null = some is, or nobody ever paid for
   * the account.
   */
  readonly exhaustedAtMs: number | null;
}

/** When and under which bounds requests are answered. */
export interface LeaseTerms {
  readonly minSliceN: number;
  /** The price of the cheapest call: an account with less has run out. */
  readonly smallestN: number;
  readonly atMs: number;
  readonly month: number;
}

/** Slices up to which a balance counts as scarce and is not halved. */
const SCARCE_SLICES = 4;

type LeaseInput = { readonly requests: readonly LeaseRequest[]; readonly terms: LeaseTerms };

/**
 * Grants requests as far as the balances go, in the order of the requests; null = this epoch is
 * over.
 */
export async function lease(
  tx: Tx,
  epoch: Epoch,
  { requests, terms }: LeaseInput,
): Promise<readonly LeaseGrant[] | null> {
  const node = await tx
    .selectFrom("node")
    .select(["epoch", "state"])
    .where("id", "=", epoch.nodeId)
    .executeTakeFirst();
  if (node?.epoch !== epoch.epoch || node.state !== "alive") return null;
  const ids = requests.map((request) => request.accountId);
  const accounts = await accountsOf(tx, ids);
  const grants = new Map(
    requests.map((request) => [
      request.accountId,
      grantOf(accounts.get(request.accountId)?.balanceN ?? 0, request, terms.minSliceN),
    ]),
  );
  await move(tx, epoch, grants);
  const held = await heldOf(tx, epoch, { ids, month: terms.month });
  const answers: LeaseGrant[] = [];
  const runOut: string[] = [];
  for (const request of requests) {
    const { accountId } = request;
    const account = accounts.get(accountId);
    const leftN = (account?.balanceN ?? 0) - (grants.get(accountId) ?? 0);
    const { grantedN, usedCu, elsewhereN } = held.get(accountId) ?? NOTHING_HELD;
    const hereN = request.hereN + grantedN - request.grantedN;
    const needN = Math.max(request.needN, terms.smallestN);
    const runsOut = leftN === 0 && hereN < needN && account?.mayRunOut === true;
    const isOut = runsOut && elsewhereN < needN - hereN;
    if (isOut) runOut.push(accountId);
    const exhaustedAtMs = isOut ? Math.floor(terms.atMs) : (account?.exhaustedAtMs ?? null);
    const isDry = leftN === 0 && hereN < request.needN && elsewhereN > 0;
    answers.push({ grantedN, leftN, isDry, usedCu, exhaustedAtMs });
  }
  if (runOut.length > 0) {
    const row = { exhausted_at: BigInt(Math.floor(terms.atMs)) };
    await tx.updateTable("account").set(row).where("id", "in", runOut).execute();
  }
  return answers;
}

interface AccountNow {
  readonly balanceN: number;
  readonly exhaustedAtMs: number | null;
  /** True if the account has been paid for and has not run out yet. */
  readonly mayRunOut: boolean;
}

/** Locks the accounts in the common order; the returned values are from after the lock. */
async function accountsOf(
  tx: Tx,
  ids: readonly string[],
): Promise<ReadonlyMap<string, AccountNow>> {
  const query = tx
    .selectFrom("account")
    .select(["id", "balance_n", "first_paid_at", "exhausted_at"])
    .where("id", "in", ids)
    .orderBy("id");
  const rows = await (isEmbedded(tx) ? query : query.forNoKeyUpdate()).execute();
  return new Map(
    rows.map(({ id, balance_n, first_paid_at, exhausted_at }) => {
      const balanceN = Math.min(Number(balance_n), Number.MAX_SAFE_INTEGER);
      const exhaustedAtMs = exhausted_at === null ? null : Number(exhausted_at);
      return [
        id,
        { balanceN, exhaustedAtMs, mayRunOut: first_paid_at !== null && exhausted_at === null },
      ];
    }),
  );
}

/**
 * The amount granted to a node: what it requested ahead, at most half of the balance, and one slice
 * if the balance is scarce; but at least its present need, if the balance has it.
 */
export function grantOf(
  balanceN: number,
  { shortN, wantedN }: Pick<LeaseRequest, "shortN" | "wantedN">,
  minSliceN: number,
): number {
  if (wantedN <= 0 && shortN <= 0) return 0;
  const ahead =
    balanceN > SCARCE_SLICES * minSliceN
      ? Math.min(Math.max(wantedN, minSliceN), Math.floor(balanceN / 2))
      : minSliceN;
  return Math.min(balanceN, Math.max(shortN, ahead));
}

const NOTHING_HELD = { grantedN: 0, elsewhereN: 0, usedCu: 0 };

/** What this node and all others have of accounts, and what was used of the free allowance. */
async function heldOf(
  tx: Tx,
  { nodeId, epoch }: Epoch,
  { ids, month }: { readonly ids: readonly string[]; readonly month: number },
): Promise<ReadonlyMap<string, typeof NOTHING_HELD>> {
  const isHere = sql`node_id = ${nodeId} and epoch = ${epoch}`;
  const sumOf = (amount: RawBuilder<unknown>) => sql<bigint>`(select
    cast(coalesce(sum(${amount}), 0) as bigint) from credit_lease where account_id = account.id)`;
  const rows = await tx
    .selectFrom("account")
    .leftJoin("allowance_month", (join) =>
      join.onRef("account_id", "=", "account.id").on("month", "=", BigInt(month)),
    )
    .select(["account.id", "used_cu"])
    .select(sumOf(sql`case when ${isHere} then granted_n else 0 end`).as("granted"))
    .select(sumOf(sql`case when ${isHere} then 0 else granted_n - spent_n end`).as("elsewhere"))
    .where("account.id", "in", ids)
    .execute();
  return new Map(
    rows.map(({ id, used_cu, granted, elsewhere }) => [
      id,
      { grantedN: Number(granted), elsewhereN: Number(elsewhere), usedCu: Number(used_cu ?? 0n) },
    ]),
  );
}

async function move(
  tx: Tx,
  { nodeId, epoch }: Epoch,
  grants: ReadonlyMap<string, number>,
): Promise<void> {
  for (const part of chunks([...grants].filter(([, amountN]) => amountN > 0))) {
    await addToBalances(
      tx,
      part.map(([accountId, amountN]) => [accountId, BigInt(-amountN)]),
    );
    const leases = part.map(
      ([accountId, amountN]) => [accountId, nodeId, epoch, BigInt(amountN), 0n] as const,
    );
    await sql`insert into credit_lease (account_id, node_id, epoch, granted_n, spent_n)
      values ${valueRows(leases)} on conflict (account_id, node_id, epoch)
      do update set granted_n = credit_lease.granted_n + excluded.granted_n`.execute(tx);
  }
}

/** Adds amounts to balances, the rows of which are locked already. */
export async function addToBalances(
  tx: Tx,
  changes: readonly (readonly [string, bigint])[],
): Promise<void> {
  await sql`update account set balance_n = balance_n + change.column2
    from (values ${valueRows(changes)}) as change where id = change.column1`.execute(tx);
}

/**
 * Accounts that may have run out by a node's spending, and the time of its last spending on each.
 */
export interface RunningOut {
  readonly accountIds: readonly string[];
  /** The price of the cheapest call. */
  readonly smallestN: number;
  readonly atMs: number;
}

/**
 * Records which accounts have less left than the cheapest call costs, in balance and leases, after
 * their spending was written. Their rows are locked already.
 */
export async function noteExhausted(
  tx: Tx,
  { accountIds, smallestN, atMs }: RunningOut,
): Promise<void> {
  for (const part of chunks(accountIds)) {
    await sql`update account set exhausted_at = ${BigInt(Math.floor(atMs))}
      where id in (${sql.join(part)}) and first_paid_at is not null and exhausted_at is null and balance_n + (
        select coalesce(sum(granted_n - spent_n), 0) from credit_lease where credit_lease.account_id = account.id
      ) < cast(${BigInt(smallestN)} as bigint)`.execute(tx);
  }
}

/** Selects leases to close. */
export type LeaseClosing =
  /**
   * Leases of some accounts by a node that goes on; `seq` distinguishes one closing from the next.
   */
  | {
      readonly kind: "idle";
      readonly epoch: Epoch;
      readonly accountIds: readonly string[];
      readonly seq: bigint;
    }
  /** Leases of epochs that are over. */
  | { readonly kind: "ended" };

/**
 * Closes up to one statement's worth of leases: the unspent part returns to the balance, the spent
 * part goes to the ledger. Returns how many it found.
 */
export async function closeLeases(tx: Tx, closing: LeaseClosing, atMs: number): Promise<number> {
  const found = await leasesOf(tx, closing).execute();
  if (found.length === 0) return 0;
  const accountIds = [...new Set(found.map((row) => row.account_id))].sort();
  await lockAccounts(tx, ...(await withTargets(tx, accountIds)));
  const wanted = leasesOf(tx, closing).where("account_id", "in", accountIds);
  const rows = await (isEmbedded(tx) ? wanted : wanted.forNoKeyUpdate()).execute();
  const totals = new Map<string, bigint>();
  for (const row of rows)
    totals.set(row.account_id, (totals.get(row.account_id) ?? 0n) + row.granted_n);
  if (totals.size > 0) await addToBalances(tx, [...totals]);
  const end = closing.kind === "idle" ? `:${closing.seq}` : "";
  const nameOf = (row: (typeof rows)[number]): string =>
    `lease:${row.account_id}:${row.node_id}:${row.epoch}${end}`;
  const events = rows.flatMap((row): LedgerEvent[] =>
    row.spent_n === 0n
      ? []
      : [
          {
            kind: "usage",
            idemKey: nameOf(row),
            accountId: row.account_id,
            amountN: row.spent_n,
            atMs,
          },
        ],
  );
  if ((await postAll(tx, events)) !== events.length)
    throw new Error("a lease was closed before: its usage is in the ledger already");
  await moveOn(tx, new Map(rows.map((row) => [row.account_id, nameOf(row)])), atMs);
  const closed = rows.map((row) => [row.account_id, row.node_id, row.epoch] as const);
  if (closed.length > 0)
    await sql`delete from credit_lease
      where (account_id, node_id, epoch) in (values ${valueRows(closed)})`.execute(tx);
  return found.length;
}

const LEASES_PER_STEP = 200;

function leasesOf(tx: Tx, closing: LeaseClosing) {
  const leases = tx
    .selectFrom("credit_lease")
    .selectAll()
    .orderBy("account_id")
    .orderBy("node_id")
    .orderBy("epoch")
    .limit(LEASES_PER_STEP);
  switch (closing.kind) {
    case "idle":
      return leases
        .where("node_id", "=", closing.epoch.nodeId)
        .where("epoch", "=", closing.epoch.epoch)
        .where("account_id", "in", closing.accountIds);
    case "ended":
      return leases.where(({ not, exists, selectFrom }) =>
        not(
          exists(
            selectFrom("node")
              .select("node.id")
              .whereRef("node.id", "=", "credit_lease.node_id")
              .whereRef("node.epoch", "=", "credit_lease.epoch")
              .where("node.state", "=", "alive"),
          ),
        ),
      );
  }
}
