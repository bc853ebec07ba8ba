// The subscriptions of a profile on a chain: totals, and each that is open.
import type { JSX } from "preact";
import { Badge } from "../../components/badge.tsx";
import { Card } from "../../components/card.tsx";
import { type Column, Table } from "../../components/table.tsx";
import { count, DASH, plural } from "../../format/numbers.ts";
import type { Tone } from "../../format/tone.ts";
import type { ProfileMetrics } from "../../health/judge.ts";

type Subscriptions = ProfileMetrics["subscriptions"];
type StreamRow = Subscriptions["streams"][number] & { readonly at: number };

const STATES: Readonly<Record<StreamRow["state"], { readonly tone: Tone; readonly word: string }>> =
  {
    opening: { tone: "idle", word: "Opening" },
    live: { tone: "good", word: "Live" },
    recovering: { tone: "warn", word: "Recovering" },
  };
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
    open === 0 ? "none open" : `${count(open)} open, ${plural(subscribers, "subscriber")}`,
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
  {
    id: "state",
    label: "State",
    value: ({ state }) => ["recovering", "opening", "live"].indexOf(state),
    render: ({ state }) => <Badge tone={STATES[state].tone}>{STATES[state].word}</Badge>,
  },
  {
    id: "provider",
    label: "Provider",
    value: ({ provider }) => provider,
    render: ({ provider, pinned }) => (
      <span class="wrap-anywhere">
        {provider ?? DASH}
        {pinned ? ", pinned" : ""}
      </span>
    ),
  },
  numbers("subscribers", "Subscribers", ({ subscribers }) => subscribers),
  numbers("height", "Height", ({ block_height: height }) => height),
  numbers("behind", "Behind", ({ blocks_behind: behind }) => behind),
  numbers("events", "Events", ({ events }) => events),
  numbers("failovers", "Failovers", ({ failovers }) => failovers),
  numbers("filled", "Blocks filled", ({ blocks_filled: filled }) => filled),
];

function numbers(
  id: string,
  label: string,
  value: (stream: StreamRow) => number | null,
): Column<StreamRow> {
  return { id, label, kind: "number", value, render: (stream) => count(value(stream)) };
}
