// What providers are asked besides probes, in simulated time: for their safe block beside the
// finalized one, once whether they read state by the hash of a block, and rarely how far back they
// have what calls read.
import assert from "node:assert/strict";
import { test } from "node:test";
import { historyOf } from "../../../src/core/provider/history.ts";
import type { Consistency, ProviderSet } from "../../../src/core/provider/profile.ts";
import { type Failure, plainFailure } from "../../../src/core/rpc/failure.ts";
import { methodOf } from "../../../src/core/rpc/method.ts";
import { Prober } from "../../../src/upstream/health/prober.ts";
import { Tracker } from "../../../src/upstream/health/tracker.ts";
import { TimerWheel } from "../../../src/upstream/timer-wheel.ts";
import type { Upstream } from "../../../src/upstream/transport.ts";
import { fakeProvider, fakeSet, SELECTION } from "../../fakes/providers.ts";
import { simulatedWorld } from "../../fakes/runtime.ts";

const HASH = `0x${"a".repeat(64)}`;
const REFUSED = { ...plainFailure("error", "invalid argument 1: cannot unmarshal"), code: -32602 };
const NO_METHOD = { ...plainFailure("error", "method not found"), code: -32601 };
const MISSING = { ...plainFailure("error", "header not found"), code: -32000 };
const LIMITED = { ...plainFailure("error", "rate limit exceeded"), code: -32005 };

interface Options {
  readonly service?: Consistency;
  readonly set?: Partial<ProviderSet>;
  /** Whether the tip is known by its hash. */
  readonly isPushed?: boolean;
  readonly unsupportedMethods?: ReadonlySet<string>;
}

/** One provider with both transports that is probed from now on. */
function createFixture(options: Options = {}) {
  const { service = "tip", set = {}, isPushed = true, unsupportedMethods } = options;
  const runtime = simulatedWorld(3);
  const provider = fakeProvider(0, unsupportedMethods === undefined ? {} : { unsupportedMethods });
  const tracker = new Tracker(fakeSet([provider], set), runtime, SELECTION);
  const asked: string[] = [];
  const probes = new Set<boolean>();
  const says: Record<"balance" | "safe" | "history", string | Failure> = {
    balance: '"0x0"',
    history: NO_METHOD,
    safe: `{"number":"0x5f","hash":"${HASH}","parentHash":"${HASH}"}`,
  };
  const answerTo = (text: string): string | Failure => {
    if (text.includes("eth_chainId")) return '"0x1"';
    if (text.includes("eth_blockNumber")) return '"0x64"';
    asked.push(/"method":"(\w+)","params":(.*?),"id"|.*/.exec(text)?.[0] ?? "");
    if (text.includes("eth_getBalance")) return says.balance;
    if (text.includes("eth_capabilities")) return says.history;
    return text.includes("finalized") ? says.safe.toString().replace("0x5f", "0x50") : says.safe;
  };
  const upstream: Pick<Upstream, "send"> = {
    send({ body, isProbe }, listener) {
      probes.add(isProbe === true);
      const answer = answerTo(body.toString());
      runtime.after(10, () => {
        if (typeof answer !== "string") return listener.failed(answer, null);
        const result = Buffer.from(answer);
        listener.result(result, { start: 0, end: result.length, idAt: null });
      });
      return { sent: true, cancel() {} };
    },
  };
  const push = (): void => {
    if (!isPushed) return;
    const block = { number: 100, hash: HASH, parentHash: HASH };
    tracker.recordHead(provider, block.number, block);
  };
  const prober = new Prober({
    runtime,
    timerWheel: new TimerWheel(runtime),
    upstreams: { http: upstream, ws: upstream },
    finality: true,
    consistency: () => service,
  });
  prober.watch([tracker]);
  /** Probes that pass; the tip is told every 10 s. */
  const pass = (ms: number): void => {
    for (const endMs = runtime.now() + ms; runtime.now() < endMs; ) {
      push();
      runtime.advance(Math.min(10_000, endMs - runtime.now()));
    }
  };
  const count = (what: string): number => asked.filter((text) => text.includes(what)).length;
  const form = (): string => tracker.blocks.formFor(provider, methodOf("eth_getBalance"));
  return { tracker, provider, says, asked, probes, pass, count, form };
}

test("the safe block is asked for as often as the finalized one, and named by the view", () => {
  const { tracker, says, probes, pass, count } = createFixture();
  // Who pushes its heads is probed once a minute on each transport.
  pass(300_000);
  assert.equal(count("safe"), count("finalized"));
  assert.ok(count("safe") >= 4 && count("safe") <= 10, `${count("safe")} in five minutes`);
  assert.deepEqual(
    [tracker.blocks.view.current()?.safe, tracker.blocks.view.current()?.finalized],
    [0x5f, 0x50],
  );
  assert.deepEqual([...probes], [true], "all of them are of the class of probes");
  says.safe = REFUSED;
  pass(90_000);
  const before = count("safe");
  pass(240_000);
  assert.equal(count("safe"), before, "who refuses is left alone");
});

