// Who and what used the most in the days that are shown: keys, methods and chains.

import type { AnswerOf } from "../../api/contract-types.ts";
import { useCall } from "../../app/app.ts";
import * as column from "../../components/columns.tsx";
import { KeyName } from "../../components/inline.tsx";
import { type Column, TableCard } from "../../components/table.tsx";
import { usdScale } from "../../format/money.ts";
import type { DayRange } from "./day-range.ts";

type Usage = AnswerOf<"GET /api/v1/operator/usage">;

const POLL_MS = 60_000;
const PAGE_ROWS = 10;

/** The cards. */
export function TopCards({ from, to }: DayRange) {
  const usage = useCall("GET /api/v1/operator/usage", { query: { from, to } }, POLL_MS);
  const chains = useCall("GET /api/v1/operator/chain-calls", { query: { from, to } }, POLL_MS);
  const { by_key: keys = [], by_method: methods = [] } = usage.data ?? {};
  return (
    <div class="grid">
      <TableCard
        title="Top keys"
        resource={usage}
        name="top-keys"
        columns={[KEY, ...usedColumns(keys)]}
        rows={keys}
        keyOf={(row) => row.key_id}
        textOf={(row) => `${row.name} ${row.key_prefix} ${row.account_id}`}
        order="-usd"
        pageRows={PAGE_ROWS}
        empty="No key was used"
      />
      <TableCard
        title="Top methods"
        resource={usage}
        name="top-methods"
        columns={[METHOD, ...usedColumns(methods)]}
        rows={methods}
        keyOf={(row) => row.method}
        textOf={(row) => row.method}
        order="-usd"
        pageRows={PAGE_ROWS}
        empty="No method was called"
      />
      <TableCard
        title="Top chains"
        lead="Of all callers, also without a key; ten minutes late"
        resource={chains}
        name="top-chains"
        columns={CHAINS}
        rows={chains.data?.chains ?? []}
        keyOf={(row) => `${row.profile} ${row.chain}`}
        textOf={(row) => `${row.profile} ${row.chain}`}
        pageRows={PAGE_ROWS}
        empty="No chain was called, or nothing is written yet"
      />
    </div>
  );
}

type ChainRow = AnswerOf<"GET /api/v1/operator/chain-calls">["chains"][number];

const CHAINS: readonly Column<ChainRow>[] = [
  column.text("chain", "Chain", (row) => row.chain, { kind: "lead" }),
  column.text("profile", "Profile", (row) => row.profile),
  column.number("calls", "Calls", (row) => row.calls),
];

type KeyRow = Usage["by_key"][number];
type MethodRow = Usage["by_method"][number];

const KEY: Column<KeyRow> = column.text("key", "Key", (row) => row.name, {
  kind: "lead",
  render: ({ name, key_prefix: prefix }) => <KeyName {...{ name, prefix }} isDeleted={false} />,
  note: ({ account_id }) => <code>{account_id}</code>,
});
const METHOD: Column<MethodRow> = column.code("method", "Method", (row) => row.method, {
  kind: "lead",
});

function usedColumns<Row extends Pick<KeyRow, "calls" | "cu" | "usd">>(rows: readonly Row[]) {
  const format = usdScale(rows.map((row) => row.usd));
  return [
    column.number<Row>("usd", "Charged", (row) => Number(row.usd), format),
    column.number<Row>("calls", "Calls", (row) => row.calls),
    column.number<Row>("cu", "CU", (row) => row.cu),
  ];
}
