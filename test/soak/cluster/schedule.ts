// One seeded schedule on a site: accounts that are spent, credited and changed at nodes picked by
// chance, while nodes and their database are killed, stopped and cut off; then all that the
// observer checks.
import { setTimeout as sleep } from "node:timers/promises";
import { seededRandom } from "../../fakes/runtime.ts";
import { until } from "../../fakes/service-fixture.ts";
import { type BookFindings, compareBooks } from "./books.ts";
import { type Changes, createChanges, type OwnedAccount } from "./changes.ts";
import { type Credits, createCredits, wrongCredits } from "./credits.ts";
import {
  type Beat,
  carryOut,
  createDisturbances,
  type Disturbances,
  drawBeats,
  faultText,
  untilAllWell,
} from "./faults.ts";
import { type FilterFindings, startFilters } from "./filters.ts";
import { answersWithin, watchNodes } from "./node-watch.ts";
import { type RateFindings, tryRateLimit } from "./rate-limit.ts";
import { type ClusterSite, manage, OPERATOR } from "./site.ts";
import {
  type CallRecord,
  createCallRecord,
  pick,
  type SpendingAccount,
  startTraffic,
} from "./traffic.ts";

/** What a schedule did and found. */
export interface ScheduleFindings {
  readonly seed: number;
  readonly faults: readonly string[];
  /** What broke a promise, but for promises about times and rates. */
  readonly wrong: readonly string[];
  readonly answered: number;
  readonly unknown: number;
  readonly unbilledCalls: number;
  /** Calls that processes answered between their last writes and their end. */
  readonly unbilledBound: number;
  /** Processes that were killed or taken for dead. */
  readonly ends: number;
  readonly revocationsMs: readonly number[];
  readonly changes: number;
  readonly credits: number;
  readonly rate: RateFindings;
  readonly filters: FilterFindings;
}

const MAX_BEATS = 3;
const CALLERS = 9;
const PAUSE_MS = 60;
const CHANGE_PAUSE_MS = 250;
const CREDIT_PAUSE_MS = 700;
const TRIES = 8;
const RICH_N = 2_000_000_000n;
/** Pays for some dozens of calls. */
const POOR_N = 900_000n;
const SPENDERS = 4;
const CONVERGED_MS = 30_000;

/** Runs the schedule of a seed. Nodes run, and nothing is broken, before and after it. */
export async function runSchedule(site: ClusterSite, seed: number): Promise<ScheduleFindings> {
  const random = seededRandom(seed);
  const { nodes } = site;
  const beats = drawBeats(random, 1 + Math.floor(random() * MAX_BEATS), {
    nodes: nodes.length,
    times: site.times,
  });
  site.providers.forget();
  const cast = await prepare(site, { seed, random });
  const watch = watchNodes(site.databaseUrl, site.times.nodeTimeoutMs);
  const polled = await startFilters({ ...site, ...cast, account: cast.filtering, random });
  const rate = await perform(site, cast, { beats, random });
  await untilAllWell(site);
  const filters = await polled.finish();
  await watch.untilAllWrite();
  const lost = await settle(site, cast);
  await watch.stop();
  const books = await booksOf(site, cast);
  const unbilledBound = answersWithin(watch.losses(), cast.record.answers);
  return {
    seed,
    faults: beats.flatMap(({ faults }) => faults.map(faultText)),
    wrong: [
      ...cast.record.wrong,
      ...cast.credits.wrong,
      ...filters.wrong,
      ...lost,
      ...books.wrong,
      ...(await wrongCredits(site.databaseUrl, cast.credits.sent)),
      ...(books.unbilledCalls > unbilledBound
        ? [`${books.unbilledCalls} calls are unbilled, at most ${unbilledBound} may be`]
        : []),
    ],
    ...countsOf(cast),
    unbilledCalls: books.unbilledCalls,
    unbilledBound,
    ends: watch.losses().length,
    rate,
    filters,
  };
}

/** Who acts in a schedule. */
export interface Cast {
  readonly spenders: readonly SpendingAccount[];
  readonly owner: OwnedAccount;
  readonly limited: SpendingAccount;
  /** Pays for the callers with filters; its books are compared by the audit alone. */
  readonly filtering: SpendingAccount;
  readonly record: CallRecord;
  readonly credits: Credits;
  readonly changes: Changes;
  readonly disturbances: Disturbances;
}

interface Drawn {
  readonly seed: number;
  readonly random: () => number;
}

