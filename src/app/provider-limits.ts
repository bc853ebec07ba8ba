// What providers may be sent, as it holds for the whole service: one process, the workers of a
// machine, or the nodes of a cluster, whose processes share through the database.
import type { Logger } from "pino";
import { addCredits, leaseCredits, returnCredits } from "../cluster/stored-quotas.ts";
import { storedShares } from "../cluster/stored-shares.ts";
import type { Config } from "../config/config.ts";
import type { QuotaRecord } from "../core/provider/quota.ts";
import type { HintPort } from "../core/workers/hint-port.ts";
import { type Runtime, within } from "../runtime.ts";
import { type Store, urgently } from "../store/store.ts";
import type { QuotaLease, QuotaRequest, QuotaSource } from "../upstream/budget/quota-source.ts";
import { createNodeShares } from "../upstream/node-shares.ts";
import type { Shares } from "../upstream/worker-shares.ts";
import { moveKeptQuotas, openQuotaLedger, quotasOver } from "./quota-service.ts";
import type { ServiceParts } from "./service-parts.ts";

/** What the budgets of providers are divided with. */
export interface ProviderLimits {
  /** Requests a second and at once. */
  readonly shares: Shares;
  /** Credits of days and months. */
  readonly quotas: QuotaSource;
  /** Shares with other nodes from now on, where there are any. Resolves once it has shares. */
  join(node: JoinedNode | null): Promise<void>;
  /** Gives back what is not used; nothing may be sent any more. */
  close(): Promise<void>;
}

/** This process among those that serve together on one database. */
export interface JoinedNode {
  readonly store: Store;
  /** Unique among the living; a process that starts in the place of another has its name. */
  readonly id: string;
  /** After this, what a silent process had is another's. */
  readonly nodeTimeoutMs: number;
  readonly hints: HintPort;
}

/** What limits are held with. */
export interface ProviderLimitParts {
  readonly config: Pick<Config, "cluster" | "dataDir">;
  readonly runtime: Runtime;
  readonly log: Logger;
  /** How bounds are divided between the workers of this machine. */
  readonly workerShares: Shares;
  /** Null = there are no other workers. */
  readonly bus: ServiceParts["bus"] | null;
}

/** The longest that the end of a process waits for the database. */
const CLOSE_MS = 5_000;

/** Opens what the budgets of this process are divided with. */
export async function openProviderLimits(parts: ProviderLimitParts): Promise<ProviderLimits> {
  const { config, runtime, log, workerShares, bus } = parts;
  if (config.cluster.enabled) return limitsOfNodes(parts);
  const { dataDir } = config;
  const quotas = bus === null ? await openQuotaLedger({ runtime, log, dataDir }) : quotasOver(bus);
  return { shares: workerShares, quotas, join: async () => {}, close: () => quotas.close() };
}

function limitsOfNodes({ config, runtime, log }: ProviderLimitParts): ProviderLimits {
  const onError = (error: unknown): void =>
    log.warn(
      { problem: error instanceof Error ? error.message : String(error) },
      "limits of providers cannot be divided between nodes now: this one keeps to its parts",
    );
  const shares = createNodeShares({ runtime, onError });
  const joined = Promise.withResolvers<Store>();
  const quotas = storedQuotas(joined.promise, onError);
  return {
    shares,
    quotas,
    async join(node) {
      if (node === null) throw new Error("a node of a cluster has no database");
      const store = urgently(node.store);
      const add = (key: string, record: QuotaRecord) => addCredits(store, key, record);
      await moveKeptQuotas(config.dataDir, add).catch((error: unknown) =>
        log.error(
          { problem: error instanceof Error ? error.message : String(error) },
          "what this node spent of the credits of providers by itself is not counted before its " +
            "next start: see data_dir",
        ),
      );
      joined.resolve(store);
      shares.join(storedShares(store, node.id), node.nodeTimeoutMs);
      await shares.ready();
    },
    async close() {
      const ends = Promise.all([shares.close(), quotas.close()]);
      await within(
        runtime,
        CLOSE_MS,
        ends.then(() => {}),
      ).catch(onError);
    },
  };
}

/** Credits from a store, once there is one. */
function storedQuotas(
  opened: Promise<Pick<Store, "transaction">>,
  onError: (error: unknown) => void,
): QuotaSource {
  const underWay = new Set<Promise<unknown>>();
  let isFailing = false;
  const failed = (error: unknown): null => {
    // What follows from a database that does not answer is told by others, again and again.
    if (!isFailing) onError(error);
    isFailing = true;
    return null;
  };
  async function lease(request: QuotaRequest): Promise<QuotaLease | null> {
    const credits = await leaseCredits(await opened, request);
    isFailing = false;
    return credits;
  }
  function counted<T>(work: Promise<T>): Promise<T> {
    const ended: Promise<unknown> = work.then(() => void underWay.delete(ended));
    underWay.add(ended);
    return work;
  }
  return {
    lease: (request) => counted(lease(request).catch(failed)),
    giveBack(key, unspent) {
      const returning = opened.then((store) => returnCredits(store, key, unspent));
      void counted(returning.catch(failed));
    },
    async close() {
      // A lease that comes now is given back.
      while (underWay.size > 0) await Promise.all(underWay);
    },
  };
}
