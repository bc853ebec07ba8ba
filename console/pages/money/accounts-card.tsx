// Accounts by what they spent, searched and read by pages at the service; one opens to its keys.
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { useResource } from "../../api/resource.ts";
import { useApp, useQuery } from "../../app/app.ts";
import { Card, Choices } from "../../components/card.tsx";
import { Loaded } from "../../components/page-state.tsx";
import { type Column, Table } from "../../components/table.tsx";
import { Time } from "../../components/time.tsx";
import { count } from "../../format/numbers.ts";
import { usd } from "../../format/usd.ts";
import type { AccountPage, AccountRow, KeyPage, KeyRow } from "./money.ts";

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
export function AccountsCard(): JSX.Element {
  const { client } = useApp();
  const [search, setSearch] = useQuery("account");
  const [sort, setSort] = useState<Sort>("spend");
  const [pages, setPages] = useState<readonly string[]>([]);
  const [opened, setOpened] = useState<string | null>(null);
  const after = pages.at(-1) ?? "";
  const query = new URLSearchParams({ hours: String(HOURS), sort });
  if (search !== "") query.set("search", search);
  if (after !== "") query.set("after", after);
  const path = `/api/v1/operator/accounts?${query}`;
  const accounts = useResource(path, POLL_MS, () => client.request<AccountPage>("GET", path));
  return (
    <Card
      title="Accounts"
      lead="Spent in the last 30 days"
      actions={
        <Order
          search={search}
          sort={sort}
          choose={(next) => {
            setPages([]);
            if (next.search !== search) setSearch(next.search);
            setSort(next.sort);
          }}
        />
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
              open={(row) => setOpened(opened === row.id ? null : row.id)}
              detail={(row) => (opened === row.id ? <Keys accountId={row.id} /> : null)}
              empty="No account"
            />
            <Pager
              of="accounts"
              hasBefore={pages.length > 0}
              next={data.next}
              back={() => setPages(pages.slice(0, -1))}
              go={(next) => setPages([...pages, next])}
            />
          </>
        )}
      </Loaded>
    </Card>
  );
}

interface OrderProps {
  readonly search: string;
  readonly sort: Sort;
  readonly choose: (next: { readonly search: string; readonly sort: Sort }) => void;
}

/** What is searched, and what comes first. */
function Order({ search, sort, choose }: OrderProps): JSX.Element {
  return (
    <>
      <input
        class="input narrow"
        type="search"
        aria-label="Search accounts and keys"
        placeholder="Id, key, name"
        maxLength={100}
        value={search}
        onInput={(event) => choose({ search: event.currentTarget.value, sort })}
      />
      <Choices
        label="Order"
        options={SORTS}
        value={sort}
        choose={(next) => choose({ search, sort: next })}
      />
    </>
  );
}

interface PagerProps {
  /** What the pages list. */
  readonly of: string;
  readonly hasBefore: boolean;
  readonly next: string | null;
  readonly back: () => void;
  readonly go: (next: string) => void;
}

/** Moves between pages of the service. */
function Pager({ of, hasBefore, next, back, go }: PagerProps): JSX.Element | null {
  if (!hasBefore && next === null) return null;
  return (
    <nav class="pager" aria-label={`Pages of ${of}`}>
      <button type="button" class="button button-small" disabled={!hasBefore} onClick={back}>
        Back
      </button>
      <button
        type="button"
        class="button button-small"
        disabled={next === null}
        onClick={() => next !== null && go(next)}
      >
        More
      </button>
    </nav>
  );
}

const ACCOUNT_COLUMNS: readonly Column<AccountRow>[] = [
  {
    id: "id",
    label: "Account",
    kind: "lead",
    render: (row) => (
      <>
        <span class="mono small">{row.id}</span>{" "}
        <span class="muted small">
          {row.kind}
          {row.merged_into === null ? "" : `, part of ${row.merged_into}`}
        </span>
      </>
    ),
  },
  { id: "spent", label: "Spent", kind: "number", render: (row) => usd(row.spent_usd) },
  { id: "calls", label: "Calls", kind: "number", render: (row) => count(row.calls) },
  { id: "cu", label: "CU", kind: "number", render: (row) => count(row.cu) },
  { id: "balance", label: "Balance", kind: "number", render: (row) => usd(row.balance_usd) },
  { id: "funded", label: "Credited", kind: "number", render: (row) => usd(row.funded_usd) },
  { id: "keys", label: "Keys", kind: "number", render: (row) => count(row.keys) },
  { id: "created", label: "Created", render: (row) => <Time at={row.created_at} /> },
];

/** The keys of an account, oldest first, also those that were deleted. */
function Keys({ accountId }: { readonly accountId: string }): JSX.Element {
  const { client } = useApp();
  const [pages, setPages] = useState<readonly string[]>([]);
  const query = new URLSearchParams({ hours: String(HOURS), limit: String(KEYS_A_PAGE) });
  const after = pages.at(-1) ?? "";
  if (after !== "") query.set("after", after);
  const path = `/api/v1/operator/accounts/${accountId}/keys?${query}`;
  const keys = useResource(path, 0, () => client.request<KeyPage>("GET", path));
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
          <Pager
            of={`keys of ${accountId}`}
            hasBefore={pages.length > 0}
            next={data.next}
            back={() => setPages(pages.slice(0, -1))}
            go={(next) => setPages([...pages, next])}
          />
        </div>
      )}
    </Loaded>
  );
}

const KEY_COLUMNS: readonly Column<KeyRow>[] = [
  {
    id: "name",
    label: "Key",
    kind: "lead",
    render: (row) => (
      <>
        <bdi>{row.name === "" ? "Unnamed" : row.name}</bdi>{" "}
        <span class="mono muted small">{row.prefix}…</span>
        {row.revoked_at === null ? null : <span class="muted small"> deleted</span>}
      </>
    ),
  },
  { id: "spent", label: "Spent", kind: "number", render: (row) => usd(row.spent_usd) },
  { id: "calls", label: "Calls", kind: "number", render: (row) => count(row.calls) },
  { id: "created", label: "Created", render: (row) => <Time at={row.created_at} /> },
];
