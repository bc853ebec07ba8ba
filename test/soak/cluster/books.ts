// The books after a schedule, compared with what providers and callers counted: money is conserved,
// nobody paid for what was not served, and little of what was served is unbilled.
import { setTimeout as sleep } from "node:timers/promises";
import { audit } from "../../../src/hosted/audit/audit.ts";
import { readStore } from "../../../src/shared/store/store.ts";
import type { SentCredit } from "./credits.ts";
import type { ServedCalls } from "./provider.ts";
import { readDatabase } from "./site.ts";
import { CALL_N, type CallRecord, type SpendingAccount } from "./traffic.ts";

/** What the books say of an account when nothing moves any more, nano-USD. */
interface AccountBooks {
  readonly fundedN: bigint;
  readonly balanceN: bigint;
  /** Granted to nodes and not spent. */
  readonly leasedN: bigint;
  /** Of the leases that are open. */
  readonly spentN: bigint;
}

/** What was found, and how much of what was served is not billed. */
export interface BookFindings {
  readonly wrong: readonly string[];
  /** Calls of all accounts that were answered and not charged, at least. */
  readonly unbilledCalls: number;
  readonly chargedN: bigint;
}

/** What the books are compared with. */
export interface BookParts {
  readonly databaseUrl: string;
  readonly accounts: readonly SpendingAccount[];
  readonly credits: readonly SentCredit[];
  readonly record: CallRecord;
  readonly served: ServedCalls;
}

const LOOK_MS = 250;
/** Looks that must agree before nothing is taken to move. */
const LOOKS_ALIKE = 4;
const MAX_LOOKS = 120;

/** Reads the books once nothing moves, and compares them. */
export async function compareBooks(parts: BookParts): Promise<BookFindings> {
  const books = await settledBooks(parts);
  const wrong: string[] = [];
  let unbilledCalls = 0;
  let chargedN = 0n;
  for (const account of parts.accounts) {
    const own = books.get(account.id);
    if (own === undefined) {
      wrong.push(`account ${account.id} is lost`);
      continue;
    }
    const found = compareOne(parts, account, own);
    wrong.push(...found.wrong);
    unbilledCalls += found.unbilledCalls;
    chargedN += found.chargedN;
  }
  return {
    wrong: [...wrong, ...(await auditFindings(parts.databaseUrl))],
    unbilledCalls,
    chargedN,
  };
}

function compareOne(
  { credits, record, served }: BookParts,
  { id, caller }: SpendingAccount,
  { fundedN, balanceN, leasedN, spentN }: AccountBooks,
): BookFindings {
  const wrong: string[] = [];
  const seen = record.seenBy(caller);
  const chargedN = fundedN - balanceN - leasedN;
  const fail = (text: string): void => void wrong.push(`account ${id}: ${text}`);
  const own = credits.filter(({ account }) => account.id === id);
  const leastN = sum(own.filter((credit) => credit.isAcknowledged));
  if (fundedN < leastN || fundedN > sum(own))
    fail(`funded with ${fundedN}, acknowledged ${leastN} of ${sum(own)}`);
  if (balanceN < 0n || leasedN < 0n || spentN < 0n)
    fail(`below zero: balance ${balanceN}, leased ${leasedN}, spent ${spentN}`);
  if (chargedN < 0n) fail(`${-chargedN} more than was credited`);
  // Lost answers may have been charged, since the calls were served.
  const mostN = seen.answeredN + BigInt(seen.unknown) * CALL_N;
  if (chargedN > mostN)
    fail(`charged ${chargedN}, answered ${seen.answeredN}, ${seen.unknown} answers lost`);
  // A read is charged when its caller leaves, even if its provider gets to it only later.
  const leftN = BigInt(seen.unknown - seen.lost) * CALL_N;
  const servedN = BigInt(served.countOf(caller)) * CALL_N;
  if (chargedN > servedN + leftN)
    fail(`charged ${chargedN}, providers served ${servedN}, callers left ${leftN}`);
  const unbilledN = seen.answeredN > chargedN ? seen.answeredN - chargedN : 0n;
  const unbilledCalls = Number(unbilledN / CALL_N);
  return { wrong, unbilledCalls, chargedN };
}

function sum(credits: readonly SentCredit[]): bigint {
  return credits.reduce((total, { amountN }) => total + amountN, 0n);
}

async function settledBooks({
  databaseUrl,
  accounts,
}: BookParts): Promise<ReadonlyMap<string, AccountBooks>> {
  let before = "";
  for (let looks = 0, alike = 0; ; looks++) {
    const rows = await readDatabase<BookRow>(databaseUrl, BOOKS, [accounts.map(({ id }) => id)]);
    const now = JSON.stringify(rows);
    alike = now === before ? alike + 1 : 0;
    before = now;
    if (alike === LOOKS_ALIKE || looks === MAX_LOOKS)
      return new Map(rows.map((row) => [row.id, booksOf(row)]));
    await sleep(LOOK_MS);
  }
}

interface BookRow {
  readonly id: string;
  readonly funded: string;
  readonly balance: string;
  readonly leased: string;
  readonly spent: string;
}

const BOOKS = `select id, funded_n::text as funded, balance_n::text as balance,
  coalesce(sum(granted_n - spent_n), 0)::text as leased, coalesce(sum(spent_n), 0)::text as spent
  from account left join credit_lease on account_id = id
  where id = any($1) group by id order by id`;

function booksOf({ funded, balance, leased, spent }: BookRow): AccountBooks {
  return {
    fundedN: BigInt(funded),
    balanceN: BigInt(balance),
    leasedN: BigInt(leased),
    spentN: BigInt(spent),
  };
}

/** What `svc audit` finds. */
async function auditFindings(databaseUrl: string): Promise<readonly string[]> {
  const store = await readStore({ url: databaseUrl, dataDir: "" });
  try {
    const differences = await audit(store);
    return differences.map(
      ({ check, id, isN, shouldN }) => `the audit: ${check} ${id} is ${isN}, should be ${shouldN}`,
    );
  } finally {
    await store.close();
  }
}
