// Programs that manage the account: the management tokens given to them, a new one, and a link that
// hands the account over.
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { AnswerOf } from "../../api/contract-types.ts";
import { useResource } from "../../api/resource.ts";
import { useApp, useStore } from "../../app/app.ts";
import { Badge } from "../../components/badge.tsx";
import { Card, PageHead } from "../../components/card.tsx";
import { Snippet } from "../../components/copy-button.tsx";
import { Dialog } from "../../components/dialog.tsx";
import { failureText, Loaded } from "../../components/page-state.tsx";
import { type Column, Table } from "../../components/table.tsx";
import { Time } from "../../components/time.tsx";
import { pollConnection } from "./connection-poll.ts";

type Connection = AnswerOf<"GET /api/v1/connections">["connections"][number];

const POLL_MS = 10_000;

/** The page. */
export function TokensPage(): JSX.Element {
  const { client, session, toasts } = useApp();
  const state = useStore(session.state);
  const [isAsking, setAsking] = useState(false);
  const connections = useResource("connections", POLL_MS, (signal) =>
    client.call("GET /api/v1/connections", {}, signal),
  );
  const revoke = (row: Connection): void => {
    void client
      .call("DELETE /api/v1/connections/{id}", { params: { id: row.id } })
      .then((result) => {
        if (result.kind === "ok") toasts.show("good", "The token was revoked.");
        else toasts.show("bad", failureText(result.failure));
        connections.reload();
      });
  };
  const isReadOnly = state?.read_only === true;
  return (
    <>
      <PageHead
        title="Management tokens"
        lead="A management token sees the account and changes what it may. It never pays, and it makes no calls."
      >
        <button type="button" class="button button-primary" onClick={() => setAsking(true)}>
          New token
        </button>
      </PageHead>
      <Card
        title="Given to programs"
        lead="The token that came with the account is not listed"
        flush
      >
        <Loaded resource={connections}>
          {({ connections: rows }) => (
            <Table
              name="tokens"
              caption="Management tokens given to programs"
              columns={isReadOnly ? COLUMNS : [...COLUMNS, revokeColumn(revoke)]}
              rows={rows}
              keyOf={(row) => row.id}
              textOf={(row) => row.name}
              empty="No program was given a token"
            />
          )}
        </Loaded>
      </Card>
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
  {
    id: "name",
    label: "Program",
    kind: "lead",
    value: (row) => row.name,
    render: (row) => <bdi>{row.name}</bdi>,
  },
  {
    id: "may",
    label: "May",
    render: ({ restrictions }) => (restrictions.read_only ? "read" : "read and change"),
  },
  {
    id: "profiles",
    label: "Profiles",
    render: ({ restrictions }) => restrictions.profiles?.join(", ") ?? "all",
  },
  {
    id: "state",
    label: "State",
    value: (row) => row.status,
    render: ({ status, agent_id }) => (
      <Badge tone={status === "approved" ? "good" : "idle"}>
        {status === "approved" && agent_id === null ? "waits to be fetched" : status}
      </Badge>
    ),
  },
  {
    id: "approved",
    label: "Approved",
    value: (row) => Date.parse(row.approved_at ?? ""),
    render: (row) => <Time at={row.approved_at} />,
  },
  {
    id: "ends",
    label: "Ends",
    render: ({ restrictions }) =>
      restrictions.expires_at === null ? "never" : <Time at={restrictions.expires_at} />,
  },
];

function revokeColumn(revoke: (row: Connection) => void): Column<Connection> {
  return {
    id: "actions",
    label: "Actions",
    kind: "tight",
    render: (row) => (
      <button
        type="button"
        class="button button-small button-danger"
        aria-label={`Revoke ${row.name}`}
        onClick={() => revoke(row)}
      >
        Revoke
      </button>
    ),
  };
}

/** Where a new token stands. */
type Request =
  | { readonly kind: "naming"; readonly problem: string | null }
  | { readonly kind: "waiting"; readonly id: string; readonly token: string; readonly url: string }
  | { readonly kind: "approved"; readonly token: string | null }
  | { readonly kind: "ended"; readonly status: string };

/** Asks for a token as a program does: the owner decides on the page of the connection. */
function NewToken({ close }: { readonly close: () => void }): JSX.Element {
  const [request, setRequest] = useState<Request>({ kind: "naming", problem: null });
  return (
    <Dialog title="New management token" close={close}>
      <RequestView {...{ request, setRequest, close }} />
    </Dialog>
  );
}

interface RequestProps {
  readonly request: Request;
  readonly setRequest: (request: Request) => void;
  readonly close: () => void;
}

function RequestView({ request, setRequest, close }: RequestProps): JSX.Element {
  switch (request.kind) {
    case "naming":
      return <Naming problem={request.problem} setRequest={setRequest} />;
    case "waiting":
      return <Waiting waiting={request} setRequest={setRequest} />;
    case "ended":
      return <p class="notice warn">The request is {request.status}. Close this and ask again.</p>;
    case "approved":
      return (
        <div class="stack">
          <p class="notice warn">
            {request.token === null
              ? "The token was fetched by another program."
              : "The token is shown only now."}
          </p>
          {request.token === null ? null : <Snippet text={request.token} what="the token" />}
          <div class="dialog-foot">
            <button type="button" class="button button-primary" onClick={close}>
              I have saved it
            </button>
          </div>
        </div>
      );
  }
}

interface NamingProps {
  readonly problem: string | null;
  readonly setRequest: (request: Request) => void;
}

function Naming({ problem, setRequest }: NamingProps): JSX.Element {
  const { client } = useApp();
  const [name, setName] = useState("");
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    void client.call("POST /api/v1/connections", { body: { name } }).then((result) => {
      if (result.kind === "failed")
        return setRequest({ kind: "naming", problem: failureText(result.failure) });
      const { id, token, approval_url: url } = result.body;
      setRequest({ kind: "waiting", id, token, url });
    });
  };
  return (
    <form class="stack" onSubmit={submit}>
      <div class="field">
        <label for="token-name">Program that gets it</label>
        <input
          id="token-name"
          class="input"
          required
          maxLength={100}
          value={name}
          onInput={(event) => setName(event.currentTarget.value)}
        />
      </div>
      {problem === null ? null : (
        <p class="notice bad" role="alert">
          {problem}
        </p>
      )}
      <div class="dialog-foot">
        <button type="submit" class="button button-primary">
          Continue
        </button>
      </div>
    </form>
  );
}

