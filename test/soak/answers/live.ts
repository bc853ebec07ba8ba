// Answers of the real service before nodes at fault, over real sockets: with one worker and two,
// with Redis and without, by HTTP and by WebSocket. The oracle of the simulations judges each.
import { startRedis, WITHOUT_REDIS } from "../../fakes/redis-server.ts";
import { seededRandom } from "../../fakes/runtime.ts";
import { AnswerOracle, type Finding } from "../../sim/answer-oracle.ts";
import type { NodeRequest } from "../../sim/cache-nodes.ts";
import { nextRequest } from "../../sim/cache-trace.ts";
import { FAULTY_WORLDS, type FaultyWorld } from "../../sim/faulty-worlds.ts";
import type { NodeNetwork } from "../../sim/node-network.ts";
import { RULES } from "../../sim/rules-off.ts";
import { httpClient, type NodeClient, socketClient, type WireAnswer } from "../views/client.ts";
import {
  LIVE_BLOCK_MS,
  LIVE_CHAIN,
  type LivePlan,
  type LiveSite,
  startLiveSite,
} from "./live-site.ts";
import type { AnswerSoak } from "./simulated.ts";

/** What a run came to. */
export interface LiveFindings {
  /** Answers that were judged, by how they were asked for. */
  readonly compared: Record<Way, number>;
  /** Answers that were kept, by class. */
  readonly kept: ReadonlyMap<string, number>;
  /** Calls that were refused or failed, by code. */
  readonly failed: ReadonlyMap<string, number>;
  readonly findings: Readonly<Record<Finding, readonly string[]>>;
}

type Way = "http" | "socket";

const RUNS = 40;
const CALLS_WITHOUT = 3_000;
const CALLERS = 32;
const REORG_SHARE = 0.2;
const DEEPEST_REORG = 3;
const WARM_UP_MS = 3_000;
/** The processes of a busy machine wait for their turn. */
const GRACES = { usualMs: 2_000, nullMs: 2_000, knownMs: 5_000, kept: { head: 2_000 } } as const;
/**
 * Callers without a key are one caller, whose calls are asked again ten times a second: beyond that
 * `null` is what the first one says.
 */
const JUDGED: ReadonlySet<Finding> = new Set(["wrong", "short"]);

const WORLDS = ["usual", "3 behind", "forks", "lie alike", "parts", "polled"] as const;

/** Runs so many answers in all; returns what broke a promise. */
export async function soakLiveAnswers({
  seed: first,
  answers,
  print,
}: AnswerSoak): Promise<readonly string[]> {
  const breaches: string[] = [];
  const sum = { http: 0, socket: 0 };
  if (WITHOUT_REDIS !== false) print(`without Redis: ${WITHOUT_REDIS}`);
  for (let run = 0; run < RUNS; run++) {
    const seed = first + run;
    const name = WORLDS[Math.floor(run / 4) % WORLDS.length] ?? "usual";
    const workers = run % 2 === 0 ? 1 : 2;
    const hasRedis = run % 4 >= 2 && WITHOUT_REDIS === false;
    const how = `seed ${seed}, ${name}, ${workers} workers, ${hasRedis ? "Redis" : "no Redis"}`;
    const size = Math.ceil(answers / RUNS);
    const found = await runLive({ seed, world: FAULTY_WORLDS[name], workers, hasRedis }, size);
    sum.http += found.compared.http;
    sum.socket += found.compared.socket;
    print(`${how}: ${told(found)}`);
    for (const [finding, texts] of Object.entries(found.findings))
      if (texts[0] !== undefined) breaches.push(`${texts.length} ${finding} (${how}): ${texts[0]}`);
  }
  print(`${sum.http} answers by HTTP and ${sum.socket} by sockets over ${RUNS} seeds`);
  return [...breaches, ...(await switchAllOff(first, print))];
}

/** Runs the service without the rules that show at once. */
async function switchAllOff(seed: number, print: AnswerSoak["print"]): Promise<readonly string[]> {
  const breaches: string[] = [];
  for (const [without, { name, world, shows, isLive }] of RULES.entries()) {
    if (isLive !== true) continue;
    const run = {
      seed,
      world: FAULTY_WORLDS[world],
      workers: 2,
      hasRedis: false,
      without,
    } as const;
    const { findings } = await runLive(run, CALLS_WITHOUT);
    const { length } = findings[shows];
    print(`without "${name}": ${length} ${shows}`);
    if (length === 0) breaches.push(`${shows} is not found without "${name}"`);
  }
  return breaches;
}

