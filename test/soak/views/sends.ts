// The simulation of own writes: callers of one service send transactions while its providers lag,
// fork and die. What they are told of their transactions and nonces is judged by the checker.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { seededRandom } from "../../fakes/runtime.ts";
import { startService } from "../../fakes/service.ts";
import { accountOf, type CallerPlan, runCaller } from "./caller.ts";
import { checkHistory, RULES, type Rule, type Verdict } from "./checker.ts";
import { httpClient, socketClient } from "./client.ts";
import { type Deaths, startDeaths } from "./deaths.ts";
import { failuresIn, type Operation, type SessionKind } from "./history.ts";
import { type Network, startNetwork } from "./network.ts";
import type { RunningNode } from "./reference-node.ts";
import { CHAIN, type Consistency, configOf, createKeyAt } from "./site.ts";

/** What one seed came to. */
export interface SendFindings {
  readonly seed: number;
  readonly verdict: Verdict;
  readonly accepted: number;
  /** Sends that failed, and were repeated. */
  readonly refused: number;
  readonly asked: number;
  readonly deaths: number;
  /** Calls by code of their error. */
  readonly failures: ReadonlyMap<string, number>;
}

const PROVIDERS = 4;
const BLOCK_MS = { least: 60, most: 140 };
const BLOCK_TIME_MS = 300;
const GOSSIP_MS = { least: 20, most: 400 };
const REQUESTS = 500;
const HABITS = { sends: 0.2, asksOfOwn: 0.65, batches: 0, pauseMs: 25 };
const SLACK_MS = 100;
const WARM_UP_MS = 500;
/** Without a key by HTTP, with a key by socket, and twice with a key by HTTP. */
const CALLERS: readonly SessionKind[] = ["http", "socket", "key, one node", "key, one node"];

const SEEDS_AT_ONCE = 3;
const MAX_SEED = 2 ** 31;

/** What `npm run soak -- --sends` is told. */
export interface SendSoak {
  readonly seed: number;
  readonly seeds: number;
  readonly consistency: Consistency;
  readonly print: (line: string) => void;
}

/** Simulates so many seeds, a single one as it is; returns what broke a promise. */
export async function soakSends(soak: SendSoak): Promise<readonly string[]> {
  const random = seededRandom(soak.seed);
  const left =
    soak.seeds === 1
      ? [soak.seed]
      : Array.from({ length: soak.seeds }, () => Math.floor(random() * MAX_SEED));
  const found: SendFindings[] = [];
  const work = async (): Promise<void> => {
    for (let seed = left.pop(); seed !== undefined; seed = left.pop()) {
      const findings = await simulateSends(seed, soak.consistency);
      found.push(findings);
      soak.print(lineOf(findings));
    }
  };
  await Promise.all(Array.from({ length: SEEDS_AT_ONCE }, work));
  for (const line of totalsOf(found)) soak.print(line);
  return found.flatMap((it) => wrongSends(it).map((text) => `seed ${it.seed}: ${text}`));
}

function lineOf(findings: SendFindings): string {
  const { seed, verdict, accepted, refused, asked, deaths, failures } = findings;
  const failed = [...failures].map(([name, n]) => `, ${n} × ${name}`).join("");
  const rules = RULES.map((rule) => `${countOf(verdict, rule)} ${rule}`).join(", ");
  return (
    `seed ${seed}: ${accepted} accepted, ${refused} sent again, ${asked} requests, ` +
    `${deaths} deaths: ${rules}${failed}`
  );
}

function totalsOf(found: readonly SendFindings[]): readonly string[] {
  const total = (of: (findings: SendFindings) => number): number =>
    found.reduce((sum, it) => sum + of(it), 0);
  return [
    `${found.length} seeds, ${total((it) => it.accepted)} accepted, ` +
      `${total((it) => it.refused)} sent again, ${total((it) => it.deaths)} deaths`,
    ...RULES.map((rule) => `${rule}: ${total(({ verdict }) => countOf(verdict, rule))}`),
  ];
}

