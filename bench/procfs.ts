// Reads kernel statistics of processes and the machine: CPU time, memory, load of other processes.
// Linux only; reads /proc.
import { readdirSync, readFileSync, writeFileSync } from "node:fs";

/** Kernel clock ticks per second in /proc, on all Linux platforms that Node supports. */
const TICKS_PER_SECOND = 100;

/**
 * User and system CPU time of a process with all its threads, µs. Uses nanosecond accounting if
 * available, else ticks of 10 ms.
 */
export function cpuUs(pid: number): number {
  const tasks = readdirSync(`/proc/${pid}/task`);
  let ns = 0;
  for (const task of tasks)
    ns += Number(readOr(`/proc/${pid}/task/${task}/schedstat`, "0").split(" ")[0]);
  if (ns > 0) return ns / 1_000;
  const fields = statFields(pid);
  return ((Number(fields[11]) + Number(fields[12])) * 1e6) / TICKS_PER_SECOND;
}

/** Resident memory of a process in MB: current, and the peak since the last `resetPeak`. */
export function memoryMb(pid: number): { readonly rss: number; readonly peak: number } {
  const status = readFileSync(`/proc/${pid}/status`, "latin1");
  return { rss: kilobytes(status, "VmRSS") / 1_024, peak: kilobytes(status, "VmHWM") / 1_024 };
}

/** Resets the peak memory of a process, if the kernel allows it. */
export function resetPeak(pid: number): void {
  try {
    writeFileSync(`/proc/${pid}/clear_refs`, "5");
  } catch {
    // Not permitted: the peak then counts from the start of the process.
  }
}

/** Pids of the direct children of a process. */
export function childPids(parent: number): readonly number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => Number(statFields(pid)[1]) === parent);
}

/** A process and everything that it started. */
export function processTree(pid: number): readonly number[] {
  return [pid, ...childPids(pid).flatMap(processTree)];
}

/**
 * CPU time that the whole machine has spent on anything but idling, including time stolen by its
 * host, µs.
 */
export function machineBusyUs(): number {
  const fields =
    readFileSync("/proc/stat", "latin1")
      .split("\n", 1)[0]
      ?.trim()
      .split(/\s+/)
      .slice(1, 9)
      .map(Number) ?? [];
  const [user = 0, nice = 0, system = 0, , , irq = 0, softirq = 0, steal = 0] = fields;
  return ((user + nice + system + irq + softirq + steal) * 1e6) / TICKS_PER_SECOND;
}

/**
 * Fields of /proc/PID/stat from the process state on (state, ppid, …), after the process name,
 * which may contain any character.
 */
function statFields(pid: number): readonly string[] {
  const text = readOr(`/proc/${pid}/stat`, "");
  return text.slice(text.lastIndexOf(")") + 2).split(" ");
}

function kilobytes(status: string, name: string): number {
  return Number(new RegExp(`^${name}:\\s+(\\d+) kB`, "m").exec(status)?.[1] ?? 0);
}

function readOr(path: string, otherwise: string): string {
  try {
    return readFileSync(path, "latin1");
  } catch {
    return otherwise;
  }
}
