// What each method came to at a provider over one transport.
import type { JSX } from "preact";
import { type Column, Table } from "../../components/table.tsx";
import { duration } from "../../format/durations.ts";
import { count, milliseconds, success } from "../../format/numbers.ts";
import type { TransportMetrics } from "../../health/judge.ts";

type MethodRow = TransportMetrics["methods"][number];

/** The table of methods, the latest 10 minutes. */
export function MethodTable({ methods }: { readonly methods: readonly MethodRow[] }): JSX.Element {
  return (
    <div class="inner-table">
      <Table
        name="methods"
        caption="Methods"
        columns={COLUMNS}
        rows={methods}
        keyOf={({ method }) => method}
        order="-calls"
        empty="No calls in the last 10 minutes"
      />
    </div>
  );
}

const COLUMNS: readonly Column<MethodRow>[] = [
  {
    id: "method",
    label: "Method",
    kind: "lead",
    value: ({ method }) => method,
    render: ({ method }) => <code>{method}</code>,
  },
  {
    id: "calls",
    label: "Calls",
    kind: "number",
    value: ({ calls }) => calls,
    render: ({ calls }) => count(calls),
  },
  {
    id: "success",
    label: "Success",
    kind: "number",
    value: ({ success_rate: rate }) => rate,
    render: ({ success_rate: rate }) => success(rate),
  },
  {
    id: "latency",
    label: "Average ms",
    kind: "number",
    value: ({ latency_ms: ms }) => ms,
    render: ({ latency_ms: ms }) => milliseconds(ms),
  },
  {
    id: "age",
    label: "Last call",
    kind: "number",
    value: ({ age_ms: ms }) => -ms,
    render: ({ age_ms: ms }) => `${duration(ms)} ago`,
  },
];
