// The last results of audits, kept in the store: whether the books agree with each other and with
// the payment chains, when that was checked, and what is wrong, in words. Decides nothing.
import { sql } from "kysely";
import { nanoOf } from "../../core/billing/payment.ts";
import { usdText } from "../../core/billing/price.ts";
import type { Store } from "../../shared/store/store.ts";
import type { AuditResultTable } from "../../shared/store/tables-cluster.ts";
import type { BookDifference, TransferDifference, UnreadChain } from "./audit.ts";

/** What was compared: the books with each other, or with the payment chains. */
export type AuditPart = AuditResultTable["part"];
/** Who ran an audit: the service by itself, an operator by the API, `svc audit`. */
export type AuditRunner = AuditResultTable["runner"];

/** How one part of an audit ended. */
export interface AuditResult {
  readonly part: AuditPart;
  /** `unread` = nothing differs, and a payment chain could not be read. */
  readonly state: AuditResultTable["state"];
  /** How many there are; `problems` has the first ones. */
  readonly problemCount: number;
  readonly problems: readonly string[];
  readonly runner: AuditRunner;
  /** The node that ran it; null = the service is one node, or a command ran it. */
  readonly node: string | null;
  readonly checkedAtMs: number;
}

/** Who ran an audit, where, and when. */
export type AuditRun = Pick<AuditResult, "runner" | "node" | "checkedAtMs">;

const MAX_PROBLEMS = 100;
const MAX_PROBLEM_CHARS = 300;

/** The result of comparing the books with each other. */
export function booksResult(differences: readonly BookDifference[], run: AuditRun): AuditResult {
  const state = differences.length === 0 ? "balanced" : "unbalanced";
  return { ...run, part: "books", state, ...problemsOf(differences.map(differenceText)) };
}

/** The result of comparing the books with the payment chains. */
export function chainsResult({ money, unread }: ComparedChains, run: AuditRun): AuditResult {
  const problems = [...money.map(transferText), ...unread.map(unreadText)];
  return { ...run, part: "chains", state: chainsState(money, unread), ...problemsOf(problems) };
}

interface ComparedChains {
  readonly money: readonly TransferDifference[];
  readonly unread: readonly UnreadChain[];
}

function chainsState(money: readonly unknown[], unread: readonly unknown[]): AuditResult["state"] {
  if (money.length > 0) return "unbalanced";
  return unread.length > 0 ? "unread" : "balanced";
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

function problemsOf(all: readonly string[]): Pick<AuditResult, "problems" | "problemCount"> {
  const problems = all.slice(0, MAX_PROBLEMS).map((text) => text.slice(0, MAX_PROBLEM_CHARS));
  return { problems, problemCount: all.length };
}

/** Keeps results in place of those of the same parts that were there. */
export async function recordAudit(
  { db }: Pick<Store, "db">,
  results: readonly AuditResult[],
): Promise<void> {
  const column = (name: string) => sql.ref<never>(`excluded.${name}`);
  await db
    .insertInto("audit_result")
    .values(results.map(rowOf))
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
}: Pick<Store, "db">): Promise<Readonly<Record<AuditPart, AuditResult | null>>> {
  const rows = await db.selectFrom("audit_result").selectAll().execute();
  const of = (part: AuditPart): AuditResult | null => {
    const row = rows.find((each) => each.part === part);
    return row === undefined ? null : resultOf(row);
  };
  return { books: of("books"), chains: of("chains") };
}

function rowOf(result: AuditResult): AuditResultTable {
  return {
    part: result.part,
    state: result.state,
    problem_count: BigInt(result.problemCount),
    problems: JSON.stringify(result.problems),
    runner: result.runner,
    node: result.node,
    checked_at: BigInt(Math.floor(result.checkedAtMs)),
  };
}

function resultOf(row: AuditResultTable): AuditResult {
  return {
    part: row.part,
    state: row.state,
    problemCount: Number(row.problem_count),
    problems: parseProblems(row.problems),
    runner: row.runner,
    node: row.node,
    checkedAtMs: Number(row.checked_at),
  };
}

/** What `recordAudit` wrote. */
function parseProblems(text: string): readonly string[] {
  return JSON.parse(text) as readonly string[];
}
