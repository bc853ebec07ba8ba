// Simulated providers over one chain: blocks come at uneven times, some are replaced, each provider
// follows at a lag of its own that changes, and now and then one is alone on a fork. Transactions
// spread from provider to provider, and are mined. Tells the oracle who holds what.
import { type ChainBlock, headerText } from "../../fakes/chain.ts";
import { createViewChain, type SentTransaction, type ViewChain } from "./chain.ts";
import { createOracle, type Oracle } from "./oracle.ts";
import { createProvider, type SimulatedProvider } from "./provider.ts";
import { type ProviderServer, serveProvider } from "./provider-server.ts";

/** A provider of the network. */
export type ViewServer = ProviderServer<SimulatedProvider>;

/** The network. */
export interface Network {
  readonly chain: ViewChain;
  readonly oracle: Oracle;
  readonly servers: readonly ViewServer[];
  readonly reorganisations: () => number;
  readonly forks: () => number;
  /** Requests to all providers, by kind. */
  counts(): ReadonlyMap<string, number>;
  /** Lets blocks come. */
  start(): void;
  close(): Promise<void>;
}

/** How a network behaves. */
export interface NetworkPlan {
  readonly providers: number;
  readonly random: () => number;
  /** Time between two blocks. */
  readonly blockMs: Range;
  /** Time until a transaction has reached another provider. */
  readonly gossipMs: Range;
  /** Hears which provider accepted a transaction, before that is answered. */
  readonly onAccepted?: (provider: number) => void;
}

/** Numbers between these. */
export interface Range {
  readonly least: number;
  readonly most: number;
}

const MAX_LAG = 4;
const LAG_CHANGES = 0.35;
const REORGANISES = 0.06;
const FORKS = 0.06;
const MAX_REPLACED = 2;
const MAX_FURTHER = 1;
const MAX_FORK = 3;
const MAX_ARRIVAL_MS = 40;
const MAX_PUSH_MS = 20;
/** Transactions this far below the tip are not mined again. */
const SETTLED_DEPTH = 24;

/** Starts the providers; no block comes yet. */
export async function startNetwork(plan: NetworkPlan): Promise<Network> {
  const { random, blockMs, gossipMs } = plan;
  const pending = new Map<string, SentTransaction>();
  const chain = createViewChain(random, () => minable());
  const oracle = createOracle(chain, plan.providers);
  const places: Place[] = [];
  for (let index = 0; index < plan.providers; index++) {
    const onAccepted = (sent: SentTransaction): void => {
      spread(index, sent);
      plan.onAccepted?.(index);
    };
    const server = await serveProvider(createProvider({ index, chain, onAccepted }));
    places.push({ server, lag: Math.floor(random() * (MAX_LAG + 1)), fork: null });
  }
  const timers = new Set<NodeJS.Timeout>();
  let reorganisations = 0;
  let forks = 0;

  function after(ms: number, run: () => void): void {
    const timer = setTimeout(() => {
      timers.delete(timer);
      run();
    }, ms);
    timers.add(timer);
  }

  /** Only what a serving provider knows can be mined. */
  function minable(): readonly SentTransaction[] {
    const serving = places.filter(({ server }) => server.isServing());
    return [...pending.values()].filter(({ hash }) =>
      serving.some(({ server }) => server.provider.pool.has(hash)),
    );
  }

  function spread(from: number, sent: SentTransaction): void {
    after(between(gossipMs, random), () => void pending.set(sent.hash, sent));
    for (const { server } of places)
      if (server.provider.index !== from)
        after(between(gossipMs, random), () => tell(from, server, sent));
  }

  function tell(from: number, { provider, isServing }: ViewServer, sent: SentTransaction): void {
    if (isServing() && places[from]?.server.isServing() === true)
      provider.pool.set(sent.hash, sent);
  }

  function step(): void {
    const draw = random();
    if (draw < REORGANISES) {
      reorganisations++;
      chain.reorg(upTo(MAX_REPLACED, random), Math.floor(random() * (MAX_FURTHER + 1)));
    } else chain.mine();
    if (draw >= 1 - FORKS) forkOne();
    forgetSettled();
    for (const place of places) {
      changeLag(place);
      after(random() * MAX_ARRIVAL_MS, () => follow(place));
    }
    after(between(blockMs, random), step);
  }

  /** Sets one provider on blocks that no other provider will have. */
  function forkOne(): void {
    const place = places[Math.floor(random() * places.length)];
    if (place === undefined) return;
    forks++;
    const length = upTo(MAX_FORK, random);
    place.fork = { tip: chain.fork(length, length), stepsLeft: length };
  }

  function changeLag(place: Place): void {
    if (place.fork !== null && place.fork.stepsLeft-- === 0) place.fork = null;
    if (random() >= LAG_CHANGES) return;
    place.lag = Math.min(MAX_LAG, Math.max(0, place.lag + (random() < 0.5 ? -1 : 1)));
  }

  function forgetSettled(): void {
    const settled = chain.blocks.at(chain.blocks.tip(), chain.blocks.tip().number - SETTLED_DEPTH);
    if (settled === undefined) return;
    for (const { hash, from, nonce } of pending.values())
      if (chain.nonceAt(settled, from) > nonce) pending.delete(hash);
  }

  /** Takes a provider to the block that it has by now. A provider never steps down. */
  function follow({ server, lag, fork }: Place): void {
    if (!server.isServing()) return;
    const best = chain.blocks.tip();
    const goal = fork?.tip ?? chain.blocks.at(best, best.number - lag);
    const tip = server.provider.tip();
    if (goal === undefined || goal === tip || goal.number < tip.number) return;
    move(server, goal);
  }

  function move(server: ViewServer, goal: ChainBlock): void {
    const heads = chain.blocks.walk(server.provider.tip(), goal).come;
    server.provider.moveTo(goal);
    oracle.note({ provider: server.provider.index, tip: goal, atMs: performance.now() });
    server.push(
      heads.map((head) => headerText(head)),
      random() * MAX_PUSH_MS,
    );
  }

  return {
    chain,
    oracle,
    servers: places.map(({ server }) => server),
    reorganisations: () => reorganisations,
    forks: () => forks,
    counts: () => totals(places.map(({ server }) => server.provider.counts)),
    start: step,
    async close() {
      for (const timer of timers) clearTimeout(timer);
      await Promise.all(places.map(({ server }) => server.stop()));
    },
  };
}

/** Where a provider is on the chain. */
interface Place {
  readonly server: ViewServer;
  lag: number;
  fork: { readonly tip: ChainBlock; stepsLeft: number } | null;
}

/** A number of a range by chance. */
function between({ least, most }: Range, random: () => number): number {
  return least + (most - least) * random();
}

function upTo(most: number, random: () => number): number {
  return 1 + Math.floor(random() * most);
}

function totals(counts: readonly ReadonlyMap<string, number>[]): ReadonlyMap<string, number> {
  const sums = new Map<string, number>();
  for (const one of counts) for (const [kind, n] of one) sums.set(kind, (sums.get(kind) ?? 0) + n);
  return sums;
}
