// What the cache saves and costs: a trace like that of an application's backend through 200
// reorganisations, every answer compared with what the nodes hold; and the processor time of a
// look-up, beside that of a call without a cache. Run: `node bin/svc.mjs --run bench/cache.ts`.
import { methodOf } from "../src/core/rpc/method.ts";
import { writeRequest } from "../src/core/rpc/wire-request.ts";
import { CachedAnswers } from "../src/upstream/engine/cache/cached-answers.ts";
import { Router } from "../src/upstream/engine/router.ts";
import { Tracker } from "../src/upstream/health/tracker.ts";
import { TimerWheel } from "../src/upstream/timer-wheel.ts";
import { fakeProvider, fakeSet, SELECTION } from "../test/fakes/providers.ts";
import { simulatedWorld } from "../test/fakes/runtime.ts";
import { type KindReport, simulateCache } from "../test/sim/cache-simulation.ts";

const SEED = Number(process.env["SEED"] ?? 14);
const BLOCK_TIME_MS = 12_000;
const BLOCKS = 1_000;
/** About 200 reorganisations. */
const REORG_SHARE = 0.2;
/** Calls per block: the more an application asks, the more of it was asked before. */
const JUDGED_CALLS = 1_000;
const QUIET_CALLS = 250;
/** Of the calls of the trace, those that reach no provider. */
const LEAST_SAVED = 0.6;
const ROUNDS = 15;
const CALLS_A_ROUND = 20_000;
const BALANCE = `0x${"ab".repeat(20)}`;

/** One run of the trace at some calls per block. */
function trace(callsPerBlock: number): void {
  const { findings, kinds, ...report } = simulateCache({
    seed: SEED,
    nodes: 3,
    blockTimeMs: BLOCK_TIME_MS,
    reorgShare: REORG_SHARE,
    blocks: BLOCKS,
    callsPerBlock,
  });
  const all = { calls: 0, hits: 0, shared: 0, upstreamCalls: 0 };
  for (const [kind, counts] of Object.entries(kinds)) {
    print({ kind, ...counts, saved: savedOf(counts) });
    all.calls += counts.calls;
    all.hits += counts.hits;
    all.shared += counts.shared;
    all.upstreamCalls += counts.upstreamCalls;
  }
  const callsPerSecond = Math.round((callsPerBlock * 1_000) / BLOCK_TIME_MS);
  const saved = savedOf(all);
  const wrong = findings.wrong.length;
  print({ seed: SEED, callsPerSecond, ...all, ...report, saved, wrong });
  const isJudged = callsPerBlock === JUDGED_CALLS;
  if (wrong > 0 || (isJudged && saved < LEAST_SAVED)) process.exitCode = 1;
}

/** The share of calls that reached no provider. */
function savedOf({ calls, upstreamCalls }: Omit<KindReport, "hits" | "shared">): number {
  return Number((1 - upstreamCalls / calls).toFixed(3));
}

type Mode = "without a cache" | "miss" | "hit";

/** Makes calls through the engine with a provider that answers at once. */
function engine(mode: Mode): () => void {
  const runtime = simulatedWorld(1);
  const providers = [0, 1, 2].map((index) => fakeProvider(index, { priority: index }));
  const tracker = new Tracker(fakeSet(providers), runtime, SELECTION);
  for (const provider of providers) {
    for (let number = 900; number < 1_001; number++) {
      const [hash, parentHash] = [`h${number}`, `h${number - 1}`];
      tracker.recordHead(provider, number, { number, hash, parentHash });
    }
    tracker.recordNamed(provider, "finalized", 950);
  }
  const settings = {
    maxBytes: 16_777_216,
    accountMaxBytes: 0,
    byAccount: false,
    methods: new Map<string, number>(),
  };
  const answer = Buffer.from('{"jsonrpc":"2.0","id":1234567890123456,"result":"0x1234567"}');
  const span = { start: 48, end: answer.length - 1, idAt: 22 };
  const router = new Router({
    runtime,
    timerWheel: new TimerWheel(runtime),
    limits: () => ({ maxAttempts: 3, firstAttemptShare: 0.6 }),
    hedge: () => null,
    ...(mode === "without a cache" ? {} : { cache: new CachedAnswers(() => settings) }),
    upstreams: {
      http: {
        send(_, listener) {
          listener.result(answer, span);
          return { sent: true, cancel() {} };
        },
      },
    },
  });
  const method = methodOf("eth_getBalance");
  const call = (block: string) => ({
    methodName: method.name,
    method,
    block: { kind: "none" } as const,
    ...writeRequest(method.name, Buffer.from(`["${BALANCE}","${block}"]`)),
  });
  const kept = call("0x10");
  // Of a block that nobody has yet: it is looked up and judged each time, and never kept.
  const missed = call("0xffffff");
  const about = {
    tracker,
    strategy: "priority",
    pin: null,
    transport: "http",
    avoid: null,
    caller: { key: "bench" },
    deadlineMs: 5_000,
    mayStream: true,
  } as const;
  const done = (): void => {};
  return () => void router.route({ ...about, call: mode === "miss" ? missed : kept }, done);
}

/** The least time of a call in several rounds, each mode in turn (µs). */
function lookUps(): void {
  const modes: readonly Mode[] = ["without a cache", "miss", "hit"];
  const runs = modes.map(engine);
  const least = modes.map(() => Number.POSITIVE_INFINITY);
  for (let round = 0; round < ROUNDS; round++) {
    for (const [index, run] of runs.entries()) {
      const startedAt = process.hrtime.bigint();
      for (let n = 0; n < CALLS_A_ROUND; n++) run();
      const tookUs = Number(process.hrtime.bigint() - startedAt) / 1_000 / CALLS_A_ROUND;
      least[index] = Math.min(least[index] ?? tookUs, tookUs);
    }
  }
  print(Object.fromEntries(modes.map((mode, n) => [`${mode} (µs)`, least[n]?.toFixed(2)])));
}

function print(values: Readonly<Record<string, unknown>>): void {
  process.stdout.write(`${JSON.stringify(values)}\n`);
}

trace(JUDGED_CALLS);
trace(QUIET_CALLS);
lookUps();
