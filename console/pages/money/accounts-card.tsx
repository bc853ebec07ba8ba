// Accounts by what they spent, searched and read by pages at the service; one opens to its keys and
// to what the operator can give to it.

import { useState } from "preact/hooks";
import type { AnswerOf } from "../../api/contract-types.ts";
import { useApp, useCall, useQuery } from "../../app/app.ts";
import { Card } from "../../components/card.tsx";
import * as column from "../../components/columns.tsx";
import { Choices } from "../../components/controls.tsx";
import { KeyName, Time } from "../../components/inline.tsx";
import { Loaded } from "../../components/page-state.tsx";
import { type Column, Pager, Table } from "../../components/table.tsx";
import { runOutOf, runOutText, usdScale } from "../../format/money.ts";
import { count, textList } from "../../format/text.ts";
import { AccountActions } from "./account-actions.tsx";
import type { DayRange } from "./day-range.ts";
import { usePages } from "./use-pages.ts";

type AccountRow = AnswerOf<"GET /api/v1/operator/accounts">["accounts"][number];
type KeyRow = AnswerOf<"GET /api/v1/operator/accounts/{id}/keys">["keys"][number];

const POLL_MS = 30_000;
const A_PAGE = 20;
const SORTS = [
  { value: "spend", label: "Spend" },
  { value: "balance", label: "Balance" },
  { value: "created", label: "Newest" },
] as const;
type Sort = (typeof SORTS)[number]["value"];

interface AccountsProps extends DayRange {
  /** Something was given to an account. */
  readonly gave: () => void;
}

/** The card. */
export function AccountsCard({ from, to, gave }: AccountsProps) {
  const { nowMs } = useApp();
  const [search, setSearch] = useQuery("account");
  const [sort, setSort] = useState<Sort>("spend");
  const { begin, toFirst, moves } = usePages();
  const range = { from, to, limit: A_PAGE };
  const query = { ...range, sort, ...begin, ...(search === "" ? {} : { search }) };
  const accounts = useCall("GET /api/v1/operator/accounts", { query }, POLL_MS);
  return (
    <Card
      title="Accounts"
      lead="By what they spent in these days; open one to credit it"
      actions={
        <>
          <input
            class="input narrow"
            type="search"
            aria-label="Search accounts and keys"
            placeholder="Id, key, name"
            maxLength={100}
            value={search}
            onInput={(event) => {
              toFirst();
              setSearch(event.currentTarget.value);
            }}
          />
          <Choices
            label="Order"
            options={SORTS}
            value={sort}
            choose={(next) => {
              toFirst();
              setSort(next);
            }}
          />
        </>
      }
      flush
    >
      <Loaded resource={accounts}>
        {(data) => (
          <>
            <Table
              name="accounts"
              caption="Accounts"
              columns={accountColumns(data.accounts, nowMs.get())}
              rows={data.accounts}
              keyOf={(row) => row.id}
              expand={(row) => (
                <div class="stack">
                  <AccountActions
                    accountId={row.id}
                    changed={() => {
                      accounts.reload();
                      gave();
                    }}
                  />
                  <Keys accountId={row.id} from={from} to={to} />
                </div>
              )}
              empty="No account"
            />
            <Pager of="accounts" {...moves(data.next)} />
          </>
        )}
      </Loaded>
    </Card>
  );
}

function accountColumns(rows: readonly AccountRow[], nowMs: number): readonly Column<AccountRow>[] {
  const [spent, balance, funded] = (["spent_usd", "balance_usd", "funded_usd"] as const).map(
    (name) => {
      const format = usdScale(rows.map((row) => row[name]));
      return (row: AccountRow): string => format(row[name]);
    },
  );
  const ends = (row: AccountRow): string => runOutText(runOutOf(row, nowMs), nowMs);
  return [
    column.of("id", "Account", (row) => <code>{row.id}</code>, {
      kind: "lead",
      note: ({ kind, merged_into: other }) => textList([kind, other && `part of ${other}`]),
    }),
    column.of("spent", "Spent", (row) => spent?.(row), "number"),
    column.of("calls", "Calls", (row) => count(row.calls), "number"),
    column.of("cu", "CU", (row) => count(row.cu), "number"),
    column.of("balance", "Balance", (row) => balance?.(row), "number"),
    column.of("ends", "Ends", ends, {
      title: "When the balance ends at the rates of the last hour and day",
    }),
    column.of("funded", "Credited", (row) => funded?.(row), "number"),
    column.of("keys", "Keys", (row) => count(row.keys), "number"),
    column.of("created", "Created", (row) => <Time at={row.created_at} />),
  ];
}

/** The keys of an account, oldest first, also those that were deleted. */
function Keys({ accountId, from, to }: DayRange & { readonly accountId: string }) {
  const { begin, moves } = usePages();
  const query = { from, to, limit: A_PAGE, ...begin };
  const request = { params: { id: accountId }, query };
  const keys = useCall("GET /api/v1/operator/accounts/{id}/keys", request);
  return (
    <Loaded resource={keys}>
      {(data) => (
        <div class="inner-table">
          <Table
            name="keys"
            caption={`Keys of ${accountId}`}
            columns={keyColumns(data.keys)}
            rows={data.keys}
            keyOf={(row) => row.id}
            empty="No key"
          />
          <Pager of={`keys of ${accountId}`} {...moves(data.next)} />
        </div>
      )}
    </Loaded>
  );
}

const keyColumns = (rows: readonly KeyRow[]): readonly Column<KeyRow>[] => [
  column.of(
    "name",
    "Key",
    (row) => <KeyName {...row} isDeleted={row.revoked_at !== null} />,
    "lead",
  ),
  column.number(
    "spent",
    "Spent",
    (row) => Number(row.spent_usd),
    usdScale(rows.map((row) => row.spent_usd)),
  ),
  column.of("calls", "Calls", (row) => count(row.calls), "number"),
  column.of("created", "Created", (row) => <Time at={row.created_at} />),
];
