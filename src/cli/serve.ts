// `svc serve`: starts the service, in this process or in several workers, reloads its configuration
// on SIGHUP, and drains it on SIGTERM and SIGINT.
import type { Logger } from "pino";
import { build } from "../app/app.ts";
import { named } from "../app/cluster.ts";
import { type NewSignInLink, newSignInLink } from "../app/operators/operator-console.ts";
import type { Reload } from "../app/operators/reload-service.ts";
import type { Config } from "../config/config.ts";
import { formatFaults } from "../config/config-fault.ts";
import { isLoopback } from "../devnet/payments/wallets.ts";
import { realRuntime } from "../runtime.ts";
import { type CommandInput, refuse } from "./command.ts";
import { greet } from "./greeting.ts";
import { type ReadConfig, readConfig, requireConfig } from "./read-config.ts";
import {
  collectStartGarbage,
  endOnSignals,
  processLog,
  type Service,
  startProblem,
} from "./serving-process.ts";
import type { ServiceStart } from "./supervise.ts";
import { whyOne, workerCount } from "./worker-count.ts";

/** Serves until a signal ends it. */
export async function serve(input: CommandInput): Promise<void> {
  const first = requireConfig(input, true);
  const log = processLog(first.config, null);
  for (const warning of first.warnings) log.warn(formatFaults([warning]));
  const telling = {
    onProgress: (line: string): void => log.info(line),
    onProblem: (line: string): void => log.warn(line),
  };
  const local = first.config.devnet
    ? await (await import("./local-chain.ts")).startLocal(first.config, telling)
    : null;
  const signIn = hasSignInLink(first.config) ? newSignInLink(realRuntime) : null;
  const complete = (config: Config): Config =>
    withSignInLink(local?.complete(config) ?? config, signIn);
  const config = named(complete(first.config), realRuntime);
  const workers = workerCount(config);
  if (workers === 1 && config.server.workers !== 1) log.info(`one worker: ${whyOne()}`);
  const start = workers === 1 ? startHere : (await import("./supervise.ts")).startWorkers;
  // A file that is gone is a fault; one that has come since the start is read.
  const reloader = new Reloader(() => readConfig(input, first.lackingFile !== null), complete, log);
  const { version } = input;
  const service = await start({ config, log, version, workers, reload: reloader.reload }).catch(
    (error: unknown) => {
      void local?.close();
      return refuse(`svc: ${startProblem(error, config)}`);
    },
  );
  collectStartGarbage();
  reloader.running = service;
  process.on("SIGHUP", () => void reloader.reload());
  endOnSignals({
    log,
    close: async () => {
      await service.close();
      await local?.close();
    },
    kill: service.kill,
  });
  // Last: a signal may come as soon as the line is read that it serves.
  const { chains, profiles, server } = config;
  log.info(
    {
      host: server.host,
      port: service.port,
      ...(workers === 1 ? {} : { workers }),
      chains: chains.map((chain) => chain.chainName),
      profiles: profiles.map((profile) => profile.slug),
    },
    "svc is serving",
  );
  if (config.production) return;
  const { lackingFile } = first;
  greet({ config, port: service.port, local, signIn: signIn?.secret ?? null, lackingFile });
}

/** Whether a link to sign in is printed: where nobody else can read it or be reached by it. */
function hasSignInLink({ devnet, production, server }: Config): boolean {
  return devnet && !production && isLoopback(server.host);
}

function withSignInLink(config: Config, signIn: NewSignInLink | null): Config {
  return signIn === null
    ? config
    : { ...config, server: { ...config.server, signInLink: signIn.link } };
}

/** Reloads the configuration, for a signal and for an operator. */
class Reloader {
  readonly #read: () => ReadConfig;
  readonly #complete: (config: Config) => Config;
  readonly #log: Logger;
  /** Null = there is nothing to reload yet. */
  running: Service | null = null;

  constructor(read: () => ReadConfig, complete: (config: Config) => Config, log: Logger) {
    this.#read = read;
    this.#complete = complete;
    this.#log = log;
  }

  readonly reload: Reload = async () => {
    if (this.running === null) return { problem: "the service is still starting", revision: null };
    const next = this.#read();
    const { revision } = next;
    if (next.ok) for (const warning of next.warnings) this.#log.warn(formatFaults([warning]));
    const problem = next.ok
      ? await this.running.reload(this.#complete(next.config))
      : formatFaults(next.faults);
    if (problem === null) this.#log.info({ revision }, "configuration reloaded");
    else
      this.#log.error({ problem, revision }, "configuration not reloaded: the running one stays");
    return { problem, revision };
  };
}

/** Starts the service within this process. */
async function startHere({ config, log, version, reload }: ServiceStart): Promise<Service> {
  const app = await build(config, { runtime: realRuntime, log, version, reload });
  return {
    port: app.port,
    reload: async (next) => app.reload(next),
    close: app.close,
    kill: () => {},
  };
}
