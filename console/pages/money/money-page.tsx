// Money, for the operator: what came in and was charged in some days, who and what used the most,
// purchases with their transactions, wallets with their gas, and whether the books agree.

import type { AnswerOf } from "../../api/contract-types.ts";
import { useApp, useCall, useStore, useTimed } from "../../app/app.ts";
import { figures, PageHead } from "../../components/card.tsx";
import * as column from "../../components/columns.tsx";
import { Choices } from "../../components/controls.tsx";
import { GraphCard } from "../../components/graph.tsx";
import { Badge } from "../../components/inline.tsx";
import { Loaded } from "../../components/page-state.tsx";
import { type Column, TableCard } from "../../components/table.tsx";
import { usdScale } from "../../format/money.ts";
import { compact, DASH, usd } from "../../format/text.ts";
import { rangeParameters } from "../../health/ranges.ts";
import { AccountsCard } from "./accounts-card.tsx";
import { AuditCard } from "./audit-card.tsx";
import { type DayRange, dayOf, dayRangeOf, SPANS, type Span } from "./day-range.ts";
import { LOOKED_THROUGH, MoneyActionsCard } from "./money-actions.tsx";
import { PurchasesCard } from "./purchases-card.tsx";
import { TopCards } from "./top-cards.tsx";

type Revenue = AnswerOf<"GET /api/v1/operator/revenue">;
type WalletRow = AnswerOf<"GET /api/v1/operator/wallets">["wallets"][number];

const POLL_MS = 30_000;
const CUSTOM = { value: "custom", label: "From – to" } as const;

/** The page. */
export function MoneyPage() {
  const { router } = useApp();
  const today = useTimed(dayOf);
  const { span, from, to } = dayRangeOf(useStore(router.place).query, today);
  const query = { from, to };
  const revenue = useCall("GET /api/v1/operator/revenue", { query }, POLL_MS);
  const actions = useCall(
    "GET /api/v1/operator/actions",
    { query: { limit: LOOKED_THROUGH } },
    POLL_MS,
  );
  const gave = (): void => {
    revenue.reload();
    actions.reload();
  };
  const show = (chosen: Span): void =>
    router.setQuery(rangeParameters(chosen === "custom" ? { from, to } : { range: chosen }));
  return (
    <>
      <PageHead title="Money" lead={`${from} to ${to}, UTC; some seconds late.`}>
        <Choices label="Time shown" options={[...SPANS, CUSTOM]} value={span} choose={show} />
        {span === "custom" && <Days {...{ from, to, today }} />}
      </PageHead>
      <Loaded resource={revenue}>{(data) => <RevenueCards revenue={data} />}</Loaded>
      <AccountsCard from={from} to={to} gave={gave} />
      <MoneyActionsCard actions={actions} />
      <TopCards from={from} to={to} />
      <PurchasesCard />
      <WalletsCard />
      <AuditCard />
    </>
  );
}

/** The first and the last day. */
function Days({ from, to, today }: DayRange & { readonly today: string }) {
  const { router } = useApp();
  const change = (range: DayRange): void => router.setQuery(rangeParameters(range));
  return (
    <>
      <DayField
        label="First day"
        value={from}
        max={to}
        change={(day) => change({ from: day, to })}
      />
      <DayField
        label="Last day"
        value={to}
        max={today}
        change={(day) => change({ from: day < from ? day : from, to: day })}
      />
    </>
  );
}

interface DayFieldProps {
  readonly label: string;
  readonly value: string;
  readonly max: string;
  readonly change: (day: string) => void;
}

function DayField({ label, change, ...rest }: DayFieldProps) {
  return (
    <input
      class="input narrow"
      type="date"
      aria-label={label}
      required
      onChange={({ currentTarget: { value } }) => {
        if (value !== "") change(value);
      }}
      {...rest}
    />
  );
}

function RevenueCards({ revenue }: { readonly revenue: Revenue }) {
  const { totals, days } = revenue;
  const { charged_usd: charged, paid_in_usd: paidIn, granted_usd: granted } = totals;
  const amount = usdScale([charged, paidIn, granted]);
  return (
    <>
      {figures([
        ["Charged", amount(charged), "calls that were paid for"],
        ["Paid in", amount(paidIn)],
        ["Granted", amount(granted)],
        [
          "Calls with a key",
          compact(totals.calls),
          `${compact(totals.cached_calls)} from the cache`,
        ],
        ["Compute units", compact(totals.cu)],
      ])}
      <GraphCard
        title="Money by day"
        times={days.map(({ day }) => Date.parse(day) / 1000)}
        series={[
          { label: "Charged", values: days.map((day) => Number(day.charged_usd)) },
          { label: "Paid in", values: days.map((day) => Number(day.paid_in_usd)) },
        ]}
        format={usd}
        bars
      />
    </>
  );
}

/** The rails of payments, and what their wallets have for gas. */
function WalletsCard() {
  const wallets = useCall("GET /api/v1/operator/wallets", {}, POLL_MS);
  return (
    <TableCard
      title="Rails and wallets"
      lead="As this node last saw them; gas in coins of the chain"
      resource={wallets}
      name="wallets"
      columns={WALLET_COLUMNS}
      rows={wallets.data?.wallets ?? []}
      keyOf={(row) => `${row.rail} ${row.chain_id} ${row.recipient}`}
      empty="This service takes no payments"
    />
  );
}

const WALLET_COLUMNS: readonly Column<WalletRow>[] = [
  column.of("rail", "Rail", (row) => `${row.rail}, chain ${row.chain_id}`, "lead"),
  column.of("recipient", "Payments go to", (row) => <code>{row.recipient}</code>, "wide"),
  column.of(
    "wallet",
    "Pays gas",
    (row) => <code>{row.wallet?.address ?? "none needed"}</code>,
    "wide",
  ),
  column.of("gas", "Gas", (row) => <Gas wallet={row.wallet} />, "number"),
];

function Gas({ wallet }: Pick<WalletRow, "wallet">) {
  if (wallet === null) return <span>{DASH}</span>;
  const { balance_wei, low, empty, dear } = wallet;
  return (
    <>
      {coinText(balance_wei)} {empty ? <Badge tone="bad">empty</Badge> : null}
      {low && !empty ? <Badge tone="warn">low</Badge> : null}
      {dear ? <Badge tone="warn">gas is dear</Badge> : null}
    </>
  );
}

const WEI_DIGITS = 18;
const SHOWN_DIGITS = 4;

/** Wei as coins, cut to four places. */
function coinText(wei: string): string {
  const digits = wei.padStart(WEI_DIGITS + 1, "0");
  const coins = BigInt(digits.slice(0, -WEI_DIGITS)).toLocaleString("en");
  return `${coins}.${digits.slice(-WEI_DIGITS).slice(0, SHOWN_DIGITS)}`;
}
