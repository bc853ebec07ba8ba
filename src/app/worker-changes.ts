// What other workers of a service changed in the store, where the service is no node of a cluster:
// each worker reads the change log once a second, and at once when another says that it wrote.
import type { Logger } from "pino";
import { ChangeFeed } from "../cluster/change-feed.ts";
import { currentPosition } from "../cluster/change-log.ts";
import type { ClusterFollower } from "../cluster/cluster.ts";
import { contactNow, watchContact } from "../cluster/contact.ts";
import type { Bus, Topic } from "../core/workers/bus.ts";
import type { Runtime } from "../runtime.ts";
import type { Store } from "../store/store.ts";

/** Changes that workers make and hear of. */
export interface WorkerChanges {
  /** Tells the other workers that there is something to read: it only saves time. */
  written(): void;
  /** Passes on what was changed since this was opened. */
  follow(follower: ClusterFollower): void;
  close(): void;
}

/** What changes are read with. */
export interface WorkerChangesParts {
  readonly bus: Bus;
  readonly store: Pick<Store, "db">;
  readonly runtime: Runtime;
  readonly nodeTimeoutMs: number;
  readonly log: Pick<Logger, "warn" | "info">;
  readonly onError: (error: unknown) => void;
}

const POLL_MS = 1_000;

const WRITTEN: Topic<true> = { name: "changes written" };

/** Opens the changes from now on: before anything that they concern is read. */
export async function openWorkerChanges(parts: WorkerChangesParts): Promise<WorkerChanges> {
  const { bus, store } = parts;
  const from = await currentPosition(store);
  const ends: (() => void)[] = [];
  return {
    written: () => bus.publish(WRITTEN, true),
    follow(follower) {
      const feed = new ChangeFeed({
        ...parts,
        signal: { subscribe: (run) => bus.subscribe(WRITTEN, run) },
        pollMs: POLL_MS,
        from,
        apply: follower.changed,
      });
      const endWatch = watchContact({ ...parts, feed }, follower.contact);
      follower.watch(() => contactNow({ ...parts, feed }));
      ends.push(() => feed.close(), endWatch);
    },
    close() {
      for (const end of ends) end();
    },
  };
}
