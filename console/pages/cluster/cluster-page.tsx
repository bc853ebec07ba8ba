// The nodes of the cluster as the answering node knows them: their load, the jobs that one node
// does for all, how each node finds the providers, and the actions of operators.

import type { AnswerOf } from "../../api/contract-types.ts";
import { ForOperator, useCall } from "../../app/app.ts";
import { ActionsCard } from "../../components/actions-card.tsx";
import { figures, inUnit, PageHead } from "../../components/card.tsx";
import * as column from "../../components/columns.tsx";
import { Notice } from "../../components/controls.tsx";
import { ProviderLink, StateBadge, Time, type Word } from "../../components/inline.tsx";
import { Loaded } from "../../components/page-state.tsx";
import { type Column, Table, TableCard } from "../../components/table.tsx";
import {
  bytes,
  count,
  DASH,
  duration,
  hundredths,
  milliseconds,
  plural,
  rate,
  share,
  textList,
} from "../../format/text.ts";
import { CIRCUITS } from "../../health/states.ts";

type Health = AnswerOf<"GET /api/health">;
type NodesAnswer = AnswerOf<"GET /api/v1/operator/nodes">;
type ServiceNode = NodesAnswer["nodes"][number];
type Worker = ServiceNode["workers"][number];
type Job = NodesAnswer["jobs"][number];
type Provider = NodesAnswer["providers"][number];
type Seen = Provider["seen"][number];

const POLL_MS = 5_000;
/** What fits a screen. */
const SHOWN_ROWS = 15;
const MS_PER_S = 1_000;

