// The subscriptions of a profile on a chain: totals, and each that is open.
import type { JSX } from "preact";
import { Card } from "../../components/card.tsx";
import { eventColumns, sourceColumns } from "../../components/stream-columns.tsx";
import { type Column, Table } from "../../components/table.tsx";
import { count, plural } from "../../format/numbers.ts";
import type { ProfileMetrics } from "../../health/judge.ts";

type Subscriptions = ProfileMetrics["subscriptions"];
type StreamRow = Subscriptions["streams"][number] & { readonly at: number };

const FAILOVERS: Readonly<Record<string, string>> = {
  lost: "connection lost",
  stale_heads: "stale heads",
  far: "too many blocks missing",
  unanswered: "missing blocks not given",
  backlog: "too much held back",
  removed: "provider removed",
  missing_logs: "left out logs",
};
const LOG_CHECKS: Readonly<Record<string, string>> = {
  agreed: "agreed",
  missing: "left out by the stream's provider",
  surplus: "left out by the one asked",
  unanswered: "unanswered",
  over_budget: "over the budget",
  given_up: "too few answered",
};

/** Totals and open subscriptions. */
export function SubscriptionsCard({
  subscriptions,
}: {
  readonly subscriptions: Subscriptions;
}): JSX.Element {
  const rows = subscriptions.streams.map((stream, at) => ({ ...stream, at }));
  return (
    <Card title="Subscriptions" lead={totalsText(subscriptions)} flush>
      <Table
        name="streams"
        caption="Subscriptions"
        columns={COLUMNS}
        rows={rows}
        keyOf={({ at }) => String(at)}
        order="state"
        empty="Nobody subscribes to anything here"
      />
    </Card>
  );
}

/** What happened since the start, in words; nothing that did not happen. */
function totalsText(subscriptions: Subscriptions): string {
  const { open, subscribers, notifications, failovers, blocks_filled: filled } = subscriptions;
  const { calls: _, ...checks } = subscriptions.log_checks;
  const sent = sumOf(notifications);
  const failed = sumOf(failovers);
  const checked = sumOf(checks);
  const facts = [
    open === 0 ? "None open" : `${count(open)} open, ${plural(subscribers, "subscriber")}`,
    sent === 0 ? "" : `${plural(sent, "event")} sent`,
    failed === 0 ? "" : `${plural(failed, "failover")} (${listed(failovers, FAILOVERS)})`,
    filled === 0 ? "" : `${plural(filled, "block")} filled`,
    checked === 0 ? "" : `${plural(checked, "check")} of logs (${listed(checks, LOG_CHECKS)})`,
    subscriptions.ended === 0 ? "" : `${count(subscriptions.ended)} ended`,
  ];
  return facts.filter((fact) => fact !== "").join("; ");
}

type Counts = Readonly<Record<string, number>>;

function sumOf(counts: Counts): number {
  return Object.values(counts).reduce((total, n) => total + n, 0);
}

function listed(counts: Counts, words: Readonly<Record<string, string>>): string {
  const entries = Object.entries(counts).filter(([, n]) => n > 0);
  return entries.map(([name, n]) => `${words[name] ?? name} ${count(n)}`).join(", ");
}

const COLUMNS: readonly Column<StreamRow>[] = [
  {
    id: "kind",
    label: "Subscription",
    kind: "lead",
    value: ({ kind }) => kind,
    render: ({ kind }) => kind,
  },
  ...sourceColumns<StreamRow>("Provider"),
  ...eventColumns<StreamRow>(),
];
