// One case of the database cut off under load: from one node or from all, for a time. Tells which
// calls failed when, and what of it goes against completions 10.33 and 11.32.
import { setTimeout as sleep } from "node:timers/promises";
import type { Balancer } from "../../fakes/balancer.ts";
import { until } from "../../fakes/service-fixture.ts";
import { compareBooks } from "./books.ts";
import type { LinkFault } from "./database-link.ts";
import { untilAllWell } from "./faults.ts";
import { type ClusterSite, readDatabase } from "./site.ts";
import {
  CALLER_KINDS,
  type CallerKind,
  createCast,
  introduce,
  type SteadyCall,
  type SteadyCast,
  startCallers,
} from "./steady-callers.ts";
import { type CallRecord, createCallRecord } from "./traffic.ts";

/** A case. */
export interface DatabaseCut {
  readonly fault: LinkFault;
  /** Nodes that are cut off, from the first. */
  readonly nodes: number;
  readonly ms: number;
}

/** What was found. */
export interface CutFindings {
  readonly lines: readonly string[];
  readonly wrong: readonly string[];
}

/** What a case runs on. */
export interface CutSite {
  readonly site: ClusterSite;
  readonly balancer: Balancer;
  readonly random: () => number;
}

/** Before the cut: leases grow to the rate of the callers. */
const WARM_MS = 12_000;
const AFTER_MS = 10_000;
/** While leases and connections are new a busy machine alone makes calls fail. */
const JUDGED_FROM_MS = -2_000;
/** Longer than any wait of the service. */
const CALL_MS = 8_000;
/** Nodes serve as before so soon after the database is back. */
const RECOVERED_MS = 5_000;
/** The balancer leaves out a node that is not ready so soon after the cut. */
const LEFT_OUT_MS = 10_000;
/** Between two looks at what counts as silent, and what a call takes. */
const SLACK_MS = 1_000;
const LOOK_MS = 250;
const CU_OF_CALL = 3;
const SLOW_MS = 300;

/**
 * From when, after the cut, a node that is cut off may refuse a kind of caller, and from when it
 * must; as parts of the node timeout, counted from its last hearing (up to 1 s before the cut).
 */
const RULES: Readonly<Record<CallerKind, { readonly may: number; readonly must: number }>> = {
  // Leases are renewed below three quarters, and a node's part of the load goes up and down.
  paid: { may: 0.3, must: 0.5 },
  idle: { may: 0.3, must: 0.5 },
  free: { may: 1, must: 1 },
  allowance: { may: 1, must: 1 },
  custom: { may: 1, must: 1 },
  keyless: { may: Number.POSITIVE_INFINITY, must: Number.POSITIVE_INFINITY },
  unseen: { may: 0, must: 0 },
};

/** Runs a case; the database is there, and all nodes are well, before and after it. */
export async function runCut(on: CutSite, cut: DatabaseCut): Promise<CutFindings> {
  const { site, balancer, random } = on;
  site.providers.forget();
  const forMs = WARM_MS + cut.ms + RECOVERED_MS + AFTER_MS + LEFT_OUT_MS;
  const name = `${cut.fault}-${cut.nodes}-${cut.ms}-${Math.floor(performance.now())}`;
  const cast = await createCast(site, { random, name, forMs });
  await untilReady(site);
  const record = createCallRecord(CALL_MS);
  await introduce(site, { cast, record });
  const stop = startCallers({ url: balancer.url, cast, record });
  await sleep(WARM_MS);
  const links = site.nodes.slice(0, cut.nodes).map(({ link }) => link);
  const watch = watchReadiness(site);
  const cutAtMs = performance.now();
  for (const link of links) link.break(cut.fault);
  await sleep(cut.ms);
  for (const link of links) link.mend();
  await sleep(AFTER_MS);
  const readiness = await watch.stop(cutAtMs);
  const calls = (await stop()).map((call) => ({ ...call, atMs: call.atMs - cutAtMs }));
  await untilAllWell(site);
  const { databaseUrl, providers, times } = site;
  const books = await compareBooks({
    databaseUrl,
    accounts: cast.paid,
    credits: cast.credits,
    record,
    served: providers.served,
  });
  const freeCalls = await unbilledFree(databaseUrl, cast.free, record);
  const unbilledMost = unbilledBound(cut, calls, times.nodeTimeoutMs);
  const judged = judge(cut, calls, { all: site.nodes.length, nodeTimeoutMs: times.nodeTimeoutMs });
  return {
    lines: [
      ...CALLER_KINDS.map((kind) => lineOf(kind, calls)),
      ...readiness,
      ...sharesOf(cut, calls),
      `unbilled: ${books.unbilledCalls} paid calls of at most ${unbilledMost}, ` +
        `${freeCalls} of the free allowance`,
    ],
    wrong: [
      ...record.wrong,
      ...books.wrong,
      ...judged,
      ...(books.unbilledCalls > unbilledMost
        ? [`${books.unbilledCalls} calls are unbilled, at most ${unbilledMost} may be`]
        : []),
    ],
  };
}

async function untilReady(site: ClusterSite): Promise<void> {
  for (const { id, url } of site.nodes)
    await until(`${id} is ready`, async () => (await fetch(`${url}/api/ready`)).ok);
}

