// A service of several workers: this process starts and supervises them, and serves nothing itself.
import { createServer } from "node:net";
import type { Logger } from "pino";
import { warnOfKeyless } from "../app/app.ts";
import { unnamedNode } from "../app/hosted.ts";
import { openSupervisedHistory } from "../app/live/hour-history.ts";
import {
  createServiceReload,
  type Reload,
  type ServiceReload,
  serveReload,
} from "../app/operators/reload-service.ts";
import { leaveForWorkers } from "../app/places-left.ts";
import { serveServiceFile, supervisedStore } from "../app/store/service-store.ts";
import { type MetricFamily, serveServiceDocuments } from "../app/workers/service-readings.ts";
import { serveCredit, serveStatements, serveTokens } from "../app/workers/supervisor-objects.ts";
import type { Config } from "../config/config.ts";
import { ChainIds, reloaded, warnOfFixedSections } from "../config/reload.ts";
import type { Bus } from "../core/workers/bus.ts";
import { keepAlive, realRuntime } from "../runtime.ts";
import { MachineShares } from "../shared/processes/machine-shares.ts";
import { Supervisor } from "../shared/processes/supervisor.ts";
import { workerProcesses } from "../shared/processes/worker-process.ts";
import type { Service } from "./serving-process.ts";

/** The input of a start. */
export interface ServiceStart {
  readonly config: Config;
  readonly log: Logger;
  readonly version: string;
  /** Number of processes. */
  readonly workers: number;
  /** Reads the configuration again and applies it. */
  readonly reload: Reload;
}

const START_MS = 60_000;
/** A worker that does not answer for this long is ended, where no node timeout is configured. */
const HUNG_MS = 30_000;
/** Time for writing pending usage after a drain. */
export const CLOSE_MS = 30_000;

/** Starts the workers; throws an error for the operator if none of them can serve. */
export async function startWorkers(start: ServiceStart): Promise<Service> {
  const { log } = start;
  const startedAtMs = realRuntime.now();
  const running = await settled(start.config);
  warnOfKeyless(running, log);
  const file = await serveServiceFile({ config: running, log, runtime: realRuntime });
  const shares = new MachineShares(realRuntime);
  const supervisor = new Supervisor<Config>({
    runtime: realRuntime,
    log,
    count: start.workers,
    startProcess: workerProcesses(process.argv[1] ?? ""),
    config: running,
    version: start.version,
    onWorkerEnd(id) {
      file?.statements.forget(id);
      shares.forget(id);
    },
    // A start may wait for the row of a node that was killed.
    startMs: ({ hosted }) => START_MS + (hosted?.nodeTimeoutMs ?? 0),
    hungMs: ({ hosted }) => hosted?.nodeTimeoutMs ?? HUNG_MS,
    drainMs: ({ limits }) => limits.drainTimeoutMs + CLOSE_MS,
  });
  const reload = createServiceReload(realRuntime, startedAtMs, start.reload);
  serveOverBus(supervisor.bus, file, shares, reload);
  const { bus, serviceId: id } = supervisor;
  const opened = supervisedStore(running, file);
  const ofService = { runtime: realRuntime, log, store: opened.open };
  const written = file?.store.inMemory === true ? null : opened.open;
  const endHistory = openSupervisedHistory({ ...ofService, bus, serviceId: id, store: written });
  const started = await supervisor.started;
  if (!started.ok) {
    supervisor.kill();
    await opened.close();
    throw new Error(started.problem);
  }
  const release = keepAlive();
  const chainIds = new ChainIds(running.chains);
  // Ends all workers at every exit of this process except SIGKILL.
  process.on("exit", () => supervisor.kill());
  return {
    port: started.ports.port,
    async reload(next) {
      const problem = chainIds.problemOf(next.chains);
      if (problem !== null) return problem;
      warnOfFixedSections(log, start.config, next);
      const refusal = await supervisor.reload(reloaded(running, next));
      if (refusal === null) chainIds.add(next.chains);
      return refusal;
    },
    async close() {
      if (!(await supervisor.drain())) process.exitCode = 1;
      await endHistory();
      await leaveForWorkers({ ...ofService, id, workers: supervisor.places });
      await opened.close();
      release();
    },
    kill: () => supervisor.kill(),
  };
}

/** Serves what this process has for all workers. */
function serveOverBus(
  bus: Bus,
  file: Awaited<ReturnType<typeof serveServiceFile>>,
  shares: MachineShares,
  reload: ServiceReload,
): void {
  if (file !== null) {
    serveStatements(bus, file.statements);
    serveCredit(bus, file.store);
  }
  serveReload(bus, reload);
  shares.serve(bus);
  serveTokens(bus, realRuntime);
  serveServiceDocuments({ bus, runtime: realRuntime, ownFamilies });
}

/**
 * Settles what each worker would choose for itself, also for those that start later: the name of
 * the node, and the ports where any free one may be taken.
 */
async function settled(config: Config): Promise<Config> {
  const { storageUrl, server, cluster } = config;
  const nodeId = cluster.nodeId === "" ? unnamedNode(storageUrl, realRuntime) : cluster.nodeId;
  const { metricsListen } = server;
  return {
    ...config,
    cluster: { ...cluster, nodeId },
    server: {
      ...server,
      ...(await withPort(server)),
      metricsListen: metricsListen === null ? null : await withPort(metricsListen),
    },
  };
}

/** An address with a free port where it may have any. */
async function withPort({ host, port }: { readonly host: string; readonly port: number }) {
  return { host, port: port === 0 ? await freePort(host) : port };
}

/** A port that is free now. */
function freePort(host: string): Promise<number> {
  const probe = createServer();
  return new Promise((resolve, reject) => {
    probe.once("error", reject);
    probe.listen(0, host, () => {
      const address = probe.address();
      const port = typeof address === "object" && address !== null ? address.port : 0;
      probe.close(() => resolve(port));
    });
  });
}

/** Memory and CPU time of this process: they are the service's as well. */
function ownFamilies(): readonly MetricFamily[] {
  const { user, system } = process.cpuUsage();
  return [
    { name: "process_resident_memory_bytes", samples: [[[], process.memoryUsage.rss()]] },
    { name: "process_cpu_seconds_total", samples: [[[], (user + system) / 1e6]] },
  ];
}
