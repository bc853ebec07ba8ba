// What a schedule does to nodes and to the database: drawn from the seed, then carried out and
// healed. Keeps which node was disturbed when. Checks that nodes tell of each other.
import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { until } from "../../fakes/service-fixture.ts";
import { LINK_FAULTS, type LinkFault } from "./database-link.ts";
import type { NodeProcess } from "./node-process.ts";
import type { ClusterSite, SiteTimes } from "./site.ts";
import { pick } from "./traffic.ts";

/** One fault. Nodes are told by their index; times are for how long it lasts. */
export type Fault =
  | { readonly kind: "worker_kill"; readonly node: number; readonly worker: number }
  | { readonly kind: "node_kill"; readonly node: number }
  | { readonly kind: "stop"; readonly node: number; readonly ms: number }
  | {
      readonly kind: "link";
      readonly node: number;
      readonly how: LinkFault;
      readonly ms: number;
    }
  | { readonly kind: "clock_step"; readonly node: number; readonly byMs: number }
  | { readonly kind: "database_kill"; readonly ms: number };

/** Faults at the same time, after a pause. */
export interface Beat {
  readonly pauseMs: number;
  readonly faults: readonly Fault[];
}

const PAUSES_MS = { least: 300, most: 1_200 };
const SHORT_MS = { least: 200, most: 900 };
/** Of the node timeout: a node that is away for longer is taken for dead. */
const LONG_SHARE = { least: 1.2, most: 1.5 };
const CLOCK_STEPS_MS = [-3_600_000, -45_000, -2_000, 2_000, 45_000, 3_600_000];
const KINDS = [
  "worker_kill",
  "worker_kill",
  "node_kill",
  "stop",
  "link",
  "link",
  "clock_step",
  "database_kill",
] as const satisfies readonly Fault["kind"][];
const TWO_AT_ONCE = 0.35;
const LONG = 0.4;

/** Draws the beats of a schedule. */
export function drawBeats(
  random: () => number,
  count: number,
  site: { readonly nodes: number; readonly times: SiteTimes },
): readonly Beat[] {
  return Array.from({ length: count }, () => {
    const first = drawFault(random, site, []);
    const isAlone = first.kind === "database_kill" || random() >= TWO_AT_ONCE;
    const faults = isAlone ? [first] : [first, drawFault(random, site, [nodeOf(first)])];
    return { pauseMs: between(PAUSES_MS, random), faults };
  });
}

function nodeOf(fault: Fault): number | null {
  return fault.kind === "database_kill" ? null : fault.node;
}

function drawFault(
  random: () => number,
  { nodes, times }: { readonly nodes: number; readonly times: SiteTimes },
  taken: readonly (number | null)[],
): Fault {
  const free = Array.from({ length: nodes }, (_, index) => index).filter(
    (index) => !taken.includes(index),
  );
  const node = pick(free, random);
  const longMs = between(LONG_SHARE, random) * times.nodeTimeoutMs;
  const ms = Math.round(random() < LONG ? longMs : between(SHORT_MS, random));
  // Nodes need their database to start again, so its end comes alone.
  const kinds = taken.length === 0 ? KINDS : KINDS.filter((kind) => kind !== "database_kill");
  const kind = pick(kinds, random);
  switch (kind) {
    case "worker_kill":
      return { kind, node, worker: Math.floor(random() * 2) };
    case "node_kill":
      return { kind, node };
    case "stop":
      return { kind, node, ms };
    case "link":
      return { kind, node, ms, how: pick(LINK_FAULTS, random) };
    case "clock_step":
      return { kind, node, byMs: pick(CLOCK_STEPS_MS, random) };
    case "database_kill":
      return { kind, ms: Math.round(between(SHORT_MS, random)) };
  }
}

function between(
  { least, most }: { readonly least: number; readonly most: number },
  random: () => number,
): number {
  return least + (most - least) * random();
}

/** A fault in a line. */
export function faultText(fault: Fault): string {
  switch (fault.kind) {
    case "worker_kill":
      return `kill worker ${fault.worker + 1} of n${fault.node + 1}`;
    case "node_kill":
      return `kill n${fault.node + 1}`;
    case "stop":
      return `stop n${fault.node + 1} for ${fault.ms} ms`;
    case "link":
      return `${fault.how} link of n${fault.node + 1} for ${fault.ms} ms`;
    case "clock_step":
      return `clock of n${fault.node + 1} by ${fault.byMs} ms`;
    case "database_kill":
      return `kill the database for ${fault.ms} ms`;
  }
}

/** Which node was disturbed when. */
export interface Disturbances {
  /**
   * Begins one of these nodes; the returned function ends it. `holdsLocks`: what they have locked
   * in the database stays so, and others wait for it.
   */
  begin(nodes: readonly string[], holdsLocks?: boolean): () => void;
  /** Whether a node has been undisturbed since a time. */
  isCalmSince(node: string, sinceMs: number): boolean;
  /**
   * Whether a node was undisturbed from one time to another, and had to wait for no other one's
   * locks.
   */
  wasCalm(node: string, fromMs: number, toMs: number): boolean;
}

