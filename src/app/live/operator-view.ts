// The operator's view of the running service beside metrics: history, reports of all workers and
// the live feed.
import type { Logger } from "pino";
import type { Bus } from "../../core/workers/bus.ts";
import { FeedHub } from "../../observe/feed/feed-hub.ts";
import { HistoryClock } from "../../observe/history/history-clock.ts";
import { ServiceHistory } from "../../observe/history/service-history.ts";
import type { Observer } from "../../observe/observer.ts";
import type { ReportParts } from "../../observe/operator-report.ts";
import type { Runtime } from "../../runtime.ts";
import { newProcessId } from "../../shared/nodes/node-rows.ts";
import type { Store } from "../../shared/store/store.ts";
import type { ProfileRegistry } from "../../upstream/registry/profile-registry.ts";
import type { LiveView } from "../../web/api/parts.ts";
import type { NodeView } from "../cluster.ts";
import { busOf, type ServiceParts } from "../service-parts.ts";
import type { JoinedNode } from "../store/provider-limits.ts";
import { createFeedExchange } from "./feed-exchange.ts";
import {
  type HistoryService,
  historyAlone,
  historyOver,
  type ProcessHistory,
} from "./history-service.ts";
import { createHourReader, startHourWriter } from "./hour-history.ts";
import { NodeReports } from "./node-reports.ts";
import { operatorReports } from "./operator-reports.ts";

export interface OperatorViewParts {
  readonly runtime: Runtime;
  readonly log: Logger;
  readonly observer: Observer;
  readonly registry: ProfileRegistry;
  readonly subscriptions: ReportParts["subscriptions"];
  readonly version: string;
  /** Where hours of history are; null or in memory = nowhere. */
  readonly store: Store | null;
  /** Null = one node serves alone; the same for `joined`. */
  readonly node: NodeView | null;
  readonly joined: JoinedNode | null;
  /** Absent = this process is the whole service. */
  readonly service: ServiceParts | undefined;
}

type Feed = Observer["feed"];

/** History, reports and the live feed; keeps history from its creation on. */
export class OperatorView {
  readonly live: LiveView;
  readonly #feed: Feed;
  readonly #hub: FeedHub;
  readonly #nodeReports: NodeReports;
  readonly #clock: HistoryClock;
  readonly #kept: KeptHistory;
  readonly #stops: readonly (() => void)[];

  constructor(parts: OperatorViewParts) {
    const { runtime, observer, registry, service, version } = parts;
    const store = parts.store?.inMemory === true ? null : parts.store;
    const bus = busOf(service);
    const { feed } = observer;
    const kept = historyOf({ ...parts, store }, bus, {
      refresh: () => this.#clock.refresh(),
      takeChanges: () => feed.takeChanges(),
    });
    this.#feed = feed;
    this.#kept = kept;
    this.#clock = new HistoryClock({
      counts: observer.history,
      feed,
      registry,
      runtime,
      receive: kept.service.add,
    });
    this.#nodeReports = new NodeReports({ ...parts, bus });
    const exchange = bus === null ? null : createFeedExchange(bus, runtime);
    this.#hub = new FeedHub({ runtime, feed, exchange });
    this.#stops = [noteNodes(feed, parts.node), noteWorkers(feed, bus)];
    this.live = {
      runtime,
      reports: operatorReports(parts, bus),
      history: { ...kept.service, hours: createHourReader(kept.service, store, runtime) },
      nodes: () => this.#nodeReports.read(),
      hub: this.#hub,
      registry,
      version,
      worker: feed.worker,
      workers: service?.workers ?? 1,
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
    await this.#kept.end();
  }
}

interface KeptHistory {
  readonly service: HistoryService;
  end(): Promise<void>;
}

/** Where history is kept: here, or in the process that gathers it from all workers. */
function historyOf(
  { runtime, store, log }: OperatorViewParts,
  bus: Bus | null,
  own: ProcessHistory,
): KeptHistory {
  const id = newProcessId(runtime);
  if (bus !== null) {
    const service = historyOver(bus, id, own);
    return { service, end: service.end };
  }
  const history = new ServiceHistory({
    wallMs: runtime.wallMs,
    writer: store === null ? null : id,
  });
  const service = historyAlone(history, own);
  const endHours =
    store === null
      ? null
      : startHourWriter({ history, runtime, log, store: () => Promise.resolve(store) });
  return {
    service,
    async end() {
      await service.end();
      await endHours?.();
    },
  };
}

/** Tells the feed of nodes that join and leave; the returned function ends that. */
function noteNodes(feed: Feed, node: NodeView | null): () => void {
  const stop = node?.members.onNodes(({ joined, left }) => {
    for (const id of joined) noteNode(feed, `node ${id}`, "joined");
    for (const id of left) noteNode(feed, `node ${id}`, "left");
  });
  return () => stop?.();
}

/** The same for the workers of this service; `bus` null = there are no others. */
function noteWorkers(feed: Feed, bus: Bus | null): () => void {
  let known = bus?.workers() ?? [];
  const stop = bus?.onWorkers(() => {
    const now = bus.workers();
    for (const id of now) if (!known.includes(id)) noteNode(feed, `worker ${id}`, "joined");
    for (const id of known) if (!now.includes(id)) noteNode(feed, `worker ${id}`, "left");
    known = now;
  });
  return () => stop?.();
}

function noteNode(feed: Feed, node: string, change: "joined" | "left"): void {
  feed.emit({ type: "node", data: { node, change } });
}
