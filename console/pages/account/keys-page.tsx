// The keys of the account: list, create, rename, rotate, delete. A secret is shown once and is gone
// with its dialog.
import type { JSX } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import type { Client, Result } from "../../api/client.ts";
import type { AnswerOf } from "../../api/contract-types.ts";
import { useResource } from "../../api/resource.ts";
import { useApp, useStore } from "../../app/app.ts";
import { Card, PageHead } from "../../components/card.tsx";
import { Loaded } from "../../components/page-state.tsx";
import { type Column, Table } from "../../components/table.tsx";
import { Time } from "../../components/time.tsx";
import { count, plural } from "../../format/numbers.ts";
import { DeleteKey, EditKey, RotateKey } from "./key-dialogs.tsx";
import { SecretDialog, type ShownSecret } from "./secret-dialog.tsx";

/** A key as the API lists it. */
export type Key = AnswerOf<"GET /api/v1/keys">["keys"][number];

/** Which dialog is open. */
export type KeyDialog =
  | { readonly kind: "none" }
  | { readonly kind: "create" }
  | { readonly kind: "edit" | "rotate" | "delete"; readonly key: Key }
  | { readonly kind: "secret"; readonly secret: ShownSecret };

const POLL_MS = 15_000;
/** Of 1,000 keys each. */
const MAX_PAGES = 10;
const MAX_POLLED = 1_000;

/** The page. */
export function KeysPage(): JSX.Element {
  const { client, session } = useApp();
  const state = useStore(session.state);
  const [dialog, setDialog] = useState<KeyDialog>({ kind: "none" });
  const [pollMs, setPollMs] = useState(POLL_MS);
  const keys = useResource("keys", pollMs, () => allKeys(client));
  // Thousands of keys are read when something changed, not every few seconds.
  useEffect(() => setPollMs((keys.data?.rows.length ?? 0) > MAX_POLLED ? 0 : POLL_MS), [keys.data]);
  const account = useResource("account", 0, (signal) =>
    client.call("GET /api/v1/accounts/current", {}, signal),
  );
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
        <button
          type="button"
          class="button button-primary"
          disabled={isReadOnly}
          title={isReadOnly ? "You signed in with a token that may only read" : undefined}
          onClick={() => setDialog({ kind: "create" })}
        >
          Create a key
        </button>
      </PageHead>
      <Card flush>
        <Loaded resource={keys}>
          {({ rows, isCut }) => (
            <>
              {isCut ? (
                <p class="notice warn">
                  The first {count(rows.length)} keys are shown. The API lists them all.
                </p>
              ) : null}
              <Table
                name="keys"
                caption="Keys of the account"
                columns={columns}
                rows={rows}
                keyOf={(row) => row.id}
                textOf={(row) => `${row.name} ${row.key_prefix} ${row.profile}`}
                empty="The account has no key that works"
              />
            </>
          )}
        </Loaded>
      </Card>
      <OpenDialog {...{ dialog, changed, close }} profiles={account.data?.profiles ?? []} />
    </>
  );
}

interface OpenDialogProps {
  readonly dialog: KeyDialog;
  /** A key is another than before; what is shown next. */
  readonly changed: (next: KeyDialog) => void;
  readonly close: () => void;
  readonly profiles: readonly string[];
}

function OpenDialog(props: OpenDialogProps): JSX.Element | null {
  const { dialog, changed, close, profiles } = props;
  switch (dialog.kind) {
    case "none":
      return null;
    case "create":
      return <EditKey keyShown={null} {...{ profiles, changed, close }} />;
    case "edit":
      return <EditKey keyShown={dialog.key} {...{ profiles, changed, close }} />;
    case "rotate":
      return <RotateKey keyShown={dialog.key} {...{ changed, close }} />;
    case "delete":
      return <DeleteKey keyShown={dialog.key} {...{ changed, close }} />;
    case "secret":
      return <SecretDialog secret={dialog.secret} close={close} />;
  }
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
  return { kind: "ok", status: 200, body: { rows: keys, isCut: after !== undefined } };
}

const COLUMNS: readonly Column<Key>[] = [
  {
    id: "name",
    label: "Name",
    kind: "lead",
    value: (row) => row.name,
    render: (row) => <bdi>{row.name === "" ? "Unnamed" : row.name}</bdi>,
  },
  {
    id: "prefix",
    label: "Begins with",
    render: (row) => <span class="mono">{row.key_prefix}…</span>,
  },
  { id: "profile", label: "Profile", value: (row) => row.profile, render: profilesOf },
  {
    id: "created",
    label: "Created",
    value: (row) => Date.parse(row.created_at),
    render: (row) => <Time at={row.created_at} />,
  },
  {
    id: "previous",
    label: "Old secret",
    title: "Until when the secret before the last rotation works",
    render: (row) =>
      row.previous_valid_until === null ? (
        "–"
      ) : (
        <>
          ends <Time at={row.previous_valid_until} />
        </>
      ),
  },
];

function profilesOf({ profile, allowed_profiles }: Key): JSX.Element {
  return (
    <span
      class="tight"
      title={allowed_profiles === null ? "Every profile" : allowed_profiles.join(", ")}
    >
      {profile}
      <span class="muted small">
        {allowed_profiles === null
          ? " of all"
          : ` of ${plural(allowed_profiles.length, "profile")}`}
      </span>
    </span>
  );
}

function actionsColumn(open: (dialog: KeyDialog) => void): Column<Key> {
  const button = (key: Key, kind: "edit" | "rotate" | "delete", word: string): JSX.Element => (
    <button
      type="button"
      class={kind === "delete" ? "button button-small button-danger" : "button button-small"}
      aria-label={`${word} ${key.name === "" ? key.key_prefix : key.name}`}
      onClick={() => open({ kind, key })}
    >
      {word}
    </button>
  );
  return {
    id: "actions",
    label: "Actions",
    kind: "tight",
    render: (key) => (
      <span class="page-actions">
        {button(key, "edit", "Change")}
        {button(key, "rotate", "Rotate")}
        {button(key, "delete", "Delete")}
      </span>
    ),
  };
}
