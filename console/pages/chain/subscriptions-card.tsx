// The subscriptions of a profile on a chain: totals, and each that is open.

import * as column from "../../components/columns.tsx";
import {
  CHECK_WORDS,
  eventColumns,
  FAILOVER_WORDS,
  sourceColumns,
  sumOf,
} from "../../components/stream-columns.tsx";
import { type Column, TableCard } from "../../components/table.tsx";
import { count, plural, textList } from "../../format/text.ts";
import type { ProfileMetrics } from "../../health/states.ts";

type Subscriptions = ProfileMetrics["subscriptions"];
type StreamRow = Subscriptions["streams"][number] & { readonly at: number };

/** Totals and open subscriptions. */
export function SubscriptionsCard(subscriptions: Subscriptions) {
  const rows = subscriptions.streams.map((stream, at) => ({ ...stream, at }));
  return (
    <TableCard
      title="Subscriptions"
      lead={totalsText(subscriptions)}
      name="streams"
      columns={COLUMNS}
      rows={rows}
      keyOf={({ at }) => String(at)}
      order="state"
      empty="Nobody subscribes to anything here"
    />
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
    sent > 0 && `${plural(sent, "event")} sent`,
    failed > 0 && `${plural(failed, "failover")} (${listed(failovers, FAILOVER_WORDS)})`,
    filled > 0 && `${plural(filled, "block")} filled`,
    checked > 0 && `${plural(checked, "check")} of logs (${listed(checks, CHECK_WORDS)})`,
    subscriptions.ended > 0 && `${count(subscriptions.ended)} ended`,
  ];
  return textList(facts, "; ");
}

function listed(
  counts: Readonly<Record<string, number>>,
  words: Readonly<Record<string, string>>,
): string {
  const entries = Object.entries(counts).filter(([, n]) => n > 0);
  return entries
    .map(([name, n]) => `${(words[name] ?? name).toLowerCase()} ${count(n)}`)
    .join(", ");
}

const COLUMNS: readonly Column<StreamRow>[] = [
  column.text("kind", "Subscription", ({ kind }) => kind, { kind: "lead" }),
  ...sourceColumns<StreamRow>("Provider"),
  ...eventColumns<StreamRow>(),
];
