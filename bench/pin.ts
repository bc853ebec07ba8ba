// Gives the system under test a core of its own while latency is measured, so that it does not wait
// for the generator's time slices. Does nothing where it cannot.
import { spawnSync } from "node:child_process";
import { cpus } from "node:os";

/**
 * Keeps `system` on the last core and `others` on the rest; false = one core only, or no `taskset`
 * here.
 */
export function separate(system: readonly number[], others: readonly number[]): boolean {
  const last = cpus().length - 1;
  if (last < 1) return false;
  return [
    ...system.map((pid) => keepOn(pid, `${last}`)),
    ...others.map((pid) => keepOn(pid, `0-${last - 1}`)),
  ].every((done) => done);
}

/** Lets processes run on every core again. */
export function releaseCores(pids: readonly number[]): void {
  for (const pid of pids) keepOn(pid, `0-${cpus().length - 1}`);
}

function keepOn(pid: number, cores: string): boolean {
  return spawnSync("taskset", ["-acp", cores, `${pid}`], { stdio: "ignore" }).status === 0;
}
