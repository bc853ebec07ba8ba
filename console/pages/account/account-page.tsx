// The account: its balance, how fast the balance is used, how long it lasts, and its usage.

import { useState } from "preact/hooks";
import type { AnswerOf } from "../../api/contract-types.ts";
import { useApp, useCall, useStore } from "../../app/app.ts";
import { Card, figures, inUnit, PageHead } from "../../components/card.tsx";
import * as column from "../../components/columns.tsx";
import { Choices } from "../../components/controls.tsx";
import { Graph } from "../../components/graph.tsx";
import { KeyName, Link, StateBadge, Time } from "../../components/inline.tsx";
import { Empty, Loaded } from "../../components/page-state.tsx";
import { type Column, TableCard } from "../../components/table.tsx";
import { type RunOut, runOutOf, runOutText, usdScale } from "../../format/money.ts";
import { compact, count, DASH, usd } from "../../format/text.ts";
import { columnsOf, type Measure } from "./usage.ts";

type Account = AnswerOf<"GET /api/v1/accounts/current">;
type Usage = AnswerOf<"GET /api/v1/usage">;

const POLL_MS = 10_000;
const DAYS = 30;
const PAGE_ROWS = 20;

/** The page. */
export function AccountPage() {
  const account = useCall("GET /api/v1/accounts/current", {}, POLL_MS);
  const usage = useCall("GET /api/v1/usage", { query: { days: DAYS } }, POLL_MS);
  return (
    <>
      <PageHead title="Account" lead={<span class="mono">{account.data?.id ?? ""}</span>}>
        <Link class="button primary" to="/account/payments">
          Top up
        </Link>
      </PageHead>
      <Loaded resource={account}>{(data) => <Standing account={data} usage={usage.data} />}</Loaded>
      <Loaded resource={usage}>{(data) => <UsageCards usage={data} />}</Loaded>
    </>
  );
}

function Standing({ account, usage }: { readonly account: Account; readonly usage: Usage | null }) {
  const app = useApp();
  const nowMs = useStore(app.nowMs);
  const runOut = usage === null ? null : runOutOf({ ...account, recent: usage.recent }, nowMs);
  const { used_cu, allowance_cu, resets_at } = account.included_usage;
  const free = compact(Math.max(0, allowance_cu - used_cu));
  return (
    <>
      {figures([
        ["Balance", usd(account.balance_usd), `${count(account.balance_cu)} compute units`],
        ["Spent a day", rateText(runOut), "at the rates of the last hour and the last day"],
        [
          "Balance runs out",
          runOutText(runOut, nowMs),
          runOut === null ? "nothing is being spent" : "at these rates",
        ],
        [
          "Free this month",
          inUnit(free, `of ${compact(allowance_cu)} CU`),
          ["renewed ", <Time key="at" at={resets_at} />],
        ],
        ["Providers", <StateBadge key="access" {...ACCESS[account.managed_access]} />],
        ["Keys", count(account.keys)],
      ])}
      <AccessNotice account={account} />
    </>
  );
}

function rateText(runOut: RunOut | null): string {
  if (runOut === null) return DASH;
  const texts = runOut.perDayUsd.map(usdScale(runOut.perDayUsd));
  return [...new Set(texts)].join(" – ");
}

const ACCESS = {
  premium: { tone: "good", word: "Premium" },
  public: { tone: "warn", word: "Public" },
  none: { tone: "bad", word: "None" },
} as const;

function AccessNotice({ account }: { readonly account: Account }) {
  const { managed_access: access } = account;
  if (access === "premium") return null;
  const until = account.fallback?.until ?? null;
  return (
    <p class={`notice ${ACCESS[access].tone}`}>
      {access === "none"
        ? "The balance and the free allowance are used up: calls are refused until you top up."
        : "Without a balance, calls go to public providers, with the strategy load-balanced only."}{" "}
      {until === null ? null : (
        <>
          This ends <Time at={until} />.
        </>
      )}
    </p>
  );
}

const MEASURE_OPTIONS = [
  { value: "calls", label: "Calls" },
  { value: "cu", label: "CU" },
  { value: "usd", label: "USD" },
] as const;

function UsageCards({ usage }: { readonly usage: Usage }) {
  const [measure, setMeasure] = useState<Measure>("calls");
  const { from, to, by_day: days } = usage;
  const { times, values } = columnsOf({ from, to, days }, measure);
  const label = MEASURE_OPTIONS.find(({ value }) => value === measure)?.label ?? "";
  return (
    <>
      <Card
        title="Usage by day"
        lead={`The last ${DAYS} days, UTC; some seconds late`}
        actions={
          <Choices label="Show" options={MEASURE_OPTIONS} value={measure} choose={setMeasure} />
        }
      >
        {days.length === 0 ? (
          <Empty title="Nothing was used yet">
            <Link to="/account/keys">Create a key</Link> and call with it.
          </Empty>
        ) : (
          <Graph
            title="Usage by day"
            times={times}
            series={[{ label, values }]}
            format={measure === "usd" ? usd : compact}
            whole={measure !== "usd"}
            bars
          />
        )}
      </Card>
      <div class="grid">
        <TableCard
          title="By key"
          name="by-key"
          caption="Usage by key"
          columns={[KEY, ...usedColumns(usage.by_key)]}
          pageRows={PAGE_ROWS}
          rows={usage.by_key}
          keyOf={(row) => row.key_id}
          textOf={(row) => `${row.name} ${row.key_prefix}`}
          order="-cu"
          empty="No key was used"
        />
        <TableCard
          title="By method"
          name="by-method"
          caption="Usage by method"
          columns={[METHOD, ...usedColumns(usage.by_method)]}
          pageRows={PAGE_ROWS}
          rows={usage.by_method}
          keyOf={(row) => row.method}
          textOf={(row) => row.method}
          order="-cu"
          empty="No method was called"
        />
      </div>
    </>
  );
}

type Used = Usage["by_key"][number] | Usage["by_method"][number];

function usedColumns<Row extends Used>(rows: readonly Row[]): readonly Column<Row>[] {
  return [
    {
      ...column.number<Row>("calls", "Calls", (row) => row.calls),
      note: ({ cached_calls: cached }) => (cached === 0 ? "" : `${count(cached)} from the cache`),
    },
    column.number("cu", "CU", (row) => row.cu),
    column.number("usd", "USD", (row) => Number(row.usd), usdScale(rows.map((row) => row.usd))),
  ];
}

const KEY: Column<Usage["by_key"][number]> = column.text("name", "Key", (row) => row.name, {
  kind: "lead",
  render: ({ name, key_prefix: prefix, revoked }) => (
    <KeyName {...{ name, prefix }} isDeleted={revoked} />
  ),
});

const METHOD: Column<Usage["by_method"][number]> = column.code(
  "method",
  "Method",
  (row) => row.method,
  { kind: "lead" },
);
