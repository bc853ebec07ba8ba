// Builds what the operator sees of the running service beside metrics: history, reports of all
// workers and the live feed.

import { FeedHub } from "../observe/feed/feed-hub.ts";
import { startHistoryClock } from "../observe/history/history-clock.ts";
import type { Observer } from "../observe/observer.ts";
import type { Runtime } from "../runtime.ts";
import type { ProfileRegistry } from "../upstream/registry/profile-registry.ts";
import type { Subscriptions } from "../upstream/stream/subscriptions.ts";
import type { LiveView } from "../web/api/instance-parts.ts";
import { createFeedExchange } from "./feed-exchange.ts";
import { operatorReports } from "./operator-reports.ts";
import type { ServiceParts } from "./service-parts.ts";

/** The live side of a service. */
export interface LiveSide {
  readonly parts: LiveView;
  /** Says that the configuration was reloaded. */
  reloaded(profiles: number): void;
  /** Ends those who watch. */
  close(): void;
}

/** What it is built from. */
export interface LiveSideParts {
  readonly runtime: Runtime;
  readonly observer: Observer;
  readonly registry: ProfileRegistry;
  readonly subscriptions: Subscriptions;
  readonly version: string;
  /** Absent = this process is the whole service. */
  readonly service: ServiceParts | undefined;
}

/** Builds it, and begins to keep history. */
export function createLiveSide(parts: LiveSideParts): LiveSide {
  const { runtime, observer, registry, service, version } = parts;
  const bus = service === undefined || service.workers === 1 ? null : service.bus;
  const { feed } = observer;
  const clock = startHistoryClock(observer, registry, runtime);
  const exchange = bus === null ? null : createFeedExchange(bus, runtime);
  const hub = new FeedHub({ runtime, feed, exchange });
  const reports = operatorReports({ ...parts, clock }, bus);
  const workers = service?.workers ?? 1;
  let known = bus?.workers() ?? [];
  const stop = bus?.onWorkers(() => {
    const now = bus.workers();
    for (const id of now) if (!known.includes(id)) noteWorker(observer, id, "joined");
    for (const id of known) if (!now.includes(id)) noteWorker(observer, id, "left");
    known = now;
  });
  return {
    parts: { runtime, reports, hub, registry, version, worker: feed.worker, workers },
    reloaded: (profiles) => feed.emit({ type: "config", data: { what: "reloaded", profiles } }),
    close() {
      stop?.();
      clock.close();
      hub.close();
    },
  };
}

function noteWorker({ feed }: Observer, id: string, change: "joined" | "left"): void {
  feed.emit({ type: "node", data: { node: `worker ${id}`, change } });
}
