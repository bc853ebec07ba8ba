// What operators did lately, and the reload of the configuration. For the operator.
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { AnswerOf } from "../api/contract-types.ts";
import { useResource } from "../api/resource.ts";
import { useApp, useStore } from "../app/app.ts";
import { DASH } from "../format/numbers.ts";
import { Badge } from "./badge.tsx";
import { Card } from "./card.tsx";
import { Dialog } from "./dialog.tsx";
import { failureText, Loaded } from "./page-state.tsx";
import { type Column, Table } from "./table.tsx";
import { Time } from "./time.tsx";

type Action = AnswerOf<"GET /api/v1/operator/actions">["actions"][number];

const POLL_MS = 10_000;

interface ActionsProps {
  /** The most that are shown. */
  readonly limit: number;
}

/** The latest actions; nothing for anybody but the operator. */
export function ActionsCard(props: ActionsProps): JSX.Element | null {
  const { session } = useApp();
  const role = useStore(session.state)?.role;
  return role === "operator" ? <Actions {...props} /> : null;
}

function Actions({ limit }: ActionsProps): JSX.Element {
  const { client } = useApp();
  const actions = useResource(`actions ${limit}`, POLL_MS, (signal) =>
    client.call("GET /api/v1/operator/actions", { query: { limit } }, signal),
  );
  return (
    <Card
      title="Actions of operators"
      lead={`Who did what, newest first, ${limit} at most.`}
      actions={<ReloadButton done={actions.reload} />}
      flush
    >
      <Loaded resource={actions}>
        {(data) => (
          <Table
            name="actions"
            caption="Actions of operators"
            columns={COLUMNS}
            rows={data.actions}
            keyOf={({ id }) => id}
            textOf={({ action, target, actor, detail }) =>
              `${NAMES[action] ?? ""} ${action} ${target} ${actor} ${detail}`
            }
            empty="No operator has done anything yet"
          />
        )}
      </Loaded>
    </Card>
  );
}

function ReloadButton({ done }: { readonly done: () => void }): JSX.Element {
  const { client, toasts } = useApp();
  const [problem, setProblem] = useState<string | null>(null);
  const reload = async (): Promise<void> => {
    const result = await client.call("POST /api/v1/operator/reload");
    done();
    if (result.kind === "failed") return toasts.show("bad", failureText(result.failure));
    if (result.body.reloaded) return toasts.show("good", reloadedText(result.body));
    setProblem(result.body.problem ?? "The configuration was not reloaded.");
  };
  return (
    <>
      <button type="button" class="button button-small" onClick={() => void reload()}>
        Reload configuration
      </button>
      {problem === null ? null : (
        <Dialog title="The configuration stays as it was" close={() => setProblem(null)} wide>
          <pre class="problem-text">{problem}</pre>
        </Dialog>
      )}
    </>
  );
}

/** Each node has a file of its own: the list shows what came of it there. */
function reloadedText({
  node,
  revision,
  others_asked: areOthersAsked,
}: AnswerOf<"POST /api/v1/operator/reload">): string {
  const where = node === null ? "" : ` on node ${node}`;
  const done = `The configuration was reloaded${where}, revision ${revision ?? DASH}.`;
  return areOthersAsked ? `${done} The other nodes were asked: each writes a line here.` : done;
}

const NAMES: Readonly<Record<string, string>> = {
  cordonProvider: "Cordoned",
  uncordonProvider: "Uncordoned",
  endProviderWait: "Ended the wait of",
  testProvider: "Tested",
  reloadConfiguration: "Reloaded the configuration",
  compareProviders: "Compared providers",
  creditAccount: "Credited",
  grantCustomAccess: "Granted Custom access to",
  signIn: "Signed in",
  signOut: "Signed out",
};

const COLUMNS: readonly Column<Action>[] = [
  {
    id: "action",
    label: "Action",
    kind: "lead",
    render: ({ action, target, detail }) => (
      <span class="wrap-anywhere">
        {NAMES[action] ?? action} {target ?? ""}
        {detail === null ? null : <small>{detail}</small>}
      </span>
    ),
  },
  {
    id: "outcome",
    label: "Outcome",
    render: ({ outcome }) => (
      <Badge tone={outcome === "done" ? "good" : "warn"}>
        {outcome === "done" ? "Done" : "Refused"}
      </Badge>
    ),
  },
  {
    id: "actor",
    label: "By",
    render: ({ actor, address }) => (
      <>
        {actor}
        <small>{address}</small>
      </>
    ),
  },
  { id: "node", label: "Node", render: ({ node }) => node ?? DASH },
  { id: "at", label: "When", kind: "number", render: ({ at }) => <Time at={at} /> },
];
