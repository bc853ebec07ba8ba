// `svc serve`: starts the service, reloads its configuration on SIGHUP, and drains it on SIGTERM
// and SIGINT.
import { pino } from "pino";
import { type App, build } from "../app/app.ts";
import type { Config, ConfigResult } from "../config/config.ts";
import { formatFaults } from "../config/config-fault.ts";
import { realRuntime } from "../runtime.ts";
import { type CommandInput, codeOf, refuse } from "./command.ts";
import { greet } from "./greeting.ts";
import { startLocal } from "./local-chain.ts";
import { readConfig, readFlags } from "./read-config.ts";

const REPEATED_MS = 1_000;

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
  process.on("SIGHUP", () => {
    const next = read();
    if (next.ok) for (const warning of next.warnings) log.warn(formatFaults([warning]));
    const problem = next.ok ? app.reload(complete(next.config)) : formatFaults(next.faults);
    if (problem === null) log.info("configuration reloaded");
    else log.error({ problem }, "configuration not reloaded: the running one stays");
  });
  let ending = false;
  process.on("uncaughtException", (error) => {
    log.fatal({ err: error }, "bug: finishing what was accepted, then ending with exit code 1");
    process.exitCode = 1;
    if (!ending) void end("uncaughtException", app);
    ending = true;
  });
  for (const signal of ["SIGTERM", "SIGINT"] as const) {
    process.once(signal, () => {
      if (!ending) void end(signal, app);
      ending = true;
    });
  }

  async function end(signal: string, app: App): Promise<void> {
    log.info({ signal }, "draining: finishing what was accepted");
    const startedAtMs = realRuntime.now();
    for (const again of ["SIGTERM", "SIGINT"] as const) {
      // One Ctrl-C may arrive twice: once from the terminal and once from whoever started this
      // process.
      process.on(again, () => realRuntime.now() - startedAtMs > REPEATED_MS && process.exit(1));
    }
    await app
      .close()
      .catch((error: unknown) => log.error({ err: error }, "bug: not everything could be ended"));
    await local?.close();
    log.info("ended");
    process.exit();
  }
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
