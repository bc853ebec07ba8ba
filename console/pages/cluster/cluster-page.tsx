// The nodes of the cluster as the answering node knows them, and the actions of operators.
import type { JSX } from "preact";
import type { AnswerOf } from "../../api/contract-types.ts";
import { useResource } from "../../api/resource.ts";
import { useApp } from "../../app/app.ts";
import { ActionsCard } from "../../components/actions-card.tsx";
import { Badge } from "../../components/badge.tsx";
import { Figure, Figures, PageHead } from "../../components/card.tsx";
import { Loaded } from "../../components/page-state.tsx";
import { duration } from "../../format/durations.ts";
import { count } from "../../format/numbers.ts";
import type { Tone } from "../../format/tone.ts";
import { NodesCard } from "./nodes-card.tsx";

type Health = AnswerOf<"GET /api/health">;

const POLL_MS = 5_000;
const MS_PER_S = 1_000;

/** The page. */
export function ClusterPage(): JSX.Element {
  const { client } = useApp();
  const health = useResource("health", POLL_MS, (signal) =>
    client.call("GET /api/health", {}, signal),
  );
  return (
    <>
      <PageHead title="Cluster" lead="As the node that answered knows it." />
      <Loaded resource={health}>{(data) => <Summary health={data} />}</Loaded>
      <NodesCard />
      <ActionsCard limit={100} />
    </>
  );
}

const STATES: Readonly<Record<Health["cluster"]["status"], { tone: Tone; words: string }>> = {
  standalone: { tone: "good", words: "one node" },
  healthy: { tone: "good", words: "healthy" },
  degraded: { tone: "warn", words: "degraded" },
  critical: { tone: "bad", words: "critical" },
};

function Summary({ health }: { readonly health: Health }): JSX.Element {
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
          note={`joined and not left: ${count(cluster.nodes_connected)}`}
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
