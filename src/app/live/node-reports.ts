// Reports of processes for the operator's page of the cluster: the load of each, gathered by node,
// and the health of providers as each node finds it. Written to the database every five seconds
// where several nodes serve, never on the path of a call.
import { hostname } from "node:os";
import type { z } from "zod";
import { parseJson } from "../../core/fields.ts";
import type { Bus, QuestionTopic } from "../../core/workers/bus.ts";
import type { Observer } from "../../observe/observer.ts";
import { LoadMeter } from "../../observe/process-load.ts";
import type { Runtime } from "../../runtime.ts";
import type { Cluster } from "../../shared/nodes/cluster.ts";
import { publicNode, serviceNodeOf } from "../../shared/nodes/identity.ts";
import type { MemberProcess } from "../../shared/nodes/membership.ts";
import { readReports, type StoredJob, writeReport } from "../../shared/nodes/node-reports.ts";
import { isStoreFailure } from "../../shared/store/store-failure.ts";
import type { ProfileRegistry } from "../../upstream/registry/profile-registry.ts";
import type { nodeReport, nodes, providerReports } from "../../web/contract/history.ts";
import { type ServiceParts, workerOf } from "../service-parts.ts";

type Nodes = z.output<typeof nodes>;
type ServiceNode = Nodes["nodes"][number];
type SeenProvider = z.output<typeof providerReports>[number];

/** What one process tells. */
type NodeReport = z.output<typeof nodeReport>;

/** What reports are made of. */
export interface NodeReportParts {
  readonly runtime: Pick<Runtime, "now" | "wallMs" | "after">;
  readonly observer: Pick<Observer, "allSeries">;
  readonly registry: Pick<ProfileRegistry, "profiles">;
  readonly version: string;
  readonly service: Pick<ServiceParts, "bus" | "workers">;
  /** Null = one node serves alone. */
  readonly cluster: Cluster | null;
}

const REPORT_MS = 5_000;
const WORKER_MS = 1_000;
/** Reports that may be on their way to a slow database. */
const MAX_WRITING = 2;
const MAX_PROVIDERS = 500;
const MAX_REPORT_CHARACTERS = 200_000;

const ASKED: QuestionTopic<object, NodeReport> = { name: "process report" };

/** Measures this process from its creation on, and gathers the reports of all processes. */
export class NodeReports {
  readonly #parts: NodeReportParts;
  readonly #meter: LoadMeter;
  readonly #startedAt: string;
  #isDraining = false;
  #writing = 0;
  #cancel: () => void;

