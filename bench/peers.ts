// Other gateways that somebody has built, measured in the same cells: a folder with an executable
// `start` each. Knows none of them.
import type { ChildProcess } from "node:child_process";
import { accessSync, constants, existsSync, readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { endProcess } from "./child.ts";
import { processTree } from "./procfs.ts";
import { answers, freePort, launch, type Site, type System, urlsBehind } from "./systems.ts";

/** A gateway that can be started. */
export interface Peer {
  readonly name: string;
  readonly start: string;
  /** Where it takes calls. */
  readonly path: string;
}

/** The peers in a directory; throws where there is none. */
export function peersIn(directory: string): readonly Peer[] {
  const found = readdirSync(directory, { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && isExecutable(join(directory, entry.name, "start")))
    .map(({ name }) => ({
      name,
      start: resolve(directory, name, "start"),
      path: pathOf(join(directory, name, "path")),
    }));
  if (found.length === 0)
    throw new Error(`${directory} has no folder with an executable \`start\``);
  return found;
}

/** Starts a peer before the providers of a path, and waits until it answers a call. */
export async function startPeer(peer: Peer, path: string, site: Site): Promise<System> {
  const port = await freePort();
  const logFile = join(site.dir, "out.log");
  const env = { BENCH_PORT: String(port), BENCH_UPSTREAMS: urlsBehind(path, site).join(" ") };
  const child = launch(peer.start, [], logFile, { env, cwd: site.dir });
  const { pid } = child;
  if (pid === undefined) throw new Error(`${peer.start} cannot be started`);
  const stop = (): Promise<void> => endTree(child, pid);
  const body = '{"jsonrpc":"2.0","id":1,"method":"eth_chainId","params":[]}';
  const request = { method: "POST", headers: { "content-type": "application/json" }, body };
  try {
    await answers(child, `http://127.0.0.1:${port}${peer.path}`, logFile, request);
  } catch (error) {
    await stop();
    throw error;
  }
  return { name: peer.name, port, path: peer.path, isPeer: true, pids: processTree(pid), stop };
}

/** Ends a process and everything that it started. */
async function endTree(child: ChildProcess, pid: number): Promise<void> {
  const others = processTree(pid).slice(1);
  for (const other of others) signal(other, "SIGTERM");
  await endProcess(child, "SIGTERM");
  for (const other of others) signal(other, "SIGKILL");
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch {
    // It has ended.
  }
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

function pathOf(file: string): string {
  return existsSync(file) ? readFileSync(file, "utf8").trim() : "/";
}
