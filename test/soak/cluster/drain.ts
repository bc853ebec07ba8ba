// A restart of every node, one after the other, under load: no call fails, and all of them are
// billed to the unit. Callers go elsewhere when a node takes no connections, as a balancer does.
import { setTimeout as sleep } from "node:timers/promises";
import { compareBooks } from "./books.ts";
import { untilAllWell } from "./faults.ts";
import { prepare } from "./schedule.ts";
import type { ClusterSite } from "./site.ts";
import { NOT_CONNECTED, startTraffic } from "./traffic.ts";

/** What a restart of all nodes came to. */
export interface DrainFindings {
  readonly answered: number;
  /** Connections that were refused, and made to another node. */
  readonly elsewhere: number;
  readonly wrong: readonly string[];
}

const CALLERS = 12;
const PAUSE_MS = 10;
const LOADED_MS = 500;

/** Restarts every node under load. */
export async function restartNodes(
  site: ClusterSite,
  { seed, random }: { readonly seed: number; readonly random: () => number },
): Promise<DrainFindings> {
  const { nodes, providers, databaseUrl } = site;
  const wrong: string[] = [];
  providers.forget();
  const { spenders: accounts, record, credits } = await prepare(site, { seed, random });
  const rich = accounts.slice(0, 2);
  const plan = { nodes, accounts: rich, random, callers: CALLERS, pauseMs: PAUSE_MS };
  const stop = startTraffic(record, plan);
  for (const node of nodes) {
    await sleep(LOADED_MS);
    const how = await node.end();
    if (how !== 0) wrong.push(`${node.id} ended with ${how}`);
    await node.start();
    await untilAllWell(site);
  }
  await stop();
  const counts = rich.map(({ caller }) => record.seenBy(caller));
  const answered = counts.reduce((sum, count) => sum + count.answered, 0);
  let elsewhere = 0;
  for (const { lost, refused, lastRefusal } of counts) {
    if (lost > 0) wrong.push(`${lost} connections were lost with a call under way`);
    for (const [code, count] of refused)
      if (code === NOT_CONNECTED) elsewhere += count;
      else wrong.push(`${count} calls were refused: ${code}; the last: ${lastRefusal}`);
  }
  const books = await compareBooks({
    databaseUrl,
    accounts: rich,
    credits: credits.sent,
    record,
    served: providers.served,
  });
  if (books.unbilledCalls > 0) wrong.push(`${books.unbilledCalls} calls are not billed`);
  return { answered, elsewhere, wrong: [...record.wrong, ...wrong, ...books.wrong] };
}
