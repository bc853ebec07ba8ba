// The overview: one sentence on how the service is, its figures, its chains.

import { readChains } from "../../api/chains.ts";
import type { Client, Result } from "../../api/client.ts";
import type { AnswerOf } from "../../api/contract-types.ts";
import { useResource } from "../../api/resource.ts";
import { AWAY, ForOperator, useApp, useStore } from "../../app/app.ts";
import { ActionsCard } from "../../components/actions-card.tsx";
import { PageHead } from "../../components/card.tsx";
import { IncidentCard } from "../../components/incident-list.tsx";
import { Dot } from "../../components/inline.tsx";
import { Loaded } from "../../components/page-state.tsx";
import { RangePicker, useRange, useServiceHistory } from "../../components/range-picker.tsx";
import { count, duration, plural } from "../../format/text.ts";
import type { ChainCalls } from "../../health/series.ts";
import {
  type ChainMetrics,
  headline,
  type Incident,
  openIncidents,
  type Readiness,
  summarise,
} from "../../health/states.ts";
import { type ChainRow, ChainTable } from "./chain-table.tsx";
import { Changes } from "./changes.tsx";
import { HistoryGraphs, HistoryTiles } from "./history-cards.tsx";

const POLL_MS = 2_000;
const MAX_INCIDENTS = 200;

/** Everything that this page shows, read together. */
interface Overview {
  readonly readiness: Readiness;
  readonly health: AnswerOf<"GET /api/health">;
  readonly chains: readonly ChainMetrics[];
  /** Open ones and those of the last day. */
  readonly incidents: readonly Incident[];
}

/** The first page. */
export function OverviewPage() {
  const { client } = useApp();
  const overview = useResource("overview", POLL_MS, () => readOverview(client));
  return <Loaded resource={overview}>{(data) => <OverviewView {...data} />}</Loaded>;
}

function OverviewView({ readiness, health, chains, incidents }: Overview) {
  const wrong = openIncidents(incidents);
  const history = useServiceHistory(useRange(), true);
  const ended = history.data?.chains ?? [];
  const rows = chains.flatMap((chain) => rowsOf(chain, ended, wrong));
  const { tone, words } = headline(readiness, rows, wrong);
  const usable = rows.reduce((sum, { verdict }) => sum + verdict.usable, 0);
  const providers = rows.reduce((sum, { verdict }) => sum + verdict.providers, 0);
  const isAway = useStore(useApp().isServiceAway);
  const sockets = chains[0]?.open_sockets ?? 0;
  return (
    <>
      <PageHead
        title={
          <span class="headline" role="status">
            <Dot tone={isAway ? "bad" : tone} />
            {isAway ? AWAY : words}
          </span>
        }
        lead={factsText(health)}
      >
        <RangePicker history={history.data} />
      </PageHead>
      {wrong.length === 0 ? null : (
        <IncidentCard
          title="Wrong now"
          lead="An incident is over after five good minutes."
          incidents={wrong}
        />
      )}
      <HistoryTiles history={history} />
      <ChainTable
        rows={rows}
        lead={
          `${count(usable)} of ${plural(providers, "provider")} usable, ` +
          plural(sockets, "open WebSocket")
        }
      />
      <HistoryGraphs history={history} incidents={incidents} />
      <ForOperator>
        <Changes />
        <ActionsCard limit={20} />
      </ForOperator>
    </>
  );
}

function rowsOf(
  metrics: ChainMetrics,
  ended: readonly ChainCalls[],
  wrong: readonly Incident[],
): readonly ChainRow[] {
  const isStalled = wrong.some(
    ({ chain, provider }) => chain === metrics.chain_name && provider === null,
  );
  return metrics.profiles.map((profile) => ({
    chain: metrics.chain_name,
    chainId: metrics.chain_id,
    name: metrics.name,
    profile,
    verdict: summarise(profile, isStalled),
    ended:
      ended.find((each) => each.chain === metrics.chain_name && each.profile === profile.profile) ??
      null,
  }));
}

function factsText({ version, uptime_seconds: seconds, cluster }: Overview["health"]): string {
  const nodes = cluster.enabled
    ? `, cluster ${cluster.status}: ${count(cluster.nodes_responding)} of ` +
      `${plural(cluster.nodes_total, "node")} responding`
    : "";
  return `Version ${version}, up for ${duration(seconds * 1000)}${nodes}`;
}

/** Reads all of it; the first failure is the failure of the whole. */
async function readOverview(client: Client): Promise<Result<Overview>> {
  const [chains, readiness, health, incidents] = await Promise.all([
    readChains(client),
    client.call("GET /api/ready", {}),
    client.call("GET /api/health", {}),
    client.call("GET /api/v1/incidents", { query: { limit: MAX_INCIDENTS } }),
  ]);
  if (chains.kind === "failed") return chains;
  if (readiness.kind === "failed") return readiness;
  if (health.kind === "failed") return health;
  if (incidents.kind === "failed") return incidents;
  const { incidents: latest } = incidents.body;
  const known = { readiness: readiness.body, health: health.body, incidents: latest };
  return { kind: "ok", body: { ...known, chains: chains.body } };
}
