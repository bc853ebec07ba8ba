// Nodes of one chain that see its blocks and reorganisations at different times, behind the real
// router, tracker and cache, in simulated time; and an oracle that compares every answer with what
// the nodes hold. What is asked is in `cache-trace.ts`, what nodes answer in `cache-nodes.ts`.
import assert from "node:assert/strict";
import { readBlockRef } from "../../src/core/rpc/call.ts";
import { plainFailure } from "../../src/core/rpc/failure.ts";
import { methodOf } from "../../src/core/rpc/method.ts";
import { writeRequest } from "../../src/core/rpc/wire-request.ts";
import type { Answer } from "../../src/upstream/engine/answer.ts";
import { CachedAnswers } from "../../src/upstream/engine/cached-answers.ts";
import { createRouter, type RoutingEngine } from "../../src/upstream/engine/router.ts";
import { createTracker, type Tracker } from "../../src/upstream/health/tracker.ts";
import { createTimerWheel } from "../../src/upstream/timer-wheel.ts";
import { fakeProvider, fakeSet, SELECTION } from "../fakes/providers.ts";
import { type SimulatedWorld, seededRandom, simulatedWorld } from "../fakes/runtime.ts";
import {
  answerOf,
  type Chain,
  claimedNumber,
  hashOf,
  lieOf,
  type NodeRequest,
} from "./cache-nodes.ts";
import { kindOf, nextRequest, type TraceKind } from "./cache-trace.ts";

/** How the world is. */
export interface CacheSimulationOptions {
  readonly seed: number;
  readonly nodes: number;
  readonly blockTimeMs: number;
  /** Share of blocks that come with a reorganisation of one to six blocks. */
  readonly reorgShare: number;
  readonly blocks: number;
  readonly callsPerBlock: number;
  /** What is wrong with nodes, by their index; those beyond its end are honest. */
  readonly faults?: readonly NodeFault[];
}

/** What is wrong with a node. */
export interface NodeFault {
  /** Blocks that it is behind. */
  readonly lagBlocks?: number;
  /** Share of its answers about one block that are of another one. */
  readonly liesShare?: number;
  /** Share of calls that it never answers. */
  readonly stallShare?: number;
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
  /** Answers that no node would have given. */
  readonly wrong: readonly string[];
  /** Logs that end before their range, of a node that lacks its end, though another one has it. */
  readonly short: readonly string[];
  /** `null` for what all nodes that are not at fault have had for a while. */
  readonly nulls: number;
}

/** How long before the newest block blocks are final. */
const FINALITY = 40;
/** A node's new branch reaches others, and the service, within this time. */
const NODE_DELAY_MS = 600;
const PUSH_DELAY_MS = 40;
const ANSWER_MS = 25;
/** Answers of a chain that a node has left may still be under way, or its pushes. */
const GRACE_MS = PUSH_DELAY_MS + 2 * ANSWER_MS;
/** `null` may be told so much later: whoever was asked for it once more has not answered. */
const RECHECK_MS = 1_000;
/** A node that has had a block for so long is known to have it. */
const KNOWN_MS = 200;

/** Runs the world to its end. */
export function simulateCache(options: CacheSimulationOptions): CacheSimulationReport {
  const { seed, blockTimeMs, reorgShare, blocks, callsPerBlock } = options;
  const world = new CacheWorld(options);
  const random = seededRandom(seed + 1);
  let reorgs = 0;
  for (let block = 0; block < blocks; block++) {
    const depth = random() < reorgShare ? 1 + Math.floor(random() * 6) : 0;
    if (depth > 0) reorgs++;
    world.grow(depth);
    for (let n = 0; n < callsPerBlock; n++)
      world.runtime.after(Math.floor(random() * blockTimeMs), () => {
        const seen = world.nodes[Math.floor(random() * world.nodes.length)] ?? assert.fail();
        world.ask(nextRequest(random, seen.chain));
      });
    world.runtime.advance(blockTimeMs);
  }
  world.runtime.advance(10_000);
  const { kinds, compared, wrong, short, nulls } = world;
  return { kinds, reorgs, compared, wrong, short, nulls };
}

/** A node of the chain. */
class Node {
  readonly fault: NodeFault;
  chain: Chain;
  /** Blocks that it has left: it still knows them by their hashes. */
  readonly left = new Set<string>();
  /** Chains that it has left not long ago, and when. */
  past: { readonly chain: Chain; readonly leftMs: number }[] = [];
  /** When its pushes that are under way have arrived. */
  pushedByMs = 0;

  constructor(chain: Chain, fault: NodeFault) {
    this.chain = chain;
    this.fault = fault;
  }

  /** Whether it has had the block of a number for so long that everybody knows it. */
  hasLong(number: number, nowMs: number): boolean {
    return [this.chain, ...this.past.map(({ chain }) => chain)].every(
      (chain, at) =>
        number < chain.length || (this.past[at - 1]?.leftMs ?? nowMs) < nowMs - KNOWN_MS,
    );
  }

