// The operator's view of the running service beside metrics: history, reports of all workers and
// the live feed.
import type { Logger } from "pino";
import type { Bus } from "../../core/workers/bus.ts";
import { FeedExchange } from "../../observe/feed/feed-exchange.ts";
import { FeedHub } from "../../observe/feed/feed-hub.ts";
import { HistoryClock } from "../../observe/history/history-clock.ts";
import { CurrentIncidents } from "../../observe/incidents/current-incidents.ts";
import type { Observer } from "../../observe/observer.ts";
import { openReports, type ReportParts } from "../../observe/operator-report.ts";
import type { Runtime } from "../../runtime.ts";
import type { Cluster } from "../../shared/nodes/cluster.ts";
import { newProcessId } from "../../shared/nodes/node-rows.ts";
import type { Store } from "../../shared/store/store.ts";
import type { ProfileRegistry } from "../../upstream/registry/profile-registry.ts";
import type { LiveView } from "../../web/api/parts.ts";
import type { ServiceParts } from "../service-parts.ts";
import { type HistoryService, historyOver } from "./history-service.ts";
import { createHourReader, openSupervisedHistory } from "./hour-history.ts";
import { createIncidentReader, INCIDENT_VIEW } from "./incident-service.ts";
import { NodeReports } from "./node-reports.ts";

export interface OperatorViewParts {
  readonly runtime: Runtime;
  readonly log: Logger;
  readonly observer: Observer;
  readonly registry: ProfileRegistry;
  readonly subscriptions: ReportParts["subscriptions"];
  readonly version: string;
  /** Where hours of history are; null = nowhere. */
  readonly store: Store | null;
  /** Null = one node serves alone. */
  readonly cluster: Cluster | null;
  readonly service: ServiceParts;
}

type Feed = Observer["feed"];

/** History, reports and the live feed; keeps history from its creation on. */
export class OperatorView {
  readonly live: LiveView;
  readonly incidents: CurrentIncidents;
  readonly #feed: Feed;
  readonly #hub: FeedHub;
  readonly #nodeReports: NodeReports;
  readonly #clock: HistoryClock;
  readonly #history: HistoryService;
  readonly #endHistory: () => Promise<void>;
  readonly #stops: readonly (() => void)[];

  constructor(parts: OperatorViewParts) {
    const { runtime, observer, registry, service, version, store } = parts;
    const { bus } = service;
    const { feed } = observer;
    const history = historyOver(bus, newProcessId(runtime), {
      refresh: () => this.#clock.refresh(),
      takeChanges: () => feed.takeChanges(),
    });
    this.#feed = feed;
    this.#history = history;
    this.incidents = new CurrentIncidents(feed);
    this.#endHistory = keepHistory(parts, this.incidents);
    this.#clock = new HistoryClock({
      counts: observer.history,
      failures: observer.failures,
      feed,
      registry,
      runtime,
      receive: history.add,
    });
    this.#nodeReports = new NodeReports(parts);
    const exchange = service.workers === 1 ? null : new FeedExchange(bus, runtime);
    this.#hub = new FeedHub({ runtime, feed, exchange });
    const hearIncidents = bus.subscribe(INCIDENT_VIEW, (view) => this.incidents.receive(view));
    this.#stops = [noteNodes(feed, parts.cluster), noteWorkers(feed, bus), hearIncidents];
    this.live = {
      runtime,
      report: openReports(parts, bus),
      history: {
        ...history,
        hours: createHourReader(history, store, runtime),
      },
      incidents: createIncidentReader(history, store, runtime),
      nodes: () => this.#nodeReports.read(),
      hub: this.#hub,
      registry,
      version,
      worker: feed.worker,
      workers: service.workers,
    };
  }

  /** Says that the configuration was reloaded. */
  reloaded(profiles: number): void {
    this.#feed.emit({ type: "config", data: { what: "reloaded", profiles } });
  }

  /** Ends those who watch. */
  close(): void {
    for (const stop of this.#stops) stop();
    this.#nodeReports.draining();
    this.#hub.close();
  }

  /** Keeps the last counts; after that nothing is counted. */
  async end(): Promise<void> {
    this.#clock.close();
    this.#nodeReports.close();
    await this.#history.end();
    await this.#endHistory();
  }
}

/** Keeps history here, unless the supervisor gathers it; the result ends that. */
function keepHistory(
  { runtime, store, log, service }: OperatorViewParts,
  incidents: CurrentIncidents,
): () => Promise<void> {
  if (service.workers > 1) return () => Promise.resolve();
  const { bus, id: serviceId } = service;
  const written = store === null ? null : () => Promise.resolve(store);
  const hear = incidents.receive.bind(incidents);
  return openSupervisedHistory({ runtime, log, bus, serviceId, store: written, hear });
}

/** Tells the feed of nodes that join and leave; the returned function ends that. */
function noteNodes(feed: Feed, cluster: Cluster | null): () => void {
  const stop = cluster?.membership.onNodes(({ joined, left }) => {
    for (const id of joined) noteNode(feed, `node ${id}`, "joined");
    for (const id of left) noteNode(feed, `node ${id}`, "left");
  });
  return () => stop?.();
}

/** The same for the workers of this service. */
function noteWorkers(feed: Feed, bus: Bus): () => void {
  let known = bus.workers();
  return bus.onWorkers(() => {
    const now = bus.workers();
    for (const id of now) if (!known.includes(id)) noteNode(feed, `worker ${id}`, "joined");
    for (const id of known) if (!now.includes(id)) noteNode(feed, `worker ${id}`, "left");
    known = now;
  });
}

function noteNode(feed: Feed, node: string, change: "joined" | "left"): void {
  feed.emit({ type: "node", data: { node, change } });
}
