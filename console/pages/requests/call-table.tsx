// Calls at their end, newest first, as a table that is drawn often: plain rows, no sorting.
import type { JSX } from "preact";
import type { CallEvent } from "../../api/use-feed.ts";
import { Badge } from "../../components/badge.tsx";
import { Noted, plainNumber, type Word } from "../../components/columns.tsx";
import { type Column, Table } from "../../components/table.tsx";
import { Time } from "../../components/time.tsx";
import { DASH, milliseconds } from "../../format/numbers.ts";

const OUTCOMES: Readonly<Record<CallEvent["outcome"], Word>> = {
  result: { tone: "good", word: "Result" },
  error: { tone: "warn", word: "Error" },
  fault: { tone: "bad", word: "Refused" },
  cancelled: { tone: "idle", word: "Caller left" },
};

interface CallTableProps {
  readonly calls: readonly CallEvent[];
  readonly open: (call: CallEvent) => void;
}

/** The table of calls. */
export function CallTable({ calls, open }: CallTableProps): JSX.Element {
  return (
    <Table
      name="calls"
      caption="Calls"
      columns={COLUMNS}
      rows={calls}
      keyOf={({ id }) => id}
      open={open}
    />
  );
}

/** The outcome of a call in a word. */
export function OutcomeBadge({ call }: { readonly call: CallEvent }): JSX.Element {
  const { tone, word } = OUTCOMES[call.outcome];
  return (
    <Badge tone={tone}>
      {word}
      {call.fault === null ? "" : `: ${call.fault}`}
    </Badge>
  );
}

const COLUMNS: readonly Column<CallEvent>[] = [
  { id: "at", label: "Ended", kind: "tight", render: ({ at }) => <Time at={at} /> },
  {
    id: "method",
    label: "Method",
    kind: "lead",
    render: ({ method, chain, profile }) => (
      <Noted note={`${chain}, ${profile}`}>
        <code>{method}</code>
      </Noted>
    ),
  },
  { id: "outcome", label: "Outcome", render: (call) => <OutcomeBadge call={call} /> },
  {
    id: "provider",
    label: "Answered by",
    render: (call) => <Noted note={sourceText(call)}>{call.provider ?? DASH}</Noted>,
  },
  {
    id: "attempts",
    label: "Attempts",
    kind: "number",
    render: ({ attempts, failovers }) => (
      <span class={failovers > 0 ? "warn toned" : ""}>{attempts}</span>
    ),
  },
  plainNumber("total", "Total ms", (call) => milliseconds(call.total_ms)),
  plainNumber("upstream", "Provider ms", (call) => milliseconds(call.upstream_ms)),
  {
    id: "added",
    label: "Added ms",
    kind: "number",
    title: "What the service itself added",
    render: ({ added_ms: ms }) => (ms === null ? DASH : ms.toFixed(2)),
  },
];

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
  const facts = [
    SOURCES[source],
    hedged ? "hedged" : "",
    pinned ? "pinned" : "",
    panic ? "every circuit was open" : "",
  ];
  return facts.filter((fact) => fact !== "").join(", ");
}
