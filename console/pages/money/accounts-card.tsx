// Accounts by what they spent, searched and read by pages at the service; one opens to its keys.

import { useState } from "preact/hooks";
import type { AnswerOf } from "../../api/contract-types.ts";
import { useCall, useQuery } from "../../app/app.ts";
import { Card } from "../../components/card.tsx";
import * as column from "../../components/columns.tsx";
import { Choices } from "../../components/controls.tsx";
import { KeyName, Time } from "../../components/inline.tsx";
import { Loaded } from "../../components/page-state.tsx";
import { type Column, Pager, Table } from "../../components/table.tsx";
import { count, textList, usd } from "../../format/text.ts";

type AccountRow = AnswerOf<"GET /api/v1/operator/accounts">["accounts"][number];
type KeyRow = AnswerOf<"GET /api/v1/operator/accounts/{id}/keys">["keys"][number];

const POLL_MS = 30_000;
const HOURS = 720;
const KEYS_A_PAGE = 100;
const SORTS = [
  { value: "spend", label: "Spend" },
  { value: "balance", label: "Balance" },
  { value: "created", label: "Newest" },
] as const;
type Sort = (typeof SORTS)[number]["value"];

/** The card. */
export function AccountsCard() {
  const [search, setSearch] = useQuery("account");
  const [sort, setSort] = useState<Sort>("spend");
  const { begin, toFirst, moves } = usePages();
  const query = { hours: HOURS, sort, ...begin, ...(search === "" ? {} : { search }) };
  const accounts = useCall("GET /api/v1/operator/accounts", { query }, POLL_MS);
  return (
    <Card
      title="Accounts"
      lead="Spent in the last 30 days"
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
              columns={ACCOUNT_COLUMNS}
              rows={data.accounts}
              keyOf={(row) => row.id}
              expand={(row) => <Keys accountId={row.id} />}
              empty="No account"
            />
            <Pager of="accounts" {...moves(data.next)} />
          </>
        )}
      </Loaded>
    </Card>
  );
}

/** The marks of the pages that were opened, and how to move between pages of the service. */
function usePages() {
  const [pages, setPages] = useState<readonly string[]>([]);
  const after = pages.at(-1);
  return {
    /** Where the page begins; nothing for the first one. */
    begin: after === undefined ? {} : { after },
    toFirst: () => setPages([]),
    /** `next` = the mark of the next page; null = this is the last one. */
    moves: (next: string | null) => ({
      back: pages.length === 0 ? null : () => setPages(pages.slice(0, -1)),
      next: next === null ? null : () => setPages([...pages, next]),
    }),
  };
}

const ACCOUNT_COLUMNS: readonly Column<AccountRow>[] = [
  column.of("id", "Account", (row) => <code>{row.id}</code>, {
    kind: "lead",
    note: ({ kind, merged_into: other }) => textList([kind, other && `part of ${other}`]),
  }),
  column.of("spent", "Spent", (row) => usd(row.spent_usd), "number"),
  column.of("calls", "Calls", (row) => count(row.calls), "number"),
  column.of("cu", "CU", (row) => count(row.cu), "number"),
  column.of("balance", "Balance", (row) => usd(row.balance_usd), "number"),
  column.of("funded", "Credited", (row) => usd(row.funded_usd), "number"),
  column.of("keys", "Keys", (row) => count(row.keys), "number"),
  column.of("created", "Created", (row) => <Time at={row.created_at} />),
];

/** The keys of an account, oldest first, also those that were deleted. */
function Keys({ accountId }: { readonly accountId: string }) {
  const { begin, moves } = usePages();
  const query = { hours: HOURS, limit: KEYS_A_PAGE, ...begin };
  const request = { params: { id: accountId }, query };
  const keys = useCall("GET /api/v1/operator/accounts/{id}/keys", request);
  return (
    <Loaded resource={keys}>
      {(data) => (
        <div class="inner-table">
          <Table
            name="keys"
            caption={`Keys of ${accountId}`}
            columns={KEY_COLUMNS}
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

const KEY_COLUMNS: readonly Column<KeyRow>[] = [
  column.of(
    "name",
    "Key",
    (row) => <KeyName {...row} isDeleted={row.revoked_at !== null} />,
    "lead",
  ),
  column.of("spent", "Spent", (row) => usd(row.spent_usd), "number"),
  column.of("calls", "Calls", (row) => count(row.calls), "number"),
  column.of("created", "Created", (row) => <Time at={row.created_at} />),
];
