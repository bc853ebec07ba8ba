// Measures what one view of the chain costs a call: the real router, tracker and choice of a view,
// over providers that answer at once in this process, with `off` measured twice as the control. CPU
// time of this process. Run with `node bin/svc.mjs --run bench/view.ts`.
import type { Consistency } from "../src/core/provider/profile.ts";
import { readBlockRef } from "../src/core/rpc/call.ts";
import { methodOf } from "../src/core/rpc/method.ts";
import { writeRequest } from "../src/core/rpc/wire-request.ts";
import { realRuntime } from "../src/runtime.ts";
import { Router } from "../src/upstream/engine/router.ts";
import { Tracker } from "../src/upstream/health/tracker.ts";
import { TimerWheel } from "../src/upstream/timer-wheel.ts";
import { CallerView, SeenBlocks } from "../src/web/rpc/caller-view.ts";
import { fakeProvider, fakeSet, SELECTION } from "../test/fakes/providers.ts";

const CALLS = 50_000;
const ROUNDS = 9;
const HEIGHT = 19_000_000;
const ADDRESS = "0x00000000219ab540356cbb839cbe05303d7705fa";
const ANSWER = Buffer.from('{"jsonrpc":"2.0","id":1234567890123456,"result":"0x1bc16d674ec80000"}');
const SPAN = { start: 48, end: ANSWER.length - 1, idAt: 22 };
const NO_WISHES = { consistency: null, seen: null };

const runtime = realRuntime;
const providers = [0, 1, 2].map((index) => fakeProvider(index, { wsUrl: null }));
const tracker = new Tracker(fakeSet(providers), runtime, SELECTION);
const hashOf = (number: number): string => `0x${number.toString(16).padStart(64, "0")}`;
let height = HEIGHT;

/** The next block, at all providers. */
function mine(): void {
  height++;
  const block = { number: height, hash: hashOf(height), parentHash: hashOf(height - 1) };
  for (const provider of providers) tracker.recordHead(provider, height, block);
}

const router = new Router({
  runtime,
  timerWheel: new TimerWheel(runtime),
  limits: () => ({ maxAttempts: 3, firstAttemptShare: 0.6 }),
  hedge: () => null,
  upstreams: {
    http: {
      send(_outgoing, listener) {
        listener.result(ANSWER, SPAN);
        return { sent: true, cancel() {} };
      },
    },
  },
});
const marks = new SeenBlocks();
const target = { tracker, pin: null };
let ended = 0;

/** A method, its parameters, and whether providers are known to take hashes. */
type Asked = readonly [method: string, params: string, byHash: boolean];

/** One call as the web part makes it. */
function caller([methodName, params]: Asked, consistency: Consistency): () => void {
  const method = methodOf(methodName);
  const written = writeRequest(methodName, Buffer.from(params));
  const block = readBlockRef(written.body, written.params, method);
  const call = { methodName, method, block, ...written };
  const done = (): void => {
    ended++;
  };
  const usual = (): Consistency => consistency;
  return () => {
    const view = new CallerView({ wishes: NO_WISHES, key: null, usual, marks: () => marks });
    const at = view.at(target);
    if ("kind" in at) return;
    const route = router.route(
      {
        call,
        tracker,
        strategy: "load-balanced",
        pin: null,
        caller: { key: "c" },
        transport: null,
        avoid: null,
        deadlineMs: 10_000,
        mayStream: true,
        fresh: false,
        view: at.view,
        mark: at.mark,
        room: undefined,
      },
      done,
    );
    if (consistency === "caller" && route.at !== null) marks.see(tracker, route.at);
  };
}

/** Nanoseconds of CPU a call. */
function timeOf(run: () => void): number {
  mine();
  const before = process.cpuUsage();
  for (let n = 0; n < CALLS; n++) run();
  const { user, system } = process.cpuUsage(before);
  return ((user + system) * 1_000) / CALLS;
}

const ASKED: readonly Asked[] = [
  ["eth_getBalance", `["${ADDRESS}","latest"]`, false],
  ["eth_getBalance", `["${ADDRESS}","latest"]`, true],
  ["eth_getTransactionReceipt", `["${hashOf(7)}"]`, false],
  ["eth_gasPrice", "[]", false],
  ["eth_blockNumber", "[]", false],
];

for (const asked of ASKED) {
  for (const provider of providers) tracker.recordHashReads(provider, asked[2]);
  const kinds = ["off", "off", "tip", "caller"] as const;
  const runs = kinds.map((kind) => caller(asked, kind));
  const least = runs.map(() => Number.POSITIVE_INFINITY);
  for (let round = 0; round < ROUNDS; round++)
    for (const [n, run] of runs.entries()) least[n] = Math.min(least[n] ?? 0, timeOf(run));
  const [off = 0, again = 0, tip = 0, own = 0] = least;
  const more = (ns: number): string => `${ns < off ? "" : "+"}${(ns - off).toFixed(0)}`;
  process.stdout.write(
    `${`${asked[0]}${asked[2] ? " by hash" : ""}`.padEnd(26)} off ${off.toFixed(0)} ns, ` +
      `off again ${more(again)}, tip ${more(tip)}, caller ${more(own)} ns a call\n`,
  );
}
process.stdout.write(`${ended} calls were answered\n`);
process.exit(0);
