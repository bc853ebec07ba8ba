// A network of nodes with faults behind the real router, tracker and cache, in simulated time.
// Every answer is judged by the oracle. What is asked is in `cache-trace.ts`, what nodes answer in
// `cache-nodes.ts`, what is wrong with them in `faulty-worlds.ts`.
import assert from "node:assert/strict";
import { DEFAULT_HEDGE } from "../../src/core/routing/hedge.ts";
import { readBlockRef } from "../../src/core/rpc/call.ts";
import { plainFailure } from "../../src/core/rpc/failure.ts";
import { methodOf } from "../../src/core/rpc/method.ts";
import { writeRequest } from "../../src/core/rpc/wire-request.ts";
import type { Answer } from "../../src/upstream/engine/answer.ts";
import { CachedAnswers } from "../../src/upstream/engine/cache/cached-answers.ts";
import { SplitCounts } from "../../src/upstream/engine/ranges/range-run.ts";
import { type RoutedCall, Router } from "../../src/upstream/engine/router.ts";
import { Tracker } from "../../src/upstream/health/tracker.ts";
import { TimerWheel } from "../../src/upstream/timer-wheel.ts";
import { fakeProvider, fakeSet, SELECTION } from "../fakes/providers.ts";
import { type SimulatedWorld, seededRandom, simulatedWorld } from "../fakes/runtime.ts";
import { AnswerOracle, type Finding } from "./answer-oracle.ts";
import { CHAIN_ID, finalOf, type NodeRequest, USUAL_FINALITY } from "./cache-nodes.ts";
import { kindOf, nextRequest, type TraceKind } from "./cache-trace.ts";
import type { FaultyWorld } from "./faulty-worlds.ts";
import { type NodeBlock, NodeNetwork } from "./node-network.ts";
import type { SimulatedNode } from "./simulated-node.ts";

/** How the world is. */
export interface CacheSimulationOptions {
  readonly seed: number;
  readonly nodes: number;
  readonly blockTimeMs: number;
  /** Share of blocks that come with a reorganisation. */
  readonly reorgShare: number;
  readonly blocks: number;
  readonly callsPerBlock: number;
  /** What is wrong with the nodes; left out = nothing. */
  readonly world?: FaultyWorld;
}

/** Calls of one kind. */
export interface KindReport {
  calls: number;
  /** Answered from the cache. */
  hits: number;
  /** Joined to an equal call under way. */
  shared: number;
  /** Sent to nodes. */
  upstreamCalls: number;
}

/** What happened. */
export interface CacheSimulationReport {
  readonly kinds: Readonly<Record<TraceKind, KindReport>>;
  readonly reorgs: number;
  /** Answers that were compared; refusals and errors of nodes are not. */
  readonly compared: number;
  /** What the oracle found, by what it is. */
  readonly findings: Readonly<Record<Finding, readonly string[]>>;
}

/** A node's new branch reaches others, and the service, within this time. */
const NODE_DELAY_MS = 600;
const PUSH_DELAY_MS = 40;
const ANSWER_MS = 25;
const GRACES = {
  /** Answers of a chain that a node has left may still be under way, or its pushes. */
  usualMs: PUSH_DELAY_MS + 2 * ANSWER_MS,
  nullMs: 1_000,
  knownMs: 200,
} as const;
/** For how long it is remembered what chains nodes had: calls may take so long. */
const KEPT_MS = 6_000;
const CALL_MS = 5_000;
const DEEPEST_REORG = 6;
const CALLERS = 20;

/** Runs a faulty world for about so many answers. */
export function simulateFaults(
  seed: number,
  world: FaultyWorld,
  answers: number,
): CacheSimulationReport {
  const callsPerBlock = CALLS_PER_BLOCK * (world.density ?? 1);
  const blocks = Math.ceil(answers / callsPerBlock);
  const usual = { nodes: 5, blockTimeMs: 2_000, reorgShare: 0.2 };
  return simulateCache({ ...usual, seed, blocks, callsPerBlock, world });
}

const CALLS_PER_BLOCK = 60;

