// The systems to be measured: the upstream itself, nginx in front of it, and this service in front
// of it in several configurations, each with its processes and one port.
import { type ChildProcess, type SpawnOptions, spawn, spawnSync } from "node:child_process";
import { closeSync, mkdirSync, openSync, readFileSync, writeFileSync } from "node:fs";
import { connect, createServer } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { endProcess, isRecord } from "./child.ts";
import { childPids } from "./procfs.ts";
import { CERTIFICATE, CHAIN_1_PORTS, PLAIN_PORTS } from "./upstream.ts";

/** The systems that the cells are measured with. */
export const SYSTEM_KINDS = [
  "direct",
  "nginx",
  "relay-tls",
  "svc",
  "svc-keyed",
  "svc-pipelined",
  "svc-workers",
] as const;

/**
 * `direct` is the baseline: the upstream without anything in between. `relay-tls`: bytes passed on
 * over TLS, unread; `svc-keyed`: with accounts, each connection with a key of its own;
 * `svc-pipelined`: pipelined to providers; `svc-workers`: with two workers.
 */
export type SystemKind = (typeof SYSTEM_KINDS)[number];

/** A running system. */
export interface System {
  readonly name: string;
  readonly port: number;
  /** The path of calls, or several separated by spaces, in place of that of the cell. */
  readonly path?: string;
  /** Whether somebody else built it: answers are compared by meaning, and nothing is promised. */
  readonly isPeer?: boolean;
  /** The processes whose CPU and memory count. */
  readonly pids: readonly number[];
  readonly stop: () => Promise<void>;
}

/** Where a system runs, and its upstream. */
export interface Site {
  /** A directory for its configuration and logs. */
  readonly dir: string;
  readonly upstreamPorts: readonly number[];
  /** Node flags for this service, used for profiling. */
  readonly nodeFlags: readonly string[];
  /** The checkout whose service is started; by default the one that this file is in. */
  readonly source?: string;
}

/**
 * Paths of a chain with three live providers, of one whose second provider refuses connections, and
 * of one with three live providers behind TLS.
 */
export const PATHS = {
  live: "/rpc/bench",
  dead: "/rpc/benchdead",
  tls: "/rpc/benchtls",
} as const;

/** A privileged port without a listener: connections to it are refused. */
const DEAD_PORT = 1;
/** Accounts with a key: one for each connection. */
const ACCOUNTS = 64;
const START_TIMEOUT_MS = 20_000;
const REPOSITORY = fileURLToPath(new URL("..", import.meta.url));

/** Why a system cannot be started on this machine, for the user; null = it can. */
export function missing(name: SystemKind): string | null {
  if (name !== "nginx" || nginxVersion() !== null) return null;
  return (
    "nginx is not installed. On Debian or Ubuntu: apt-get install nginx-light (the system " +
    "service is not used and may stay stopped)."
  );
}

/** The version of nginx; null = not installed. */
export function nginxVersion(): string | null {
  return (
    /nginx\/(\S+)/.exec(
      spawnSync("nginx", ["-v"], { encoding: "utf8", env: pathWithSbin() }).stderr ?? "",
    )?.[1] ?? null
  );
}

/** Starts a system and waits until it answers. */
export async function startSystem(name: SystemKind, site: Site): Promise<System> {
  switch (name) {
    case "direct": {
      const [port = 0] = site.upstreamPorts;
      return { name, port, pids: [], stop: () => Promise.resolve() };
    }
    case "nginx":
      return startNginx(site);
    case "relay-tls":
      return startRelay(site);
    case "svc":
      return startServiceWith(site, serviceConfig(site));
    case "svc-keyed": {
      const system = await startServiceWith(site, hostedConfig(site));
      return { ...system, name, path: (await keyedPaths(system)).join(" ") };
    }
    case "svc-pipelined": {
      const config = serviceConfig(site).replaceAll("archival: true", "$&, pipelining: true");
      return { ...(await startServiceWith(site, config)), name };
    }
    case "svc-workers": {
      const config = `${serviceConfig(site)}server: { workers: 2 }\n`;
      const system = await startServiceWith(site, config);
      return { ...system, name, pids: system.pids.flatMap((pid) => [pid, ...childPids(pid)]) };
    }
  }
}

async function startRelay(site: Site): Promise<System> {
  const port = await freePort();
  const script = fileURLToPath(new URL("relay-tls.ts", import.meta.url));
  const providers = site.upstreamPorts.slice(PLAIN_PORTS).map(String);
  const args = [script, String(port), ...providers];
  const child = launch(process.execPath, args, join(site.dir, "relay-tls.log"));
  await listens(child, port);
  const stop = (): Promise<void> => endProcess(child, "SIGTERM");
  return { name: "relay-tls", port, pids: [child.pid ?? 0], stop };
}

function startNginx(site: Site): Promise<System> {
  return startNginxIn(join(site.dir, "nginx"), (port) =>
    nginxConfig(port, site.upstreamPorts, CHEAPEST_BUFFERING),
  );
}

