// The nodes that serve together, as the one that answers knows them, and what operators did.
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { AnswerOf } from "../../api/contract-types.ts";
import { useResource } from "../../api/resource.ts";
import { useApp, useStore } from "../../app/app.ts";
import { Badge } from "../../components/badge.tsx";
import { Card, Figure, Figures, PageHead } from "../../components/card.tsx";
import { failureText, Loaded } from "../../components/page-state.tsx";
import { type Column, Table } from "../../components/table.tsx";
import { Time } from "../../components/time.tsx";
import { duration } from "../../format/durations.ts";
import { count } from "../../format/numbers.ts";
import type { Tone } from "../../format/tone.ts";

type Health = AnswerOf<"GET /api/health">;
type Action = AnswerOf<"GET /api/v1/operator/actions">["actions"][number];

const POLL_MS = 5_000;
const MS_PER_S = 1_000;

/** The page. */
export function ClusterPage(): JSX.Element {
  const { client, session } = useApp();
  const state = useStore(session.state);
  const health = useResource("health", POLL_MS, (signal) =>
    client.call("GET /api/health", {}, signal),
  );
  return (
    <>
      <PageHead title="Cluster" lead="As the node that answered knows it." />
      <Loaded resource={health}>{(data) => <Nodes health={data} />}</Loaded>
      {state?.role === "operator" ? <Actions /> : null}
    </>
  );
}

const STATES: Readonly<Record<Health["cluster"]["status"], { tone: Tone; words: string }>> = {
  standalone: { tone: "good", words: "one node" },
  healthy: { tone: "good", words: "healthy" },
  degraded: { tone: "warn", words: "degraded" },
  critical: { tone: "bad", words: "critical" },
};

function Nodes({ health }: { readonly health: Health }): JSX.Element {
  const { cluster, version, uptime_seconds } = health;
  const { tone, words } = STATES[cluster.status];
  const problems = cluster.problems ?? [];
  return (
    <>
      <Figures>
        <Figure label="State" value={<Badge tone={tone}>{words}</Badge>} />
        <Figure
          label="Nodes that respond"
          value={count(cluster.nodes_responding)}
          unit={`of ${count(cluster.nodes_total)}`}
          note={`${count(cluster.nodes_connected)} have joined and not left`}
        />
        <Figure label="Version" value={version} note="of this node" />
        <Figure label="Up for" value={duration(uptime_seconds * MS_PER_S)} note="this node" />
        <Figure
          label="Regions"
          value={cluster.regions.length === 0 ? "–" : count(cluster.regions.length)}
          note={cluster.regions.join(", ")}
        />
      </Figures>
      {cluster.enabled ? null : (
        <p class="notice">
          This service is one node. <code>cluster.enabled</code> with a PostgreSQL database lets
          several serve as one.
        </p>
      )}
      {problems.map((problem) => (
        <p key={problem} class="notice warn" role="status">
          {problem}
        </p>
      ))}
    </>
  );
}

function Actions(): JSX.Element {
  const { client, toasts } = useApp();
  const [problem, setProblem] = useState<string | null>(null);
  const actions = useResource("actions", POLL_MS, (signal) =>
    client.call("GET /api/v1/operator/actions", { query: { limit: 100 } }, signal),
  );
  const reload = (): void => {
    void client.call("POST /api/v1/operator/reload").then((result) => {
      actions.reload();
      if (result.kind === "failed") return setProblem(failureText(result.failure));
      setProblem(result.body.problem);
      if (result.body.reloaded) toasts.show("good", "The configuration was read again.");
    });
  };
  return (
    <Card
      title="What operators did"
      lead="Newest first, 100 at most"
      actions={
        <button type="button" class="button" onClick={reload}>
          Reload the configuration
        </button>
      }
      flush
    >
      {problem === null ? null : (
        <div class="card-body">
          <pre class="notice bad" role="alert">
            {problem}
          </pre>
        </div>
      )}
      <Loaded resource={actions}>
        {(data) => (
          <Table
            name="actions"
            caption="What operators did"
            columns={COLUMNS}
            rows={data.actions}
            keyOf={(row) => row.id}
            textOf={(row) => `${row.action} ${row.target} ${row.actor} ${row.detail}`}
            empty="Nothing was done yet"
          />
        )}
      </Loaded>
    </Card>
  );
}

const COLUMNS: readonly Column<Action>[] = [
  { id: "at", label: "When", kind: "lead", render: (row) => <Time at={row.at} /> },
  { id: "action", label: "Action", value: (row) => row.action, render: (row) => row.action },
  {
    id: "target",
    label: "Of",
    kind: "wide",
    value: (row) => row.target,
    render: (row) => row.target ?? "–",
  },
  {
    id: "outcome",
    label: "Outcome",
    render: (row) => <Badge tone={row.outcome === "done" ? "good" : "bad"}>{row.outcome}</Badge>,
  },
  { id: "actor", label: "By", kind: "wide", render: (row) => `${row.actor}, ${row.address}` },
  { id: "detail", label: "Detail", kind: "wide", render: (row) => row.detail ?? "–" },
];
