// Builds what the operator sees of the running service beside metrics: history, reports of all
// workers and the live feed.
import type { Logger } from "pino";
import { newProcessId } from "../cluster/node-rows.ts";
import type { Bus } from "../core/workers/bus.ts";
import { FeedHub } from "../observe/feed/feed-hub.ts";
import { HistoryClock } from "../observe/history/history-clock.ts";
import { ServiceHistory } from "../observe/history/service-history.ts";
import type { Observer } from "../observe/observer.ts";
import type { ReportParts } from "../observe/operator-report.ts";
import type { Runtime } from "../runtime.ts";
import type { Store } from "../store/store.ts";
import type { ProfileRegistry } from "../upstream/registry/profile-registry.ts";
import type { LiveView } from "../web/api/instance-parts.ts";
import type { NodeView } from "./cluster.ts";
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
import type { JoinedNode } from "./provider-limits.ts";
import type { ServiceParts } from "./service-parts.ts";

/** The live side of a service. */
export interface LiveSide {
  readonly parts: LiveView;
  /** Says that the configuration was reloaded. */
  reloaded(profiles: number): void;
  /** Ends those who watch. */
  close(): void;
  /** Keeps what was counted last; after that nothing is counted. */
  end(): Promise<void>;
}

/** What it is built from. */
export interface LiveSideParts {
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

/** Builds it, and begins to keep history. */
export function createLiveSide(parts: LiveSideParts): LiveSide {
  const { runtime, observer, registry, service, version } = parts;
  const store = parts.store?.inMemory === true ? null : parts.store;
  const bus = service === undefined || service.workers === 1 ? null : service.bus;
  const { feed } = observer;
  const kept = historyOf({ ...parts, store }, bus, {
    refresh: () => clock.refresh(),
    takeChanges: () => feed.takeChanges(),
  });
  const clock = new HistoryClock({
    counts: observer.history,
    feed,
    registry,
    runtime,
    receive: kept.service.add,
  });
  const nodeReports = new NodeReports({ ...parts, bus });
  const stopNodes = parts.node?.members.onNodes(({ joined, left }) => {
    for (const id of joined) noteNode(observer, `node ${id}`, "joined");
    for (const id of left) noteNode(observer, `node ${id}`, "left");
  });
  const exchange = bus === null ? null : createFeedExchange(bus, runtime);
  const hub = new FeedHub({ runtime, feed, exchange });
  const reports = operatorReports(parts, bus);
  const history = { ...kept.service, hours: createHourReader(kept.service, store, runtime) };
  const workers = service?.workers ?? 1;
  let known = bus?.workers() ?? [];
  const stop = bus?.onWorkers(() => {
    const now = bus.workers();
    for (const id of now) if (!known.includes(id)) noteNode(observer, `worker ${id}`, "joined");
    for (const id of known) if (!now.includes(id)) noteNode(observer, `worker ${id}`, "left");
    known = now;
  });
  return {
    parts: {
      runtime,
      reports,
      history,
      nodes: () => nodeReports.read(),
      hub,
      registry,
      version,
      worker: feed.worker,
      workers,
    },
    reloaded: (profiles) => feed.emit({ type: "config", data: { what: "reloaded", profiles } }),
    close() {
      stop?.();
      stopNodes?.();
      nodeReports.draining();
      hub.close();
    },
    async end() {
      clock.close();
      nodeReports.close();
      await kept.end();
    },
  };
}

/** Where history is kept: here, or in the process that gathers it from all workers. */
function historyOf(
  { runtime, store, log }: LiveSideParts,
  bus: Bus | null,
  own: ProcessHistory,
): { readonly service: HistoryService; end(): Promise<void> } {
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

function noteNode({ feed }: Observer, node: string, change: "joined" | "left"): void {
  feed.emit({ type: "node", data: { node, change } });
}
