// The revisions of a Custom profile: what differs from the present one, and the way back.

import type { AnswerOf } from "../../api/contract-types.ts";
import { useResource } from "../../api/resource.ts";
import { useApp, useCall } from "../../app/app.ts";
import * as column from "../../components/columns.tsx";
import { Button, useSend } from "../../components/controls.tsx";
import { DiffView } from "../../components/diff-view.tsx";
import { Time } from "../../components/inline.tsx";
import { Loaded } from "../../components/page-state.tsx";
import { type Column, TableCard } from "../../components/table.tsx";
import { draftOf } from "./profile-draft.ts";

type Entry = AnswerOf<"GET /api/v1/profiles/{slug}/revisions">["revisions"][number];

/** The profile as it is saved. */
type Saved = AnswerOf<"GET /api/v1/profiles/{slug}">;

interface RevisionsProps {
  readonly saved: Saved;
  /** Puts a document into the editor. */
  readonly restore: (text: string, revision: number) => void;
}

/** The card; opening a row shows what differs. */
export function RevisionsCard({ saved, restore }: RevisionsProps) {
  const { client } = useApp();
  const send = useSend();
  const { slug } = saved;
  const list = useResource(`revisions ${slug} ${saved.revision}`, 0, (signal) =>
    client.call("GET /api/v1/profiles/{slug}/revisions", { params: { slug } }, { signal }),
  );
  const put = (revision: number): Promise<void> =>
    send(client.call(REVISION, requestOf(slug, revision)), (body) =>
      restore(draftOf(body), revision),
    );
  return (
    <TableCard
      title="Revisions"
      lead="The last 20. Their addresses and header values are not kept."
      resource={list}
      name="revisions"
      caption="Revisions of the profile"
      columns={columnsOf(saved, put)}
      rows={list.data?.revisions ?? []}
      keyOf={(row) => String(row.revision)}
      expand={({ revision }) =>
        revision === saved.revision ? null : <Difference {...{ saved, revision }} />
      }
    />
  );
}

const REVISION = "GET /api/v1/profiles/{slug}/revisions/{revision}";

function requestOf(slug: string, revision: number) {
  return { params: { slug, revision: String(revision) } };
}

function Difference(props: { readonly saved: Saved; readonly revision: number }) {
  const { saved, revision } = props;
  const earlier = useCall(REVISION, requestOf(saved.slug, revision));
  return (
    <Loaded resource={earlier}>
      {(shown) => (
        <DiffView
          before={draftOf(shown)}
          after={draftOf(saved)}
          label={`What changed from revision ${revision} to ${saved.revision}`}
          same="Nothing differs in what is shown; addresses and header values are hidden."
        />
      )}
    </Loaded>
  );
}

function columnsOf(
  saved: Saved,
  put: (revision: number) => Promise<void>,
): readonly Column<Entry>[] {
  const actions = ({ revision }: Entry) =>
    revision === saved.revision ? (
      <span class="muted">serves now</span>
    ) : (
      <Button look="small" label={`Restore revision ${revision}`} press={() => put(revision)}>
        Restore
      </Button>
    );
  return [
    column.text("revision", "Revision", (row) => `Revision ${row.revision}`, { kind: "lead" }),
    column.of("saved", "Saved", (row) => <Time at={row.saved_at} />),
    column.of("actions", "Actions", actions, "tight"),
  ];
}
