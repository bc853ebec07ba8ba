// The nodes of the cluster as the answering node knows them: their load, the jobs that one node
// does for all, how each node finds the providers, and the actions of operators.
import type { JSX } from "preact";
import type { AnswerOf } from "../../api/contract-types.ts";
import { ForOperator, useCall } from "../../app/app.ts";
import { ActionsCard } from "../../components/actions-card.tsx";
import { Card, Figure, Figures, PageHead } from "../../components/card.tsx";
import {
  Noted,
  numberColumn,
  StateBadge,
  stateColumn,
  textColumn,
  type Word,
} from "../../components/columns.tsx";
import { Notice } from "../../components/controls.tsx";
import { Loaded } from "../../components/page-state.tsx";
import { type Column, Table } from "../../components/table.tsx";
import { Time } from "../../components/time.tsx";
import { duration } from "../../format/durations.ts";
import { bytes, count, DASH, milliseconds, rate, share } from "../../format/numbers.ts";
import { CIRCUITS } from "../../health/judge.ts";

type Health = AnswerOf<"GET /api/health">;
type NodesAnswer = AnswerOf<"GET /api/v1/operator/nodes">;
type ServiceNode = NodesAnswer["nodes"][number];
type Worker = ServiceNode["workers"][number];
type Job = NodesAnswer["jobs"][number];
type Provider = NodesAnswer["providers"][number];
type Seen = Provider["seen"][number];

const POLL_MS = 5_000;
const MS_PER_S = 1_000;

/** The page. */
export function ClusterPage(): JSX.Element {
  const health = useCall("GET /api/health", {}, POLL_MS);
  return (
    <>
      <PageHead title="Cluster" lead="As the node that answered knows it." />
      <Loaded resource={health}>{(data) => <Summary health={data} />}</Loaded>
      <ForOperator>
        <Nodes />
        <ActionsCard limit={100} />
      </ForOperator>
    </>
  );
}

const STATES: Readonly<Record<Health["cluster"]["status"], Word>> = {
  standalone: { tone: "good", word: "one node" },
  healthy: { tone: "good", word: "healthy" },
  degraded: { tone: "warn", word: "degraded" },
  critical: { tone: "bad", word: "critical" },
};

function Summary({ health }: { readonly health: Health }): JSX.Element {
  const { cluster, version, uptime_seconds } = health;
  const problems = cluster.problems ?? [];
  return (
    <>
      <Figures>
        <Figure label="State" value={<StateBadge {...STATES[cluster.status]} />} />
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
          value={cluster.regions.length === 0 ? DASH : count(cluster.regions.length)}
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
        <Notice key={problem} tone="warn">
          {problem}
        </Notice>
      ))}
    </>
  );
}

function Nodes(): JSX.Element {
  const nodes = useCall("GET /api/v1/operator/nodes", {}, POLL_MS);
  return (
    <Loaded resource={nodes}>
      {(data) => (
        <>
          {data.problems.map((problem) => (
            <Notice key={problem} tone="warn">
              {problem}
            </Notice>
          ))}
          <Card title="Nodes" lead="Load and clocks, every five seconds." flush>
            <Table
              name="nodes"
              caption="Nodes"
              columns={NODE_COLUMNS}
              rows={data.nodes}
              keyOf={({ id }) => id}
              textOf={({ id, alias, region, state }) => `${id} ${alias} ${region} ${state}`}
              detail={workersOf}
            />
          </Card>
          <Providers {...data} />
          {data.clustered ? <Jobs jobs={data.jobs} /> : null}
        </>
      )}
    </Loaded>
  );
}

const NODE_STATES: Readonly<Record<ServiceNode["state"], Word>> = {
  live: { tone: "good", word: "Live" },
  draining: { tone: "warn", word: "Draining" },
  silent: { tone: "bad", word: "Silent" },
  gone: { tone: "idle", word: "Gone" },
};