  constructor(parts: NodeReportParts) {
    this.#parts = parts;
    this.#meter = new LoadMeter(parts.runtime, parts.observer);
    this.#startedAt = new Date(parts.runtime.wallMs()).toISOString();
    this.#cancel = parts.runtime.after(REPORT_MS, () => this.#again());
    parts.service.bus.serve(ASKED, () => this.#own());
    this.#report();
  }

  read(): Promise<Nodes> {
    return readNodes(this.#parts);
  }

  /** Tells the others that this process takes no new calls. */
  draining(): void {
    this.#isDraining = true;
    this.#report();
  }

  close(): void {
    this.#cancel();
  }

  #own(): NodeReport {
    const { service, version, registry } = this.#parts;
    const { bus } = service;
    const { callsPerS, cpuCores, eventLoopBusy, memoryBytes } = this.#meter.load;
    // All workers of a node know the same probes, so the first reports for the node.
    const isFirst = bus.workers()[0] === bus.self;
    return {
      version,
      worker: workerOf(service),
      started_at: this.#startedAt,
      draining: this.#isDraining,
      calls_per_s: callsPerS,
      cpu_cores: cpuCores,
      event_loop_busy: eventLoopBusy,
      memory_bytes: memoryBytes,
      providers: isFirst ? seenProviders(registry) : [],
    };
  }

  #report(): void {
    const { cluster } = this.#parts;
    if (cluster === null || this.#writing >= MAX_WRITING) return;
    this.#writing++;
    // A database that is away is told of elsewhere; the next report comes soon.
    writeReport(cluster.store, cluster.node.id, JSON.stringify(this.#own()))
      .catch(() => undefined)
      .finally(() => {
        this.#writing--;
      });
  }

  #again(): void {
    this.#cancel = this.#parts.runtime.after(REPORT_MS, () => this.#again());
    this.#meter.measure();
    this.#report();
  }
}

/** How this process finds the configured providers. */
function seenProviders({ profiles }: Pick<ProfileRegistry, "profiles">): SeenProvider[] {
  const seen: SeenProvider[] = [];
  for (const { profile, trackers } of profiles)
    for (const [chain, tracker] of trackers)
      for (const provider of tracker.set.providers) {
        if (seen.length >= MAX_PROVIDERS) return seen;
        const { circuit, lagBlocks } = tracker.summary(provider);
        const transport = provider.url === null ? "ws" : "http";
        const { successRate, averageMs } = tracker.health(provider, transport);
        seen.push({
          profile: profile.slug,
          chain,
          provider: provider.id,
          circuit,
          success_rate: successRate === null ? null : Math.round(successRate * 1_000) / 1_000,
          latency_ms: averageMs === null ? null : Math.round(averageMs * 10) / 10,
          lag_blocks: lagBlocks === null ? null : Math.max(0, lagBlocks),
        });
      }
  return seen;
}

/** The reports of a node's processes, with what its rows say. */
interface Gathered {
  readonly id: string;
  readonly members: readonly MemberProcess[];
  readonly reports: readonly NodeReport[];
}

async function readNodes({ service, cluster }: NodeReportParts): Promise<Nodes> {
  const here = await ownReports(service.bus);
  const stored = cluster === null ? NOTHING_STORED : await storedReports(cluster);
  const own = cluster?.identity ?? { id: hostname(), region: null };
  const members = cluster?.membership.nodes() ?? [];
  const ids = [...new Set([own.id, ...members.map(({ id }) => serviceNodeOf(id))])].sort();
  const gathered = ids.map((id): Gathered => {
    const processes = members.filter((member) => serviceNodeOf(member.id) === id);
    const known = processes.flatMap((member) => stored.reports.get(member.id) ?? []);
    return { id, members: processes, reports: id === own.id ? here : known };
  });
  const jobs = stored.jobs.map(({ name, nodeId, isRunning, dueAtMs }) => ({
    name,
    node: serviceNodeOf(nodeId),
    running: isRunning,
    due_at: new Date(Math.max(0, dueAtMs)).toISOString(),
  }));
  return {
    clustered: cluster !== null,
    nodes: gathered.map((each) => ({
      ...rowOf(each, each.reports),
      alias: cluster === null ? null : publicNode({ id: each.id, region: "" }).id,
      this: each.id === own.id,
      region: each.members[0]?.region ?? (each.id === own.id ? own.region : null),
      jobs: jobs.filter((job) => job.node === each.id).map(({ name }) => name),
    })),
    jobs,
    providers: providersByNode(gathered),
    problems: [...(cluster?.membership.health().problems ?? []), ...stored.problems],
  };
}

/** What the processes of this service tell now; one that does not answer is left out. */
async function ownReports(bus: Bus): Promise<readonly NodeReport[]> {
  const asked = { topic: ASKED, message: {}, timeoutMs: WORKER_MS };
  const replies = await Promise.all(bus.workers().map((id) => bus.request(id, asked)));
  return replies.flatMap((reply) => (reply.ok ? [reply.value] : []));
}

interface Stored {
  readonly reports: ReadonlyMap<string, NodeReport>;
  readonly jobs: readonly StoredJob[];
  readonly problems: readonly string[];
}

const NOTHING_STORED: Stored = { reports: new Map(), jobs: [], problems: [] };

async function storedReports({ store }: Cluster): Promise<Stored> {
  try {
    const { reports, jobs } = await readReports(store);
    const { nodeReport } = await import("../../web/contract/history.ts");
    const known = reports.flatMap(({ nodeId, report }): readonly [string, NodeReport][] => {
      const parsed = parseReport(nodeReport, report);
      return parsed === null ? [] : [[nodeId, parsed]];
    });
    return { reports: new Map(known), jobs, problems: [] };
  } catch (error) {
    if (!isStoreFailure(error)) throw error;
    const problem = "the database does not answer: the load of other nodes is not known";
    return { ...NOTHING_STORED, problems: [problem] };
  }
}

/** Another version may have written it; null = it cannot be read. */
function parseReport(shape: typeof nodeReport, text: string): NodeReport | null {
  if (text.length > MAX_REPORT_CHARACTERS) return null;
  return shape.safeParse(parseJson(text)).data ?? null;
}

type RowOfReports = Omit<ServiceNode, "alias" | "this" | "region" | "jobs">;

/** A node by its rows and by what its processes tell. */
function rowOf({ id, members }: Gathered, reports: readonly NodeReport[]): RowOfReports {
  const heard = members.toSorted((left, right) => right.heartbeatAtMs - left.heartbeatAtMs)[0];
  const workers = reports.map(({ providers: _, ...report }) => report);
  return {
    id,
    state: stateOf(members, reports),
    version: reports[0]?.version ?? null,
    started_at: reports.map(({ started_at }) => started_at).sort()[0] ?? null,
    last_heartbeat_at: heard === undefined ? null : new Date(heard.heartbeatAtMs).toISOString(),
    clock_ahead_ms: heard === undefined ? null : Math.round(heard.skewMs),
    calls_per_s: sumOf(reports.map(({ calls_per_s }) => calls_per_s)),
    cpu_cores: sumOf(reports.map(({ cpu_cores }) => cpu_cores)),
    memory_bytes: sumOf(reports.map(({ memory_bytes }) => memory_bytes)),
    workers: workers.sort((left, right) => Number(left.worker) - Number(right.worker)),
  };
}

function stateOf(
  members: readonly MemberProcess[],
  reports: readonly NodeReport[],
): ServiceNode["state"] {
  const alive = members.filter(({ state }) => state === "alive");
  if (members.length > 0 && alive.length === 0) return "gone";
  if (alive.length > 0 && !alive.some(({ responds }) => responds)) return "silent";
  return reports.length > 0 && reports.every(({ draining }) => draining) ? "draining" : "live";
}

/** Null = nothing is known; what is not known of one is left out. */
function sumOf(values: readonly (number | null)[]): number | null {
  const known = values.filter((value) => value !== null);
  if (known.length === 0) return null;
  return Math.round(known.reduce((sum, value) => sum + value, 0) * 1_000) / 1_000;
}

/** The same providers as each node finds them. */
function providersByNode(gathered: readonly Gathered[]): Nodes["providers"] {
  const rows = gathered.flatMap(({ id, reports }) => {
    const seen = reports.find(({ providers }) => providers.length > 0)?.providers ?? [];
    return seen.map((provider) => ({ ...provider, node: id }));
  });
  const groups = Map.groupBy(rows, ({ profile, chain, provider }) =>
    JSON.stringify([profile, chain, provider]),
  );
  return Array.from(groups.values(), (same) => {
    const { profile = "", chain = "", provider = "" } = same[0] ?? {};
    const seen = same.map(({ profile: _, chain: __, provider: ___, ...how }) => how);
    return { profile, chain, provider, seen };
  });
}
