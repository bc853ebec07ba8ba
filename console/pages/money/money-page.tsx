// Money, for the operator: what came in and was charged by day, accounts by what they spend,
// purchases with their transactions, wallets with their gas, and whether the books agree.

import { useState } from "preact/hooks";
import type { AnswerOf } from "../../api/contract-types.ts";
import { useCall } from "../../app/app.ts";
import { figures, PageHead } from "../../components/card.tsx";
import * as column from "../../components/columns.tsx";
import { Choices } from "../../components/controls.tsx";
import { GraphCard } from "../../components/graph.tsx";
import { Badge, Time } from "../../components/inline.tsx";
import { Loaded } from "../../components/page-state.tsx";
import { type Column, TableCard } from "../../components/table.tsx";
import { compact, DASH, usd } from "../../format/text.ts";
import { AccountsCard } from "./accounts-card.tsx";
import { AuditCard } from "./audit-card.tsx";

type Revenue = AnswerOf<"GET /api/v1/operator/revenue">;
type WalletRow = AnswerOf<"GET /api/v1/operator/wallets">["wallets"][number];

const POLL_MS = 30_000;
const DAYS = 30;

/** The page. */
export function MoneyPage() {
  const query = { days: DAYS };
  const revenue = useCall("GET /api/v1/operator/revenue", { query }, POLL_MS);
  return (
    <>
      <PageHead title="Money" lead={`The last ${DAYS} days, UTC; some seconds late.`} />
      <Loaded resource={revenue}>{(data) => <RevenueCards revenue={data} />}</Loaded>
      <AccountsCard />
      <PurchasesCard />
      <WalletsCard />
      <AuditCard />
    </>
  );
}

function RevenueCards({ revenue }: { readonly revenue: Revenue }) {
  const { totals, days } = revenue;
  return (
    <>
      {figures([
        ["Charged", usd(totals.charged_usd), "calls that were paid for"],
        ["Paid in", usd(totals.paid_in_usd)],
        ["Granted", usd(totals.granted_usd)],
        [
          "Calls with a key",
          compact(totals.calls),
          `${compact(totals.cached_calls)} from the cache`,
        ],
        ["Compute units", compact(totals.cu)],
      ])}
      <GraphCard
        title="Money by day"
        times={days.map(({ day }) => Date.parse(day) / 1000)}
        series={[
          { label: "Charged", values: days.map((day) => Number(day.charged_usd)) },
          { label: "Paid in", values: days.map((day) => Number(day.paid_in_usd)) },
        ]}
        format={usd}
      />
    </>
  );
}

/** The rails of payments, and what their wallets have for gas. */
function WalletsCard() {
  const wallets = useCall("GET /api/v1/operator/wallets", {}, POLL_MS);
  return (
    <TableCard
      title="Rails and wallets"
      lead="As this node last saw them; gas in coins of the chain"
      resource={wallets}
      name="wallets"
      columns={WALLET_COLUMNS}
      rows={wallets.data?.wallets ?? []}
      keyOf={(row) => `${row.rail} ${row.chain_id} ${row.recipient}`}
      empty="This service takes no payments"
    />
  );
}

const WALLET_COLUMNS: readonly Column<WalletRow>[] = [
  column.of("rail", "Rail", (row) => `${row.rail}, chain ${row.chain_id}`, "lead"),
  column.of("recipient", "Payments go to", (row) => <code>{row.recipient}</code>, "wide"),
  column.of(
    "wallet",
    "Pays gas",
    (row) => <code>{row.wallet?.address ?? "none needed"}</code>,
    "wide",
  ),
  column.of("gas", "Gas", (row) => <Gas wallet={row.wallet} />, "number"),
];

function Gas({ wallet }: Pick<WalletRow, "wallet">) {
  if (wallet === null) return <span>{DASH}</span>;
  const { balance_wei, low, empty, dear } = wallet;
  return (
    <>
      {coinText(balance_wei)} {empty ? <Badge tone="bad">empty</Badge> : null}
      {low && !empty ? <Badge tone="warn">low</Badge> : null}
      {dear ? <Badge tone="warn">gas is dear</Badge> : null}
    </>
  );
}

const WEI_DIGITS = 18;
const SHOWN_DIGITS = 4;

/** Wei as coins, cut to four places. */
function coinText(wei: string): string {
  const digits = wei.padStart(WEI_DIGITS + 1, "0");
  const coins = BigInt(digits.slice(0, -WEI_DIGITS)).toLocaleString("en");
  return `${coins}.${digits.slice(-WEI_DIGITS).slice(0, SHOWN_DIGITS)}`;
}

type PurchaseRow = AnswerOf<"GET /api/v1/operator/purchases">["purchases"][number];
type PurchaseState = PurchaseRow["state"];

const PURCHASE_STATES = ["accepted", "submitted", "settled", "failed"] as const;
const PURCHASES_POLL_MS = 15_000;

/** The card. */
function PurchasesCard() {
  const [state, setState] = useState<PurchaseState | "all">("all");
  const query = { limit: 100, ...(state === "all" ? {} : { state }) };
  const purchases = useCall("GET /api/v1/operator/purchases", { query }, PURCHASES_POLL_MS);
  const counts = purchases.data?.counts;
  const options = [
    { value: "all", label: "All" } as const,
    ...PURCHASE_STATES.map((value) => ({
      value,
      label: counts === undefined ? value : `${value} ${counts[value]}`,
    })),
  ];
  return (
    <TableCard
      title="Purchases"
      lead="Newest first, 100 at most"
      actions={<Choices label="State" options={options} value={state} choose={setState} />}
      resource={purchases}
      name="purchases"
      columns={PURCHASE_COLUMNS}
      rows={purchases.data?.purchases ?? []}
      keyOf={(row) => row.id ?? ""}
      textOf={(row) => `${row.id} ${row.account_id} ${row.payer} ${row.state}`}
      empty="No purchases yet"
    />
  );
}

const BUYS: Readonly<Record<NonNullable<PurchaseRow["buys"]>, string>> = {
  fund_key: "Credit of a key",
  create_key: "A new key",
  credit_account: "Credit",
  custom_access: "Custom access",
};

const PURCHASE_COLUMNS: readonly Column<PurchaseRow>[] = [
  column.of("when", "When", (row) => <Time at={row.created_at} />, "lead"),
  column.purchase(),
  column.number("amount", "Amount", (row) => Number(row.amount_usd), usd),
  column.text("buys", "Buys", ({ buys }) => buys && BUYS[buys]),
  column.of("account", "Account", (row) => <code>{row.account_id ?? DASH}</code>, "tight"),
  column.of("rail", "Rail", (row) => `${row.rail}, chain ${row.chain_id}`),
  column.of("transactions", "Transactions", transactionsOf, "wide"),
];

function transactionsOf({ transactions }: PurchaseRow) {
  if (transactions.length === 0) return DASH;
  return transactions.map(({ tx_hash: hash }) => <code key={hash}>{hash} </code>);
}
