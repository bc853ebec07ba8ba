// Programs that manage the account: the management tokens given to them, a new one, and a link that
// hands the account over.

import { useEffect, useState } from "preact/hooks";
import type { AnswerOf } from "../../api/contract-types.ts";
import { useAction, useResource } from "../../api/resource.ts";
import { useApp, useCall, useStore } from "../../app/app.ts";
import { Card, PageHead } from "../../components/card.tsx";
import * as column from "../../components/columns.tsx";
import { ActionNotice, Button, Dialog, Field, Form, useSend } from "../../components/controls.tsx";
import { Snippet } from "../../components/copy-button.tsx";
import { Time, type Word } from "../../components/inline.tsx";
import { type Column, TableCard } from "../../components/table.tsx";
import { Saved } from "./key-dialogs.tsx";

type Connection = AnswerOf<"GET /api/v1/connections">["connections"][number];

const POLL_MS = 10_000;

/** The page. */
export function TokensPage() {
  const { client, session } = useApp();
  const send = useSend();
  const state = useStore(session.state);
  const [isAsking, setAsking] = useState(false);
  const connections = useCall("GET /api/v1/connections", {}, POLL_MS);
  const revoke = (row: Connection): void => {
    const request = client.call("DELETE /api/v1/connections/{id}", { params: { id: row.id } });
    void send(request, "The token was revoked.").then(connections.reload);
  };
  const isReadOnly = state?.read_only === true;
  return (
    <>
      <PageHead
        title="Management tokens"
        lead="A management token sees the account and changes what it may. It never pays, and it makes no calls."
      >
        <Button look="primary" press={() => setAsking(true)}>
          New token
        </Button>
      </PageHead>
      <TableCard
        title="Given to programs"
        lead="The token that came with the account is not listed"
        resource={connections}
        name="tokens"
        caption="Management tokens given to programs"
        columns={isReadOnly ? COLUMNS : [...COLUMNS, revokeColumn(revoke)]}
        rows={connections.data?.connections ?? []}
        keyOf={(row) => row.id}
        textOf={(row) => row.name}
        empty="No program was given a token"
      />
      {isReadOnly ? null : <HandOver />}
      {isAsking ? (
        <NewToken
          close={() => {
            setAsking(false);
            connections.reload();
          }}
        />
      ) : null}
    </>
  );
}

const COLUMNS: readonly Column<Connection>[] = [
  column.text("name", "Program", (row) => row.name, { kind: "lead" }),
  column.of("may", "May", (row) => (row.restrictions.read_only ? "read" : "read and change")),
  column.of("profiles", "Profiles", (row) => row.restrictions.profiles?.join(", ") ?? "all"),
  column.state("state", "State", wordOf, { value: (row) => row.status }),
  column.time("approved", "Approved", (row) => row.approved_at),
  column.of("ends", "Ends", ({ restrictions: { expires_at: at } }) =>
    at === null ? "never" : <Time at={at} />,
  ),
];

function wordOf({ status, agent_id: agent }: Connection): Word {
  if (status !== "approved") return { tone: "idle", word: status };
  return { tone: "good", word: agent === null ? "waits to be fetched" : status };
}

function revokeColumn(revoke: (row: Connection) => void): Column<Connection> {
  const render = (row: Connection) => (
    <Button look="small danger" label={`Revoke ${row.name}`} press={() => revoke(row)}>
      Revoke
    </Button>
  );
  return column.of("actions", "Actions", render, "tight");
}

/** Where a new token stands. */
type Request =
  | { readonly kind: "naming" }
  | { readonly kind: "waiting"; readonly id: string; readonly token: string; readonly url: string }
  | { readonly kind: "approved"; readonly token: string | null }
  | { readonly kind: "ended"; readonly status: string };

interface RequestProps {
  readonly setRequest: (request: Request) => void;
}

/** Asks for a token as a program does: the owner decides on the page of the connection. */
function NewToken({ close }: { readonly close: () => void }) {
  const [request, setRequest] = useState<Request>({ kind: "naming" });
  return (
    <Dialog title="New management token" close={close}>
      {request.kind === "naming" && <Naming setRequest={setRequest} />}
      {request.kind === "waiting" && <Waiting waiting={request} setRequest={setRequest} />}
      {request.kind === "ended" && (
        <p class="notice warn">The request is {request.status}. Close this and ask again.</p>
      )}
      {request.kind === "approved" && (
        <div class="stack">
          <p class="notice warn">
            {request.token === null
              ? "The token was fetched by another program."
              : "The token is shown only now."}
          </p>
          {request.token === null ? null : <Snippet text={request.token} what="the token" />}
          <Saved close={close} />
        </div>
      )}
    </Dialog>
  );
}

function Naming({ setRequest }: RequestProps) {
  const { client } = useApp();
  const [name, setName] = useState("");
  const action = useAction();
  const submit = (): void =>
    action.run(client.call("POST /api/v1/connections", { body: { name } }), (asked) =>
      setRequest({ kind: "waiting", id: asked.id, token: asked.token, url: asked.approval_url }),
    );
  return (
    <Form submit={submit}>
      <Field label="Program that gets it" required maxLength={100} value={name} change={setName} />
      <ActionNotice failure={action.failure} />
      <div class="dialog-foot">
        <Button look="primary">Continue</Button>
      </div>
    </Form>
  );
}

interface WaitingProps extends RequestProps {
  readonly waiting: Extract<Request, { readonly kind: "waiting" }>;
}

/** As often as the service allows. */
const CONNECTION_POLL_MS = 5_200;

/** Polls a connection with its own token until it is decided. */
function Waiting({ waiting, setRequest }: WaitingProps) {
  const { client } = useApp();
  const { id, token, url } = waiting;
  const { data } = useResource(id, CONNECTION_POLL_MS, (signal) => {
    const headers = { authorization: `Bearer ${token}` };
    return client.call("GET /api/v1/connections/{id}", { params: { id } }, { headers, signal });
  });
  useEffect(() => {
    if (data === null || data.status === "pending") return;
    // The first answer that says `approved` holds the token, and no later one.
    const { status, management_token: given } = data;
    setRequest(
      status === "approved" ? { kind: status, token: given ?? null } : { kind: "ended", status },
    );
  }, [data]);
  return (
    <div class="stack" role="status">
      <p>
        Open the approval page, say what the token may do, and approve with a token of the account.
        Then come back here.
      </p>
      <p>
        <a class="button primary" href={url} target="_blank" rel="noopener noreferrer">
          Open the approval page
        </a>
      </p>
      <p class="muted small">This page asks every five seconds whether it was approved.</p>
    </div>
  );
}

/** A link that makes another account the owner of all this. */
function HandOver() {
  const { client } = useApp();
  const [link, setLink] = useState<string | null>(null);
  const action = useAction();
  const make = (): void => {
    setLink(null);
    action.run(client.call("POST /api/v1/accounts/current/claim-link", {}), (made) =>
      setLink(made.claim_url),
    );
  };
  return (
    <Card
      title="Hand over the account"
      lead="A claim link gives the keys and the balance to the person who opens it. It works once, for ten minutes."
    >
      <div class="stack">
        {link === null ? null : <Snippet text={link} what="the claim link" />}
        <ActionNotice failure={action.failure} />
        <p>
          <Button look="danger" press={make}>
            Make a claim link
          </Button>
        </p>
      </div>
    </Card>
  );
}
