// What providers may be sent, as it holds for the whole service: one process, the workers of a
// machine, or the nodes of a cluster, whose processes share through the database.
import type { Logger } from "pino";
import type { Config } from "../../config/config.ts";
import { errorText } from "../../core/fields.ts";
import { type Runtime, within } from "../../runtime.ts";
import { storedShares } from "../../shared/leases/stored-shares.ts";
import type { Cluster } from "../../shared/nodes/cluster.ts";
import { machineShares } from "../../shared/processes/machine-shares.ts";
import { type Store, urgently } from "../../shared/store/store.ts";
import type { QuotaSource } from "../../upstream/budget/provider-quota.ts";
import { LeasedShares, type Shares, WHOLE_SHARES } from "../../upstream/shares.ts";
import type { ServiceParts } from "../service-parts.ts";
import { StoredQuotas } from "./stored-quotas.ts";

/** What the budgets of providers are divided with. */
export interface ProviderLimits {
  /** Requests a second and at once. */
  readonly shares: Shares;
  /** Bounds of the workers of this machine. */
  readonly ofMachine: Shares;
  /** Credits of days and months. */
  readonly quotas: QuotaSource;
  /**
   * Takes credits from the store from now on, and shares with other nodes; null = there are none.
   * Resolves once it has shares.
   */
  join(store: Store, cluster: Pick<Cluster, "node" | "nodeTimeoutMs"> | null): Promise<void>;
  /** Gives back what is not used; nothing may be sent any more. */
  close(): Promise<void>;
}

/** What limits are held with. */
export interface ProviderLimitParts {
  readonly config: Pick<Config, "cluster">;
  readonly runtime: Runtime;
  readonly log: Logger;
  readonly service: Pick<ServiceParts, "bus" | "workers">;
}

/** The longest that the end of a process waits for the database. */
const CLOSE_MS = 5_000;

/** Opens what the budgets of this process are divided with. */
export function openProviderLimits({
  config,
  runtime,
  log,
  service,
}: ProviderLimitParts): ProviderLimits {
  const onError = (error: unknown): void =>
    log.warn(
      { problem: errorText(error) },
      "limits of providers cannot be divided now: this process keeps to its parts",
    );
  const { bus, workers: processes } = service;
  const ofWorkers =
    processes === 1 ? null : new LeasedShares({ runtime, members: processes, onError });
  // The supervisor frees what a worker has when its process has ended, and not before.
  ofWorkers?.join(machineShares(bus), Number.POSITIVE_INFINITY);
  const ofNodes = config.cluster.enabled ? new LeasedShares({ runtime, onError }) : null;
  const opened = Promise.withResolvers<Store>();
  const quotas = new StoredQuotas(opened.promise, { runtime, processes, onError });
  const ofMachine = ofWorkers ?? WHOLE_SHARES;
  return {
    shares: ofNodes ?? ofMachine,
    ofMachine,
    quotas,
    async join(store, cluster) {
      opened.resolve(urgently(store));
      if (ofNodes !== null) {
        if (cluster === null) throw new Error("a node of a cluster has no database");
        ofNodes.join(storedShares(urgently(store), cluster.node.id), cluster.nodeTimeoutMs);
      }
      await Promise.all([ofWorkers?.ready(), ofNodes?.ready()]);
    },
    async close() {
      const ends = Promise.all([ofWorkers?.close(), ofNodes?.close(), quotas.close()]);
      await within(
        runtime,
        CLOSE_MS,
        "returning shares of provider limits",
        ends.then(() => {}),
      ).catch(onError);
    },
  };
}
