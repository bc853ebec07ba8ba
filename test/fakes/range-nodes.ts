// Nodes of a computed chain behind the real router, in simulated time, for calls over ranges of
// blocks: which limits, fork, failures and lies each has is the test's to say.
import assert from "node:assert/strict";
import type { Provider } from "../../src/core/provider/profile.ts";
import { readBlockRef } from "../../src/core/rpc/call.ts";
import { type Failure, plainFailure } from "../../src/core/rpc/failure.ts";
import { methodOf } from "../../src/core/rpc/method.ts";
import { writeRequest } from "../../src/core/rpc/wire-request.ts";
import type { Answer } from "../../src/upstream/engine/answer.ts";
import { SplitCounts, type SplitLimits } from "../../src/upstream/engine/ranges/range-run.ts";
import { type RoutedCall, Router } from "../../src/upstream/engine/router.ts";
import { Tracker } from "../../src/upstream/health/tracker.ts";
import { TimerWheel } from "../../src/upstream/timer-wheel.ts";
import type { AnswerStream, MemoryShare } from "../../src/upstream/transport.ts";
import { fakeProvider, fakeSet, SELECTION } from "./providers.ts";
import {
  answerOf,
  type ChainView,
  type Density,
  type NodeLimits,
  type NodeRequest,
} from "./range-chain.ts";
import { type SimulatedWorld, seededRandom, simulatedWorld } from "./runtime.ts";

/** A node, and what is wrong with it. */
export interface RangeNode {
  readonly provider: Provider;
  limits: NodeLimits;
  view: ChainView;
  /** Null = it tells the logs of its view; else those of another one. */
  lies: ChainView | null;
  /** Share of its answers that are failures. */
  failShare: number;
  /** It answers nothing. */
  isSilent: boolean;
  /** How long it takes, in ms. */
  latencyMs: () => number;
  /** What it was asked. */
  readonly asked: NodeRequest[];
}

/** A call under way or over. */
export interface RangeCallUnderWay {
  readonly route: RoutedCall;
  /** The answers that were told: one at the end. */
  readonly answers: readonly Answer[];
  /** The text of the result so far. */
  text(): string;
  state(): "out" | "whole" | "broken" | "refused";
  stream(): AnswerStream | null;
}

/** The nodes, and the way to ask them. */
export interface RangeFixture {
  readonly runtime: SimulatedWorld;
  readonly tracker: Tracker;
  readonly nodes: readonly RangeNode[];
  readonly counts: SplitCounts;
  /** Requests that are out. */
  out(): number;
  /** All nodes report this height as final from now on. */
  finalize(height: number): void;
  ask(filter: Readonly<Record<string, unknown>>, options?: RangeAsk): RangeCallUnderWay;
}

/** How a call is made. */
export interface RangeAsk {
  readonly method?: string;
  readonly mayStream?: boolean;
  readonly maxParts?: number;
  readonly pin?: Provider;
  readonly room?: MemoryShare;
  /** Reads so slowly that it pauses after each chunk. */
  readonly pauses?: boolean;
}

/** What a fixture is made with. */
export interface RangeFixtureOptions {
  readonly seed: number;
  readonly nodes: number;
  readonly view: ChainView;
  readonly density: Density;
  readonly limits?: NodeLimits;
  /** Limits that are declared to the service; null = none. */
  readonly declared?: number | null;
  readonly split?: Partial<SplitLimits>;
}

