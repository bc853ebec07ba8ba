// Credit that the operator gives during a schedule: each under a reference that is sent to several
// nodes, again and again. Each must count once.
import { setTimeout as sleep } from "node:timers/promises";
import type { NodeProcess } from "./node-process.ts";
import { manage, OPERATOR, readDatabase } from "./site.ts";
import { pick, type SpendingAccount } from "./traffic.ts";

/** A credit that was sent. */
export interface SentCredit {
  readonly account: SpendingAccount;
  readonly reference: string;
  readonly amountN: bigint;
  /** Whether a node said that it counts. */
  isAcknowledged: boolean;
}

/** What credits need. */
export interface CreditParts {
  readonly nodes: readonly NodeProcess[];
  readonly random: () => number;
  /** Makes references unique. */
  readonly prefix: string;
}

/** Credits of a schedule. */
export interface Credits {
  readonly sent: readonly SentCredit[];
  /** What nodes answered that they should not have. */
  readonly wrong: readonly string[];
  /** Sends one until a node acknowledges it, at most so often. */
  give(account: SpendingAccount, amountN: bigint, tries: number): Promise<SentCredit>;
  /** Sends one that was sent before to a node once more. */
  repeat(credit: SentCredit): Promise<void>;
}

const AGAIN_MS = 150;
const NANO = 1_000_000_000n;
const NANO_DIGITS = 9;

/** Prepares credits. */
export function createCredits({ nodes, random, prefix }: CreditParts): Credits {
  const sent: SentCredit[] = [];
  const wrong: string[] = [];
  const send = async (credit: SentCredit, node: NodeProcess): Promise<void> => {
    const { account, reference, amountN } = credit;
    const path = `/api/v1/operator/accounts/${account.id}/credit`;
    const answer = await manage(node, OPERATOR, "POST", path, {
      usd: usdOf(amountN),
      reference,
    });
    if (answer === null) return;
    if (answer.status === 200) credit.isAcknowledged = true;
    else if (answer.status < 500)
      wrong.push(`${node.id} answers ${answer.status} to ${reference}: ${answer.text}`);
  };
  return {
    sent,
    wrong,
    async give(account, amountN, tries) {
      const reference = `${prefix}-${sent.length}`;
      const credit: SentCredit = { account, reference, amountN, isAcknowledged: false };
      sent.push(credit);
      for (let tried = 0; tried < tries && !credit.isAcknowledged; tried++) {
        if (tried > 0) await sleep(AGAIN_MS);
        // To two nodes at once: a caller that does not wait for an answer before it asks elsewhere.
        await Promise.all([send(credit, pick(nodes, random)), send(credit, pick(nodes, random))]);
      }
      return credit;
    },
    repeat: (credit) => send(credit, pick(nodes, random)),
  };
}

/** Credits that count otherwise than once, or are lost although acknowledged. */
export async function wrongCredits(
  databaseUrl: string,
  sent: readonly SentCredit[],
): Promise<readonly string[]> {
  const rows = await readDatabase<{ readonly idem_key: string; readonly n: string }>(
    databaseUrl,
    `select idem_key, sum(amount_n)::text as n from ledger_tx join ledger_entry on tx_id = id
      where book = 'account' and idem_key = any($1) group by idem_key`,
    [sent.map(({ reference }) => `operator:${reference}`)],
  );
  const counted = new Map(rows.map(({ idem_key, n }) => [idem_key, BigInt(n)]));
  return sent.flatMap(({ reference, amountN, isAcknowledged }) => {
    const isN = counted.get(`operator:${reference}`) ?? null;
    if (isN === null)
      return isAcknowledged ? [`credit ${reference} was acknowledged and is lost`] : [];
    return isN === amountN ? [] : [`credit ${reference} counts ${isN}, not ${amountN}`];
  });
}

function usdOf(amountN: bigint): string {
  const fraction = (amountN % NANO).toString().padStart(NANO_DIGITS, "0").replace(/0+$/, "");
  return `${amountN / NANO}${fraction === "" ? "" : `.${fraction}`}`;
}
