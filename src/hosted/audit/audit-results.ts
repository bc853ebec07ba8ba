// The last results of audits, kept in the store: whether the books agree with each other and with
// the payment chains, when that was checked, and what is wrong, in words. Decides nothing.
import { sql } from "kysely";
import { nanoOf } from "../../core/billing/payment.ts";
import { usdText } from "../../core/billing/price.ts";
import type { Store } from "../../shared/store/store.ts";
import type { AuditResultTable } from "../../shared/store/tables-cluster.ts";
import type { AuditFindings, BookDifference, TransferDifference, UnreadChain } from "./audit.ts";

/** How one part of an audit ended: as the store keeps it. */
export type AuditResult = AuditResultTable;
/** Who ran an audit, where, and when. */
export type AuditRun = Pick<AuditResult, "runner" | "node" | "checked_at">;

const MAX_PROBLEMS = 100;
const MAX_PROBLEM_CHARS = 300;

/** The result of comparing the books with each other. */
export function booksResult(differences: readonly BookDifference[], run: AuditRun): AuditResult {
  const state = differences.length === 0 ? "balanced" : "unbalanced";
  return { ...run, part: "books", state, ...problemsOf(differences.map(differenceText)) };
}

/** The result of comparing the books with the payment chains. */
export function chainsResult(
  { money, unread }: Pick<AuditFindings, "money" | "unread">,
  run: AuditRun,
): AuditResult {
  const problems = [...money.map(transferText), ...unread.map(unreadText)];
  const withoutDifference = unread.length > 0 ? "unread" : "balanced";
  const state = money.length > 0 ? "unbalanced" : withoutDifference;
  return { ...run, part: "chains", state, ...problemsOf(problems) };
}

/** A difference in the books, in words. */
export function differenceText({ check, id, isN, shouldN }: BookDifference): string {
  return `${check} ${id}: is ${usdText(isN)} USD, should be ${usdText(shouldN)} USD`;
}

function transferText({ txHash, chainId, movedUnits, recordedUnits }: TransferDifference): string {
  const usd = (units: bigint): string => `${usdText(nanoOf(units))} USD`;
  const where = `transaction ${txHash} on chain ${chainId}`;
  return `${where}: moved ${usd(movedUnits)}, recorded ${usd(recordedUnits)}`;
}

function unreadText({ chainId, reason }: UnreadChain): string {
  return `chain ${chainId} could not be read: ${reason}`;
}

function problemsOf(all: readonly string[]): Pick<AuditResult, "problems" | "problem_count"> {
  const first = all.slice(0, MAX_PROBLEMS).map((text) => text.slice(0, MAX_PROBLEM_CHARS));
  return { problems: JSON.stringify(first), problem_count: BigInt(all.length) };
}

/** The first problems of a result. */
export function parseProblems({ problems }: AuditResult): string[] {
  return JSON.parse(problems) as string[];
}

/** Keeps results in place of those of the same parts that were there. */
export async function recordAudit(
  { db }: Pick<Store, "db">,
  results: readonly AuditResult[],
): Promise<void> {
  const column = (name: string) => sql.ref<never>(`excluded.${name}`);
  await db
    .insertInto("audit_result")
    .values([...results])
    .onConflict((conflict) =>
      conflict.column("part").doUpdateSet({
        state: column("state"),
        problem_count: column("problem_count"),
        problems: column("problems"),
        runner: column("runner"),
        node: column("node"),
        checked_at: column("checked_at"),
      }),
    )
    .execute();
}

/** The last result of each part; null = it was never compared. */
export async function lastAudit({
  db,
}: Pick<Store, "db">): Promise<Readonly<Record<AuditResult["part"], AuditResult | null>>> {
  const rows = await db.selectFrom("audit_result").selectAll().execute();
  const of = (part: AuditResult["part"]) => rows.find((row) => row.part === part) ?? null;
  return { books: of("books"), chains: of("chains") };
}