interface WaitingProps {
  readonly waiting: Extract<Request, { readonly kind: "waiting" }>;
  readonly setRequest: (request: Request) => void;
}

function Waiting({ waiting, setRequest }: WaitingProps): JSX.Element {
  const { id, token, url } = waiting;
  useEffect(
    () =>
      pollConnection({ id, token }, (polled) => {
        if (polled.status === "pending") return;
        if (polled.status === "approved")
          setRequest({ kind: "approved", token: polled.managementToken });
        else setRequest({ kind: "ended", status: polled.status });
      }),
    [id],
  );
  return (
    <div class="stack" role="status">
      <p>
        Open the approval page, say what the token may do, and approve with a token of the account.
        Then come back here.
      </p>
      <p>
        <a class="button button-primary" href={url} target="_blank" rel="noopener noreferrer">
          Open the approval page
        </a>
      </p>
      <p class="muted small">This page asks every five seconds whether it was approved.</p>
    </div>
  );
}

/** A link that makes another account the owner of all this. */
function HandOver(): JSX.Element {
  const { client } = useApp();
  const [link, setLink] = useState<string | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const make = (): void => {
    void client.call("POST /api/v1/accounts/current/claim-link").then((result) => {
      setLink(result.kind === "ok" ? result.body.claim_url : null);
      setProblem(result.kind === "ok" ? null : failureText(result.failure));
    });
  };
  return (
    <Card
      title="Hand over the account"
      lead="A claim link gives the keys and the balance to the person who opens it. It works once, for ten minutes."
    >
      <div class="stack">
        {link === null ? null : <Snippet text={link} what="the claim link" />}
        {problem === null ? null : (
          <p class="notice bad" role="alert">
            {problem}
          </p>
        )}
        <p>
          <button type="button" class="button button-danger" onClick={make}>
            Make a claim link
          </button>
        </p>
      </div>
    </Card>
  );
}
