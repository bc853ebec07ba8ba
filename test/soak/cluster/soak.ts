// The soak of nodes that serve together: many seeded schedules on one site, nodes restarted and a
// worker killed under load, their figures, and what broke a promise. A site on which a schedule
// could not be finished is replaced.
import { audit } from "../../../src/hosted/audit/audit.ts";
import { readStore } from "../../../src/shared/store/store.ts";
import { seededRandom } from "../../fakes/runtime.ts";
import { restartNodes } from "./drain.ts";
import { runSchedule, type ScheduleFindings } from "./schedule.ts";
import { type ClusterSite, readDatabase, startSite, USUAL_SITE } from "./site.ts";
import { killWorkerUnderLoad } from "./worker-kill.ts";

/** What a soak was. */
export interface ClusterSoak {
  readonly breaches: readonly string[];
  readonly lines: readonly string[];
}

const MEDIAN_MS = 1_000;
const WORST_MS = 2_000;
const HALF = 0.5;
const TAIL = 2_000;

/** Runs a schedule for each seed. */
export async function soakCluster(
  seeds: readonly number[],
  print: (line: string) => void,
): Promise<ClusterSoak> {
  const findings: ScheduleFindings[] = [];
  const breaches: string[] = [];
  const breach = (seed: number, text: string): void => {
    breaches.push(`seed ${seed}: ${text}`);
    print(`BREACH seed ${seed}: ${text}`);
  };
  let site: ClusterSite | null = null;
  let last = 0;
  try {
    for (const seed of seeds) {
      last = seed;
      site ??= await startSite(USUAL_SITE);
      try {
        const found = await runSchedule(site, seed);
        findings.push(found);
        print(lineOf(found));
        for (const text of [...found.wrong, ...rateBreach(found)]) breach(seed, text);
      } catch (error) {
        breach(seed, error instanceof Error ? (error.stack ?? error.message) : String(error));
        for (const node of site.nodes) print(`${node.id}: ${node.log().slice(-TAIL)}`);
        await site.close();
        site = null;
      }
    }
    if (seeds.length > 1) {
      site ??= await startSite(USUAL_SITE);
      for (const text of await loadedEnds(site, last, print)) breach(last, text);
    }
    for (const text of site === null ? [] : await endSite(site)) breach(last, text);
  } finally {
    await site?.close();
  }
  const { lines, wrong } = figuresOf(findings);
  return { breaches: [...breaches, ...wrong], lines };
}

/** Nodes that are restarted, and a worker that is killed, under load. */
async function loadedEnds(
  site: ClusterSite,
  seed: number,
  print: (line: string) => void,
): Promise<readonly string[]> {
  const restarted = await restartNodes(site, { seed, random: seededRandom(seed) });
  print(
    `every node restarted under load: ${restarted.answered} calls answered, ` +
      `${restarted.elsewhere} connections made elsewhere`,
  );
  const killed = await killWorkerUnderLoad();
  print(
    `a worker killed under ${killed.perSecond} calls a second: ${killed.failed} connections lost, ` +
      `${killed.answered} calls answered, all callers served again after ${killed.recoveredMs} ms`,
  );
  return [...restarted.wrong, ...killed.wrong];
}

function lineOf(found: ScheduleFindings): string {
  const { seed, faults, answered, unknown, changes, credits, unbilledCalls, unbilledBound } = found;
  return (
    `seed ${seed}: ${faults.join(", ")}; ${answered} answered, ${unknown} lost, ${changes} changes, ` +
    `${credits} credits, ${unbilledCalls} of at most ${unbilledBound} unbilled, ` +
    `${found.rate.served} of ${found.rate.allowed} within the limit; ${filtersOf(found)}`
  );
}