/** After its end a disturbance counts for so long: connections are opened again. */
const AFTERMATH_MS = 3_000;

/** Begins to keep them. */
export function createDisturbances(): Disturbances {
  const open = new Map<string, number>();
  const endedAtMs = new Map<string, number>();
  const spans: Span[] = [];
  return {
    begin(nodes, holdsLocks = false) {
      const fromMs = performance.now();
      const span: Span = { nodes, holdsLocks, fromMs, toMs: Number.POSITIVE_INFINITY };
      spans.push(span);
      for (const node of nodes) open.set(node, (open.get(node) ?? 0) + 1);
      return () => {
        span.toMs = performance.now() + AFTERMATH_MS;
        for (const node of nodes) {
          open.set(node, (open.get(node) ?? 1) - 1);
          endedAtMs.set(node, span.toMs);
        }
      };
    },
    wasCalm: (node, fromMs, toMs) =>
      !spans.some(
        (span) =>
          (span.holdsLocks || span.nodes.includes(node)) &&
          span.fromMs <= toMs &&
          span.toMs >= fromMs,
      ),
    isCalmSince: (node, sinceMs) =>
      (open.get(node) ?? 0) === 0 && (endedAtMs.get(node) ?? Number.NEGATIVE_INFINITY) < sinceMs,
  };
}

interface Span {
  readonly nodes: readonly string[];
  readonly holdsLocks: boolean;
  readonly fromMs: number;
  toMs: number;
}

/** A connection that stays open and says nothing keeps its transaction open. */
function holdsLocks(fault: Fault): boolean {
  return fault.kind === "stop" || (fault.kind === "link" && fault.how !== "cut");
}

/** Carries out the beats of a schedule; everything is healed when it resolves. */
export async function carryOut(
  site: ClusterSite,
  disturbances: Disturbances,
  beats: readonly Beat[],
): Promise<void> {
  for (const { pauseMs, faults } of beats) {
    await sleep(pauseMs);
    await Promise.all(
      faults.map(async (fault) => {
        const index = nodeOf(fault);
        const nodes = site.nodes.filter((_, at) => index === null || at === index);
        const end = disturbances.begin(
          nodes.map(({ id }) => id),
          holdsLocks(fault),
        );
        await carryOutOne(site, fault);
        end();
      }),
    );
  }
  for (const node of site.nodes) node.shiftClock(0);
}

async function carryOutOne(site: ClusterSite, fault: Fault): Promise<void> {
  if (fault.kind === "database_kill") {
    await site.postgres.crash();
    await sleep(fault.ms);
    return site.postgres.restart();
  }
  const node = site.nodes[fault.node];
  if (node === undefined) throw new Error(`there is no node ${fault.node}`);
  switch (fault.kind) {
    case "worker_kill":
      return killWorker(site, node, fault.worker);
    case "node_kill":
      await node.kill();
      await untilTold(site, node);
      return node.start();
    case "stop":
      node.signalAll("SIGSTOP");
      await sleep(fault.ms);
      return node.signalAll("SIGCONT");
    case "link":
      node.link.break(fault.how);
      await sleep(fault.ms);
      return node.link.mend();
    case "clock_step":
      return node.shiftClock(fault.byMs);
  }
}

/** Kills a worker, which its supervisor replaces; a node of one process is killed and started. */
async function killWorker(site: ClusterSite, node: NodeProcess, worker: number): Promise<void> {
  const pids = node.workers();
  const pid = pids[worker % pids.length];
  if (pid === undefined) {
    await node.kill();
    await untilTold(site, node);
    return node.start();
  }
  process.kill(pid, "SIGKILL");
  await until("a new worker", () => {
    const now = node.workers();
    return now.length === pids.length && !now.includes(pid);
  });
}

const Health = z.object({
  cluster: z.object({
    nodes_connected: z.number(),
    nodes_responding: z.number(),
    nodes_total: z.number(),
    status: z.string(),
  }),
});

async function healthOf(node: NodeProcess): Promise<z.infer<typeof Health>["cluster"] | null> {
  try {
    const response = await fetch(`${node.url}/api/health`, {
      signal: AbortSignal.timeout(HEALTH_MS),
    });
    return Health.parse(await response.json()).cluster;
  } catch {
    return null;
  }
}

const HEALTH_MS = 2_000;

/** Waits until another node tells that one is missing. */
async function untilTold(site: ClusterSite, dead: NodeProcess): Promise<void> {
  await until(`a node that tells that ${dead.id} is dead`, async () => {
    for (const node of site.nodes) {
      if (node === dead || !node.isRunning) continue;
      const health = await healthOf(node);
      if (health !== null && health.nodes_responding < site.nodes.length) return true;
    }
    return false;
  });
}

/** Waits until every node tells that all are there. */
export async function untilAllWell(site: ClusterSite): Promise<void> {
  for (const node of site.nodes) {
    await until(`${node.id} that tells that all nodes are there`, async () => {
      const health = await healthOf(node);
      return health?.status === "healthy" && health.nodes_responding === site.nodes.length;
    });
  }
}
