// The keys of the account: list, create, rename, rotate, delete. A secret is shown once and is gone
// with its dialog.

import { useEffect, useMemo, useState } from "preact/hooks";
import type { Client, Result } from "../../api/client.ts";
import { useResource } from "../../api/resource.ts";
import { useApp, useCall, useStore } from "../../app/app.ts";
import { PageHead } from "../../components/card.tsx";
import * as column from "../../components/columns.tsx";
import { Button } from "../../components/controls.tsx";
import { Time } from "../../components/inline.tsx";
import { type Column, TableCard } from "../../components/table.tsx";
import { count, plural } from "../../format/text.ts";
import { type Key, type KeyDialog, OpenDialog } from "./key-dialogs.tsx";

const POLL_MS = 15_000;
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
  const isReadOnly = state?.read_only === true;
  const columns = useMemo(
    () => (isReadOnly ? COLUMNS : [...COLUMNS, actionsColumn(setDialog)]),
    [isReadOnly],
  );
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
  column.text("name", "Name", (row) => row.name || "Unnamed", { kind: "lead" }),
  column.of("prefix", "Begins with", (row) => <code>{row.key_prefix}…</code>),
  column.text("profile", "Profile", (row) => row.profile, { render: profilesOf }),
  column.time("created", "Created", (row) => row.created_at),
  column.of("previous", "Old secret until", (row) => <Time at={row.previous_valid_until} />, {
    title: "Until when the secret before the last rotation works",
  }),
];

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