/** Nodes on one chain, all alike. */
export function rangeFixture(options: RangeFixtureOptions): RangeFixture {
  const { seed, density } = options;
  const runtime = simulatedWorld(seed);
  const random = seededRandom(seed + 7);
  const nodes = Array.from(
    { length: options.nodes },
    (_, index): RangeNode => ({
      provider: fakeProvider(index, {
        wsUrl: null,
        archival: true,
        maxBlockRange: options.declared ?? null,
      }),
      limits: options.limits ?? { blocks: null, results: null },
      view: options.view,
      lies: null,
      failShare: 0,
      isSilent: false,
      latencyMs: () => 5 + Math.floor(random() * 40),
      asked: [],
    }),
  );
  const providers = nodes.map(({ provider }) => provider);
  const tracker = new Tracker(fakeSet(providers), runtime, SELECTION);
  const probe = { kind: "ok", chainId: 1, height: options.view.head } as const;
  for (const { provider } of nodes) {
    tracker.recordProbe({ provider, transport: "http", latencyMs: 1, result: probe });
    tracker.recordHead(provider, options.view.head);
  }
  const counts = new SplitCounts();
  let out = 0;
  const it: RangeFixture = {
    runtime,
    tracker,
    nodes,
    counts,
    out: () => out,
    finalize(height) {
      for (const { provider } of nodes) tracker.recordNamed(provider, "finalized", height);
    },
    ask: (filter, how) => askOf({ runtime, tracker, router }, filter, how),
  };
  const router = new Router({
    runtime,
    timerWheel: new TimerWheel(runtime),
    limits: () => ({ maxAttempts: Number.POSITIVE_INFINITY, firstAttemptShare: 0.6 }),
    hedge: () => null,
    split: {
      splitLimits: () => ({
        split: true,
        maxBlocks: 1_000_000,
        maxParts: 200,
        maxBytes: 64_000_000,
        ...options.split,
      }),
      counts,
    },
    upstreams: {
      http: {
        send({ provider, body }, listener) {
          const node = nodes[provider.index] ?? assert.fail();
          const request: NodeRequest = JSON.parse(body.toString());
          node.asked.push(request);
          out++;
          let over = false;
          const end = (): void => {
            over = true;
            out--;
          };
          const failing = random() < node.failShare;
          const cancelTimer = runtime.after(node.latencyMs(), () => {
            if (over || node.isSilent) return;
            end();
            if (failing) return listener.failed(FAILED, null);
            const isLogs = request.method === "eth_getLogs";
            const view = isLogs && node.lies !== null ? node.lies : node.view;
            const answer = answerOf(request, view, { density, limits: node.limits });
            if (answer.kind === "error") {
              const failure: Failure = {
                ...plainFailure("error", answer.error.message),
                ...answer.error,
              };
              return listener.failed(failure, Buffer.from(JSON.stringify(answer.error)));
            }
            const value = Buffer.from(answer.json);
            listener.result(value, { start: 0, end: value.length, idAt: null });
          });
          return {
            sent: true,
            cancel() {
              cancelTimer();
              if (!over) end();
            },
          };
        },
      },
    },
  });
  return it;
}

const FAILED = plainFailure("network", "ECONNRESET");
const DEADLINE_MS = 10_000;

function askOf(
  {
    runtime,
    tracker,
    router,
  }: {
    readonly runtime: SimulatedWorld;
    readonly tracker: Tracker;
    readonly router: Router;
  },
  filter: Readonly<Record<string, unknown>>,
  { method = "eth_getLogs", mayStream = true, pin, pauses, ...rest }: RangeAsk = {},
): RangeCallUnderWay {
  const row = methodOf(method);
  const params = Buffer.from(JSON.stringify([filter]));
  const block = readBlockRef(params, { start: 0, end: params.length }, row);
  const call = { methodName: method, method: row, block, ...writeRequest(method, params) };
  const answers: Answer[] = [];
  const chunks: Buffer[] = [];
  let state: ReturnType<RangeCallUnderWay["state"]> = "out";
  let stream: AnswerStream | null = null;
  const read = (from: AnswerStream): void => {
    stream = from;
    from.flow({
      data(chunk) {
        chunks.push(Buffer.from(chunk));
        if (pauses === true) {
          from.pause();
          runtime.after(20, () => from.resume());
        }
        return true;
      },
      end(last, valueBytes) {
        assert.equal(state, "out");
        chunks.push(last.subarray(0, valueBytes));
        state = "whole";
        return false;
      },
      broken() {
        assert.equal(state, "out");
        state = "broken";
      },
    });
  };
  const route = router.route(
    {
      call,
      tracker,
      strategy: "load-balanced",
      pin: pin ?? null,
      avoid: null,
      transport: null,
      caller: { key: "test" },
      deadlineMs: DEADLINE_MS,
      mayStream,
      ...rest,
    },
    (answer) => {
      answers.push(answer);
      const { outcome } = answer;
      if (outcome.kind === "stream") return read(outcome.stream);
      if (outcome.kind !== "result") {
        state = "refused";
        return;
      }
      chunks.push(outcome.body.subarray(outcome.start, outcome.end));
      state = "whole";
    },
  );
  return {
    route,
    answers,
    text: () => Buffer.concat(chunks).toString(),
    state: () => state,
    stream: () => stream,
  };
}
