// Purchases of all accounts with their transactions, read by pages.

import { useState } from "preact/hooks";
import type { AnswerOf } from "../../api/contract-types.ts";
import { useCall } from "../../app/app.ts";
import { Card } from "../../components/card.tsx";
import * as column from "../../components/columns.tsx";
import { Choices } from "../../components/controls.tsx";
import { Hash } from "../../components/hash.tsx";
import { Time } from "../../components/inline.tsx";
import { Loaded } from "../../components/page-state.tsx";
import { type Column, Pager, Table } from "../../components/table.tsx";
import { usdScale } from "../../format/money.ts";
import { DASH } from "../../format/text.ts";
import { usePages } from "./use-pages.ts";

type PurchaseRow = AnswerOf<"GET /api/v1/operator/purchases">["purchases"][number];
type PurchaseState = PurchaseRow["state"];

const PURCHASE_STATES = ["accepted", "submitted", "settled", "failed"] as const;
const PURCHASES_POLL_MS = 15_000;
const PURCHASES_A_PAGE = 20;

/** The card. */
export function PurchasesCard() {
  const [state, setState] = useState<PurchaseState | "all">("all");
  const { begin, toFirst, moves } = usePages();
  const query = { limit: PURCHASES_A_PAGE, ...begin, ...(state === "all" ? {} : { state }) };
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
    <Card
      title="Purchases"
      lead="Of all times, newest first"
      actions={
        <Choices
          label="State"
          options={options}
          value={state}
          choose={(next) => {
            toFirst();
            setState(next);
          }}
        />
      }
      flush
    >
      <Loaded resource={purchases}>
        {(data) => (
          <>
            <Table
              name="purchases"
              caption="Purchases"
              columns={purchaseColumns(data.purchases)}
              rows={data.purchases}
              keyOf={(row) => row.id ?? ""}
              textOf={(row) => `${row.id} ${row.account_id} ${row.payer} ${row.state}`}
              empty="No purchases yet"
            />
            <Pager of="purchases" {...moves(data.next)} />
          </>
        )}
      </Loaded>
    </Card>
  );
}

const BUYS: Readonly<Record<NonNullable<PurchaseRow["buys"]>, string>> = {
  fund_key: "Credit of a key",
  create_key: "A new key",
  credit_account: "Credit",
  custom_access: "Custom access",
};

const purchaseColumns = (rows: readonly PurchaseRow[]): readonly Column<PurchaseRow>[] => [
  column.of("when", "When", (row) => <Time at={row.created_at} />, "lead"),
  column.purchase(),
  column.number(
    "amount",
    "Amount",
    (row) => Number(row.amount_usd),
    usdScale(rows.map((row) => row.amount_usd)),
  ),
  column.text("buys", "Buys", ({ buys }) => buys && BUYS[buys]),
  column.of("account", "Account", (row) => <code>{row.account_id ?? DASH}</code>, "tight"),
  column.of("rail", "Rail", (row) => `${row.rail}, chain ${row.chain_id}`),
  column.of("transactions", "Transactions", transactionsOf),
];

function transactionsOf({ transactions }: PurchaseRow) {
  if (transactions.length === 0) return DASH;
  return transactions.map(({ tx_hash: hash }) => <Hash key={hash} text={hash} />);
}
