// Determines the number of worker processes from the configuration and this machine. Reads how many
// CPUs the cgroup of this process allows it, from the files of cgroup version 2 and version 1: Node
// reads some of them as well, but not in every container.
import { availableParallelism, totalmem } from "node:os";
import { dirname, join } from "node:path";
import type { Config } from "../config/config.ts";
import { MAX_AUTO_WORKERS } from "../config/schema.ts";
import { canSupervise } from "../shared/processes/worker-process.ts";
import { textOf } from "./command.ts";

/** What this process may use, its workers included. */
export interface MachineLimits {
  readonly cores: number;
  /** CPUs that its container allows, possibly a fraction; null = no limit is known. */
  readonly cpus: number | null;
  readonly memoryBytes: number;
}

/** Memory that a worker should have. */
const WORKER_BYTES = 500_000_000;

/** Workers of a configuration. A process that is a worker of somebody else serves alone. */
export function workerCount(config: Config): number {
  const { workers } = config.server;
  if (!canSupervise()) return 1;
  return workers === "auto" ? workersFor(machineLimits()) : workers;
}

/** The cores, CPUs and memory that this process may use. */
export function machineLimits(): MachineLimits {
  // Node tells a number without meaning where there is no limit, and 0 where it knows none.
  const limit = process.constrainedMemory();
  const total = totalmem();
  const memoryBytes = limit > 0 ? Math.min(limit, total) : total;
  return { cores: availableParallelism(), cpus: cpuLimit(), memoryBytes };
}

/** One worker for each whole core that there is memory for. */
export function workersFor({ cores, cpus, memoryBytes }: MachineLimits): number {
  const most = Math.min(MAX_AUTO_WORKERS, cores, cpus ?? cores, memoryBytes / WORKER_BYTES);
  return Math.max(1, Math.floor(most));
}

/** Why there is one worker where the configuration does not ask for exactly one. */
export function whyOne(): string {
  if (!canSupervise()) return "this process is a worker of another supervisor";
  return "this process may use one core, or has memory for one worker";
}

const MAX_DEPTH = 32;

/** The CPUs that the process may use, possibly a fraction; null = no limit is known. */
export function cpuLimit(root = "/"): number | null {
  const limits = (textOf(join(root, "proc/self/cgroup")) ?? "")
    .split("\n")
    .flatMap((line) => limitsOf(join(root, "sys/fs/cgroup"), line));
  return limits.length === 0 ? null : Math.min(...limits);
}

/** The limits of one line such as `0::/pod/one` or `3:cpu,cpuacct:/pod/one`. */
function limitsOf(mount: string, line: string): readonly number[] {
  const [, , controllers, path] = /^(\d+):([^:]*):(\/.*)$/.exec(line) ?? [];
  if (controllers === undefined || path === undefined) return [];
  if (controllers === "") return upwards(path).flatMap((at) => limitIn2(join(mount, at)));
  if (!controllers.split(",").includes("cpu")) return [];
  // The name of the mount is a matter of the distribution.
  return [controllers, "cpu"].flatMap((name) =>
    upwards(path).flatMap((at) => limitIn1(join(mount, name, at))),
  );
}

/** A path and all above it: each may have a limit, and a container may see only the last. */
function upwards(path: string): readonly string[] {
  const paths = [path];
  for (let at = path; at !== "/" && paths.length < MAX_DEPTH; paths.push(at)) at = dirname(at);
  return paths;
}

function limitIn2(folder: string): readonly number[] {
  const [usec, perUsec] = (textOf(join(folder, "cpu.max")) ?? "").trim().split(" ");
  return cpusOf(Number(usec), Number(perUsec));
}

function limitIn1(folder: string): readonly number[] {
  const usec = textOf(join(folder, "cpu.cfs_quota_us"));
  const perUsec = textOf(join(folder, "cpu.cfs_period_us"));
  return usec === null || perUsec === null ? [] : cpusOf(Number(usec), Number(perUsec));
}

/** One number; none where there is no limit (`max`, -1). */
function cpusOf(usec: number, perUsec: number): readonly number[] {
  return usec > 0 && perUsec > 0 && Number.isFinite(usec / perUsec) ? [usec / perUsec] : [];
}
