// Pins the system under test to a core of its own while latency is measured, so that it does not
// wait for time slices of the generator. Does nothing if pinning is not possible.
import { spawnSync } from "node:child_process";
import { cpus } from "node:os";

/**
 * Pins `system` to the last core and `others` to the rest; false = there is one core only, or no
 * `taskset`.
 */
export function separate(system: readonly number[], others: readonly number[]): boolean {
  const last = cpus().length - 1;
  if (last < 1) return false;
  return [
    ...system.map((pid) => keepOn(pid, `${last}`)),
    ...others.map((pid) => keepOn(pid, `0-${last - 1}`)),
  ].every((done) => done);
}

/** Allows processes to run on every core again. */
export function releaseCores(pids: readonly number[]): void {
  for (const pid of pids) keepOn(pid, `0-${cpus().length - 1}`);
}

function keepOn(pid: number, cores: string): boolean {
  return spawnSync("taskset", ["-acp", cores, `${pid}`], { stdio: "ignore" }).status === 0;
}
