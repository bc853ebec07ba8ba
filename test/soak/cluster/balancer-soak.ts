// The soak of three nodes behind the balancer of deploy/, whose database is cut off: from one node
// and from all, for less than nodes notice, than they lease for, and for longer than they are
// taken to live.
import { hasBalancer, startBalancer } from "../../fakes/balancer.ts";
import { postgresAvailability } from "../../fakes/postgres.ts";
import { seededRandom } from "../../fakes/runtime.ts";
import { type DatabaseCut, runCut } from "./database-cut.ts";
import { untilAllWell } from "./faults.ts";
import { type SitePlan, startSite } from "./site.ts";
import { endSite } from "./soak.ts";

/** Without a database each node has an equal part of a rate limit: enough for these callers. */
const AMPLE = { per_second: 1_000, burst: 1_000 };

/** The times that nodes have unless they are told others. */
const SITE: SitePlan = {
  nodes: 3,
  workers: 1,
  times: { flushMs: 1_000, nodeTimeoutMs: 30_000 },
  hosted: {
    free_cu_per_month: 1_000_000,
    keyless: true,
    buckets: { managed: AMPLE, reduced: AMPLE, public: AMPLE, custom: AMPLE },
  },
};
const TIMES_MS = [5_000, 20_000, 60_000] as const;
const FAULTS = ["cut", "silent"] as const;

/** Every case. */
export const DATABASE_CUTS: readonly DatabaseCut[] = FAULTS.flatMap((fault) =>
  [1, SITE.nodes].flatMap((nodes) => TIMES_MS.map((ms) => ({ fault, nodes, ms }))),
);

/** Runs cases; what broke a promise, null = this machine cannot run them. */
export async function soakBalancer(
  seed: number,
  cuts: readonly DatabaseCut[],
  print: (line: string) => void,
): Promise<readonly string[] | null> {
  const postgres = postgresAvailability();
  const missing = hasBalancer() ? null : "no haproxy on this machine";
  const why = postgres.kind === "no" ? postgres.reason : missing;
  if (why !== null) {
    print(`skipped: ${why}`);
    return null;
  }
  const site = await startSite(SITE);
  const breaches: string[] = [];
  try {
    await untilAllWell(site);
    const balancer = await startBalancer(site.nodes.map(({ port }) => port));
    const on = { site, balancer, random: seededRandom(seed) };
    try {
      for (const cut of cuts) {
        const title = `${cut.fault}, ${cut.nodes} of ${SITE.nodes} nodes, ${cut.ms / 1_000} s`;
        print(`\n${title}`);
        const { lines, wrong } = await runCut(on, cut);
        for (const line of lines) print(`  ${line}`);
        for (const text of wrong) print(`  BREACH ${text}`);
        breaches.push(...wrong.map((text) => `${title}: ${text}`));
      }
    } finally {
      await balancer.close();
    }
    breaches.push(...(await endSite(site)));
  } finally {
    await site.close();
  }
  return breaches;
}
