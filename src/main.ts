// The process: arguments, environment, files and signals. Everything else is told what it needs to know.
import { readFileSync } from "node:fs";
import { setTimeout } from "node:timers/promises";
import { parseArgs } from "node:util";
import { pino } from "pino";
import { type App, build } from "./app.ts";
import { formatFaults } from "./config/fault.ts";
import { type Config, type ConfigResult, loadConfig } from "./config.ts";
import { type Devnet, startDevnet } from "./devnet/anvil.ts";
import type { LocalPayments } from "./devnet/payments/local.ts";
import { isLoopback } from "./devnet/payments/loopback.ts";
import { withDevnet } from "./devnet/profile.ts";
import { exportEmbedded } from "./hosting.ts";
import { helpOf, usage } from "./main-help.ts";
import { realWorld } from "./world.ts";

const REPEATED_MS = 1_000;

const version = String((JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8")) as { version: unknown }).version);

const [command = "serve", ...rest] = process.argv.slice(2);
if (command === "help") help(rest[0]);
else if (process.argv.includes("--help")) help(command);
else if (command === "serve") await serve(rest);
else if (command === "check-config") checkConfig(rest[0]);
else if (command === "export") await exportTo(rest);
else if (command === "audit") await auditAll(rest);
else if (command === "pay") await payFor(rest);
else if (command === "version" || command === "--version") console.log(version);
else refuse(`svc: unknown command ${command}\n${usage()}`);

function help(about: string | undefined): void {
  const text = about === undefined || about === "--help" ? usage() : helpOf(about);
  if (text === null) refuse(`svc: unknown command ${about}\n${usage()}`);
  else console.log(text);
}

async function serve(args: readonly string[]): Promise<void> {
  const { config: file = process.env["SVC_CONFIG"] ?? "svc.yml", ...flags } = readFlags(args);
  const read = (): ConfigResult => readConfig(file, flags);
  const first = read();
  if (!first.ok) return refuse(formatFaults(first.faults));
  const log = pino({ level: first.config.logLevel, base: null, timestamp: pino.stdTimeFunctions.isoTime });
  for (const warning of first.warnings) log.warn(formatFaults([warning]));
  const onProgress = (line: string): void => log.info(line);
  const local = first.config.devnet ? await startLocal(first.config, onProgress) : null;
  const complete = (config: Config): Config => local?.complete(config) ?? config;
  const config = complete(first.config);
  const app = await build(config, { world: realWorld, log, version }).catch((error: unknown) => {
    void local?.close();
    return refuse(`svc: ${whyNotStarted(error, config)}`);
  });
  log.info(
    { host: config.server.host, port: app.port, chains: config.chains.map((it) => it.chainName), profiles: config.profiles.map((it) => it.slug) },
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
    const startedAtMs = realWorld.now();
    for (const again of ["SIGTERM", "SIGINT"] as const) {
      // One Ctrl-C may arrive twice: once from the terminal and once from whoever started this process.
      process.on(again, () => realWorld.now() - startedAtMs > REPEATED_MS && process.exit(1));
    }
    await app.close().catch((error: unknown) => log.error({ err: error }, "bug: not everything could be ended"));
    await local?.close();
    log.info("ended");
    process.exit();
  }
}

/** What runs on this machine to try the service with. */
interface Local {
  /** A configuration with it. */
  readonly complete: (config: Config) => Config;
  /** Lines that tell how to pay; empty where nothing can be paid. */
  readonly payingLines: (base: string) => string;
  readonly close: () => Promise<unknown>;
}

/** Starts the local chain, and payments on it where only this machine reaches them. */
async function startLocal(config: Config, onProgress: (line: string) => void): Promise<Local> {
  const starting = startDevnet({ nodes: 3, onProgress });
  const paying = startPaying(config, starting, onProgress);
  const devnet: Devnet = await starting.catch((error: unknown) => refuse(`svc: ${String(error)}`));
  const payments = await paying;
  return {
    complete: (it) => payments?.into(withDevnet(it, devnet)) ?? withDevnet(it, devnet),
    payingLines: (base) => payments?.lines(base, devnet.chain.chainName) ?? "",
    close: () => Promise.all([payments?.close(), devnet.close()]),
  };
}

/** Loaded only here: an instance without a local chain knows nothing of it. Null = there are no local payments. */
async function startPaying(config: Config, devnet: Promise<Devnet>, onProgress: (line: string) => void) {
  if (config.hosted === null) return null;
  const { host, publicUrl } = config.server;
  const reached = [host, ...(publicUrl === null ? [] : [new URL(publicUrl).hostname])].find((it) => !isLoopback(it));
  if (reached !== undefined) {
    onProgress(
      `no local payments: others may reach ${reached}, and local money is worth nothing. They come with server.host 127.0.0.1 and no other public_url`,
    );
    return null;
  }
  try {
    const [local, greeting, left] = await Promise.all([
      import("./devnet/payments/local.ts"),
      import("./devnet/payments/greeting.ts"),
      import("./devnet/payments/local-rails.ts"),
    ]);
    const chains: LocalPayments = await local.startLocalPayments({ devnet, world: realWorld, onProgress });
    const forget = left.leaveLocalRails(config.dataDir, chains.rails);
    const into = (it: Config): Config => local.withLocalPayments(it, chains);
    const close = async (): Promise<void> => {
      forget();
      await chains.close();
    };
    return { into, close, lines: (base: string, chain: string) => greeting.payingLines(base, chain, chains) };
  } catch (error) {
    onProgress(`no local payments: ${String(error)}`);
    return null;
  }
}

function checkConfig(file: string | undefined): void {
  if (file === undefined) return refuse(usage());
  const result = readConfig(file, {});
  if (!result.ok) return refuse(formatFaults(result.faults));
  const { chains, profiles } = result.config;
  if (result.warnings.length > 0) console.error(result.warnings.map((warning) => `warning: ${formatFaults([warning])}`).join("\n"));
  console.log(`${file}: valid (${chains.length} chains, ${profiles.length} profiles)`);
}

async function exportTo(args: readonly string[]): Promise<void> {
  const { config: file = process.env["SVC_CONFIG"] ?? "svc.yml", to, ...rest } = readFlags(args, { to: { type: "string" } });
  if (to === undefined || Object.keys(rest).length > 0) return refuse(usage());
  const result = readConfig(file, {});
  if (!result.ok) return refuse(formatFaults(result.faults));
  console.log(
    await exportEmbedded(result.config, to, realWorld).catch((error: unknown) => refuse(`svc: ${error instanceof Error ? error.message : String(error)}`)),
  );
}

/** Exit code 1 = something differs, 2 = it could not be found out. */
async function auditAll(args: readonly string[]): Promise<void> {
  const { config: file = process.env["SVC_CONFIG"] ?? "svc.yml", since, ...rest } = readFlags(args, { since: { type: "string" } });
  const sinceMs = since === undefined ? null : Date.parse(since);
  if (Object.keys(rest).length > 0 || Number.isNaN(sinceMs)) return refuse(usage());
  const result = readConfig(file, {});
  if (!result.ok) return refuse(formatFaults(result.faults));
  const { config } = result;
  const [{ auditMoney }, { readLocalRails }] = await Promise.all([import("./auditing.ts"), import("./devnet/payments/local-rails.ts")]);
  try {
    const localRails = config.devnet ? readLocalRails(config.dataDir) : [];
    const report = await auditMoney({ config, world: realWorld, localRails, sinceMs, onProgress: (line) => console.error(line) });
    for (const line of report.lines) console.log(line);
    process.exitCode = report.clean ? 0 : 1;
  } catch (error) {
    console.error(`svc: ${error instanceof Error ? error.message : String(error)}`);
    process.exitCode = 2;
  }
}

/** Pays an offer by EIP-3009. The key of the wallet comes from a file or the environment: what stands in a command line, others on the machine can read. */
async function payFor(args: readonly string[]): Promise<void> {
  const { pay } = await import("./devnet/payments/pay.ts");
  const text = { type: "string" } as const;
  const options = { method: text, data: text, rpc: text, "max-usd": text, "key-file": text };
  let parsed: { readonly values: Readonly<Record<string, string | undefined>>; readonly positionals: readonly string[] };
  try {
    parsed = parseArgs({ args: [...args], options, allowPositionals: true });
  } catch (error) {
    return refuse(`svc: ${error instanceof Error ? error.message : String(error)}\n${usage()}`);
  }
  const { method, data, rpc, "max-usd": maxUsd = "1", "key-file": keyFile } = parsed.values;
  const [url] = parsed.positionals;
  if (url === undefined || parsed.positionals.length > 1 || !URL.canParse(url)) return refuse(usage());
  const key = keyFile === undefined ? process.env["SVC_PAY_KEY"] : readKey(keyFile);
  const given = { url, method: method ?? (data === undefined ? "GET" : "POST"), data: data ?? null, rpcUrl: rpc ?? null, maxUsd };
  const outcome = { pause: (ms: number) => setTimeout(ms), print: (it: string) => console.log(it), say: (it: string) => console.error(`svc: ${it}`) };
  if (!(await pay({ ...given, ...outcome, key: key === undefined ? null : walletKeyOf(key) }))) process.exitCode = 1;
}

function readKey(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    return refuse(`svc: ${file} cannot be read (${codeOf(error)})`);
  }
}

function walletKeyOf(text: string): `0x${string}` {
  const digits = /^\s*0x([0-9a-fA-F]{64})\s*$/.exec(text)?.[1];
  return digits === undefined ? refuse("svc: the wallet's key is not 0x and 64 hex digits") : `0x${digits}`;
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
    return refuse(`svc: ${error instanceof Error ? error.message : String(error)}\n${usage()}`);
  }
}

function greet(config: Config, port: number, local: Local | null): void {
  const base = config.server.publicUrl ?? `http://${config.server.host}:${port}`;
  const profile = config.profiles.find((it) => it.slug === "public") ?? config.profiles[0];
  const served = config.chains.find((it) => profile?.chains.has(it.chainName));
  const chain = config.devnet ? "local" : (served?.chainName ?? "ethereum");
  console.log(`
svc is ready at ${base}

  curl -s ${base}/rpc/${chain} -H 'content-type: application/json' \\
       -d '{"jsonrpc":"2.0","id":1,"method":"eth_blockNumber","params":[]}'

${config.hosted === null ? "" : `  a key      curl -s -X POST ${base}/api/v1/agent/keys\n`}  websocket  ${base.replace(/^http/, "ws")}/ws/rpc/${chain}
  dashboard  ${base}/dashboard
  chains     ${base}/api/chains
  all of it  ${base}/llms.txt

${local?.payingLines(base) ?? ""}`);
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