function filtersOf({ filters }: Pick<ScheduleFindings, "filters">): string {
  const { polls, moves, blocks, logs, removed, again, left, reorgs } = filters;
  const { refused, lost, unread } = filters;
  return (
    `${polls} polls of filters, ${moves} at another node, told ${blocks} blocks, ${logs} logs, ` +
    `${removed} taken back in ${reorgs} reorganisations, ${again} again, ${left} never taken back; ${refused} refused, ` +
    `${lost} lost${unread === 0 ? "" : `, ${unread} filters not judged`}`
  );
}

/** A rate is told only where enough was asked for. */
function rateBreach({ rate: { served, allowed } }: ScheduleFindings): readonly string[] {
  return served > allowed ? [`${served} calls were served within a limit of ${allowed}`] : [];
}

/** Ends every node as an operator does: all is billed, every lease is returned. */
export async function endSite(site: ClusterSite): Promise<readonly string[]> {
  const wrong: string[] = [];
  for (const node of site.nodes) {
    const how = await node.end();
    if (how !== 0) wrong.push(`${node.id} ended with ${how}: ${node.log().slice(-TAIL)}`);
  }
  const leases = await readDatabase<object>(site.databaseUrl, "select * from credit_lease");
  if (leases.length > 0) wrong.push(`${leases.length} leases are left: ${JSON.stringify(leases)}`);
  const store = await readStore({ url: site.databaseUrl, dataDir: "" });
  const differences = await audit(store).finally(() => store.close());
  return [...wrong, ...differences.map(({ check, id }) => `the audit: ${check} ${id}`)];
}

function figuresOf(findings: readonly ScheduleFindings[]): {
  readonly lines: readonly string[];
  readonly wrong: readonly string[];
} {
  const total = (of: (found: ScheduleFindings) => number): number =>
    findings.reduce((sum, found) => sum + of(found), 0);
  const times = findings.flatMap((found) => found.revocationsMs).sort((a, b) => a - b);
  const medianMs = times[Math.floor(times.length * HALF)] ?? 0;
  const worstMs = times.at(-1) ?? 0;
  const rates = findings
    .filter(({ rate }) => rate.refused > 0)
    .map(({ rate }) => rate.served / rate.allowed)
    .sort((a, b) => a - b);
  const share = (at: number): string => ((rates.at(at) ?? Number.NaN) * 100).toFixed(1);
  const lines = [
    `schedules                         ${findings.length}`,
    `faults                            ${total(({ faults }) => faults.length)}`,
    `calls answered, lost              ${total((found) => found.answered)}, ${total((found) => found.unknown)}`,
    `changes and credits acknowledged  ${total((found) => found.changes)}, ${total((found) => found.credits)}`,
    `processes ended                   ${total(({ ends }) => ends)}`,
    `calls unbilled, at most allowed   ${total((found) => found.unbilledCalls)}, ` +
      `${total((found) => found.unbilledBound)}`,
    `revocations, median, worst        ${times.length}, ${medianMs.toFixed(0)} ms, ` +
      `${worstMs.toFixed(0)} ms`,
    `polls of filters, at another node ${total(({ filters }) => filters.polls)}, ` +
      `${total(({ filters }) => filters.moves)}`,
    `blocks, logs told; taken back     ${total(({ filters }) => filters.blocks)}, ` +
      `${total(({ filters }) => filters.logs)}; ${total(({ filters }) => filters.removed)} ` +
      `(${total(({ filters }) => filters.reorgs)} reorganisations)`,
    `again, left, for a named reason   ${total(({ filters }) => filters.again)}, ` +
      `${total(({ filters }) => filters.left)}`,
    `served of what a limit allows     ${share(Math.floor(rates.length * HALF))} % median, ` +
      `${share(-1)} % most`,
  ];
  return {
    lines,
    wrong: [
      ...(medianMs > MEDIAN_MS ? [`revoked keys are accepted for ${medianMs} ms (median)`] : []),
      ...(worstMs > WORST_MS ? [`a revoked key was accepted for ${worstMs} ms`] : []),
    ],
  };
}