/** Starts an nginx that passes every WebSocket to one upstream, as it is. */
export function startNginxTunnel(dir: string, upstream: string): Promise<System> {
  return startNginxIn(dir, (port) => tunnelConfig(port, upstream));
}

async function startNginxIn(dir: string, configOf: (port: number) => string): Promise<System> {
  const port = await freePort();
  mkdirSync(join(dir, "tmp"), { recursive: true });
  writeFileSync(join(dir, "nginx.conf"), configOf(port));
  const child = launch(
    "nginx",
    ["-p", dir, "-e", join(dir, "error.log"), "-c", join(dir, "nginx.conf")],
    join(dir, "out.log"),
  );
  await answers(child, `http://127.0.0.1:${port}/healthy`, join(dir, "error.log"));
  const master = child.pid ?? 0;
  return {
    name: "nginx",
    port,
    pids: [master, ...childPids(master)],
    stop: () => endProcess(child, "SIGTERM"),
  };
}

function tunnelConfig(port: number, upstream: string): string {
  return `daemon off; worker_processes 1; pid nginx.pid; error_log error.log error; ${process.getuid?.() === 0 ? "user root;" : ""}
events { worker_connections 16384; }
http {
  access_log off; tcp_nodelay on; proxy_http_version 1.1; proxy_read_timeout 1h;
  client_body_temp_path tmp/body; proxy_temp_path tmp/proxy; fastcgi_temp_path tmp/f; uwsgi_temp_path tmp/u; scgi_temp_path tmp/s;
  proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection upgrade;
  server {
    listen 127.0.0.1:${port} backlog=4096;
    location = /healthy { return 200; }
    location / { proxy_pass ${upstream}; }
  }
}
`;
}

/**
 * Starts this service with a configuration and waits until it answers. One process, unless the
 * configuration names a number of workers.
 */
export async function startServiceWith(site: Site, config: string): Promise<System> {
  const port = await freePort();
  const dir = join(site.dir, "svc");
  mkdirSync(dir, { recursive: true });
  writeFileSync(join(dir, "svc.yml"), config);
  const args = [
    ...site.nodeFlags,
    join(site.source ?? REPOSITORY, "src/main.ts"),
    "serve",
    "--config",
    join(dir, "svc.yml"),
    "--port",
    String(port),
  ];
  if (!config.includes("workers")) args.push("--workers", "1");
  const child = launch(process.execPath, args, join(dir, "out.log"));
  await answers(child, `http://127.0.0.1:${port}/api/ready`, join(dir, "out.log"));
  return { name: "svc", port, pids: [child.pid ?? 0], stop: () => endProcess(child, "SIGTERM") };
}

/**
 * The buffering with the lowest cost to nginx per answer of 1 MiB, of all that were tried: on and
 * off, 4 KiB to 256 KiB. Small answers cost the same under all of them.
 */
const CHEAPEST_BUFFERING =
  "proxy_buffering off; proxy_buffer_size 32k; proxy_buffers 8 32k; proxy_max_temp_file_size 0;";

/** One worker, with keep-alive on both sides. */
function nginxConfig(port: number, upstreamPorts: readonly number[], buffering: string): string {
  const pool = (name: string, ports: readonly number[]): string =>
    `upstream ${name} { ${ports.map((each) => `server 127.0.0.1:${each};`).join(" ")} ` +
    "keepalive 128; keepalive_requests 1000000000; }";
  return `daemon off; worker_processes 1; pid nginx.pid; error_log error.log error; ${process.getuid?.() === 0 ? "user root;" : ""}
events { worker_connections 2048; }
http {
  access_log off; keepalive_requests 1000000000; keepalive_timeout 75s; tcp_nodelay on;
  client_body_temp_path tmp/body; proxy_temp_path tmp/proxy; fastcgi_temp_path tmp/f; uwsgi_temp_path tmp/u; scgi_temp_path tmp/s;
  client_body_buffer_size 64k; client_max_body_size 8m;
  proxy_http_version 1.1; proxy_set_header Connection ""; ${buffering}
  ${pool("live", upstreamPorts.slice(0, CHAIN_1_PORTS))}
  ${pool("dead", deadProviders(upstreamPorts))}
  ${pool("tls", upstreamPorts.slice(PLAIN_PORTS))}
  server {
    listen 127.0.0.1:${port} backlog=1024;
    location = /healthy { return 200; }
    location = ${PATHS.live} { proxy_pass http://live; }
    location = ${PATHS.dead} { proxy_pass http://dead; }
    location = ${PATHS.tls} {
      proxy_pass https://tls; proxy_ssl_session_reuse on;
      proxy_ssl_verify on; proxy_ssl_trusted_certificate ${CERTIFICATE}; proxy_ssl_name localhost;
    }
  }
}
`;
}