/** Makes and funds the accounts: of those who spend, the first two are rich. */
export async function prepare(site: ClusterSite, { seed, random }: Drawn): Promise<Cast> {
  const { nodes } = site;
  const record = createCallRecord();
  const disturbances = createDisturbances();
  const prefix = `${seed}-${process.pid}-${Math.floor(performance.now())}`;
  const credits = createCredits({ nodes, random, prefix });
  const made: OwnedAccount[] = [];
  for (let caller = 1; caller <= SPENDERS + 3; caller++) {
    const answer = await manage(pick(nodes, random), "", "POST", "/api/v1/keys", { name: "soak" });
    if (answer?.status !== 201) throw new Error(`no account could be made: ${answer?.text}`);
    const { account_id: id, key, management_token: token } = answer.json;
    const account: OwnedAccount = { caller, id, key, token };
    made.push(account);
    const credit = await credits.give(account, caller > 2 ? RICH_N : POOR_N, TRIES);
    if (!credit.isAcknowledged) throw new Error("an account could not be credited");
  }
  const [filtering, limited, owner, ...spenders] = made.toReversed();
  if (filtering === undefined || limited === undefined || owner === undefined)
    throw new Error("there are no accounts");
  await manage(
    pick(nodes, random),
    OPERATOR,
    "POST",
    `/api/v1/operator/accounts/${owner.id}/custom-access`,
    { days: 2, reference: prefix },
  );
  const changes = createChanges({
    nodes,
    owner,
    record,
    random,
    providerUrl: site.providers.urls.at(-1) ?? "",
    served: site.providers.served,
    isCalmSince: disturbances.isCalmSince,
  });
  return { spenders, owner, limited, filtering, record, credits, changes, disturbances };
}

/** Traffic, changes and credits, first in peace, then under the faults. */
async function perform(
  site: ClusterSite,
  cast: Cast,
  { beats, random }: { readonly beats: readonly Beat[]; readonly random: () => number },
): Promise<RateFindings> {
  const { nodes } = site;
  const { spenders, credits, changes, record } = cast;
  const stopTraffic = startTraffic(record, {
    nodes,
    accounts: spenders,
    random,
    callers: CALLERS,
    pauseMs: PAUSE_MS,
  });
  const stopChanges = repeat(CHANGE_PAUSE_MS, () => changes.change());
  const stopCredits = repeat(CREDIT_PAUSE_MS, async () => {
    const credit = await credits.give(pick(spenders, random), POOR_N, TRIES);
    await credits.repeat(credit);
    await credits.repeat(pick(credits.sent, random));
  });
  try {
    const rate = await tryRateLimit(record, cast.limited, nodes);
    await carryOut(site, cast.disturbances, beats);
    await sleep(site.times.flushMs);
    return rate;
  } finally {
    await Promise.all([stopTraffic(), stopChanges(), stopCredits()]);
  }
}

function repeat(pauseMs: number, run: () => Promise<unknown>): () => Promise<void> {
  let isRunning = true;
  const running = (async () => {
    while (isRunning) {
      await run();
      await sleep(pauseMs);
    }
  })();
  return () => {
    isRunning = false;
    return running;
  };
}

/** Waits until every node knows every change; returns what they never learned. */
async function settle({ nodes }: ClusterSite, { changes }: Cast): Promise<readonly string[]> {
  const unknown: string[] = [];
  for (const node of nodes) {
    let found: readonly string[] = [];
    await until(
      "a node that knows every change",
      async () => {
        found = await changes.unknownAt(node);
        return found.length === 0;
      },
      CONVERGED_MS,
    ).catch(() => unknown.push(...found));
  }
  return unknown;
}

function booksOf(site: ClusterSite, cast: Cast): Promise<BookFindings> {
  return compareBooks({
    databaseUrl: site.databaseUrl,
    accounts: [...cast.spenders, cast.owner, cast.limited],
    credits: cast.credits.sent,
    record: cast.record,
    served: site.providers.served,
  });
}

function countsOf({ spenders, owner, limited, record, changes, credits }: Cast) {
  const seen = [...spenders, owner, limited].map(({ caller }) => record.seenBy(caller));
  return {
    answered: seen.reduce((total, { answered }) => total + answered, 0),
    unknown: seen.reduce((total, { unknown }) => total + unknown, 0),
    revocationsMs: changes.revocationsMs,
    changes: changes.acknowledged(),
    credits: credits.sent.length,
  };
}
