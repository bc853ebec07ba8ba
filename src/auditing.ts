// `svc audit`: the books against each other, and what the payment chains say has arrived against purchases. Reads the store beside a running service and
// changes nothing.
import type { Config } from "./config.ts";
import { nanoOf, type RailSettings } from "./core/payment.ts";
import { usdText } from "./core/price.ts";
import { audit } from "./hosted/audit.ts";
import type { TillReport } from "./hosted/payments/reconcile.ts";
import { readStore, type Store } from "./hosted/store.ts";
import type { World } from "./world.ts";

/** What it takes to look at what a rail has received. */
type AuditedRail = Pick<RailSettings, "kind" | "rpcUrl" | "chainId" | "token" | "recipient" | "confirmations" | "local">;

/** What is audited, and whom it tells. */
export interface Auditing {
  readonly config: Config;
  readonly world: World;
  /** Rails to look at beside those of the configuration: the local ones of a running service. */
  readonly localRails: readonly AuditedRail[];
  /** Null = from the store's first day. */
  readonly sinceMs: number | null;
  readonly onProgress: (line: string) => void;
}

/** What was found. */
export interface AuditReport {
  /** True when nothing differs. */
  readonly clean: boolean;
  /** What to tell the operator. */
  readonly lines: readonly string[];
}

/** A report with the kinds of rails that it is about. */
interface NamedReport extends TillReport {
  readonly name: string;
}

const HOUR_MS = 3_600_000;
/** Differences between books that are told one by one. */
const MAX_LINES = 100;

/** Audits a store and the chains of its rails; throws with a text where one of them cannot be read. */
export async function auditMoney(parts: Auditing): Promise<AuditReport> {
  const { config } = parts;
  const store = await readStore({ url: config.storageUrl, dataDir: config.dataDir });
  try {
    const books = await audit(store);
    const rails = [...(config.hosted?.payments.rails ?? []), ...parts.localRails];
    const tills = await tillReports(parts, store, rails);
    const comparedUnits = tills.reduce((sum, it) => sum + it.recordedUnits, 0n);
    const leftUnits = (await recordedUnits(store)) - comparedUnits;
    const lines = [
      books.length === 0 ? "books: they agree" : `books: ${books.length} differences`,
      ...books.slice(0, MAX_LINES).map((it) => `  ${it.check} ${it.id}: is ${usdText(it.isN)} USD, should be ${usdText(it.shouldN)} USD`),
      ...tills.flatMap(linesOf),
      ...(tills.length === 0 ? ["chains: no rail to compare with"] : []),
      ...(leftUnits > 0n ? [`${usdText(nanoOf(leftUnits))} USD are recorded for chains that are not configured, or not running any more: not compared`] : []),
    ];
    return { clean: books.length === 0 && tills.every((it) => it.differing === 0), lines };
  } finally {
    await store.close();
  }
}

/** What is recorded as having arrived, on whichever chain. */
async function recordedUnits({ db }: Store): Promise<bigint> {
  const purchases = await db
    .selectFrom("purchase")
    .select((it) => it.fn.sum<bigint | null>("units").as("units"))
    .where("state", "=", "settled")
    .executeTakeFirst();
  const channels = await db
    .selectFrom("session_transaction")
    .select((it) => it.fn.sum<bigint | null>("moved_units").as("units"))
    .executeTakeFirst();
  return BigInt(purchases?.units ?? 0n) + BigInt(channels?.units ?? 0n);
}

/** One report for each token and address that receives it, however many rails share them. */
async function tillReports({ world, sinceMs, onProgress }: Auditing, store: Store, rails: readonly AuditedRail[]): Promise<readonly NamedReport[]> {
  if (rails.length === 0) return [];
  const [{ reconcile }, { recordsAt }, { createChain }] = await Promise.all([
    import("./hosted/payments/reconcile.ts"),
    import("./hosted/payments/reconcile-records.ts"),
    import("./hosted/payments/rails/chain.ts"),
  ]);
  const reports: NamedReport[] = [];
  for (const same of Map.groupBy(rails, (it) => `${it.chainId} ${it.token.address} ${it.recipient}`.toLowerCase()).values()) {
    const [first] = same;
    if (first === undefined) continue;
    const { chainId, recipient, rpcUrl, local } = first;
    const name = [...new Set(same.map((it) => it.kind))].join(" and ");
    const chain = createChain({ rpcUrl, chainId, world });
    const network = await chain.network().catch((error: unknown) => {
      // A local chain ends with its service, and takes its money with it.
      if (local) return null;
      throw error;
    });
    if (network === null) continue;
    const till = { chain, token: first.token.address, recipient, confirmations: Math.min(...same.map((it) => it.confirmations)) };
    onProgress(`reading the transfers to ${recipient} on chain ${chainId}`);
    const records = recordsAt({ store, chainId, network, token: till.token, recipient });
    const since = sinceMs ?? (await firstDayMs(store)) - HOUR_MS;
    const onBlock = (block: bigint, to: bigint): void => onProgress(`chain ${chainId}: block ${block} of ${to}`);
    reports.push({ name, ...(await reconcile({ till, records, sinceMs: since, onProgress: onBlock })) });
  }
  return reports;
}

/** When the store's first account was made; nobody can have paid before. */
async function firstDayMs(store: Store): Promise<number> {
  const row = await store.db
    .selectFrom("account")
    .select((it) => it.fn.min("created_at").as("created_at"))
    .executeTakeFirst();
  return Number(row?.created_at ?? 0n);
}

function linesOf({
  name,
  chainId,
  fromBlock,
  toBlock,
  transfers,
  movedUnits,
  recordedUnits,
  underWay,
  differences,
  differing,
}: NamedReport): readonly string[] {
  const usd = (units: bigint): string => `${usdText(nanoOf(units))} USD`;
  const head = `${name} (chain ${chainId}), blocks ${fromBlock} to ${toBlock}: ${transfers} transfers, ${usd(movedUnits)} moved, ${usd(recordedUnits)} recorded`;
  return [
    `${head}, ${underWay} under way, ${differing} differences`,
    ...differences.map((it) => {
      const whose = it.ids.length === 0 ? "" : ` (${it.ids.join(", ")})`;
      return `  transaction ${it.txHash}${whose}: moved ${usd(it.movedUnits)}, recorded ${usd(it.recordedUnits)}`;
    }),
  ];
}