/** Runs the world to its end. */
export function simulateCache(options: CacheSimulationOptions): CacheSimulationReport {
  const { seed, blockTimeMs, reorgShare, blocks, callsPerBlock, world: faulty } = options;
  const world = new CacheWorld(options);
  const random = seededRandom(seed + 1);
  const deepest = faulty?.deepestReorg ?? DEEPEST_REORG;
  let reorgs = 0;
  for (let block = 0; block < blocks; block++) {
    const depth = random() < reorgShare ? 1 + Math.floor(random() * deepest) : 0;
    if (depth > 0) reorgs++;
    world.network.grow(depth);
    for (let n = 0; n < callsPerBlock; n++)
      world.runtime.after(Math.floor(random() * blockTimeMs), () => {
        const { nodes } = world.network;
        const seen = nodes[Math.floor(random() * nodes.length)] ?? assert.fail();
        world.ask(nextRequest(random, seen.chain, faulty?.asks));
      });
    world.runtime.advance(blockTimeMs);
  }
  world.runtime.advance(10_000);
  const { kinds, compared, findings } = world;
  return { kinds, reorgs, compared, findings };
}

/** The network, the service before it, and the oracle. */
class CacheWorld {
  readonly runtime: SimulatedWorld;
  readonly network: NodeNetwork;
  readonly kinds: Record<TraceKind, KindReport> = {
    head: emptyReport(),
    old: emptyReport(),
    logs: emptyReport(),
  };
  readonly findings: Record<Finding, string[]> = {
    wrong: [],
    short: [],
    null: [],
    "told, then null": [],
  };
  compared = 0;
  readonly #random: () => number;
  readonly #tracker: Tracker;
  readonly #router: Router;
  readonly #oracle: AnswerOracle;
  readonly #excused: ReadonlySet<Finding>;

  constructor({ seed, nodes, blockTimeMs, world = {} }: CacheSimulationOptions) {
    this.runtime = simulatedWorld(seed);
    this.#random = seededRandom(seed + 2);
    const { faults = [], finality = USUAL_FINALITY, kept = {}, excused = [] } = world;
    const { knownMs = GRACES.knownMs } = world;
    this.#excused = new Set(excused);
    this.#tracker = this.#Tracker(nodes, blockTimeMs, world);
    this.#router = this.#createRouter();
    this.network = new NodeNetwork({
      nodes,
      faults,
      finality,
      random: this.#random,
      clock: this.runtime,
      nodeDelayMs: NODE_DELAY_MS,
      pushDelayMs: PUSH_DELAY_MS,
      keptMs: KEPT_MS + Math.max(0, ...Object.values(kept)),
      pushed: (node, block) => this.#pushed(node, block),
    });
    this.#oracle = new AnswerOracle(this.network.nodes, { ...GRACES, knownMs, kept });
    this.network.start();
    this.#poll(world.pollEveryMs ?? null);
    this.runtime.advance(NODE_DELAY_MS);
  }