const NODE_COLUMNS: readonly Column<ServiceNode>[] = [
  textColumn("node", "Node", ({ id }) => id, {
    kind: "lead",
    render: (row) => (
      <Noted
        note={[row.alias, row.region, row.this ? "this one" : null].filter(Boolean).join(", ")}
      >
        {row.id}
      </Noted>
    ),
  }),
  stateColumn("state", "State", ({ state }) => NODE_STATES[state], { value: ({ state }) => state }),
  { id: "version", label: "Version", render: ({ version }) => version ?? DASH },
  numberColumn("calls", "Calls/s", (row) => row.calls_per_s, rate),
  numberColumn("cpu", "CPU, cores", (row) => row.cpu_cores, cores),
  numberColumn("memory", "Memory", (row) => row.memory_bytes, bytes),
  {
    ...numberColumn<ServiceNode>("clock", "Clock ahead, ms", (row) => row.clock_ahead_ms),
    title: "Its clock less that of the database",
  },
  { id: "heartbeat", label: "Heartbeat", render: (row) => <Time at={row.last_heartbeat_at} /> },
  { id: "started", label: "Started", render: (row) => <Time at={row.started_at} /> },
];

function cores(value: number | null | undefined): string {
  return value == null ? DASH : value.toFixed(2);
}

/** The workers of a node, where it has several. */
function workersOf({ id, workers }: ServiceNode): JSX.Element | null {
  if (workers.length < 2) return null;
  return (
    <Table
      name={`workers-${id}`}
      caption={`Workers of ${id}`}
      columns={WORKER_COLUMNS}
      rows={workers}
      keyOf={({ worker }) => worker ?? ""}
    />
  );
}

const WORKER_COLUMNS: readonly Column<Worker>[] = [
  { id: "worker", label: "Worker", kind: "lead", render: ({ worker }) => worker ?? DASH },
  numberColumn("calls", "Calls/s", (row) => row.calls_per_s, rate),
  numberColumn("cpu", "CPU, cores", (row) => row.cpu_cores, cores),
  numberColumn("busy", "Event loop busy", (row) => row.event_loop_busy, share),
  numberColumn("memory", "Memory", (row) => row.memory_bytes, bytes),
  { id: "started", label: "Started", render: ({ started_at: at }) => <Time at={at} /> },
];

/** A column a node. */
function Providers({ nodes, providers }: Pick<NodesAnswer, "nodes" | "providers">): JSX.Element {
  const columns: readonly Column<Provider>[] = [
    textColumn("provider", "Provider", ({ provider }) => provider, {
      kind: "lead",
      render: ({ provider, profile, chain }) => (
        <Noted note={`${profile}, ${chain}`}>{provider}</Noted>
      ),
    }),
    ...nodes
      .filter(({ state }) => state !== "gone")
      .map(
        ({ id }): Column<Provider> => ({
          id: `at-${id}`,
          label: nodes.length === 1 ? "Here" : id,
          value: ({ seen }) => seen.find(({ node }) => node === id)?.latency_ms ?? null,
          render: ({ seen }) => <SeenCell seen={seen.find(({ node }) => node === id) ?? null} />,
        }),
      ),
  ];
  return (
    <Card title="Providers, as each node finds them" flush>
      <Table
        name="seen"
        caption="Providers by node"
        columns={columns}
        rows={providers}
        keyOf={({ profile, chain, provider }) => `${profile} ${chain} ${provider}`}
        textOf={({ profile, chain, provider }) => `${profile} ${chain} ${provider}`}
        empty="No provider is configured"
      />
    </Card>
  );
}

function SeenCell({ seen }: { readonly seen: Seen | null }): JSX.Element {
  if (seen === null) return <span class="muted">{DASH}</span>;
  const { circuit, latency_ms: latency, lag_blocks: lag } = seen;
  const behind = lag === null || lag === 0 ? "" : `, ${count(lag)} behind`;
  return (
    <>
      <StateBadge {...CIRCUITS[circuit]} />
      <small>
        {latency === null ? "no latency known" : `${milliseconds(latency)} ms`}
        {behind}
      </small>
    </>
  );
}

function Jobs({ jobs }: { readonly jobs: readonly Job[] }): JSX.Element {
  return (
    <Card title="Jobs that one node does for all" flush>
      <Table
        name="jobs"
        caption="Single jobs"
        columns={JOB_COLUMNS}
        rows={jobs}
        keyOf={({ name }) => name}
        empty="No job was due yet"
      />
    </Card>
  );
}

const JOB_COLUMNS: readonly Column<Job>[] = [
  { id: "job", label: "Job", kind: "lead", render: ({ name }) => name.replaceAll("_", " ") },
  { id: "node", label: "Node, now or last", render: ({ node }) => node },
  stateColumn("running", "State", ({ running }) =>
    running ? { tone: "good", word: "Running" } : { tone: "idle", word: "Waits until due" },
  ),
  { id: "due", label: "Due", render: ({ due_at: at }) => <Time at={at} /> },
];