/** Three chains over the benchmark's upstream. Further chains can be appended to the text. */
export function serviceConfig({ dir, upstreamPorts }: Site): string {
  const providers = (ports: readonly number[], scheme = "http"): string =>
    ports
      .map(
        (port, at) =>
          `          - { id: p${at}, name: P${at}, url: "${scheme}://127.0.0.1:${port}", ` +
          "archival: true }",
      )
      .join("\n");
  return `data_dir: ${JSON.stringify(join(dir, "svc", "data"))}
devnet: false
cache: off
coalesce: off
chains:
  bench: { chain_id: 1, name: "Bench", block_time_ms: 12000 }
  benchdead: { chain_id: 2, name: "Bench with a dead provider", block_time_ms: 12000 }
  benchtls: { chain_id: 3, name: "Bench over TLS", block_time_ms: 12000 }
profiles:
  public:
    chains:
      bench:
        providers:
${providers(upstreamPorts.slice(0, CHAIN_1_PORTS))}
      benchdead:
        providers:
${providers(deadProviders(upstreamPorts))}
      benchtls:
        providers:
${providers(upstreamPorts.slice(PLAIN_PORTS), "https")}
`;
}

/** The benchmark's chains with keys, and limits too high to matter. */
export function hostedConfig(site: Site): string {
  const endless = "{ per_second: 1000000, burst: 10000000 }";
  return `${serviceConfig(site)}hosted:
  { enabled: true, keyless: true, keys_per_hour: 100000, starting_grant_cu: 1000000000, buckets: { managed: ${endless}, public: ${endless} } }
`;
}

/** Creates a key for each account; the paths of their calls. */
export async function keyedPaths({ port }: System): Promise<readonly string[]> {
  const paths: string[] = [];
  for (let i = 0; i < ACCOUNTS; i++) {
    const answer: unknown = await (
      await fetch(`http://127.0.0.1:${port}/api/v1/agent/keys`, { method: "POST" })
    ).json();
    if (!isRecord(answer) || typeof answer["key"] !== "string")
      throw new Error(`no key was created: ${JSON.stringify(answer)}`);
    paths.push(`/rpc/k/${answer["key"]}/load-balanced/bench`);
  }
  return paths;
}

/** The URLs of the providers that stand behind a path. */
export function urlsBehind(path: string, { upstreamPorts }: Site): readonly string[] {
  const ports =
    path === PATHS.dead ? deadProviders(upstreamPorts) : upstreamPorts.slice(0, CHAIN_1_PORTS);
  return ports.map((port) => `http://127.0.0.1:${port}`);
}

function deadProviders(upstreamPorts: readonly number[]): readonly number[] {
  const [first = 0, second = 0] = upstreamPorts.slice(CHAIN_1_PORTS, PLAIN_PORTS);
  return [first, DEAD_PORT, second];
}

/** Starts a program that writes into a log. */
export function launch(
  command: string,
  args: readonly string[],
  logFile: string,
  options: SpawnOptions = {},
): ChildProcess {
  const log = openSync(logFile, "w");
  const child = spawn(command, [...args], {
    ...options,
    stdio: ["ignore", log, log],
    env: { ...pathWithSbin(), NODE_EXTRA_CA_CERTS: CERTIFICATE, ...options.env },
  });
  child.once("error", () => undefined);
  closeSync(log);
  return child;
}

/** nginx is installed in sbin, which is not in every user's path. */
function pathWithSbin(): NodeJS.ProcessEnv {
  return { ...process.env, PATH: `${process.env["PATH"] ?? ""}:/usr/sbin:/usr/local/sbin` };
}

/** Waits until a process answers 200 at a URL; ends it and throws where it does not. */
export async function answers(
  child: ChildProcess,
  url: string,
  logFile: string,
  request: RequestInit = {},
): Promise<void> {
  const untilMs = performance.now() + START_TIMEOUT_MS;
  while (performance.now() < untilMs && child.exitCode === null) {
    const status = await fetch(url, request).then(
      (response) => response.status,
      () => 0,
    );
    if (status === 200) return;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  const fate =
    child.exitCode === null
      ? `did not answer 200 within ${START_TIMEOUT_MS / 1_000} s`
      : `ended with exit code ${child.exitCode}`;
  await endProcess(child, "SIGTERM");
  throw new Error(
    `${url}: the process behind it ${fate}. Its output ended ` +
      `with:\n${readFileSync(logFile, "utf8").slice(-2_000)}`,
  );
}

/** Waits until a process accepts connections. */
async function listens(child: ChildProcess, port: number): Promise<void> {
  const untilMs = performance.now() + START_TIMEOUT_MS;
  while (performance.now() < untilMs && child.exitCode === null) {
    const isOpen = await new Promise<boolean>((resolve) => {
      const socket = connect(port, "127.0.0.1", () => resolve(true));
      socket.on("error", () => resolve(false)).on("connect", () => socket.destroy());
    });
    if (isOpen) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  await endProcess(child, "SIGTERM");
  throw new Error(`the relay does not listen on port ${port}`);
}

/** A port of the loopback address that nobody listens on. */
export function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const address = server.address();
      server.close(() =>
        resolve(address !== null && typeof address === "object" ? address.port : 0),
      );
    });
  });
}
