// The systems to be measured: the upstream itself, nginx in front of it, and this service in front
// of it, each with its processes and one port.
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { closeSync, mkdirSync, openSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { endProcess } from "./child.ts";
import { childPids } from "./procfs.ts";
import { CHAIN_1_PORTS } from "./upstream.ts";

/** The systems in the order in which they are printed. */
export const SYSTEM_NAMES = ["direct", "nginx", "nginx-default", "svc"] as const;

/**
 * `direct` is the baseline: the upstream without anything in between. `nginx-default` uses nginx's
 * default buffering.
 */
export type SystemName = (typeof SYSTEM_NAMES)[number];

/** A running system. */
export interface System {
  readonly name: SystemName;
  readonly port: number;
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
}

/**
 * Paths of a chain with three live providers, and of one whose second provider refuses connections.
 */
export const PATHS = { live: "/rpc/bench", dead: "/rpc/benchdead" } as const;

/** A privileged port without a listener: connections to it are refused. */
const DEAD_PORT = 1;
const START_TIMEOUT_MS = 20_000;
const REPOSITORY = fileURLToPath(new URL("..", import.meta.url));

/** Why a system cannot be started on this machine, for the user; null = it can. */
export function missing(name: SystemName): string | null {
  if (!name.startsWith("nginx") || nginxVersion() !== null) return null;
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
export function startSystem(name: SystemName, site: Site): Promise<System> {
  switch (name) {
    case "direct":
      return Promise.resolve({
        name,
        port: site.upstreamPorts[0] ?? 0,
        pids: [],
        stop: () => Promise.resolve(),
      });
    case "nginx":
    case "nginx-default":
      return startNginx(name, site);
    case "svc":
      return startService(site);
  }
}

function startNginx(name: "nginx" | "nginx-default", site: Site): Promise<System> {
  return startNginxWith(name, site, 1);
}

/** Starts nginx with a number of workers and waits until it answers. */
export async function startNginxWith(
  name: "nginx" | "nginx-default",
  site: Site,
  workers: number,
): Promise<System> {
  const port = await freePort();
  const dir = join(site.dir, name);
  mkdirSync(join(dir, "tmp"), { recursive: true });
  writeFileSync(
    join(dir, "nginx.conf"),
    nginxConfig(port, site.upstreamPorts, name === "nginx" ? CHEAPEST_BUFFERING : "").replace(
      "worker_processes 1;",
      `worker_processes ${workers};`,
    ),
  );
  const child = launch(
    "nginx",
    ["-p", dir, "-e", join(dir, "error.log"), "-c", join(dir, "nginx.conf")],
    join(dir, "out.log"),
  );
  await answers(child, `http://127.0.0.1:${port}/healthy`, join(dir, "error.log"));
  const master = child.pid ?? 0;
  return {
    name,
    port,
    pids: [master, ...childPids(master)],
    stop: () => endProcess(child, "SIGTERM"),
  };
}

function startService(site: Site): Promise<System> {
  return startServiceWith(site, serviceConfig(site));
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
    join(REPOSITORY, "src/main.ts"),
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
  server {
    listen 127.0.0.1:${port} backlog=1024;
    location = /healthy { return 200; }
    location = ${PATHS.live} { proxy_pass http://live; }
    location = ${PATHS.dead} { proxy_pass http://dead; }
  }
}
`;
}

/** Two chains over the benchmark's upstream. Further chains can be appended to the text. */
export function serviceConfig({ dir, upstreamPorts }: Site): string {
  const providers = (ports: readonly number[]): string =>
    ports
      .map(
        (port, at) =>
          `          - { id: p${at}, name: P${at}, url: "http://127.0.0.1:${port}", archival: ` +
          "true }",
      )
      .join("\n");
  return `data_dir: ${JSON.stringify(join(dir, "svc", "data"))}
devnet: false
cache: off
coalesce: off
chains:
  bench: { chain_id: 1, name: "Bench", block_time_ms: 12000 }
  benchdead: { chain_id: 2, name: "Bench with a dead provider", block_time_ms: 12000 }
profiles:
  public:
    chains:
      bench:
        providers:
${providers(upstreamPorts.slice(0, CHAIN_1_PORTS))}
      benchdead:
        providers:
${providers(deadProviders(upstreamPorts))}
`;
}

function deadProviders(upstreamPorts: readonly number[]): readonly number[] {
  const [first = 0, second = 0] = upstreamPorts.slice(CHAIN_1_PORTS);
  return [first, DEAD_PORT, second];
}

function launch(command: string, args: readonly string[], logFile: string): ChildProcess {
  const log = openSync(logFile, "w");
  const child = spawn(command, [...args], { stdio: ["ignore", log, log], env: pathWithSbin() });
  child.once("error", () => undefined);
  closeSync(log);
  return child;
}

/** nginx is installed in sbin, which is not in every user's path. */
function pathWithSbin(): NodeJS.ProcessEnv {
  return { ...process.env, PATH: `${process.env["PATH"] ?? ""}:/usr/sbin:/usr/local/sbin` };
}

async function answers(child: ChildProcess, url: string, logFile: string): Promise<void> {
  const untilMs = performance.now() + START_TIMEOUT_MS;
  while (performance.now() < untilMs && child.exitCode === null) {
    const status = await fetch(url).then(
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

function freePort(): Promise<number> {
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