  /** Takes a chain over. Returns the first number at which it is another one. */
  adopt(next: Chain, nowMs: number): number {
    let fork = Math.max(0, Math.min(this.chain.length, next.length) - DEEPEST);
    while (fork < this.chain.length && this.chain[fork] === next[fork]) fork++;
    for (const hash of this.chain.slice(fork)) this.left.add(hash);
    for (const hash of next.slice(fork)) this.left.delete(hash);
    this.past = this.past.filter(({ leftMs }) => leftMs >= nowMs - GRACE_MS - RECHECK_MS);
    this.past.push({ chain: this.chain, leftMs: nowMs });
    this.chain = next;
    return fork;
  }

  /** The chains that its answers may be of, if they came just now. */
  recent(nowMs: number, graceMs = GRACE_MS): readonly Chain[] {
    const past = this.past.filter(({ leftMs }) => leftMs >= nowMs - graceMs);
    return [this.chain, ...past.map(({ chain }) => chain)];
  }
}

/** More blocks than a node ever has to take over at one time. */
const DEEPEST = 100;
const FIRST_BLOCKS = 200;
const UNKNOWN_BLOCK = { code: -32_000, message: "unknown block" };

/** The nodes, the service before them, and the oracle. */
class CacheWorld {
  readonly runtime: SimulatedWorld;
  readonly nodes: readonly Node[];
  readonly kinds: Record<TraceKind, KindReport> = {
    head: emptyReport(),
    old: emptyReport(),
    logs: emptyReport(),
  };
  readonly wrong: string[] = [];
  readonly short: string[] = [];
  nulls = 0;
  compared = 0;
  readonly #random: () => number;
  readonly #tracker: Tracker;
  readonly #router: RoutingEngine;
  /** The chain that every node comes to. */
  #canonical: Chain = [];
  #made = 0;

