// Calls at their end, newest first, as a table that is drawn often: plain rows, no sorting.

import type { CallEvent } from "../../api/use-feed.ts";
import * as column from "../../components/columns.tsx";
import { Badge, Time } from "../../components/inline.tsx";
import { type Column, Table } from "../../components/table.tsx";
import { DASH, milliseconds, textList } from "../../format/text.ts";
import { endText, OUTCOMES } from "../../health/outcomes.ts";

interface CallTableProps {
  readonly calls: readonly CallEvent[];
  readonly open: (call: CallEvent) => void;
}

/** The table of calls. */
export function CallTable({ calls, open }: CallTableProps) {
  return (
    <Table
      name="calls"
      caption="Calls"
      columns={COLUMNS}
      rows={calls}
      keyOf={({ id }) => id}
      open={open}
      empty="No call yet that passes the filters"
    />
  );
}

/** The outcome of a call in a word. */
export function OutcomeBadge({ call }: { readonly call: CallEvent }) {
  return <Badge tone={OUTCOMES[call.outcome].tone}>{endText(call)}</Badge>;
}

const COLUMNS: readonly Column<CallEvent>[] = [
  column.of("at", "Ended", ({ at }) => <Time at={at} />, "tight"),
  column.of("method", "Method", ({ method }) => <code>{method ?? DASH}</code>, {
    kind: "lead",
    note: ({ chain, profile }) => textList([chain, profile]),
  }),
  column.of("outcome", "Outcome", (call) => <OutcomeBadge call={call} />, {
    note: ({ cause }) => cause ?? "",
  }),
  column.of("provider", "Answered by", (call) => call.provider ?? DASH, { note: sourceText }),
  column.of("attempts", "Attempts", attemptsOf, "number"),
  column.figure("total", "Total ms", (call) => call.total_ms, milliseconds),
  column.figure("upstream", "Provider ms", (call) => call.upstream_ms, milliseconds),
  column.of("added", "Added ms", ({ added_ms: ms }) => ms?.toFixed(2) ?? DASH, {
    kind: "number",
    title: "What the service itself added",
  }),
];

function attemptsOf({ attempts, failovers }: CallEvent) {
  return <span class={failovers > 0 ? "warn toned" : ""}>{attempts}</span>;
}

const SOURCES: Readonly<Record<CallEvent["source"], string>> = {
  provider: "",
  cache: "from the cache",
  merged: "joined from parts",
  shared: "shared with another call",
  heads: "from the heads of providers",
  accepted: "as it was handed in",
  refused: "range refused",
  local: "by the service itself",
  none: "",
};

function sourceText({ source, hedged, pinned, panic }: CallEvent): string {
  const words = [hedged && "hedged", pinned && "pinned", panic && "every circuit was open"];
  return textList([SOURCES[source], ...words]);
}
