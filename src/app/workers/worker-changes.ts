// What other workers of a service changed in the store, where the service is no node of a cluster:
// each worker reads the change log once a second, and at once when another says that it wrote.
import type { Logger } from "pino";
import { ChangeFeed } from "../../cluster/change-feed.ts";
import { type ChangePosition, currentPosition } from "../../cluster/change-log.ts";
import type { ClusterFollower } from "../../cluster/cluster.ts";
import { contactNow, watchContact } from "../../cluster/contact.ts";
import type { Bus, Topic } from "../../core/workers/bus.ts";
import type { Runtime } from "../../runtime.ts";
import type { Store } from "../../store/store.ts";

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
  return new WorkerChanges(parts, await currentPosition(parts.store));
}

/** Changes that workers make and hear of. */
export class WorkerChanges {
  readonly #parts: WorkerChangesParts;
  readonly #from: ChangePosition;
  readonly #ends: (() => void)[] = [];

  constructor(parts: WorkerChangesParts, from: ChangePosition) {
    this.#parts = parts;
    this.#from = from;
  }

  /** Tells the other workers that there is something to read: it only saves time. */
  written(): void {
    this.#parts.bus.publish(WRITTEN, true);
  }

  /** Passes on what was changed since this was opened. */
  follow(follower: ClusterFollower): void {
    const parts = this.#parts;
    const feed = new ChangeFeed({
      ...parts,
      signal: { subscribe: (run) => parts.bus.subscribe(WRITTEN, run) },
      pollMs: POLL_MS,
      from: this.#from,
      apply: follower.changed,
    });
    const endWatch = watchContact({ ...parts, feed }, follower.contact);
    follower.watch(() => contactNow({ ...parts, feed }));
    this.#ends.push(() => feed.close(), endWatch);
  }

  close(): void {
    for (const end of this.#ends) end();
  }
}