/** One run. */
export interface LiveRun extends Pick<LivePlan, "workers"> {
  readonly seed: number;
  readonly world: FaultyWorld;
  readonly hasRedis: boolean;
  /** Left out = the service has all rules. */
  readonly without?: number;
}

/** Runs one site until so many calls were made. */
export async function runLive(run: LiveRun, calls: number): Promise<LiveFindings> {
  const { seed, world, workers, hasRedis, without = null } = run;
  const random = seededRandom(seed);
  const redis = hasRedis ? await startRedis() : null;
  try {
    const redisUrl = redis?.url ?? null;
    const site = await startLiveSite({ world, random, workers, redisUrl, without });
    try {
      return await observe(site, run, calls);
    } finally {
      await site.close();
    }
  } finally {
    await redis?.stop();
  }
}

async function observe(site: LiveSite, run: LiveRun, calls: number): Promise<LiveFindings> {
  const { network } = site;
  const { world, seed } = run;
  const judge = new Judge(network, world);
  network.start();
  const growing = setInterval(growth(network, world, seededRandom(seed + 1)), LIVE_BLOCK_MS);
  try {
    await new Promise((resolve) => setTimeout(resolve, WARM_UP_MS));
    let left = calls;
    const callers = Array.from({ length: CALLERS }, async (_, at) => {
      const way: Way = at % 2 === 0 ? "http" : "socket";
      const random = seededRandom(seed + at + 2);
      const target = { url: site.url, path: `/rpc/${LIVE_CHAIN}`, headers: {}, asksMeta: true };
      const client = way === "http" ? httpClient(target) : await socketClient(target);
      while (left-- > 0) await judge.ask(client, way, nextOf(network, world, random));
      await client.close();
    });
    await Promise.all(callers);
    return judge;
  } finally {
    clearInterval(growing);
  }
}

function growth(network: NodeNetwork, { deepestReorg }: FaultyWorld, random: () => number) {
  const deepest = Math.min(DEEPEST_REORG, deepestReorg ?? DEEPEST_REORG);
  return (): void => network.grow(random() < REORG_SHARE ? 1 + Math.floor(random() * deepest) : 0);
}

function nextOf({ nodes }: NodeNetwork, { asks }: FaultyWorld, random: () => number): NodeRequest {
  const seen = nodes[Math.floor(random() * nodes.length)];
  return nextRequest(random, seen?.chain ?? [], asks);
}

/** Asks, and judges what comes. */
class Judge implements LiveFindings {
  readonly compared = { http: 0, socket: 0 };
  readonly kept = new Map<string, number>();
  readonly failed = new Map<string, number>();
  readonly findings: Record<Finding, string[]> = {
    wrong: [],
    short: [],
    null: [],
    "told, then null": [],
  };
  readonly #oracle: AnswerOracle;

  constructor({ nodes }: NodeNetwork, { kept }: FaultyWorld) {
    this.#oracle = new AnswerOracle(nodes, { ...GRACES, kept: { ...GRACES.kept, ...kept } });
  }

  async ask(client: NodeClient, way: Way, request: NodeRequest): Promise<void> {
    const askedAtMs = performance.now();
    const { answers } = await client.send([request], null);
    const [answer] = answers ?? [];
    if (answer?.result === undefined) return count(this.failed, codeOf(answer));
    this.compared[way]++;
    const { source, cache } = answer.svc_meta ?? {};
    const kept = cache?.result === "hit" ? (cache.class ?? null) : null;
    if (kept !== null) count(this.kept, kept);
    const json = JSON.stringify(answer.result);
    const judged = { request, json, kept, isMerged: source === "merged", isResolved: true };
    const times = { askedAtMs, toldAtMs: performance.now(), nodeIndex: null };
    for (const finding of this.#oracle.judge({ ...judged, ...times }))
      if (JUDGED.has(finding))
        this.findings[finding].push(`${kept ?? source ?? way} ${JSON.stringify(request)}: ${json}`);
  }
}

function count(counts: Map<string, number>, name: string): void {
  counts.set(name, (counts.get(name) ?? 0) + 1);
}

function codeOf(answer: WireAnswer | undefined): string {
  const { code, message, data } = answer?.error ?? { code: 0, message: "connection lost" };
  return data?.code ?? `${code} ${message}`;
}

function told({ compared, kept, failed, findings }: LiveFindings): string {
  const listed = (counts: ReadonlyMap<string, number>): string =>
    [...counts].map(([name, n]) => `${n} ${name}`).join(", ") || "none";
  const { wrong, short } = findings;
  return (
    `${compared.http} by HTTP, ${compared.socket} by sockets, kept: ${listed(kept)}; ` +
    `refused: ${listed(failed)}; ${wrong.length} wrong, ${short.length} short`
  );
}
