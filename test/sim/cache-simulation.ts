// Nodes of one chain that see its blocks and reorganisations at different times, behind the real
// router, tracker and cache, in simulated time; and an oracle that compares every kept answer with
// what the nodes hold. Who asks what is the caller's to say.
import assert from "node:assert/strict";
import { methodOf } from "../../src/core/rpc/method.ts";
import { writeRequest } from "../../src/core/rpc/wire-request.ts";
import { CachedAnswers } from "../../src/upstream/engine/cached-answers.ts";
import { createRouter } from "../../src/upstream/engine/router.ts";
import { createTracker } from "../../src/upstream/health/tracker.ts";
import { createTimerWheel } from "../../src/upstream/timer-wheel.ts";
import { fakeProvider, fakeSet, SELECTION } from "../fakes/providers.ts";
import { seededRandom, simulatedWorld } from "../fakes/runtime.ts";

/** How the world is. */
export interface CacheSimulationOptions {
  readonly seed: number;
  readonly nodes: number;
  readonly blockTimeMs: number;
  /** Share of blocks that come with a reorganisation of one to six blocks. */
  readonly reorgShare: number;
  readonly blocks: number;
  readonly callsPerBlock: number;
}

/** What happened. */
export interface CacheSimulationReport {
  readonly calls: number;
  readonly upstreamCalls: number;
  readonly hits: number;
  readonly reorgs: number;
  /** Kept answers that no node would have given any more. */
  readonly stale: readonly string[];
}

/** How long before the newest block blocks are final. */
const FINALITY = 40;
/** A node's new branch reaches others, and the service, within this time. */
const NODE_DELAY_MS = 600;
const PUSH_DELAY_MS = 40;
const ANSWER_MS = 25;
const ADDRESS = `0x${"ab".repeat(20)}`;

interface Node {
  /** The hash of each block, by number. */
  readonly chain: string[];
  /** Blocks that it left, and when. */
  readonly left: Map<string, number>;
  /** When its pushes that are under way have arrived. */
  pushedByMs: number;
}

