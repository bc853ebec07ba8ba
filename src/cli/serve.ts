// `svc serve`: starts the service, reloads its configuration on SIGHUP, and drains it on SIGTERM
// and SIGINT.
import { type Logger, pino } from "pino";
import { type App, build } from "../app/app.ts";
import type { Config, ConfigResult } from "../config/config.ts";
import { formatFaults } from "../config/config-fault.ts";
import { realRuntime } from "../runtime.ts";
import { type CommandInput, codeOf, refuse } from "./command.ts";
import { greet } from "./greeting.ts";
import { type LocalChain, startLocal } from "./local-chain.ts";
import { readConfig, readFlags } from "./read-config.ts";

/** A second signal within this time is taken for the same one. */
const REPEATED_MS = 1_000;
const SIGNALS = ["SIGTERM", "SIGINT"] as const;

/** Serves until a signal ends it. */
export async function serve({ args, env, version }: CommandInput): Promise<void> {
  const { config: file = env["SVC_CONFIG"] ?? "svc.yml", ...flags } = readFlags(args);
  const read = (): ConfigResult => readConfig({ file, flags, env });
  const first = read();
  if (!first.ok) return refuse(formatFaults(first.faults));
  const log = pino({
    level: first.config.logLevel,
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
  });
  for (const warning of first.warnings) log.warn(formatFaults([warning]));
  const onProgress = (line: string): void => log.info(line);
  const local = first.config.devnet ? await startLocal(first.config, onProgress) : null;
  const complete = (config: Config): Config => local?.complete(config) ?? config;
  const config = complete(first.config);
  const app = await build(config, { runtime: realRuntime, log, version }).catch(
    (error: unknown) => {
      void local?.close();
      return refuse(`svc: ${whyNotStarted(error, config)}`);
    },
  );
  log.info(
    {
      host: config.server.host,
      port: app.port,
      chains: config.chains.map((chain) => chain.chainName),
      profiles: config.profiles.map((profile) => profile.slug),
    },
    "svc is serving",
  );
  if (!config.production) greet(config, app.port, local);
  process.on("SIGHUP", () => reload(read(), complete, { app, log }));
  endOnSignals({ app, log, local });
}

/** A service that runs, and what it runs with on this machine. */
interface Running {
  readonly app: App;
  readonly log: Logger;
  readonly local: LocalChain | null;
}

function reload(
  next: ConfigResult,
  complete: (config: Config) => Config,
  { app, log }: Pick<Running, "app" | "log">,
): void {
  if (next.ok) for (const warning of next.warnings) log.warn(formatFaults([warning]));
  const problem = next.ok ? app.reload(complete(next.config)) : formatFaults(next.faults);
  if (problem === null) log.info("configuration reloaded");
  else log.error({ problem }, "configuration not reloaded: the running one stays");
}

/** Ends the process once, at the first signal or bug. */
function endOnSignals(running: Running): void {
  let isEnding = false;
  const endOnce = (reason: string): void => {
    if (!isEnding) void end(reason, running);
    isEnding = true;
  };
  process.on("uncaughtException", (error) => {
    running.log.fatal(
      { err: error },
      "bug: finishing what was accepted, then ending with exit code 1",
    );
    process.exitCode = 1;
    endOnce("uncaughtException");
  });
  for (const signal of SIGNALS) process.once(signal, () => endOnce(signal));
}

async function end(signal: string, { app, log, local }: Running): Promise<void> {
  log.info({ signal }, "draining: finishing what was accepted");
  const startedAtMs = realRuntime.now();
  for (const again of SIGNALS) {
    // One Ctrl-C may arrive twice: from the terminal, and from the process that started this one.
    process.on(again, () => realRuntime.now() - startedAtMs > REPEATED_MS && process.exit(1));
  }
  await app
    .close()
    .catch((error: unknown) => log.error({ err: error }, "bug: not everything could be ended"));
  await local?.close();
  log.info("ended");
  process.exit();
}

function whyNotStarted(error: unknown, { server }: Config): string {
  const isListening = error instanceof Error && "syscall" in error && error.syscall === "listen";
  if (isListening)
    return (
      `cannot listen on ${server.host}:${server.port} (${codeOf(error)}); choose another with ` +
      "--port or --host"
    );
  return error instanceof Error ? error.message : String(error);
}
