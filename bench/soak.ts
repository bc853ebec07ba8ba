// The long memory test: only this service, under steady load, with upstreams that fail 1 % of
// calls, and calls under 10,000 method names. Memory must not grow.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Child, startChild } from "./child.ts";
import { median } from "./figures.ts";
import { type LoadJob, type LoadReport, parseReport } from "./load.ts";
import { snapshot } from "./measure.ts";
import { cpuUs, memoryMb } from "./procfs.ts";
import { PATHS, type System, startSystem } from "./systems.ts";

const RATE_PER_SECOND = 2_000;
const CONNECTIONS = 64;
const SAMPLES = 120;
const PRINTED_EVERY = 6;
/**
 * Largest ratio of memory at the end to memory after the warm-up, as medians of a fifth of the run
 * each.
 */
const MAX_GROWTH = 1.1;
/**
 * Calls with unknown method names are not retried, so the 1 % of upstream failures may reach the
 * caller; includes a margin for effects of the circuit breaker.
 */
const MAX_UNKNOWN_FAILED = 0.03;

const LONGEST_WARM_UP_SECONDS = 60;

/** Runs the test for this many minutes; returns the exit code. */
export async function soak(minutes: number): Promise<number> {
  const dir = mkdtempSync(join(tmpdir(), "svc-soak-"));
  const upstream = startChild("upstream.ts", ["faulty"]);
  const load = startChild("load.ts", []);
  try {
    const system = await startSystem("svc", {
      dir,
      upstreamPorts: (await snapshot(upstream)).ports,
      nodeFlags: [],
    });
    try {
      return await run({ upstream, load, system, seconds: minutes * 60 });
    } finally {
      await system.stop();
    }
  } finally {
    await Promise.all([upstream.stop(), load.stop()]);
    rmSync(dir, { recursive: true, force: true });
  }
}

async function run({
  upstream,
  load,
  system,
  seconds,
}: {
  readonly upstream: Child;
  readonly load: Child;
  readonly system: System;
  readonly seconds: number;
}): Promise<number> {
  const job: LoadJob = {
    port: system.port,
    path: PATHS.live,
    workload: "mixed",
    connections: CONNECTIONS,
    seconds,
    ratePerSecond: RATE_PER_SECOND,
  };
  // Starts at full speed: Node's young generation takes about a million calls to reach its full
  // size, and grows in steps until then.
  const warmUpSeconds = Math.min(LONGEST_WARM_UP_SECONDS, seconds / 4);
  await load.ask(
    { kind: "job", job: { ...job, seconds: warmUpSeconds, ratePerSecond: null } },
    30_000,
  );
  await load.ask({ kind: "go" }, 30_000 + warmUpSeconds * 1_000);
  process.stdout.write(
    `warm after ${warmUpSeconds} s: ` +
      `${sum(system.pids.map((pid) => memoryMb(pid).rss)).toFixed(1)} MB\n`,
  );
  await load.ask({ kind: "job", job }, 30_000);
  const startUs = sum(system.pids.map(cpuUs));
  const rssMb: number[] = [];
  const watch = setInterval(
    () => {
      rssMb.push(sum(system.pids.map((pid) => memoryMb(pid).rss)));
      if (rssMb.length % PRINTED_EVERY === 0)
        process.stdout.write(
          `${Math.round((rssMb.length * seconds) / SAMPLES)} s: ${rssMb.at(-1)?.toFixed(1)} MB\n`,
        );
    },
    (seconds * 1_000) / SAMPLES,
  );
  const report = await load
    .ask({ kind: "go" }, seconds * 1_000 + 60_000)
    .then(parseReport)
    .finally(() => clearInterval(watch));
  const seen = await snapshot(upstream);
  const calls = Object.values(seen.calls).reduce((total, count) => total + count, 0);
  const exposition = await fetch(`http://127.0.0.1:${system.port}/metrics`).then((response) =>
    response.text(),
  );
  process.stdout.write(`${report.sent} calls, ${report.ok} right, ${report.failed} failed (${report.failedUnknown} of them under unlisted names, sent once by design)
${seen.faults} upstream faults, ${calls} upstream calls with probes; CPU ${((sum(system.pids.map(cpuUs)) - startUs) / Math.max(1, report.ok)).toFixed(1)} µs per call; p50 ${report.p50Ms.toFixed(3)} ms, p99 ${report.p99Ms.toFixed(3)} ms
/metrics: ${exposition.length} bytes\n`);
  const problems = complaints(report, rssMb, exposition);
  process.stdout.write(
    problems.length === 0
      ? "Memory flat, all replayable calls answered.\n"
      : `${problems.map((problem) => `MISSED ${problem}`).join("\n")}\n`,
  );
  return problems.length === 0 ? 0 : 1;
}

function complaints(
  report: LoadReport,
  rssMb: readonly number[],
  exposition: string,
): readonly string[] {
  const fifth = Math.max(1, Math.floor(rssMb.length / 5));
  const early = median(rssMb.slice(fifth, 2 * fifth));
  const late = median(rssMb.slice(-fifth));
  process.stdout.write(
    `RSS ${early.toFixed(1)} MB in the second fifth, ${late.toFixed(1)} MB in the last: ` +
      `×${(late / early).toFixed(3)}\n`,
  );
  const found: string[] = [];
  if (late > early * MAX_GROWTH) found.push(`memory grew by more than ${MAX_GROWTH} ×`);
  if (report.failed > report.failedUnknown)
    found.push(
      `${report.failed - report.failedUnknown} replayable calls failed: ` +
        `${report.faults.join(" | ")}`,
    );
  if (report.failedUnknown > (report.sent / 2) * MAX_UNKNOWN_FAILED)
    found.push(`more than ${MAX_UNKNOWN_FAILED * 100} % of the calls under unlisted names failed`);
  if (exposition.includes("bench_m")) found.push("unlisted method names became metric labels");
  return found;
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
