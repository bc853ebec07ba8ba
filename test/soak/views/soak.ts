// A run of the checker of views: callers of every kind on a site, until so many reads are done;
// then the history is judged and told as a table.
import { seededRandom } from "../../fakes/runtime.ts";
import {
  accountOf,
  type CallerPlan,
  type CallerSession,
  type Habits,
  runCaller,
} from "./caller.ts";
import { checkHistory, RULES, type Terms, type Verdict } from "./checker.ts";
import { httpClient, type NodeClient, socketClient, type Target } from "./client.ts";
import { failuresIn, type Operation, SESSION_KINDS, type SessionKind } from "./history.ts";
import type { Range } from "./network.ts";
import { OWN_REQUESTS } from "./provider.ts";
import { CHAIN, type Consistency, type SitePlan, startViewSite, type ViewSite } from "./site.ts";

/** What is run. */
export interface ViewPlan {
  readonly seed: number;
  readonly reads: number;
  readonly nodes: number;
  readonly callers: number;
  readonly consistency: Consistency;
  readonly habits: Habits;
  readonly blockMs: Range;
  readonly blockTimeMs: number;
  readonly print: (line: string) => void;
  /** Further settings of the service. */
  readonly settings: Readonly<Record<string, unknown>>;
  /** What starts the nodes: the service, unless the checker itself is tested. */
  readonly startSite?: (plan: SitePlan) => Promise<ViewSite>;
}

/** What a run came to. */
export interface ViewFindings {
  readonly verdict: Verdict;
  readonly reads: number;
  /** Calls by code of their error. */
  readonly failures: ReadonlyMap<string, number>;
  readonly traffic: Traffic;
  readonly blocks: number;
  readonly reorganisations: number;
  readonly forks: number;
  readonly seconds: number;
}

/** Calls of callers, and what they took of providers. */
export interface Traffic {
  /** Calls that only a provider, a kept or a shared answer can serve. */
  readonly calls: number;
  /** Requests to providers for them; probes and heads are not among them. */
  readonly upstream: number;
  readonly ownRequests: number;
  readonly counters: ReadonlyMap<string, number>;
}

/** Callers and blocks of every run. */
export const USUAL_RUN = {
  callers: 50,
  habits: { sends: 0.01, asksOfOwn: 0.15, batches: 0.1, pauseMs: 0 },
  blockMs: { least: 100, most: 300 },
  blockTimeMs: 500,
} as const;

const PROVIDERS = 4;
const GOSSIP_MS = { least: 10, most: 150 };
/** A key is exact on other nodes after this. */
const KEY_SETTLE_MS = 250;
/** A push is up to 20 ms late, and the processes of a busy machine wait for their turn. */
const SLACK_MS = 100;
const WARM_UP_MS = 1_500;
const PRINTED_EVERY_MS = 5_000;
const CALLERS_PER_KEY = 2;

/** Off is run to show that the checker can fail: a part of the reads is enough. */
const OFF_SHARE = 0.1;
const LEAST_OFF_READS = 20_000;

/** What `npm run soak -- --views` is told. */
export interface ViewSoak extends Pick<ViewPlan, "seed" | "reads" | "nodes" | "print"> {}

/** Runs the same seed in each of these modes; returns what broke a promise. */
export async function soakViews(
  soak: ViewSoak,
  consistencies: readonly Consistency[],
): Promise<readonly string[]> {
  const breaches: string[] = [];
  for (const consistency of consistencies) {
    const isShort = consistency === "off" && consistencies.length > 1;
    const reads = isShort ? Math.max(LEAST_OFF_READS, soak.reads * OFF_SHARE) : soak.reads;
    soak.print(`consistency ${consistency}`);
    const found = await runViews({ ...USUAL_RUN, ...soak, reads, consistency, settings: {} });
    for (const line of linesOf(found)) soak.print(line);
    breaches.push(...breachesOf(found, consistency).map((text) => `${consistency}: ${text}`));
  }
  return breaches;
}

/** Runs one. */
export async function runViews(plan: ViewPlan): Promise<ViewFindings> {
  const random = seededRandom(plan.seed);
  const start = plan.startSite ?? startViewSite;
  const site = await start({ ...plan, random, providers: PROVIDERS, gossipMs: GOSSIP_MS });
  try {
    site.network.start();
    await new Promise((resolve) => setTimeout(resolve, WARM_UP_MS));
    return await observe(plan, site);
  } finally {
    await site.close();
  }
}

