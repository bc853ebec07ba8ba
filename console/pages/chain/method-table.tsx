// What each method came to at a provider over one transport.
import type { JSX } from "preact";
import { numberColumn } from "../../components/columns.ts";
import { type Column, Table } from "../../components/table.tsx";
import { duration } from "../../format/durations.ts";
import { milliseconds, success } from "../../format/numbers.ts";
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
  numberColumn("calls", "Calls", ({ calls }) => calls),
  numberColumn("success", "Success", ({ success_rate: rate }) => rate, success),
  numberColumn("latency", "Average ms", ({ latency_ms: ms }) => ms, milliseconds),
  {
    id: "age",
    label: "Last call",
    kind: "number",
    value: ({ age_ms: ms }) => -ms,
    render: ({ age_ms: ms }) => `${duration(ms)} ago`,
  },
];