  constructor({ seed, nodes: count, blockTimeMs, faults = [] }: CacheSimulationOptions) {
    this.runtime = simulatedWorld(seed);
    this.#random = seededRandom(seed + 2);
    const providers = Array.from({ length: count }, (_, index) =>
      fakeProvider(index, { archival: true }),
    );
    const set = fakeSet(providers);
    this.#tracker = createTracker({ ...set, chain: { ...set.chain, blockTimeMs } }, this.runtime, {
      ...SELECTION,
      profileId: "team",
    });
    this.#router = this.#createRouter();
    this.#canonical = Array.from({ length: FIRST_BLOCKS }, () => hashOf(++this.#made));
    this.nodes = providers.map((_, index) => {
      const fault = faults[index] ?? {};
      return new Node(this.#canonical.slice(0, FIRST_BLOCKS - (fault.lagBlocks ?? 0)), fault);
    });
    for (const [index, node] of this.nodes.entries()) this.#push(index, node, 0);
    this.runtime.advance(NODE_DELAY_MS);
  }

  /** Leaves some blocks, grows by as many and one, and tells the nodes, each in its time. */
  grow(depth: number): void {
    const kept = this.#canonical.slice(0, this.#canonical.length - depth);
    const next = [...kept, ...Array.from({ length: depth + 1 }, () => hashOf(++this.#made))];
    this.#canonical = next;
    for (const [index, node] of this.nodes.entries())
      this.runtime.after(this.#below(NODE_DELAY_MS), () => {
        const seen = next.slice(0, next.length - (node.fault.lagBlocks ?? 0));
        // A later chain may have overtaken this one.
        if (seen.length <= node.chain.length) return;
        this.#push(index, node, node.adopt(seen, this.runtime.now()));
      });
  }

  ask(request: NodeRequest): void {
    const { method: name } = request;
    this.kinds[kindOf(request)].calls++;
    const method = methodOf(name);
    const params = Buffer.from(JSON.stringify(request.params));
    const block = readBlockRef(params, { start: 0, end: params.length }, method);
    const call = { methodName: name, method, block, ...writeRequest(name, params) };
    const routed = this.#router.route(
      {
        call,
        tracker: this.#tracker,
        strategy: "load-balanced",
        pin: null,
        transport: "http",
        avoid: null,
        caller: { key: "caller" },
        deadlineMs: 5_000,
        mayStream: true,
      },
      (answer) => this.#answered(request, answer),
    );
    assert.ok(routed.startedAtMs <= this.runtime.now());
  }

  #answered(request: NodeRequest, { outcome, source }: Answer): void {
    const report = this.kinds[kindOf(request)];
    const isKept = source.kind === "cache";
    if (isKept) report.hits++;
    if (source.kind === "shared") report.shared++;
    if (outcome.kind !== "result") return;
    this.compared++;
    const json = outcome.body.toString("latin1", outcome.start, outcome.end);
    this.#judgeCompleteness(request, json);
    if (this.#isTold(request, json, isKept)) return;
    this.wrong.push(`${source.kind} ${JSON.stringify(request)} at ${this.runtime.now()}: ${json}`);
  }

  /**
   * Whether a node would have said it just now. A kept answer about a number is compared with nodes
   * that have that block: what one that lags behind leaves out must not be kept.
   */
  #isTold(request: NodeRequest, json: string, isKept: boolean): boolean {
    const nowMs = this.runtime.now();
    const claimed = isKept ? claimedNumber(request) : null;
    const graceMs = json === "null" && !isKept ? GRACE_MS + RECHECK_MS : GRACE_MS;
    return this.nodes.some((node) =>
      node
        .recent(nowMs, graceMs)
        .some(
          (chain) =>
            (claimed === null || claimed < chain.length) &&
            answerOf(chain, request, node.left) === json,
        ),
    );
  }

  /** What a node that lacks the block says, though another one is known to have it. */
  #judgeCompleteness(request: NodeRequest, json: string): void {
    const nowMs = this.runtime.now();
    if (json === "null" && this.#isThere(request)) this.nulls++;
    const claimed = claimedNumber(request);
    if (claimed === null || !this.nodes.some((node) => node.hasLong(claimed, nowMs))) return;
    if (request.method !== "eth_getLogs") return;
    const having = this.nodes.flatMap((node) =>
      node.recent(nowMs).flatMap((chain) => (claimed < chain.length ? [{ chain, node }] : [])),
    );
    const isWhole = having.some(({ chain, node }) => answerOf(chain, request, node.left) === json);
    if (!isWhole) this.short.push(`${JSON.stringify(request)} at ${nowMs}: ${json}`);
  }

  /** Whether all nodes that do not lag have had what is asked for, for long. */
  #isThere(request: NodeRequest): boolean {
    const sinceMs = this.runtime.now() - KNOWN_MS;
    return this.nodes.every(({ fault, chain, past, left }) => {
      if (fault.lagBlocks !== undefined) return true;
      const recent = past.filter(({ leftMs }) => leftMs >= sinceMs).map((each) => each.chain);
      return [chain, ...recent].every((each) => answerOf(each, request, left) !== "null");
    });
  }

  #below(most: number): number {
    return Math.floor(this.#random() * most);
  }

  /** The node pushes its blocks from this number on, and reports what is final. */
  #push(index: number, node: Node, from: number): void {
    const { runtime } = this;
    const provider = this.#tracker.set.providers[index] ?? assert.fail();
    for (const [at, hash] of node.chain.slice(from).entries()) {
      const number = from + at;
      const parentHash = node.chain[number - 1] ?? hash;
      node.pushedByMs = Math.max(node.pushedByMs, runtime.now() + this.#below(PUSH_DELAY_MS));
      runtime.after(node.pushedByMs - runtime.now(), () =>
        this.#tracker.recordHead(provider, number, { number, hash, parentHash }),
      );
    }
    this.#tracker.recordFinalized(provider, Math.max(0, node.chain.length - FINALITY));
  }

  #createRouter(): RoutingEngine {
    const { runtime } = this;
    const settings = {
      maxBytes: 16_777_216,
      accountMaxBytes: 0,
      byAccount: false,
      methods: new Map<string, number>(),
    };
    return createRouter({
      runtime,
      timerWheel: createTimerWheel(runtime),
      limits: () => ({ maxAttempts: 3, firstAttemptShare: 0.6 }),
      hedge: () => null,
      cache: new CachedAnswers(() => settings),
      coalesce: () => true,
      upstreams: {
        http: {
          send: ({ provider, body }, listener) => {
            const request: NodeRequest = JSON.parse(body.toString());
            this.kinds[kindOf(request)].upstreamCalls++;
            const node = this.nodes[provider.index] ?? assert.fail();
            const { liesShare = 0, stallShare = 0 } = node.fault;
            if (stallShare > 0 && this.#random() < stallShare) return { sent: true, cancel() {} };
            const isLie = liesShare > 0 && this.#random() < liesShare;
            runtime.after(this.#below(ANSWER_MS), () => {
              const honest = answerOf(node.chain, request, node.left);
              const json = isLie ? lieOf(node.chain, request, node.left, honest) : honest;
              runtime.after(this.#below(ANSWER_MS), () => {
                if (json === null) {
                  const failure = plainFailure("error", UNKNOWN_BLOCK.message);
                  const raw = Buffer.from(JSON.stringify(UNKNOWN_BLOCK));
                  return listener.failed({ ...failure, ...UNKNOWN_BLOCK }, raw);
                }
                const bytes = Buffer.from(json);
                listener.result(bytes, { start: 0, end: bytes.length, idAt: null });
              });
            });
            return { sent: true, cancel() {} };
          },
        },
      },
    });
  }
}

function emptyReport(): KindReport {
  return { calls: 0, hits: 0, shared: 0, upstreamCalls: 0 };
}