async function observe(plan: ViewPlan, site: ViewSite): Promise<ViewFindings> {
  const { network } = site;
  const history: Operation[] = [];
  const plans = await callerPlans(plan, site, (operation) => void history.push(operation));
  const before = { counts: network.counts(), counters: await site.counters() };
  const firstBlock = network.chain.blocks.tip().number;
  const startedAt = performance.now();
  let reads = 0;
  const take = (more: number): boolean => {
    if (reads >= plan.reads) return false;
    reads += more;
    return true;
  };
  const printing = setInterval(() => {
    const seconds = Math.round((performance.now() - startedAt) / 1_000);
    plan.print(`${seconds} s: ${reads} reads, block ${network.chain.blocks.tip().number}`);
  }, PRINTED_EVERY_MS);
  await Promise.all(plans.map((one) => runCaller(one, take))).finally(() =>
    clearInterval(printing),
  );
  const seconds = (performance.now() - startedAt) / 1_000;
  const traffic = trafficOf(before, history, {
    counts: network.counts(),
    counters: await site.counters(),
  });
  await Promise.all(plans.flatMap(({ clients }) => [...clients.values()].map((it) => it.close())));
  return {
    verdict: checkHistory(history, network.oracle, termsOf),
    reads,
    failures: failuresIn(history),
    traffic,
    blocks: network.chain.blocks.tip().number - firstBlock,
    reorganisations: network.reorganisations(),
    forks: network.forks(),
    seconds,
  };
}

function termsOf(kind: SessionKind): Terms {
  return { settleMs: kind === "key, all nodes" ? KEY_SETTLE_MS : 0, slackMs: SLACK_MS };
}

/** Callers in turn: by HTTP, by socket, with the mark, with a key. */
async function callerPlans(
  plan: ViewPlan,
  site: ViewSite,
  note: (operation: Operation) => void,
): Promise<readonly CallerPlan[]> {
  const plans: CallerPlan[] = [];
  let key = "";
  for (let at = 0; at < plan.callers; at++) {
    const turn = Math.floor(at / KINDS.length);
    const kind = KINDS[at % KINDS.length] ?? "http";
    if (kind === "key" && turn % CALLERS_PER_KEY === 0) key = await site.createKey();
    const roams = kind === "seen" || kind === "key";
    const nodes = roams ? site.nodes.keys() : [turn % plan.nodes];
    plans.push({
      sessions: sessionsOf(
        kind,
        kind === "key" ? `key ${key.slice(-KEY_END)}` : `${kind} ${turn + 1}`,
      ),
      clients: await clientsOf(plan, site, { kind, key, nodes: [...nodes] }),
      sendsMark: kind === "seen",
      account: accountOf(plan.seed, at),
      chain: site.network.chain,
      random: seededRandom(plan.seed + at + 1),
      habits: plan.habits,
      note,
    });
  }
  return plans;
}

const KINDS = ["http", "socket", "seen", "key"] as const;
type CallerKind = (typeof KINDS)[number];
const KEY_END = 6;

function sessionsOf(kind: CallerKind, name: string): readonly CallerSession[] {
  if (kind !== "key") return [{ kind, nameAt: () => name }];
  return [
    { kind: "key, one node", nameAt: (node) => `${name} at n${node + 1}` },
    { kind: "key, all nodes", nameAt: () => name },
  ];
}

interface Connected {
  readonly kind: CallerKind;
  readonly key: string;
  readonly nodes: readonly number[];
}

async function clientsOf(
  { consistency }: ViewPlan,
  site: ViewSite,
  { kind, key, nodes }: Connected,
): Promise<ReadonlyMap<number, NodeClient>> {
  const asksMore = consistency !== "off" && (kind === "seen" || kind === "key");
  const headers: Record<string, string> = asksMore ? { "x-svc-consistency": "caller" } : {};
  const clients = new Map<number, NodeClient>();
  for (const node of nodes) {
    const { url = "" } = site.nodes[node] ?? {};
    const path = kind === "key" ? `/rpc/k/${key}/${CHAIN}` : `/rpc/${CHAIN}`;
    const target: Target = { url, path, headers };
    clients.set(node, kind === "socket" ? await socketClient(target) : httpClient(target));
  }
  return clients;
}

interface Counted {
  readonly counts: ReadonlyMap<string, number>;
  readonly counters: ReadonlyMap<string, number>;
}

function trafficOf(before: Counted, history: readonly Operation[], after: Counted): Traffic {
  const asked = difference(after.counts, before.counts);
  const [own, upstream] = [...asked].reduce<[number, number]>(
    ([mine, theirs], [kind, n]) =>
      OWN_REQUESTS.has(kind) ? [mine + n, theirs] : [mine, theirs + n],
    [0, 0],
  );
  return {
    calls: history.reduce((sum, it) => sum + routedCalls(it), 0),
    upstream,
    ownRequests: own,
    counters: difference(after.counters, before.counters),
  };
}