/** Runs the world to its end. */
export function simulateCache(options: CacheSimulationOptions): CacheSimulationReport {
  const { seed, nodes: count, blockTimeMs, reorgShare, blocks, callsPerBlock } = options;
  const runtime = simulatedWorld(seed);
  const random = seededRandom(seed + 1);
  const below = (most: number): number => Math.floor(random() * most);
  const providers = Array.from({ length: count }, (_, index) => fakeProvider(index));
  const set = fakeSet(providers);
  const chainOf = { ...set.chain, blockTimeMs };
  const tracker = createTracker({ ...set, chain: chainOf }, runtime, {
    ...SELECTION,
    profileId: "team",
  });
  const settings = {
    maxBytes: 16_777_216,
    accountMaxBytes: 0,
    byAccount: false,
    methods: new Map<string, number>(),
  };
  const cache = new CachedAnswers(() => settings);
  let made = 0;
  const newHash = (): string => `0x${(++made).toString(16).padStart(64, "0")}`;
  const canonical: string[] = Array.from({ length: 200 }, newHash);
  const nodes: Node[] = providers.map(() => ({
    chain: [...canonical],
    left: new Map(),
    pushedByMs: 0,
  }));
  const nodeAt = (index: number): Node => nodes[index] ?? assert.fail();

  /** The node takes the chain over, and pushes each of its new blocks. */
  function adopt(index: number, next: readonly string[]): void {
    const node = nodeAt(index);
    const { chain, left } = node;
    let fork = 0;
    while (fork < chain.length && chain[fork] === next[fork]) fork++;
    for (const hash of chain.splice(fork)) left.set(hash, runtime.now());
    for (let number = fork; number < next.length; number++) {
      const hash = next[number] ?? assert.fail();
      const parentHash = next[number - 1] ?? hash;
      chain.push(hash);
      left.delete(hash);
      node.pushedByMs = Math.max(node.pushedByMs, runtime.now() + below(PUSH_DELAY_MS));
      const provider = providers[index] ?? assert.fail();
      runtime.after(node.pushedByMs - runtime.now(), () =>
        tracker.recordHead(provider, number, { number, hash, parentHash }),
      );
    }
    const final = chain.length - FINALITY;
    tracker.recordFinalized(providers[index] ?? assert.fail(), Math.max(0, final));
  }

  function answerOf({ chain }: Node, method: string, param: string): string {
    const tip = chain.length - 1;
    if (method === "eth_blockNumber") return `"0x${tip.toString(16)}"`;
    if (method === "eth_getTransactionReceipt") {
      // The transaction of a block has the number of the block in its hash.
      const number = Number(param.slice(0, 18));
      const blockHash = chain[number];
      const blockNumber = `0x${number.toString(16)}`;
      return blockHash === undefined ? "null" : JSON.stringify({ blockHash, blockNumber });
    }
    const hash = chain[param === "latest" ? tip : Number(param)];
    if (method === "eth_getBlockByNumber")
      return hash === undefined ? "null" : JSON.stringify({ number: param, hash });
    return hash === undefined ? "null" : `"${hash}"`;
  }

  let upstreamCalls = 0;
  const router = createRouter({
    runtime,
    timerWheel: createTimerWheel(runtime),
    limits: () => ({ maxAttempts: 3, firstAttemptShare: 0.6 }),
    hedge: () => null,
    cache,
    coalesce: () => true,
    upstreams: {
      http: {
        send({ provider, body }, listener) {
          upstreamCalls++;
          const { method, params }: { method: string; params: string[] } = JSON.parse(
            body.toString(),
          );
          const param = (method === "eth_getBalance" ? params[1] : params[0]) ?? "latest";
          runtime.after(below(ANSWER_MS), () => {
            const json = answerOf(nodeAt(provider.index), method, param);
            runtime.after(below(ANSWER_MS), () => {
              const bytes = Buffer.from(json);
              listener.result(bytes, { start: 0, end: bytes.length, idAt: null });
            });
          });
          return { sent: true, cancel() {} };
        },
      },
    },
  });

  let calls = 0;
  let hits = 0;
  const stale: string[] = [];

  /** Whether a node would have said it within the time in which it is heard of what it has left. */
  function isTrueSomewhere(method: string, param: string, json: string): boolean {
    const sinceMs = runtime.now() - PUSH_DELAY_MS - 2 * ANSWER_MS;
    const hash = /0x[0-9a-f]{64}/.exec(json)?.[0];
    if (hash === undefined) {
      const tips = nodes.map(({ chain }) => chain.length - 1);
      return Number(JSON.parse(json)) >= Math.min(...tips) - 1;
    }
    return nodes.some(({ chain, left }) => {
      const leftMs = left.get(hash);
      if (leftMs !== undefined) return leftMs >= sinceMs;
      if (param !== "latest") return chain.includes(hash);
      const tip = chain.indexOf(hash);
      return method === "eth_getBalance" && tip >= chain.length - 2;
    });
  }

  function ask(method: string, params: readonly string[], param: string): void {
    calls++;
    const written = writeRequest(method, Buffer.from(JSON.stringify(params)));
    const call = { methodName: method, method: methodOf(method), ...written };
    const routed = router.route(
      {
        call: { ...call, block: { kind: "none" } },
        tracker,
        strategy: "load-balanced",
        pin: null,
        transport: "http",
        avoid: null,
        caller: { key: "caller" },
        deadlineMs: 5_000,
        mayStream: true,
      },
      ({ outcome, source }) => {
        if (source.kind !== "cache" || outcome.kind !== "result") return;
        hits++;
        const json = outcome.body.toString("latin1", outcome.start, outcome.end);
        if (!isTrueSomewhere(method, param, json))
          stale.push(`${method} ${param} at ${runtime.now()}: ${json}`);
      },
    );
    assert.ok(routed.startedAtMs <= runtime.now());
  }

  /** Small numbers often, large ones seldom. */
  const zipf = (most: number): number => Math.floor(most ** random()) - 1;
  const hex = (number: number): string => `0x${number.toString(16)}`;

  /** As the backend of an application asks: mostly at the head, some of it old. */
  function askSomething(): void {
    const tip = nodeAt(0).chain.length - 1;
    const kind = random();
    const account = `${ADDRESS.slice(0, -2)}${zipf(60).toString(16).padStart(2, "0")}`;
    if (kind < 0.2) return ask("eth_blockNumber", [], "latest");
    if (kind < 0.6) return ask("eth_getBalance", [account, "latest"], "latest");
    const number = hex(Math.max(0, tip - zipf(FINALITY * 3)));
    if (kind < 0.75) return ask("eth_getBalance", [account, number], number);
    if (kind < 0.85) return ask("eth_getBlockByNumber", [number], number);
    const hash = `0x${number.slice(2).padStart(16, "0")}${"e".repeat(48)}`;
    ask("eth_getTransactionReceipt", [hash], hash);
  }

  let reorgs = 0;
  for (let index = 0; index < count; index++) adopt(index, [...canonical, newHash()]);
  canonical.push(nodeAt(0).chain.at(-1) ?? assert.fail());
  for (let index = 1; index < count; index++) adopt(index, canonical);
  for (let block = 0; block < blocks; block++) {
    if (random() < reorgShare) {
      reorgs++;
      const depth = 1 + below(6);
      canonical.splice(-depth);
      for (let n = 0; n < depth; n++) canonical.push(newHash());
    }
    canonical.push(newHash());
    const next = [...canonical];
    for (let index = 0; index < count; index++)
      runtime.after(below(NODE_DELAY_MS), () => {
        // A later chain may have overtaken this one.
        if (next.length > nodeAt(index).chain.length) adopt(index, next);
      });
    for (let n = 0; n < callsPerBlock; n++) runtime.after(below(blockTimeMs), askSomething);
    runtime.advance(blockTimeMs);
  }
  runtime.advance(10_000);
  return { calls, upstreamCalls, hits, reorgs, stale };
}
