// What operators did lately, and the reload of the configuration. For the operator.

import { useState } from "preact/hooks";
import type { AnswerOf } from "../api/contract-types.ts";
import { useApp, useCall } from "../app/app.ts";
import { DASH } from "../format/text.ts";
import * as column from "./columns.tsx";
import { Button, Dialog, useSend } from "./controls.tsx";
import { Snippet } from "./copy-button.tsx";
import { Time } from "./inline.tsx";
import { type Column, TableCard } from "./table.tsx";

type Action = AnswerOf<"GET /api/v1/operator/actions">["actions"][number];

const POLL_MS = 10_000;

/** The latest actions, `limit` at most. */
export function ActionsCard({ limit }: { readonly limit: number }) {
  const actions = useCall("GET /api/v1/operator/actions", { query: { limit } }, POLL_MS);
  return (
    <TableCard
      title="Operator actions"
      lead={`Who did what, newest first, ${limit} at most.`}
      actions={<ReloadButton done={actions.reload} />}
      resource={actions}
      name="actions"
      columns={ACTION_COLUMNS}
      rows={actions.data?.actions ?? []}
      keyOf={({ id }) => id}
      textOf={({ action, target, actor, detail }) =>
        `${NAMES[action] ?? ""} ${action} ${target} ${actor} ${detail}`
      }
      empty="No operator has done anything yet"
    />
  );
}

function ReloadButton({ done }: { readonly done: () => void }) {
  const { client, toasts } = useApp();
  const send = useSend();
  const [problem, setProblem] = useState<string | null>(null);
  const reload = (): Promise<void> =>
    send(client.call("POST /api/v1/operator/reload", {}), (body) => {
      if (body.reloaded) toasts.show("good", reloadedText(body));
      else setProblem(body.problem ?? "The configuration was not reloaded.");
    }).then(done);
  return (
    <>
      <Button look="small" press={reload}>
        Reload configuration
      </Button>
      {problem === null ? null : (
        <Dialog title="The configuration stays as it was" close={() => setProblem(null)}>
          <Snippet text={problem} what="the problem" />
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
  cordonEverywhere: "Cordoned everywhere",
  uncordonEverywhere: "Uncordoned everywhere",
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

/** What a line says. */
export const ACTION_COLUMNS: readonly Column<Action>[] = [
  column.of(
    "action",
    "Action",
    ({ action, target }) => `${NAMES[action] ?? action} ${target ?? ""}`,
    {
      kind: "lead",
      note: ({ detail }) => detail,
    },
  ),
  column.state("outcome", "Outcome", ({ outcome }) =>
    outcome === "done" ? { tone: "good", word: "Done" } : { tone: "warn", word: "Refused" },
  ),
  column.of("actor", "By", ({ actor }) => actor, { note: ({ address }) => address }),
  column.of("node", "Node", ({ node }) => node ?? DASH),
  column.of("at", "When", ({ at }) => <Time at={at} />, "number"),
];
