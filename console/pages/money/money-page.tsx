// Money, for the operator: what came in and was charged by day, accounts by what they spend,
// purchases with their transactions, wallets with their gas, and whether the books agree.
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { Result } from "../../api/client.ts";
import type { AnswerOf } from "../../api/contract-types.ts";
import { useResource } from "../../api/resource.ts";
import { useApp } from "../../app/app.ts";
import { Card, Figure, Figures, PageHead } from "../../components/card.tsx";
import { Graph } from "../../components/graph.tsx";
import { failureText, Loaded } from "../../components/page-state.tsx";
import { type Column, Table } from "../../components/table.tsx";
import { Time } from "../../components/time.tsx";
import { compact } from "../../format/numbers.ts";
import { usd } from "../../format/usd.ts";
import { AccountsCard } from "./accounts-card.tsx";
import type { Revenue } from "./money.ts";
import { PurchasesCard } from "./purchases-card.tsx";
import { WalletsCard } from "./wallets-card.tsx";

type Audit = AnswerOf<"GET /api/v1/operator/audit">;

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
        <Figure label="Calls with a key" value={compact(totals.calls)} />
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

/** The audit reads everything, so it runs when it is asked for. */
function AuditCard(): JSX.Element {
  const { client } = useApp();
  const [result, setResult] = useState<Result<Audit> | "running" | null>(null);
  const run = (): void => {
    setResult("running");
    void client.call("GET /api/v1/operator/audit").then(setResult);
  };
  return (
    <Card
      title="Audit"
      lead="Compares ledger, balances, leased credit, usage and payment chains, to the unit"
      actions={
        <button type="button" class="button" disabled={result === "running"} onClick={run}>
          {result === "running" ? "Checking" : "Check the books"}
        </button>
      }
    >
      <AuditOutcome result={result} />
    </Card>
  );
}

function AuditOutcome({
  result,
}: {
  readonly result: Result<Audit> | "running" | null;
}): JSX.Element {
  if (result === null) return <p class="muted small">Not checked on this page yet.</p>;
  if (result === "running") return <p role="status">Reading every account and payment chain.</p>;
  if (result.kind === "failed")
    return (
      <p class="notice warn" role="alert">
        {failureText(result.failure)}
      </p>
    );
  const { ok, checked_at, differences, unread_chains } = result.body;
  return (
    <div class="stack">
      <p class={`notice ${ok ? "good" : "bad"}`} role="status">
        {ok ? "Every amount is accounted for." : "The books do not agree."} Checked{" "}
        <Time at={checked_at} />.
      </p>
      {differences.length === 0 ? null : (
        <Table
          name="differences"
          caption="What does not agree"
          columns={DIFFERENCES}
          rows={differences}
          keyOf={(row) => `${row.check} ${row.id}`}
        />
      )}
      {unread_chains.map(({ chain_id, reason }) => (
        <p key={chain_id} class="notice warn">
          Chain {chain_id} could not be read: {reason}
        </p>
      ))}
    </div>
  );
}

const DIFFERENCES: readonly Column<Audit["differences"][number]>[] = [
  { id: "check", label: "Check", kind: "lead", render: (row) => row.check },
  { id: "id", label: "Of", render: (row) => <span class="mono small">{row.id}</span> },
  { id: "is", label: "Is", kind: "number", render: (row) => usd(row.is_usd) },
  { id: "should", label: "Should be", kind: "number", render: (row) => usd(row.should_be_usd) },
];
