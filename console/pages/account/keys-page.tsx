// The keys of the account: list, create, rename, rotate, delete. A secret is shown once and is gone
// with its dialog.

import { useEffect, useMemo, useState } from "preact/hooks";
import type { Client, Result } from "../../api/client.ts";
import type { AnswerOf } from "../../api/contract-types.ts";
import { useResource } from "../../api/resource.ts";
import { useApp, useCall, useStore } from "../../app/app.ts";
import { PageHead } from "../../components/card.tsx";
import * as column from "../../components/columns.tsx";
import { Button } from "../../components/controls.tsx";
import { Time } from "../../components/inline.tsx";
import { type Column, TableCard } from "../../components/table.tsx";
import { usdScale } from "../../format/money.ts";
import { count, plural } from "../../format/text.ts";
import { type Key, type KeyDialog, OpenDialog } from "./key-dialogs.tsx";

const POLL_MS = 15_000;
const USAGE_POLL_MS = 30_000;
/** As far back as usage tells when a key was last used. */
const USED_DAYS = 90;
const PAGE_ROWS = 20;
const HOUR_MS = 3_600_000;
/** Of 1,000 keys each. */
const MAX_PAGES = 10;
const MAX_POLLED = 1_000;

/** The page. */
export function KeysPage() {
  const { client, session } = useApp();
  const state = useStore(session.state);
  const [dialog, setDialog] = useState<KeyDialog>({ kind: "none" });
  const [pollMs, setPollMs] = useState(POLL_MS);
  const keys = useResource("keys", pollMs, () => allKeys(client));
  // Thousands of keys are read when something changed, not every few seconds.
  useEffect(() => setPollMs((keys.data?.rows.length ?? 0) > MAX_POLLED ? 0 : POLL_MS), [keys.data]);
  const account = useCall("GET /api/v1/accounts/current", {});
  const today = useCall("GET /api/v1/usage", { query: { days: 1 } }, USAGE_POLL_MS);
  const lately = useCall("GET /api/v1/usage", { query: { days: USED_DAYS } }, USAGE_POLL_MS);
  const isReadOnly = state?.read_only === true;
  const columns = useMemo(() => {
    const shown = [...COLUMNS, ...usedColumns(today.data, lately.data)];
    return isReadOnly ? shown : [...shown, actionsColumn(setDialog)];
  }, [isReadOnly, today.data, lately.data]);
  const close = (): void => setDialog({ kind: "none" });
  const changed = (next: KeyDialog): void => {
    setDialog(next);
    keys.reload();
  };
  return (
    <>
      <PageHead
        title="Keys"
        lead="A key is what programs call with. All keys spend the one balance of the account."
      >
        <Button
          look="primary"
          disabled={isReadOnly}
          title={isReadOnly ? "You signed in with a token that may only read" : undefined}
          press={() => setDialog({ kind: "create" })}
        >
          Create a key
        </Button>
      </PageHead>
      {keys.data?.isCut === true ? (
        <p class="notice warn">
          The first {count(keys.data.rows.length)} keys are shown. The API lists them all.
        </p>
      ) : null}
      <TableCard
        resource={keys}
        name="keys"
        caption="Keys of the account"
        columns={columns}
        rows={keys.data?.rows ?? []}
        keyOf={(row) => row.id}
        textOf={(row) => `${row.name} ${row.key_prefix} ${row.profile}`}
        pageRows={PAGE_ROWS}
        empty="The account has no key that works"
      />
      <OpenDialog {...{ dialog, changed, close }} profiles={account.data?.profiles ?? []} />
    </>
  );
}

interface KeyList {
  readonly rows: readonly Key[];
  /** True = there are more. */
  readonly isCut: boolean;
}

/** The keys of the account: it has 100 at most by default, and up to 100,000. */
async function allKeys(client: Client): Promise<Result<KeyList>> {
  const keys: Key[] = [];
  let after: string | undefined;
  for (let page = 0; page < MAX_PAGES; page++) {
    const result = await client.call("GET /api/v1/keys", {
      query: after === undefined ? {} : { after },
    });
    if (result.kind === "failed") return result;
    keys.push(...result.body.keys);
    after = result.body.next ?? undefined;
    if (after === undefined) break;
  }
  return { kind: "ok", body: { rows: keys, isCut: after !== undefined } };
}

const COLUMNS: readonly Column<Key>[] = [
  column.text("name", "Name", (row) => row.name || "Unnamed", {
    kind: "lead",
    note: ({ key_prefix: prefix, previous_valid_until: until }) => (
      <>
        <code>{prefix}…</code>
        {until === null ? null : (
          <>
            {" "}
            old secret works until <Time at={until} />
          </>
        )}
      </>
    ),
  }),
  column.text("profile", "Profile", (row) => row.profile, { render: profilesOf }),
  column.time("created", "Created", (row) => row.created_at),
];

type Usage = AnswerOf<"GET /api/v1/usage">;

/** What usage tells of keys; null = it was not read. */
function usedColumns(today: Usage | null, lately: Usage | null): readonly Column<Key>[] {
  const todayOf = new Map(today?.by_key.map((row) => [row.key_id, row]));
  const lastOf = new Map(lately?.by_key.map((row) => [row.key_id, row.last_used]));
  const unused = today === null ? null : 0;
  const usd = usdScale(today?.by_key.map((row) => row.usd) ?? []);
  return [
    column.time("used", "Last used", ({ id }) => lastOf.get(id), {
      render: ({ id }) => {
        const at = lastOf.get(id);
        // The hours of usage say no more.
        const isNow = at !== undefined && Date.parse(lately?.to ?? "") - Date.parse(at) < HOUR_MS;
        return isNow ? "in this hour" : <Time at={at} />;
      },
      title: `Beginning of the hour in which it was last used; a dash = not in ${USED_DAYS} days`,
    }),
    column.number("calls", "Calls today", ({ id }) => todayOf.get(id)?.calls ?? unused),
    column.number(
      "spent",
      "Spent today",
      ({ id }) => (todayOf.has(id) ? Number(todayOf.get(id)?.usd) : unused),
      usd,
    ),
  ];
}

function profilesOf({ profile, allowed_profiles: allowed }: Key) {
  return (
    <span class="tight" title={allowed === null ? "Every profile" : allowed.join(", ")}>
      {profile}
      <span class="muted small">
        {allowed === null ? " of all" : ` of ${plural(allowed.length, "profile")}`}
      </span>
    </span>
  );
}

const ACTIONS = [
  { kind: "edit", word: "Change", look: "small" },
  { kind: "rotate", word: "Rotate", look: "small" },
  { kind: "delete", word: "Delete", look: "small danger" },
] as const;

function actionsColumn(open: (dialog: KeyDialog) => void): Column<Key> {
  const render = (key: Key) => (
    <span class="page-actions">
      {ACTIONS.map(({ kind, word, look }) => (
        <Button
          key={kind}
          look={look}
          label={`${word} ${key.name || key.key_prefix}`}
          press={() => open({ kind, key })}
        >
          {word}
        </Button>
      ))}
    </span>
  );
  return column.of("actions", "Actions", render, "tight");
}
