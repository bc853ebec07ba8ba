// The account: its balance, how fast the balance is used, how long it lasts, and its usage.
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { AnswerOf } from "../../api/contract-types.ts";
import { useResource } from "../../api/resource.ts";
import { useApp, useStore } from "../../app/app.ts";
import { Badge } from "../../components/badge.tsx";
import { Card, Choices, Figure, Figures, PageHead } from "../../components/card.tsx";
import { numberColumn } from "../../components/columns.ts";
import { Graph } from "../../components/graph.tsx";
import { Link } from "../../components/link.tsx";
import { Empty, Loaded } from "../../components/page-state.tsx";
import { type Column, Table } from "../../components/table.tsx";
import { Time } from "../../components/time.tsx";
import { compact, count, DASH } from "../../format/numbers.ts";
import { usd } from "../../format/usd.ts";
import { burnOf } from "./burn.ts";
import { columnsOf, type Measure } from "./usage-days.ts";

type Account = AnswerOf<"GET /api/v1/accounts/current">;
type Usage = AnswerOf<"GET /api/v1/usage">;

const POLL_MS = 10_000;
const DAYS = 30;

/** The page. */
export function AccountPage(): JSX.Element {
  const { client } = useApp();
  const account = useResource("account", POLL_MS, (signal) =>
    client.call("GET /api/v1/accounts/current", {}, signal),
  );
  const usage = useResource("usage", POLL_MS, (signal) =>
    client.call("GET /api/v1/usage", { query: { days: DAYS } }, signal),
  );
  return (
    <>
      <PageHead title="Account" lead={<span class="mono">{account.data?.id ?? ""}</span>}>
        <Link class="button button-primary" to="/account/payments">
          Top up
        </Link>
      </PageHead>
      <Loaded resource={account}>{(data) => <Standing account={data} usage={usage.data} />}</Loaded>
      <Loaded resource={usage}>{(data) => <UsageCards usage={data} />}</Loaded>
    </>
  );
}

interface StandingProps {
  readonly account: Account;
  readonly usage: Usage | null;
}

function Standing({ account, usage }: StandingProps): JSX.Element {
  const app = useApp();
  const nowMs = useStore(app.nowMs);
  const burn = usage === null ? null : burnOf(account.balance_usd, usage.by_day, nowMs);
  const { used_cu, allowance_cu, resets_at } = account.included_usage;
  return (
    <>
      <Figures>
        <Figure
          label="Balance"
          value={usd(account.balance_usd)}
          note={`${count(account.balance_cu)} compute units`}
        />
        <Figure
          label="Spent a day"
          value={burn?.perDayUsd == null ? DASH : usd(burn.perDayUsd)}
          note="over the last seven days"
        />
        <Figure
          label="Balance ends"
          value={burn?.endsAtMs == null ? DASH : dayText(burn.endsAtMs, nowMs)}
          note={burn?.endsAtMs == null ? "nothing is being spent" : "at this rate"}
        />
        <Figure
          label="Free this month"
          value={compact(Math.max(0, allowance_cu - used_cu))}
          unit={`of ${compact(allowance_cu)} CU`}
          note={
            <>
              renewed <Time at={resets_at} />
            </>
          }
        />
        <Figure label="Providers" value={<Access account={account} />} />
        <Figure label="Keys" value={count(account.keys)} />
      </Figures>
      <AccessNotice account={account} />
    </>
  );
}

const MAX_SHOWN_MS = 5 * 365 * 86_400_000;

function dayText(atMs: number, nowMs: number): string {
  if (atMs - nowMs > MAX_SHOWN_MS) return "in over 5 years";
  return new Date(atMs).toLocaleDateString("en-GB", { dateStyle: "medium" });
}

const ACCESS = {
  premium: { tone: "good", words: "Premium" },
  public: { tone: "warn", words: "Public" },
  none: { tone: "bad", words: "None" },
} as const;

function Access({ account }: { readonly account: Account }): JSX.Element {
  const { tone, words } = ACCESS[account.managed_access];
  return <Badge tone={tone}>{words}</Badge>;
}

function AccessNotice({ account }: { readonly account: Account }): JSX.Element | null {
  if (account.managed_access === "premium") return null;
  const until = account.fallback?.until ?? null;
  return (
    <p class={`notice ${account.managed_access === "none" ? "bad" : "warn"}`}>
      {account.managed_access === "none"
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

function UsageCards({ usage }: { readonly usage: Usage }): JSX.Element {
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
          />
        )}
      </Card>
      <div class="grid grid-2">
        <Card title="By key" flush>
          <Table
            name="by-key"
            caption="Usage by key"
            columns={KEY_COLUMNS}
            rows={usage.by_key}
            keyOf={(row) => row.key_id}
            textOf={(row) => `${row.name} ${row.key_prefix}`}
            order="-cu"
            empty="No key was used"
          />
        </Card>
        <Card title="By method" flush>
          <Table
            name="by-method"
            caption="Usage by method"
            columns={METHOD_COLUMNS}
            rows={usage.by_method}
            keyOf={(row) => row.method}
            textOf={(row) => row.method}
            order="-cu"
            empty="No method was called"
          />
        </Card>
      </div>
    </>
  );
}

interface Used {
  readonly calls: number;
  readonly cached_calls: number;
  readonly cu: number;
  readonly usd: string;
}

function usedColumns<Row extends Used>(): readonly Column<Row>[] {
  return [
    numberColumn("calls", "Calls", (row) => row.calls),
    numberColumn("cached", "From the cache", (row) => row.cached_calls),
    numberColumn("cu", "CU", (row) => row.cu),
    numberColumn("usd", "USD", (row) => Number(row.usd), usd),
  ];
}

const KEY_COLUMNS: readonly Column<Usage["by_key"][number]>[] = [
  {
    id: "name",
    label: "Key",
    kind: "lead",
    value: (row) => row.name,
    render: (row) => (
      <>
        <bdi>{row.name === "" ? "Unnamed" : row.name}</bdi>{" "}
        <span class="mono muted small">{row.key_prefix}…</span>
        {row.revoked ? <span class="muted small"> deleted</span> : null}
      </>
    ),
  },
  ...usedColumns<Usage["by_key"][number]>(),
];

const METHOD_COLUMNS: readonly Column<Usage["by_method"][number]>[] = [
  {
    id: "method",
    label: "Method",
    kind: "lead",
    value: (row) => row.method,
    render: (row) => <span class="mono">{row.method}</span>,
  },
  ...usedColumns<Usage["by_method"][number]>(),
];