/** What goes against the rules. */
function judge(
  { nodes, ms }: DatabaseCut,
  calls: readonly SteadyCall[],
  { all, nodeTimeoutMs }: { readonly all: number; readonly nodeTimeoutMs: number },
): readonly string[] {
  const wrong = new Map<string, SteadyCall[]>();
  const note = (what: string, call: SteadyCall): void => {
    wrong.set(what, [...(wrong.get(what) ?? []), call]);
  };
  for (const call of calls) {
    const { kind, atMs, servedBy, code } = call;
    if (atMs < JUDGED_FROM_MS) continue;
    const isCut = isCutOff(servedBy, nodes) && atMs >= 0 && atMs < ms;
    const { may, must } = RULES[kind];
    const sinceMs = Math.min(atMs + call.tookMs, ms + RECOVERED_MS) + SLACK_MS;
    const isLeft = isCutOff(servedBy, nodes) && atMs > -SLACK_MS && atMs < ms + RECOVERED_MS;
    if (code !== null && !(isLeft && sinceMs >= may * nodeTimeoutMs))
      note(`${kind} fails (${code}) at ${servedBy || "no node"}`, call);
    else if (code !== null && code !== "unavailable") note(`${kind} is told ${code}`, call);
    if (
      code === null &&
      isCut &&
      atMs + call.tookMs < ms &&
      atMs - SLACK_MS >= must * nodeTimeoutMs
    )
      note(`${kind} is served by a node that has not heard of the database for too long`, call);
    if (isCut && nodes < all && atMs >= LEFT_OUT_MS) note(`${servedBy} still gets calls`, call);
  }
  return [...wrong].map(([what, found]) => `${what}: ${found.length} calls ${spanOf(found)}`);
}

function isCutOff(servedBy: string, nodes: number): boolean {
  return Number(/^node(\d+)$/.exec(servedBy)?.[1] ?? Number.POSITIVE_INFINITY) <= nodes;
}

/** Calls that nodes answered between their last writes and their end, where others outlive them. */
function unbilledBound(
  { nodes, ms }: DatabaseCut,
  calls: readonly SteadyCall[],
  nodeTimeoutMs: number,
): number {
  if (ms < nodeTimeoutMs) return 0;
  return calls.filter(
    ({ kind, code, servedBy, atMs }) =>
      (kind === "paid" || kind === "idle") &&
      code === null &&
      isCutOff(servedBy, nodes) &&
      atMs > -2 * SLACK_MS &&
      atMs < nodeTimeoutMs / 2 + SLACK_MS,
  ).length;
}

async function unbilledFree(
  databaseUrl: string,
  accounts: SteadyCast["free"],
  record: CallRecord,
): Promise<number> {
  const rows = await readDatabase<{ readonly cu: string }>(
    databaseUrl,
    "select coalesce(sum(used_cu), 0)::text as cu from allowance_month where account_id = any($1)",
    [accounts.map(({ id }) => id)],
  );
  const answered = accounts.reduce((sum, { caller }) => sum + record.seenBy(caller).answered, 0);
  return answered - Number(rows[0]?.cu ?? 0) / CU_OF_CALL;
}

/** How the calls of a kind went, in a line. */
function lineOf(kind: CallerKind, calls: readonly SteadyCall[]): string {
  const own = calls.filter((call) => call.kind === kind);
  const codes = new Map<string, SteadyCall[]>();
  for (const call of own)
    if (call.code !== null) codes.set(call.code, [...(codes.get(call.code) ?? []), call]);
  const failed = [...codes].map(([code, found]) => `${found.length} ${code} ${spanOf(found)}`);
  const slow = own.filter(({ tookMs }) => tookMs > SLOW_MS);
  const longestMs = Math.max(0, ...own.map(({ tookMs }) => tookMs)).toFixed(0);
  return (
    `${kind.padEnd(9)} ${String(own.length).padStart(5)} calls, failed: ${failed.join("; ") || "none"}` +
    `; longest ${longestMs} ms${slow.length === 0 ? "" : `, ${slow.length} slow ${spanOf(slow)}`}`
  );
}

function spanOf(calls: readonly SteadyCall[]): string {
  const times = calls.map(({ atMs }) => atMs / 1_000);
  return `from ${Math.min(...times).toFixed(1)} to ${Math.max(...times).toFixed(1)} s`;
}

/** Calls that the nodes that are cut off got, and failed, second by second. */
function sharesOf({ nodes }: DatabaseCut, calls: readonly SteadyCall[]): readonly string[] {
  const seconds = new Map<number, { got: number; failed: number }>();
  for (const { servedBy, atMs, code } of calls) {
    const second = Math.floor(atMs / 1_000);
    const count = seconds.get(second) ?? { got: 0, failed: 0 };
    seconds.set(second, count);
    if (!isCutOff(servedBy, nodes)) continue;
    count.got++;
    if (code !== null) count.failed++;
  }
  const texts = [...seconds]
    .filter(([second]) => second >= -2)
    .sort(([a], [b]) => a - b)
    .map(([, { got, failed }]) => (failed === 0 ? `${got}` : `${got}(${failed})`));
  return [`at the nodes that are cut off, by second from -2 (failed): ${texts.join(" ")}`];
}

/** Watches what nodes say of themselves, past the balancer. */
function watchReadiness(site: ClusterSite): {
  stop(fromMs: number): Promise<readonly string[]>;
} {
  const said: { readonly what: string; readonly atMs: number; readonly status: number }[] = [];
  let isRunning = true;
  const loops = site.nodes.flatMap(({ id, url }) =>
    ["/api/ready", "/api/ready?for=traffic"].map(async (path) => {
      for (let before = 0; isRunning; await sleep(LOOK_MS)) {
        const { status } = await fetch(url + path);
        if (status !== before)
          said.push({ what: `${id} ${path}`, atMs: performance.now(), status });
        before = status;
      }
    }),
  );
  return {
    async stop(fromMs) {
      isRunning = false;
      await Promise.all(loops);
      const changes = Map.groupBy(said, ({ what }) => what);
      return [...changes].map(
        ([what, list]) =>
          `${what}: ${list
            .map(({ atMs, status }) => `${status} from ${((atMs - fromMs) / 1_000).toFixed(1)} s`)
            .join(", ")}`,
      );
    },
  };
}