function countOf({ counts }: Verdict, rule: Rule): number {
  return [...counts.values()].reduce((sum, own) => sum + (own.get(rule) ?? 0), 0);
}

/** Starts what callers send to. */
export type StartNode = (network: Network) => Promise<RunningNode>;

/** Simulates one seed; `startNode` = another node than the service, to test the checker. */
export async function simulateSends(
  seed: number,
  consistency: Consistency,
  startNode: StartNode = (network) => startServiceNode(network, consistency),
): Promise<SendFindings> {
  const random = seededRandom(seed);
  const accepted: { listener: Deaths["onAccepted"] } = { listener: () => {} };
  const network = await startNetwork({
    providers: PROVIDERS,
    random,
    blockMs: BLOCK_MS,
    gossipMs: GOSSIP_MS,
    onAccepted: (provider) => accepted.listener(provider),
  });
  const node = await startNode(network);
  network.start();
  await new Promise((resolve) => setTimeout(resolve, WARM_UP_MS));
  const deaths = startDeaths(network.servers, seededRandom(seed + 1));
  accepted.listener = deaths.onAccepted;
  try {
    return await observe({ seed, network, node, deaths });
  } finally {
    await deaths.stop();
    await node.close();
    await network.close();
  }
}

/** The service in this process. */
async function startServiceNode(network: Network, consistency: Consistency): Promise<RunningNode> {
  const dataDir = mkdtempSync(join(tmpdir(), "svc-sends-"));
  const text = configOf({
    id: "n1",
    nodes: 1,
    consistency,
    blockTimeMs: BLOCK_TIME_MS,
    settings: { log_level: "error" },
    dataDir,
    storage: null,
    network,
  });
  const service = await startService(text);
  return {
    url: service.url,
    createKey: () => createKeyAt(service.url),
    async close() {
      await service.close();
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
}

interface Running {
  readonly seed: number;
  readonly network: Network;
  readonly node: RunningNode;
  readonly deaths: Deaths;
}

async function observe(running: Running): Promise<SendFindings> {
  const { seed, network, deaths } = running;
  const history: Operation[] = [];
  const plans = await Promise.all(CALLERS.map((kind, at) => callerOf(running, kind, at, history)));
  let asked = 0;
  await Promise.all(plans.map((plan) => runCaller(plan, () => asked++ < REQUESTS)));
  await Promise.all(plans.flatMap(({ clients }) => [...clients.values()].map((it) => it.close())));
  const sent = history.flatMap(({ seen }) =>
    seen.flatMap((it) => (it.kind === "sent" ? [it] : [])),
  );
  return {
    seed,
    verdict: checkHistory(history, network.oracle, () => ({ settleMs: 0, slackMs: SLACK_MS })),
    accepted: sent.filter(({ isAccepted }) => isAccepted).length,
    refused: sent.filter(({ isAccepted }) => !isAccepted).length,
    asked: history.length,
    deaths: deaths.count(),
    failures: failuresIn(history),
  };
}

async function callerOf(
  { seed, network, node }: Running,
  kind: SessionKind,
  at: number,
  history: Operation[],
): Promise<CallerPlan> {
  const path = kind === "http" ? `/rpc/${CHAIN}` : `/rpc/k/${await node.createKey()}/${CHAIN}`;
  const target = { url: node.url, path, headers: {} };
  const client = kind === "socket" ? await socketClient(target) : httpClient(target);
  return {
    sessions: [{ kind, nameAt: () => `${kind} ${at + 1}` }],
    clients: new Map([[0, client]]),
    sendsMark: false,
    account: accountOf(seed, at),
    chain: network.chain,
    random: seededRandom(seed + at + 2),
    habits: HABITS,
    note: (operation) => void history.push(operation),
  };
}

/** Broken promises of own writes; reads that go back are the other run's. */
export function wrongSends({ verdict }: SendFindings): readonly string[] {
  return verdict.examples
    .filter(({ rule }) => rule !== "went back")
    .map(({ rule, kind, text }) => `${rule} (${kind}): ${text}`);
}
