// Purchases of all accounts by state, with the transactions that were sent for them.
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { AnswerOf } from "../../api/contract-types.ts";
import { useCall } from "../../app/app.ts";
import { Badge } from "../../components/badge.tsx";
import { Card } from "../../components/card.tsx";
import { numberColumn, PURCHASE_TONES, textColumn } from "../../components/columns.tsx";
import { Choices } from "../../components/controls.tsx";
import { Loaded } from "../../components/page-state.tsx";
import { type Column, Table } from "../../components/table.tsx";
import { Time } from "../../components/time.tsx";
import { DASH, usd } from "../../format/numbers.ts";

type PurchaseRow = AnswerOf<"GET /api/v1/operator/purchases">["purchases"][number];
type PurchaseState = PurchaseRow["state"];

const PURCHASE_STATES = ["accepted", "submitted", "settled", "failed"] as const;
const POLL_MS = 15_000;

/** The card. */
export function PurchasesCard(): JSX.Element {
  const [state, setState] = useState<PurchaseState | "all">("all");
  const query = { limit: 100, ...(state === "all" ? {} : { state }) };
  const purchases = useCall("GET /api/v1/operator/purchases", { query }, POLL_MS);
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
      lead="Newest first, 100 at most"
      actions={<Choices label="State" options={options} value={state} choose={setState} />}
      flush
    >
      <Loaded resource={purchases}>
        {(data) => (
          <Table
            name="purchases"
            caption="Purchases"
            columns={COLUMNS}
            rows={data.purchases}
            keyOf={(row) => row.id ?? ""}
            textOf={(row) => `${row.id} ${row.account_id} ${row.payer} ${row.state}`}
            empty="No purchases yet"
          />
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

const COLUMNS: readonly Column<PurchaseRow>[] = [
  { id: "when", label: "When", kind: "lead", render: (row) => <Time at={row.created_at} /> },
  {
    id: "state",
    label: "State",
    render: (row) => (
      <>
        <Badge tone={PURCHASE_TONES[row.state]}>{row.state}</Badge>{" "}
        <span class="small muted">{row.reason}</span>
      </>
    ),
  },
  numberColumn("amount", "Amount", (row) => Number(row.amount_usd), usd),
  textColumn("buys", "Buys", (row) => row.buys, {
    render: ({ buys }) => (buys === undefined ? DASH : BUYS[buys]),
  }),
  {
    id: "account",
    label: "Account",
    kind: "wide",
    render: (row) => <span class="mono small">{row.account_id ?? DASH}</span>,
  },
  { id: "rail", label: "Rail", render: (row) => `${row.rail}, chain ${row.chain_id}` },
  {
    id: "transactions",
    label: "Transactions",
    kind: "wide",
    render: (row) =>
      row.transactions.length === 0
        ? DASH
        : row.transactions.map(({ tx_hash }) => (
            <span key={tx_hash} class="mono small wrap-anywhere">
              {tx_hash}{" "}
            </span>
          )),
  },
];
