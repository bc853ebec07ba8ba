// Payments of the account: top up by a wallet of this browser or by a command, and what was bought.

import type { AnswerOf } from "../../api/contract-types.ts";
import { useAgentDocument, useCall } from "../../app/app.ts";
import { Card, figures, PageHead } from "../../components/card.tsx";
import * as column from "../../components/columns.tsx";
import { Hash } from "../../components/hash.tsx";
import { Empty, Loaded } from "../../components/page-state.tsx";
import { type Column, TableCard } from "../../components/table.tsx";
import { usdScale } from "../../format/money.ts";
import { usd } from "../../format/text.ts";
import { TopUp } from "./top-up.tsx";

type Purchase = AnswerOf<"GET /api/v1/purchases">["purchases"][number];

const POLL_MS = 10_000;

/** The page. */
export function PaymentsPage() {
  const account = useCall("GET /api/v1/accounts/current", {}, POLL_MS);
  const purchases = useCall("GET /api/v1/purchases", { query: { limit: 100 } }, POLL_MS);
  const terms = useAgentDocument();
  const bought = (): void => {
    account.reload();
    purchases.reload();
  };
  return (
    <>
      <PageHead
        title="Payments"
        lead="The wallet signs; the service pays the gas and credits the account when the money has arrived."
      />
      <Loaded resource={account}>
        {(data) => (
          <>
            {figures([["Balance", usd(data.balance_usd)]])}
            <Loaded resource={terms}>
              {({ payments }) =>
                payments.enabled ? (
                  <TopUp accountId={data.id} terms={payments} bought={bought} />
                ) : (
                  <Card title="Top up">
                    <Empty title="This service takes no payments">
                      Its operator credits accounts.
                    </Empty>
                  </Card>
                )
              }
            </Loaded>
          </>
        )}
      </Loaded>
      <TableCard
        title="Purchases and receipts"
        lead="The newest 100"
        pageRows={20}
        resource={purchases}
        name="purchases"
        caption="Purchases of the account"
        columns={columnsOf(purchases.data?.purchases ?? [])}
        rows={purchases.data?.purchases ?? []}
        keyOf={(row) => row.id ?? ""}
        textOf={(row) => `${row.id} ${row.tx_hash} ${row.payer} ${row.state}`}
        empty="Nothing was bought yet"
      />
    </>
  );
}

const columnsOf = (rows: readonly Purchase[]): readonly Column<Purchase>[] => [
  column.time("created", "When", (row) => row.created_at, { kind: "lead" }),
  column.purchase(),
  column.text("buys", "Buys", (row) => row.buys, {
    render: ({ buys, days }) =>
      buys === "custom_access" ? `${days} days of Custom access` : "Credit",
  }),
  column.number(
    "amount",
    "Amount",
    (row) => Number(row.amount_usd),
    usdScale(rows.map((row) => row.amount_usd)),
  ),
  column.text("chain", "Chain", (row) => row.chain_id, {
    render: (row) => `${row.rail}, chain ${row.chain_id}`,
  }),
  column.of("transaction", "Transaction", (row) => <Hash text={row.tx_hash} />),
  column.of("id", "Receipt", (row) => <Hash text={row.id} />),
];