test("where block tags go out as written, neither is asked", () => {
  const cases: readonly Options[] = [
    { service: "off" },
    { service: "tip", set: { consistency: "off" } },
  ];
  for (const options of cases) {
    const { pass, count } = createFixture(options);
    pass(120_000);
    assert.deepEqual([count("safe"), count("eth_getBalance")], [0, 0]);
    assert.ok(count("finalized") > 0);
  }
  const { pass, count } = createFixture({ service: "off", set: { consistency: "caller" } });
  pass(120_000);
  assert.ok(count("safe") > 0, "a profile's own wish counts");
});

test("a provider is asked once whether it reads state by hash, with the hash of the tip", () => {
  const { asked, pass, count, form } = createFixture();
  assert.equal(form(), "number");
  pass(1_200_000);
  assert.equal(count("eth_getBalance"), 1);
  const text = asked.find((each) => each.includes("eth_getBalance")) ?? "";
  assert.ok(text.includes(`"params":["0x${"0".repeat(40)}",{"blockHash":"${HASH}"}]`), text);
  assert.equal(form(), "hash");
});

test("who refuses that is asked by number, and again after ten minutes", () => {
  const { tracker, provider, says, pass, count, form } = createFixture();
  says.balance = REFUSED;
  pass(590_000);
  assert.equal(count("eth_getBalance"), 1, "on one transport");
  assert.equal(tracker.stateOf(provider)?.takesHash, false);
  assert.equal(form(), "number");
  says.balance = '"0x1"';
  pass(150_000);
  assert.deepEqual([count("eth_getBalance"), form()], [2, "hash"]);
});

test("a missing block and a limit say nothing of it: the provider is asked again soon", () => {
  for (const failure of [MISSING, LIMITED, plainFailure("network", "gone")]) {
    const { tracker, provider, says, pass, count } = createFixture();
    says.balance = failure;
    pass(90_000);
    assert.ok(count("eth_getBalance") > 0);
    assert.equal(tracker.stateOf(provider)?.hashReadsAtMs, Number.NEGATIVE_INFINITY);
    says.balance = '"0x1"';
    pass(90_000);
    assert.equal(tracker.stateOf(provider)?.takesHash, true, failure.message);
  }
});

test("without the hash of a tip nobody is asked", () => {
  const { pass, count } = createFixture({ isPushed: false });
  pass(120_000);
  assert.equal(count("eth_getBalance"), 0);
});

const HOUR_MS = 3_600_000;
const OLD_STATE =
  '{"head":{"number":"0x64","hash":"0x0"},"state":{"disabled":false,"oldestBlock":"0x5"}}';

test("a provider is asked for its history once, and again every ten minutes", () => {
  const { tracker, provider, says, pass, count } = createFixture();
  says.history = OLD_STATE;
  pass(590_000);
  assert.equal(count("eth_capabilities"), 1, "on one transport");
  const { state, proofs } = tracker.history(provider);
  assert.deepEqual(state, { oldest: 5, window: Number.POSITIVE_INFINITY, source: "reported" });
  assert.deepEqual(proofs, historyOf(provider, 128, null).proofs);
  says.history = OLD_STATE.replace("0x5", "0x6");
  pass(HOUR_MS);
  assert.ok(count("eth_capabilities") >= 5 && count("eth_capabilities") <= 7);
  assert.equal(tracker.history(provider).state?.oldest, 6);
});

test("a provider that refuses to tell its history is left alone for hours, and counts as well", () => {
  for (const refusal of [NO_METHOD, REFUSED, "[]", "null", '{"state":1}']) {
    const { tracker, provider, says, pass, count } = createFixture();
    says.history = refusal;
    pass(5 * HOUR_MS);
    assert.equal(count("eth_capabilities"), 1, JSON.stringify(refusal));
    const { common: _, ...assumed } = historyOf(provider, 128, null);
    assert.deepEqual(tracker.history(provider), assumed);
    const { breaker, calls, outcomes } = tracker.health(provider, "http");
    assert.deepEqual([breaker, calls, outcomes.failed], ["closed", 0, 0]);
    pass(2 * HOUR_MS);
    assert.equal(count("eth_capabilities"), 2);
  }
});

test("one that did not answer, or was asked too often, is asked again after ten minutes", () => {
  for (const failure of [LIMITED, plainFailure("network", "gone"), plainFailure("timeout", "")]) {
    const { says, pass, count } = createFixture();
    says.history = failure;
    pass(HOUR_MS);
    assert.ok(count("eth_capabilities") >= 5 && count("eth_capabilities") <= 7, failure.message);
  }
});

test("who serves no core methods is not asked for its history", () => {
  const { pass, count } = createFixture({ unsupportedMethods: new Set(["eth_capabilities"]) });
  pass(HOUR_MS);
  assert.equal(count("eth_capabilities"), 0);
});
