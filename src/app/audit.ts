// The audit of money, for `svc audit` and the operator's endpoint: compares the books with each
// other, and the money received on payment chains with purchases and channels. Changes nothing but
// the result that the store keeps. Libraries for reading chains are loaded only if rails are
// configured.

import type { Config } from "../config/config.ts";
import { nanoOf } from "../core/billing/payment.ts";
import { usdText } from "../core/billing/price.ts";
import { errorText } from "../core/fields.ts";
import { type AuditFindings, audit, type UnreadChain } from "../hosted/audit/audit.ts";
import {
  type AuditResult,
  type AuditRun,
  booksResult,
  chainsResult,
  differenceText,
  recordAudit,
} from "../hosted/audit/audit-results.ts";
import type { RailSettings } from "../payments/rails/rails.ts";
import type { ReceivingAddressReport } from "../payments/reconcile/reconcile.ts";
import type { Runtime } from "../runtime.ts";
import { readStore, type Store } from "../shared/store/store.ts";

/** What is needed to read the money that a rail received. */
type AuditedRail = Pick<
  RailSettings,
  "kind" | "rpcUrl" | "chainId" | "token" | "recipient" | "confirmations" | "local"
>;

/** The input of an audit. */
export interface Auditing extends Pick<MoneyAudit, "runtime" | "sinceMs" | "onProgress"> {
  readonly config: Config;
  /** Rails in addition to the configured ones: the local rails of a running service. */
  readonly localRails: readonly AuditedRail[];
}

/** The result of an audit. */
export interface AuditReport {
  /** True if nothing differs. */
  readonly clean: boolean;
  /** Report for the operator. */
  readonly lines: readonly string[];
  /** Why the store does not keep the result for the operator's pages; null = it does. */
  readonly notKept: string | null;
}

/** A store, and the rails whose chains are compared with it. */
interface MoneyAudit {
  readonly store: Store;
  readonly runtime: Runtime;
  readonly rails: readonly AuditedRail[];
  /** Null = since the store was created. */
  readonly sinceMs: number | null;
  readonly onProgress: (line: string) => void;
  /** Chains are not read after this time of the monotonic clock; null = unlimited. */
  readonly untilMs: number | null;
}

/** A report with the kinds of its rails. */
interface NamedReport extends ReceivingAddressReport {
  readonly name: string;
}

/** A chain that could not be read completely, with its error. */
interface FailedRead extends UnreadChain {
  readonly error: unknown;
}

interface ChainReports {
  readonly reports: readonly NamedReport[];
  readonly unread: readonly FailedRead[];
}

const HOUR_MS = 3_600_000;
/** Differences in the books that are listed individually. */
const MAX_LINES = 100;

/**
 * Audits a store and the chains of its rails. Throws an error for the operator if a chain cannot be
 * read.
 */
export async function auditMoney(parts: Auditing): Promise<AuditReport> {
  const { config } = parts;
  const store = await readStore({ url: config.storageUrl, dataDir: config.dataDir });
  try {
    const books = await audit(store);
    const rails = [...(config.hosted?.payments.rails ?? []), ...parts.localRails];
    const { reports, unread } = await chainReports({ ...parts, store, rails, untilMs: null });
    for (const { error } of unread) throw error;
    const comparedUnits = reports.reduce((sum, report) => sum + report.recordedUnits, 0n);
    const leftUnits = (await recordedUnits(store)) - comparedUnits;
    const lines = [
      books.length === 0 ? "books: they agree" : `books: ${books.length} differences`,
      ...books.slice(0, MAX_LINES).map((difference) => `  ${differenceText(difference)}`),
      ...reports.flatMap(linesOf),
      ...(reports.length === 0 ? ["chains: no rail to compare with"] : []),
      ...(leftUnits > 0n
        ? [
            `${usdText(nanoOf(leftUnits))} USD are recorded for chains that are not ` +
              "configured, or not running any more: not compared",
          ]
        : []),
    ];
    const run = runNow(parts.runtime, { runner: "command", node: null });
    const money = reports.flatMap((report) => report.differences);
    // A part of the time says nothing of the whole.
    const isWhole = reports.length > 0 && parts.sinceMs === null;
    const chains = isWhole ? [chainsResult({ money, unread: [] }, run)] : [];
    return {
      clean: books.length === 0 && reports.every((report) => report.differing === 0),
      lines,
      notKept: await keepOfCommand(store, [booksResult(books, run), ...chains]),
    };
  } finally {
    await store.close();
  }
}

/** The embedded file is written by one process only, which may be serving. */
async function keepOfCommand(
  store: Store,
  results: readonly AuditResult[],
): Promise<string | null> {
  if (store.engine === "sqlite") return "the embedded store is open for reading only";
  try {
    await recordAudit(store, results);
    return null;
  } catch (error) {
    return errorText(error);
  }
}

/** What a running service audits with, and keeps the result by. */
export interface KeptAudit extends Pick<MoneyAudit, "store" | "runtime" | "rails"> {
  readonly run: Omit<AuditRun, "checked_at">;
  /** Called where the result cannot be written. */
  readonly onError: (error: unknown) => void;
}

/** Time limit for reading chains while a service runs. */
const READING_MS = 600_000;

/**
 * Audits a running service for its operator, over its own store and rails, and keeps the result.
 * Chains are read within a time limit; those that cannot be read are reported.
 */
