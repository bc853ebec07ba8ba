// The nodes of the service with their load, the jobs that one does for all, and how each node finds
// the providers. For the operator.
import type { JSX } from "preact";
import type { AnswerOf } from "../../api/contract-types.ts";
import { useResource } from "../../api/resource.ts";
import { useApp, useStore } from "../../app/app.ts";
import { Badge } from "../../components/badge.tsx";
import { Card } from "../../components/card.tsx";
import { numberColumn } from "../../components/columns.ts";
import { Loaded } from "../../components/page-state.tsx";
import { type Column, Table } from "../../components/table.tsx";
import { Time } from "../../components/time.tsx";
import { bytes, count, DASH, milliseconds, rate, share } from "../../format/numbers.ts";
import type { Tone } from "../../format/tone.ts";
import { CIRCUITS } from "../../health/judge.ts";

type NodesAnswer = AnswerOf<"GET /api/v1/operator/nodes">;
type ServiceNode = NodesAnswer["nodes"][number];
type Worker = ServiceNode["workers"][number];
type Job = NodesAnswer["jobs"][number];
type Provider = NodesAnswer["providers"][number];
type Seen = Provider["seen"][number];

const POLL_MS = 5_000;

/** The nodes; nothing for anybody but the operator. */
export function NodesCard(): JSX.Element | null {
  const { session } = useApp();
  const role = useStore(session.state)?.role;
  return role === "operator" ? <Nodes /> : null;
}

function Nodes(): JSX.Element {
  const { client } = useApp();
  const nodes = useResource("nodes", POLL_MS, (signal) =>
    client.call("GET /api/v1/operator/nodes", {}, signal),
  );
  return (
    <Loaded resource={nodes}>
      {(data) => (
        <>
          {data.problems.map((problem) => (
            <p key={problem} class="notice warn" role="status">
              {problem}
            </p>
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
          <Providers nodes={data.nodes} providers={data.providers} />
          {data.clustered ? <Jobs jobs={data.jobs} /> : null}
        </>
      )}
    </Loaded>
  );
}

const STATES: Readonly<Record<ServiceNode["state"], { tone: Tone; words: string }>> = {
  live: { tone: "good", words: "Live" },
  draining: { tone: "warn", words: "Draining" },
  silent: { tone: "bad", words: "Silent" },
  gone: { tone: "idle", words: "Gone" },
};

const NODE_COLUMNS: readonly Column<ServiceNode>[] = [
  {
    id: "node",
    label: "Node",
    kind: "lead",
    value: ({ id }) => id,
    render: (row) => (
      <span class="wrap-anywhere">
        {row.id}
        <small>
          {[row.alias, row.region, row.this ? "this one" : null].filter(Boolean).join(", ")}
        </small>
      </span>
    ),
  },
  {
    id: "state",
    label: "State",
    value: ({ state }) => state,
    render: ({ state }) => <Badge tone={STATES[state].tone}>{STATES[state].words}</Badge>,
  },
  { id: "version", label: "Version", render: ({ version }) => version ?? DASH },
  numberColumn("calls", "Calls/s", (row) => row.calls_per_s, rate),
  numberColumn("cpu", "CPU, cores", (row) => row.cpu_cores, cores),
  numberColumn("memory", "Memory", (row) => row.memory_bytes, bytes),
  {
    ...numberColumn<ServiceNode>("clock", "Clock ahead, ms", (row) => row.clock_ahead_ms),
    title: "Its clock less that of the database",
  },
  {
    id: "heartbeat",
    label: "Heartbeat",
    render: ({ last_heartbeat_at: at }) => (at === null ? DASH : <Time at={at} />),
  },
  {
    id: "started",
    label: "Started",
    render: ({ started_at: at }) => (at === null ? DASH : <Time at={at} />),
  },
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

interface ProvidersProps {
  readonly nodes: readonly ServiceNode[];
  readonly providers: readonly Provider[];
}

/** A column a node. */
function Providers({ nodes, providers }: ProvidersProps): JSX.Element {
  const columns: readonly Column<Provider>[] = [
    {
      id: "provider",
      label: "Provider",
      kind: "lead",
      value: ({ provider }) => provider,
      render: ({ provider, profile, chain }) => (
        <span class="wrap-anywhere">
          {provider}
          <small>
            {profile}, {chain}
          </small>
        </span>
      ),
    },
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
  const { tone, word } = CIRCUITS[circuit];
  const behind = lag === null || lag === 0 ? "" : `, ${count(lag)} behind`;
  return (
    <>
      <Badge tone={tone}>{word}</Badge>
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
  {
    id: "running",
    label: "State",
    render: ({ running }) => (
      <Badge tone={running ? "good" : "idle"}>{running ? "Running" : "Waits until due"}</Badge>
    ),
  },
  { id: "due", label: "Due", render: ({ due_at: at }) => <Time at={at} /> },
];
