// Money, for the operator: what came in and was charged by day, accounts by what they spend,
// purchases with their transactions, wallets with their gas, and whether the books agree.
import type { JSX } from "preact";
import { useResource } from "../../api/resource.ts";
import { useApp } from "../../app/app.ts";
import { Card, Figure, Figures, PageHead } from "../../components/card.tsx";
import { Graph } from "../../components/graph.tsx";
import { Loaded } from "../../components/page-state.tsx";
import { compact } from "../../format/numbers.ts";
import { usd } from "../../format/usd.ts";
import { AccountsCard } from "./accounts-card.tsx";
import { AuditCard } from "./audit-card.tsx";
import type { Revenue } from "./money.ts";
import { PurchasesCard } from "./purchases-card.tsx";
import { WalletsCard } from "./wallets-card.tsx";

const POLL_MS = 30_000;
const DAYS = 30;

/** The page. */
export function MoneyPage(): JSX.Element {
  const { client } = useApp();
  const revenue = useResource("revenue", POLL_MS, () =>
    client.request<Revenue>("GET", `/api/v1/operator/revenue?days=${DAYS}`),
  );
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

function RevenueCards({ revenue }: { readonly revenue: Revenue }): JSX.Element {
  const { totals, days } = revenue;
  const column = (name: "charged_usd" | "paid_in_usd"): readonly number[] =>
    days.map((day) => Number(day[name]));
  return (
    <>
      <Figures>
        <Figure label="Charged" value={usd(totals.charged_usd)} note="calls that were paid for" />
        <Figure label="Paid in" value={usd(totals.paid_in_usd)} />
        <Figure label="Granted" value={usd(totals.granted_usd)} />
        <Figure
          label="Calls with a key"
          value={compact(totals.calls)}
          note={`${compact(totals.cached_calls)} from the cache`}
        />
        <Figure label="Compute units" value={compact(totals.cu)} />
      </Figures>
      <Card title="By day">
        <Graph
          title="Money by day"
          times={days.map(({ day }) => Date.parse(day) / 1000)}
          series={[
            { label: "Charged", values: column("charged_usd") },
            { label: "Paid in", values: column("paid_in_usd") },
          ]}
          format={usd}
        />
      </Card>
    </>
  );
}