/** Calls other than `eth_blockNumber`; an operation of a key stands in the history twice. */
function routedCalls({ kind, seen }: Operation): number {
  if (kind === "key, one node") return 0;
  return seen.filter((it) => it.kind !== "height" && !(it.kind === "sent" && !it.isAccepted))
    .length;
}

function difference(
  after: ReadonlyMap<string, number>,
  before: ReadonlyMap<string, number>,
): ReadonlyMap<string, number> {
  return new Map([...after].map(([name, n]) => [name, n - (before.get(name) ?? 0)]));
}

/** What breaks the promises of a mode; `off` has to break them, or the checker shows nothing. */
export function breachesOf(findings: ViewFindings, consistency: Consistency): readonly string[] {
  const { verdict, reads, failures } = findings;
  const anomalies = anomaliesOf(verdict);
  const failed = [...failures.values()].reduce((sum, n) => sum + n, 0);
  const breaches: string[] = [];
  if (consistency === "off") {
    if (anomalies < reads * LEAST_SHOWN)
      breaches.push(`${anomalies} anomalies without one view: the checker shows too little`);
    return breaches;
  }
  if (anomalies > 0) breaches.push(`${anomalies} anomalies`);
  if (failed > reads * MOST_FAILED) breaches.push(`${failed} of ${reads} calls failed`);
  const ratio = amplificationOf(findings.traffic);
  if (ratio > 1) breaches.push(`${ratio.toFixed(3)} upstream calls per call without re-asks`);
  return breaches;
}

/** Of the reads of a run with `off`, at least so many go back. */
const LEAST_SHOWN = 0.005;
/** A node that is behind a mark may refuse so many calls. */
const MOST_FAILED = 0.01;

/** Upstream calls for each answer that providers gave, without those that were asked again. */
function amplificationOf({ upstream, counters }: Traffic): number {
  const answered = counters.get("svc_answers_total provider") ?? 0;
  return answered === 0 ? 0 : (upstream - reasksOf(counters)) / answered;
}

/** Anomalies of all kinds. */
export function anomaliesOf({ counts }: Verdict): number {
  let sum = 0;
  for (const own of counts.values()) for (const n of own.values()) sum += n;
  return sum;
}

/** The findings as lines of a table. */
export function linesOf(findings: ViewFindings): readonly string[] {
  const { verdict, reads, failures, traffic, blocks, reorganisations, forks, seconds } = findings;
  const heads = ["session", "requests", ...RULES];
  const rows = SESSION_KINDS.map((kind) => [
    kind,
    String(verdict.operations.get(kind) ?? 0),
    ...RULES.map((rule) => String(verdict.counts.get(kind)?.get(rule) ?? 0)),
  ]);
  return [
    `${reads} reads in ${seconds.toFixed(0)} s, ${blocks} blocks, ${reorganisations} reorganisations, ` +
      `${forks} forks of one provider`,
    ...tableLines([heads, ...rows]),
    ...trafficLines(traffic),
    ...[...failures].map(([name, n]) => `${n} × ${name}`),
    ...verdict.examples.map(({ rule, kind, text }) => `${rule} (${kind}): ${text}`),
  ];
}

function tableLines(rows: readonly (readonly string[])[]): readonly string[] {
  const widths = (rows[0] ?? []).map((_, column) =>
    Math.max(...rows.map((row) => row[column]?.length ?? 0)),
  );
  return rows.map((row) =>
    row
      .map((cell, at) => (at === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart(widths[at] ?? 0)))
      .join("  "),
  );
}

const SHOWN_COUNTERS = [
  "svc_answers_total",
  "svc_null_rechecks_total",
  "svc_view_reasks_total",
  "svc_hedges_total",
];

function trafficLines(traffic: Traffic): readonly string[] {
  const { calls, upstream, ownRequests, counters } = traffic;
  const shown = [...counters].filter(
    ([name, n]) => n > 0 && SHOWN_COUNTERS.some((it) => name.startsWith(it)),
  );
  return [
    `upstream calls per call: ${(upstream / calls).toFixed(3)} (${upstream} of ${calls}); per answer ` +
      `of a provider, without ${reasksOf(counters)} re-asks: ${amplificationOf(traffic).toFixed(3)}; ` +
      `${ownRequests} requests for probes and heads`,
    shown.map(([name, n]) => `${name} ${n}`).join(", "),
  ];
}

/**
 * Calls that were asked again because a provider did not have what another may have, or took long.
 */
function reasksOf(counters: ReadonlyMap<string, number>): number {
  let sum = 0;
  for (const [name, n] of counters)
    if (/^svc_(null_rechecks|view_reasks)_total|^svc_hedges_total (won|lost)/.test(name)) sum += n;
  return sum;
}