export async function auditForOperator(parts: KeptAudit): Promise<AuditFindings> {
  const { store, runtime, rails, onError } = parts;
  const books = await audit(store);
  const untilMs = runtime.now() + READING_MS;
  const onProgress = (): void => {};
  const read = { store, runtime, rails, sinceMs: null, onProgress, untilMs };
  const { reports, unread } = await chainReports(read);
  const findings = { books, money: reports.flatMap(({ differences }) => differences), unread };
  const run = runNow(runtime, parts.run);
  const chains = rails.length === 0 ? [] : [chainsResult(findings, run)];
  await recordAudit(store, [booksResult(books, run), ...chains]).catch(onError);
  return findings;
}

/** Adds up the books of a running service alone, and keeps the result. */
export async function auditBooks(parts: Omit<KeptAudit, "rails">): Promise<AuditResult> {
  const { store, runtime, onError } = parts;
  const result = booksResult(await audit(store), runNow(runtime, parts.run));
  await recordAudit(store, [result]).catch(onError);
  return result;
}

function runNow({ wallMs }: Runtime, run: Omit<AuditRun, "checked_at">): AuditRun {
  return { ...run, checked_at: BigInt(Math.floor(wallMs())) };
}

/** Recorded incoming money on all chains, in base units. */
async function recordedUnits({ db }: Store): Promise<bigint> {
  const purchases = await db
    .selectFrom("purchase")
    .select((eb) => eb.fn.sum<bigint | null>("units").as("units"))
    .where("state", "=", "settled")
    .executeTakeFirst();
  const channels = await db
    .selectFrom("session_transaction")
    .select((eb) => eb.fn.sum<bigint | null>("moved_units").as("units"))
    .executeTakeFirst();
  return BigInt(purchases?.units ?? 0n) + BigInt(channels?.units ?? 0n);
}

/** One report per token and receiving address, which several rails may share. */
async function chainReports(parts: MoneyAudit): Promise<ChainReports> {
  const reports: NamedReport[] = [];
  const unread: FailedRead[] = [];
  for (const same of Map.groupBy(parts.rails, (rail) =>
    `${rail.chainId} ${rail.token.address} ${rail.recipient}`.toLowerCase(),
  ).values()) {
    const [first] = same;
    if (first === undefined) continue;
    const { ChainFailure } = await import("../payments/rails/chain.ts");
    try {
      const report = await readReceiver(parts, first, same);
      if (report !== null) reports.push(report);
    } catch (error) {
      if (!(error instanceof ChainFailure)) throw error;
      unread.push({ chainId: first.chainId, reason: error.message, error });
    }
  }
  return { reports, unread };
}

/**
 * Reads the money received at one address; null = a local chain that has ended. Throws
 * `ChainFailure` if the chain cannot be read.
 */
async function readReceiver(
  { store, runtime, sinceMs, onProgress, untilMs }: MoneyAudit,
  first: AuditedRail,
  same: readonly AuditedRail[],
): Promise<NamedReport | null> {
  const [{ reconcile }, { recordsAt }, { EvmNode }] = await Promise.all([
    import("../payments/reconcile/reconcile.ts"),
    import("../payments/reconcile/records.ts"),
    import("../payments/rails/evm/node.ts"),
  ]);
  const { chainId, recipient, rpcUrl, local } = first;
  const name = [...new Set(same.map((rail) => rail.kind))].join(" and ");
  const node = new EvmNode({ rpcUrl, chainId, runtime, untilMs });
  const network = await node.network().catch((error: unknown) => {
    // A local chain ends with its service, and its money with it.
    if (local) return null;
    throw error;
  });
  if (network === null) return null;
  const receiver = {
    node,
    token: first.token.address,
    recipient,
    confirmations: Math.min(...same.map((rail) => rail.confirmations)),
  };
  onProgress(`reading the transfers to ${recipient} on chain ${chainId}`);
  const records = recordsAt({ store, chainId, network, token: receiver.token, recipient });
  const since = sinceMs ?? (await firstDayMs(store)) - HOUR_MS;
  const onBlock = (block: bigint, to: bigint): void =>
    onProgress(`chain ${chainId}: block ${block} of ${to}`);
  return { name, ...(await reconcile({ receiver, records, sinceMs: since, onProgress: onBlock })) };
}

/** When the store's first account was created; no payment is older. */
async function firstDayMs(store: Store): Promise<number> {
  const row = await store.db
    .selectFrom("account")
    .select((eb) => eb.fn.min("created_at").as("created_at"))
    .executeTakeFirst();
  return Number(row?.created_at ?? 0n);
}

function linesOf(report: NamedReport): readonly string[] {
  const { chainId, movedUnits, recordedUnits, transfers, underWay, differing } = report;
  const usd = (units: bigint): string => `${usdText(nanoOf(units))} USD`;
  return [
    `${report.name} (chain ${chainId}), blocks ${report.fromBlock} to ${report.toBlock}: ` +
      `${transfers} transfers, ${usd(movedUnits)} moved, ${usd(recordedUnits)} recorded, ` +
      `${underWay} under way, ${differing} differences`,
    ...report.differences.map((difference) => {
      const whose = difference.ids.length === 0 ? "" : ` (${difference.ids.join(", ")})`;
      return (
        `  transaction ${difference.txHash}${whose}: moved ${usd(difference.movedUnits)}, recorded ` +
        `${usd(difference.recordedUnits)}`
      );
    }),
  ];
}