  ask(request: NodeRequest): void {
    const { method: name } = request;
    this.kinds[kindOf(request)].calls++;
    const method = methodOf(name);
    const params = Buffer.from(JSON.stringify(request.params));
    const block = readBlockRef(params, { start: 0, end: params.length }, method);
    const call = { methodName: name, method, block, ...writeRequest(name, params) };
    this.#router.route(
      {
        call,
        tracker: this.#tracker,
        strategy: "load-balanced",
        pin: null,
        transport: "http",
        avoid: null,
        caller: { key: `caller ${Math.floor(this.#random() * CALLERS)}` },
        deadlineMs: CALL_MS,
        mayStream: true,
      },
      (answer, routed) => this.#answered(request, answer, routed),
    );
  }

  #answered(
    request: NodeRequest,
    { outcome, source }: Answer,
    { startedAtMs, cacheUse }: RoutedCall,
  ): void {
    const report = this.kinds[kindOf(request)];
    if (source.kind === "cache") report.hits++;
    if (source.kind === "shared") report.shared++;
    if (outcome.kind !== "result") return;
    this.compared++;
    const json = outcome.body.toString("latin1", outcome.start, outcome.end);
    const toldAtMs = this.runtime.now();
    const found = this.#oracle.judge({
      request,
      json,
      kept: cacheUse?.result === "hit" ? cacheUse.class : null,
      isMerged: source.kind === "merged",
      isResolved: source.kind === "merged",
      askedAtMs: startedAtMs,
      toldAtMs,
      nodeIndex: source.kind === "provider" ? source.provider.index : null,
    });
    for (const finding of found)
      if (!this.#excused.has(finding) || (finding === "null" && cacheUse?.result === "hit"))
        this.findings[finding].push(
          `${source.kind} ${JSON.stringify(request)} at ${toldAtMs}: ${json}`,
        );
  }

  #pushed(node: SimulatedNode, block: NodeBlock): void {
    const provider = this.#tracker.set.providers[node.index] ?? assert.fail();
    this.#tracker.recordHead(provider, block.number, block);
    this.#tracker.recordNamed(provider, "finalized", finalOf(node.told, node.finality));
  }

  /** Nodes are probed from time to time, those at once that push no heads. */
  #poll(everyMs: number | null): void {
    if (everyMs === null) return;
    for (const node of this.network.nodes) {
      const provider = this.#tracker.set.providers[node.index] ?? assert.fail();
      const result = { kind: "ok", chainId: CHAIN_ID, height: node.chain.length - 1 } as const;
      this.#tracker.recordProbe({ provider, transport: "http", latencyMs: 1, result });
      this.#tracker.recordNamed(provider, "finalized", finalOf(node.chain, node.finality));
    }
    this.runtime.after(everyMs, () => this.#poll(everyMs));
  }

  #Tracker(nodes: number, blockTimeMs: number, { faults = [], set }: FaultyWorld): Tracker {
    const providers = Array.from({ length: nodes }, (_, index) => {
      const { maxBlockRange = null, refuses = [] } = faults[index] ?? {};
      const unsupportedMethods = new Set(refuses);
      return fakeProvider(index, { archival: true, maxBlockRange, unsupportedMethods });
    });
    const usual = fakeSet(providers);
    const chain = { ...usual.chain, blockTimeMs, chainId: CHAIN_ID };
    const settings = { ...SELECTION, profileId: "team" };
    return new Tracker({ ...usual, chain, ...set }, this.runtime, settings);
  }

  #createRouter(): Router {
    const { runtime } = this;
    const settings = {
      maxBytes: 16_777_216,
      accountMaxBytes: 0,
      byAccount: false,
      methods: new Map<string, number>(),
    };
    const limits = { split: true, maxBlocks: 10_000, maxParts: 50, maxBytes: 16_777_216 };
    return new Router({
      runtime,
      timerWheel: new TimerWheel(runtime),
      limits: () => ({ maxAttempts: 3, firstAttemptShare: 0.6 }),
      hedge: () => DEFAULT_HEDGE,
      cache: new CachedAnswers(() => settings),
      coalesce: () => true,
      split: { splitLimits: () => limits, counts: new SplitCounts() },
      upstreams: {
        http: {
          send: ({ provider, body }, listener) => {
            const request: NodeRequest = JSON.parse(body.toString());
            this.kinds[kindOf(request)].upstreamCalls++;
            const node = this.network.nodes[provider.index] ?? assert.fail();
            runtime.after(this.#answerMs(), () => {
              const reply = node.reply(request, this.#random);
              if (reply.kind === "silence") return;
              runtime.after(this.#answerMs(), () => {
                if (reply.json === null) {
                  const failure = plainFailure("error", UNKNOWN_BLOCK.message);
                  const raw = Buffer.from(JSON.stringify(UNKNOWN_BLOCK));
                  return listener.failed({ ...failure, ...UNKNOWN_BLOCK }, raw);
                }
                const bytes = Buffer.from(reply.json);
                listener.result(bytes, { start: 0, end: bytes.length, idAt: null });
              });
            });
            return { sent: true, cancel() {} };
          },
        },
      },
    });
  }

  #answerMs(): number {
    return Math.floor(this.#random() * ANSWER_MS);
  }
}

const UNKNOWN_BLOCK = { code: -32_000, message: "unknown block" };

function emptyReport(): KindReport {
  return { calls: 0, hits: 0, shared: 0, upstreamCalls: 0 };
}
