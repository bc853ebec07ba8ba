// `svc worker`: one worker process, started by `svc serve` only. Reads no file and handles no
// signal: the supervisor sends its configuration and its commands.
import type { Logger } from "pino";
import { type App, build } from "../app/app.ts";
import type { ServiceParts } from "../app/service-parts.ts";
import { type Config, frozen } from "../config/config.ts";
import { realRuntime, runtimeOf } from "../runtime.ts";
import { ConnectionSharing } from "../shared/processes/connection-sharing.ts";
import { linkToSupervisor, type SupervisorLink } from "../shared/processes/supervisor-link.ts";
import { refuse } from "./command.ts";
import { collectStartGarbage, endable, processLog, startProblem } from "./serving-process.ts";

const OPERATOR_SIGNALS = ["SIGTERM", "SIGINT", "SIGHUP"] as const;

/** Serves until the supervisor stops it or has exited. */
export async function work(): Promise<void> {
  // Signals of the operator are for the supervisor, but a terminal sends them to every process of
  // its group.
  for (const signal of OPERATOR_SIGNALS) process.on(signal, () => {});
  let log: Logger | null = null;
  const link = await linkToSupervisor<Config>({
    runtime: realRuntime,
    onError: (error) => log?.error({ err: error }, "bug: a message of a worker was not handled"),
  });
  if (link === null)
    return refuse("svc worker is started by svc serve, where server.workers is more than 1");
  const config = frozen(link.start.config);
  log = processLog(config, link.start.id);
  const app = await start(link, config, log);
  if (app === null) return;
  const { port, metricsPort } = app;
  const end = endable({
    log,
    close: async () => {
      await app.close();
      link.close();
    },
    kill: () => {},
  });
  link.onOrphaned(() => end("the supervisor is gone"));
  collectStartGarbage();
  link.report({ kind: "ready", ports: { port, metricsPort } });
  link.onCommand((command) => {
    switch (command.kind) {
      case "drain":
        return end("SIGTERM");
      case "reload":
        return link.report({
          kind: "reloaded",
          id: command.id,
          problem: app.reload(frozen(command.config)),
        });
    }
  });
}

/** Starts serving; null = it failed, which was reported to the supervisor. */
async function start(
  link: SupervisorLink<Config>,
  config: Config,
  log: Logger,
): Promise<App | null> {
  const { bus, report, close } = link;
  const { version, count, serviceId, startedWallMs } = link.start;
  const runtime = runtimeOf({ index: Number(bus.self) - 1, of: count });
  const sharing = new ConnectionSharing(bus, runtime);
  const otherWorkers: ServiceParts["otherWorkers"] = {
    takes(socket) {
      const other = sharing.otherFor();
      return other !== null && link.passOn(socket, other);
    },
    opened: () => sharing.opened(),
    onPassed: link.onPassed,
  };
  const service = { bus, id: serviceId, otherWorkers, workers: count, startedWallMs };
  try {
    return await build(config, { runtime, log, version, service });
  } catch (error) {
    report({ kind: "failed", problem: startProblem(error, config) });
    close();
    process.exitCode = 1;
    return null;
  }
}
