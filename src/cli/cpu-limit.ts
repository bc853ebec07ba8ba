// Reads how many CPUs the cgroup of this process allows it, from the files of cgroup version 2 and
// version 1. Node reads some of them as well, but not in every container.
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";

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

function textOf(file: string): string | null {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return null;
  }
}