/** The page. */
export function ClusterPage() {
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

function Summary({ health }: { readonly health: Health }) {
  const { cluster, version, uptime_seconds } = health;
  return (
    <>
      {figures([
        ["State", <StateBadge key="state" {...STATES[cluster.status]} />],
        [
          "Nodes that respond",
          inUnit(count(cluster.nodes_responding), `of ${count(cluster.nodes_total)}`),
          `joined and not left: ${count(cluster.nodes_connected)}`,
        ],
        ["Version", version, "of this node"],
        ["Up for", duration(uptime_seconds * MS_PER_S), "this node"],
        ["Regions", cluster.regions.length || DASH, cluster.regions.join(", ")],
      ])}
      {cluster.enabled ? null : (
        <p class="notice">
          This service is one node. <code>cluster.enabled</code> with a PostgreSQL database lets
          several serve as one.
        </p>
      )}
      {problemNotices(cluster.problems ?? [])}
    </>
  );
}

function problemNotices(problems: readonly string[]) {
  return problems.map((problem) => (
    <Notice key={problem} tone="warn">
      {problem}
    </Notice>
  ));
}

function Nodes() {
  const nodes = useCall("GET /api/v1/operator/nodes", {}, POLL_MS);
  return (
    <Loaded resource={nodes}>
      {(data) => (
        <>
          {problemNotices(data.problems)}
          <TableCard
            title="Nodes"
            lead="Load and clocks, every five seconds."
            name="nodes"
            columns={NODE_COLUMNS}
            rows={data.nodes}
            keyOf={({ id }) => id}
            textOf={({ id, alias, region, state }) => `${id} ${alias} ${region} ${state}`}
            detail={workersOf}
          />
          <Providers {...data} />
          {data.clustered ? (
            <TableCard
              title="Jobs that run on one node"
              name="jobs"
              caption="Single jobs"
              columns={JOB_COLUMNS}
              rows={data.jobs}
              keyOf={({ name }) => name}
              empty="No job was due yet"
            />
          ) : null}
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
  column.text("node", "Node", ({ id }) => id, {
    kind: "lead",
    note: (row) => textList([row.alias, row.region, row.this && "this one"]),
  }),
  column.state("state", "State", ({ state }) => NODE_STATES[state], {
    value: ({ state }) => state,
  }),
  column.of("version", "Version", ({ version }) => version ?? DASH),
  column.number("calls", "Calls/s", (row) => row.calls_per_s, rate),
  column.number("cpu", "CPU, cores", (row) => row.cpu_cores, hundredths),
  column.number("memory", "Memory", (row) => row.memory_bytes, bytes),
  {
    ...column.number<ServiceNode>("clock", "Clock ahead, ms", (row) => row.clock_ahead_ms),
    title: "Its clock less that of the database",
  },
  column.of("heartbeat", "Heartbeat", (row) => <Time at={row.last_heartbeat_at} />),
  column.of("started", "Started", (row) => <Time at={row.started_at} />),
];

/** The workers of a node, where it has several. */
function workersOf({ id, workers }: ServiceNode) {
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
  column.of("worker", "Worker", ({ worker }) => worker ?? DASH, "lead"),
  column.number("calls", "Calls/s", (row) => row.calls_per_s, rate),
  column.number("cpu", "CPU, cores", (row) => row.cpu_cores, hundredths),
  column.number("busy", "Event loop busy", (row) => row.event_loop_busy, share),
  column.number("memory", "Memory", (row) => row.memory_bytes, bytes),
  column.of("started", "Started", (row) => <Time at={row.started_at} />),
];

/** A provider, over all nodes that are there: a row, whether one node serves or twenty. */
interface SharedView extends Provider {
  readonly worst: Seen | undefined;
  /** How many nodes find it as the worst one does. */
  readonly worstOn: number;
  readonly latency: readonly number[];
  readonly behind: number | null;
}

function sharedView(provider: Provider, gone: ReadonlySet<string>): SharedView {
  const seen = provider.seen.filter(({ node }) => !gone.has(node));
  const [worst] = seen.toSorted((one, other) => severityOf(other) - severityOf(one));
  const known = (read: (each: Seen) => number | null): readonly number[] =>
    seen.flatMap((each) => read(each) ?? []).toSorted((one, other) => one - other);
  return {
    ...{ ...provider, seen, worst },
    worstOn: seen.filter(({ circuit }) => circuit === worst?.circuit).length,
    latency: known((each) => each.latency_ms),
    behind: known((each) => each.lag_blocks).at(-1) ?? null,
  };
}

function severityOf({ circuit }: Seen): number {
  return ["idle", "good", "warn", "bad"].indexOf(CIRCUITS[circuit].tone);
}

function Providers({ nodes, providers }: Pick<NodesAnswer, "nodes" | "providers">) {
  const gone = new Set(nodes.filter(({ state }) => state === "gone").map(({ id }) => id));
  const rows = providers.map((provider) => sharedView(provider, gone));
  const several = nodes.length > gone.size + 1;
  const textOf = (row: Provider): string => `${row.profile} ${row.chain} ${row.provider}`;
  return (
    <TableCard
      title="Providers"
      lead={several ? "The worst that a node finds. Open one to see what each node finds." : ""}
      name="seen"
      caption="Providers by node"
      columns={SEEN_COLUMNS}
      rows={rows}
      keyOf={textOf}
      textOf={textOf}
      {...(several ? { expand: SeenByNodes } : {})}
      empty="No provider is configured"
      order="state"
      pageRows={SHOWN_ROWS}
    />
  );
}

const SEEN_COLUMNS: readonly Column<SharedView>[] = [
  column.text("provider", "Provider", ({ provider }) => provider, {
    kind: "lead",
    render: ({ provider }) => <ProviderLink id={provider} />,
    note: ({ profile, chain }) => `${profile}, ${chain}`,
  }),
  column.state("state", "Circuit", ({ worst }) => circuitWord(worst), {
    value: ({ worst }) => (worst === undefined ? null : -severityOf(worst)),
    note: ({ seen, worst, worstOn }) =>
      seen.length > 1 && worst !== undefined && `on ${worstOn} of ${plural(seen.length, "node")}`,
  }),
  {
    ...column.number<SharedView>("latency", "Latency, ms", middleOf, milliseconds),
    note: ({ latency }) =>
      latency.length > 1 && `${milliseconds(latency[0])} to ${milliseconds(latency.at(-1))}`,
  },
  column.number("behind", "Blocks behind", ({ behind }) => behind),
];

function middleOf({ latency }: SharedView): number | null {
  return latency[Math.floor(latency.length / 2)] ?? null;
}

function circuitWord(seen: Seen | undefined): Word {
  return seen === undefined ? { tone: "idle", word: "Not seen" } : CIRCUITS[seen.circuit];
}

function SeenByNodes({ profile, chain, provider, seen }: SharedView) {
  return (
    <Table
      name="by-node"
      caption={`${provider} of ${profile} on ${chain}, by node`}
      columns={BY_NODE_COLUMNS}
      rows={seen}
      keyOf={({ node }) => node}
    />
  );
}

const BY_NODE_COLUMNS: readonly Column<Seen>[] = [
  column.text("node", "Node", ({ node }) => node, { kind: "lead" }),
  column.state("state", "Circuit", circuitWord),
  column.number("latency", "Latency, ms", (row) => row.latency_ms, milliseconds),
  column.number("behind", "Blocks behind", (row) => row.lag_blocks),
];

const JOB_COLUMNS: readonly Column<Job>[] = [
  column.of("job", "Job", ({ name }) => name.replaceAll("_", " "), "lead"),
  column.of("node", "Node, now or last", ({ node }) => node),
  column.state("running", "State", ({ running }) =>
    running ? { tone: "good", word: "Running" } : { tone: "idle", word: "Waits until due" },
  ),
  column.of("due", "Due", (row) => <Time at={row.due_at} />),
];
