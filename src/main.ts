// The process: arguments, environment, files and signals. Everything else is told what it needs to know.
import { readFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { pino } from "pino";
import { type App, build } from "./app.ts";
import { formatFaults } from "./config/fault.ts";
import { type Config, type ConfigResult, loadConfig } from "./config.ts";
import { type Devnet, startDevnet } from "./devnet/anvil.ts";
import { withDevnet } from "./devnet/profile.ts";
import { exportEmbedded } from "./hosting.ts";
import { realWorld } from "./world.ts";

const USAGE = `usage: svc serve [--config FILE] [--port N] [--host H] [--log-level LEVEL]
       svc check-config FILE
       svc export --to postgres://… [--config FILE]
       svc version`;

const REPEATED_MS = 1_000;

const version = String((JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8")) as { version: unknown }).version);

const [command = "serve", ...rest] = process.argv.slice(2);
if (command === "serve") await serve(rest);
else if (command === "check-config") checkConfig(rest[0]);
else if (command === "export") await exportTo(rest);
else if (command === "version" || command === "--version") console.log(version);
else if (command === "help" || command === "--help") console.log(USAGE);
else refuse(`svc: unknown command ${command}\n${USAGE}`);

async function serve(args: readonly string[]): Promise<void> {
  const { config: file = process.env["SVC_CONFIG"] ?? "svc.yml", ...flags } = readFlags(args);
  const read = (): ConfigResult => readConfig(file, flags);
  const first = read();
  if (!first.ok) return refuse(formatFaults(first.faults));
  const log = pino({ level: first.config.logLevel, base: null, timestamp: pino.stdTimeFunctions.isoTime });
  const onProgress = (line: string): void => log.info(line);
  const devnet = first.config.devnet ? await startDevnet({ nodes: 3, onProgress }).catch((error: unknown) => refuse(`svc: ${String(error)}`)) : null;
  const complete = (config: Config): Config => (devnet === null ? config : withDevnet(config, devnet));
  const config = complete(first.config);
  const app = await build(config, { world: realWorld, log, version }).catch((error: unknown) => {
    void devnet?.close();
    return refuse(`svc: ${whyNotStarted(error, config)}`);
  });
  log.info(
    { host: config.server.host, port: app.port, chains: config.chains.map((it) => it.chainName), profiles: config.profiles.map((it) => it.slug) },
    "svc is serving",
  );
  if (!config.production) greet(config, app.port);
  process.on("SIGHUP", () => {
    const next = read();
    const problem = next.ok ? app.reload(complete(next.config)) : formatFaults(next.faults);
    if (problem === null) log.info("configuration reloaded");
    else log.error({ problem }, "configuration not reloaded: the running one stays");
  });
  let ending = false;
  process.on("uncaughtException", (error) => {
    log.fatal({ err: error }, "bug: finishing what was accepted, then ending with exit code 1");
    process.exitCode = 1;
    if (!ending) void end("uncaughtException", app, devnet);
    ending = true;
  });
  for (const signal of ["SIGTERM", "SIGINT"] as const) {
    process.once(signal, () => {
      if (!ending) void end(signal, app, devnet);
      ending = true;
    });
  }

  async function end(signal: string, app: App, devnet: Devnet | null): Promise<void> {
    log.info({ signal }, "draining: finishing what was accepted");
    const startedAtMs = realWorld.now();
    for (const again of ["SIGTERM", "SIGINT"] as const) {
      // One Ctrl-C may arrive twice: once from the terminal and once from whoever started this process.
      process.on(again, () => realWorld.now() - startedAtMs > REPEATED_MS && process.exit(1));
    }
    await app.close().catch((error: unknown) => log.error({ err: error }, "bug: not everything could be ended"));
    await devnet?.close();
    log.info("ended");
    process.exit();
  }
}

function checkConfig(file: string | undefined): void {
  if (file === undefined) return refuse(USAGE);
  const result = readConfig(file, {});
  if (!result.ok) return refuse(formatFaults(result.faults));
  const { chains, profiles } = result.config;
  console.log(`${file}: valid (${chains.length} chains, ${profiles.length} profiles)`);
}

async function exportTo(args: readonly string[]): Promise<void> {
  const { config: file = process.env["SVC_CONFIG"] ?? "svc.yml", to, ...rest } = readFlags(args, { to: { type: "string" } });
  if (to === undefined || Object.keys(rest).length > 0) return refuse(USAGE);
  const result = readConfig(file, {});
  if (!result.ok) return refuse(formatFaults(result.faults));
  console.log(
    await exportEmbedded(result.config, to, realWorld).catch((error: unknown) => refuse(`svc: ${error instanceof Error ? error.message : String(error)}`)),
  );
}

function readConfig(file: string, flags: Readonly<Record<string, string | undefined>>): ConfigResult {
  let text: Uint8Array;
  try {
    text = readFileSync(file);
  } catch (error) {
    const message = `cannot be read (${codeOf(error)}); name a configuration file with --config`;
    return { ok: false, faults: [{ file, line: 0, column: 0, path: "", message }] };
  }
  return loadConfig({ file, text, env: process.env, flags });
}

function readFlags(args: readonly string[], more: Readonly<Record<string, { readonly type: "string" }>> = {}): Readonly<Record<string, string | undefined>> {
  const option = { type: "string" } as const;
  try {
    const { values } = parseArgs({ args: [...args], options: { config: option, port: option, host: option, "log-level": option, ...more } });
    return { ...values };
  } catch (error) {
    return refuse(`svc: ${error instanceof Error ? error.message : String(error)}\n${USAGE}`);
  }
}

function greet(config: Config, port: number): void {
  const base = config.server.publicUrl ?? `http://${config.server.host}:${port}`;
  const chain = config.devnet ? "local" : (config.chains[0]?.chainName ?? "ethereum");
  console.log(`
svc is ready at ${base}

  curl -s ${base}/rpc/${chain} -H 'content-type: application/json' \\
       -d '{"jsonrpc":"2.0","id":1,"method":"eth_blockNumber","params":[]}'

${config.hosted === null ? "" : `  a key      curl -s -X POST ${base}/api/v1/agent/keys\n`}  websocket  ${base.replace(/^http/, "ws")}/ws/rpc/${chain}
  dashboard  ${base}/dashboard
  chains     ${base}/api/chains
  all of it  ${base}/llms.txt
`);
}

function whyNotStarted(error: unknown, { server }: Config): string {
  const isListening = error instanceof Error && "syscall" in error && error.syscall === "listen";
  if (isListening) return `cannot listen on ${server.host}:${server.port} (${codeOf(error)}); choose another with --port or --host`;
  return error instanceof Error ? error.message : String(error);
}

function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : String(error);
}

function refuse(message: string): never {
  console.error(message);
  process.exit(1);
}
