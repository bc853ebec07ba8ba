// HAProxy with the configuration of deploy/, in front of ports of this machine. Knows no node.
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { freePort } from "./free-port.ts";

/** A balancer that runs. */
export interface Balancer {
  readonly url: string;
  readonly port: number;
  /** A column of its statistics for each node of a backend, in order. */
  column(backend: string, name: string): Promise<readonly string[]>;
  close(): Promise<void>;
}

/** The header in which the balancer tells which node answered: `node1` and so on. */
export const SERVED_BY = "x-served-by";

const FILE = join(import.meta.dirname, "../../deploy/haproxy.cfg");
const LOOK_MS = 20;

/** Whether this machine has HAProxy. */
export function hasBalancer(): boolean {
  return spawnSync("haproxy", ["-v"]).status === 0;
}

/** Starts HAProxy; `edit` changes its configuration further. */
export async function startBalancer(
  nodes: readonly number[],
  edit: (text: string) => string = (text) => text,
): Promise<Balancer> {
  const port = await freePort();
  const statistics = await freePort();
  const folder = mkdtempSync(join(tmpdir(), "svc-balancer-"));
  const file = join(folder, "haproxy.cfg");
  writeFileSync(file, edit(configurationFor(port, statistics, nodes)));
  const child = spawn("haproxy", ["-db", "-f", file], { stdio: "ignore" });
  const ended = once(child, "exit");
  while (!(await isListening(statistics))) {
    if (child.exitCode !== null) throw new Error(`haproxy ended with ${child.exitCode}`);
    await sleep(LOOK_MS);
  }
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    async column(backend, name) {
      const text = await (await fetch(`http://127.0.0.1:${statistics}/;csv`)).text();
      const [head = [], ...rows] = text.split("\n").map((line) => line.split(","));
      const at = head.indexOf(name);
      if (at <= 0) throw new Error(`the statistics have no column ${name}`);
      return rows
        .filter(([from, server]) => from === backend && /^node/.test(server ?? ""))
        .map((row) => row[at] ?? "");
    },
    async close() {
      child.kill("SIGKILL");
      await ended;
      rmSync(folder, { recursive: true });
    },
  };
}

/** The deployed configuration for ports of this machine, with statistics and `SERVED_BY`. */
function configurationFor(port: number, statistics: number, nodes: readonly number[]): string {
  const text = readFileSync(FILE, "utf8")
    .replace("maxconn 20000", "maxconn 2000")
    .replace(/^resolvers docker\n(?: .*\n)+/m, "")
    .replaceAll(/ resolvers docker init-addr libc,none/g, "")
    .replace(
      /^ {2}bind :8080$/m,
      `  bind 127.0.0.1:${port}\n  http-response set-header ${SERVED_BY} %s`,
    );
  const servers = nodes.map((node, at) => `  server node${at + 1} 127.0.0.1:${node}\n`).join("");
  return (
    text.replace(/(?: {2}server node\d .*\n)+/g, servers).replaceAll(" port 4000 check", " check") +
    `frontend statistics\n  bind 127.0.0.1:${statistics}\n  stats enable\n  stats uri /\n`
  );
}

function isListening(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    socket.once("connect", () => {
      socket.destroy();
      resolve(true);
    });
    socket.once("error", () => resolve(false));
  });
}
