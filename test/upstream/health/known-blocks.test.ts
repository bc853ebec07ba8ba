// What a tracker knows of blocks: served tip, finality and branches, from probes, reports and
// pushed heads; and how the prober asks for finalized blocks.
import assert from "node:assert/strict";
import { test } from "node:test";
import { plainFailure } from "../../../src/core/rpc/failure.ts";
import { Prober } from "../../../src/upstream/health/prober.ts";
import { Tracker } from "../../../src/upstream/health/tracker.ts";
import { TimerWheel } from "../../../src/upstream/timer-wheel.ts";
import type { Upstream } from "../../../src/upstream/transport.ts";
import { fakeProvider, fakeSet, SELECTION } from "../../fakes/providers.ts";
import { simulatedWorld } from "../../fakes/runtime.ts";

function createFixture(count: number) {
  const runtime = simulatedWorld(5);
  const providers = Array.from({ length: count }, (_, index) => fakeProvider(index));
  const tracker = new Tracker(fakeSet(providers), runtime, SELECTION);
  const push = (index: number, number: number, hash: string, parentHash: string): void => {
    const provider = providers[index] ?? assert.fail();
    tracker.recordHead(provider, number, { number, hash, parentHash });
  };
  return { runtime, providers, tracker, push };
}

test("blocks on which the pushing providers agree are known, disputed ones are not", () => {
  const { providers, tracker, push } = createFixture(3);
  const [first, second, third] = providers;
  if (first === undefined || second === undefined || third === undefined) assert.fail();
  for (const index of [0, 1]) {
    push(index, 10, "a10", "a9");
    push(index, 11, "a11", "a10");
  }
  const { blocks } = tracker;
  assert.equal(blocks.servedTip(), 11);
  assert.equal(blocks.agreedHash(11), "a11");
  assert.equal(blocks.pushedHash(third, 11), null);
  assert.equal(blocks.pushedTip(third), null);
  const { epoch } = blocks;
  push(0, 11, "b11", "a10");
  assert.equal(blocks.agreedHash(11), null);
  assert.equal(blocks.pushedHash(first, 11), "b11");
  assert.ok(!blocks.isUntouched(11, epoch) && blocks.isUntouched(10, epoch));
  tracker.listen(second, false);
  assert.equal(blocks.agreedHash(11), "b11", "who is not listened to any more has no say");
});

test("a provider that has been silent for long has no say in what the branch is", () => {
  const { runtime, tracker, push } = createFixture(2);
  push(0, 10, "a10", "a9");
  push(1, 10, "b10", "b9");
  assert.equal(tracker.blocks.agreedHash(10), null);
  runtime.advance(35_000);
  push(1, 11, "b11", "b10");
  runtime.advance(5_000);
  assert.equal(tracker.blocks.agreedHash(10), "b10");
});

test("a provider on another chain takes its reports with it", () => {
  const { providers, tracker, push } = createFixture(2);
  const [liar, honest] = providers;
  if (liar === undefined || honest === undefined) assert.fail();
  push(0, 5_000, "x", "w");
  const wrong = { kind: "ok", chainId: 666, height: 5_000 } as const;
  tracker.recordProbe({ provider: liar, transport: "http", latencyMs: 1, result: wrong });
  assert.equal(tracker.blocks.agreedHash(5_000), null);
  tracker.recordNamed(liar, "finalized", 4_000);
  assert.equal(tracker.blocks.finalized(), null);
  push(1, 200, "a200", "a199");
  tracker.recordNamed(honest, "finalized", 190);
  assert.equal(tracker.blocks.finalized(), 190 - 64, "one alone counts less the margin");
});

test("finalized blocks are asked for every half minute, and rarely where that is refused", () => {
  const { runtime, providers, tracker } = createFixture(2);
  const asked = new Map<string, number>();
  const upstream: Pick<Upstream, "send"> = {
    send({ provider: { id, index }, body }, listener) {
      const text = body.toString();
      const isFinality = text.includes("eth_getBlockByNumber");
      if (isFinality) asked.set(id, (asked.get(id) ?? 0) + 1);
      const hashes = `"hash":"0x${"a".repeat(64)}","parentHash":"0x${"b".repeat(64)}"`;
      const block = `{"number":"0x50",${hashes}}`;
      const quantity = text.includes("eth_chainId") ? '"0x1"' : '"0x64"';
      const answer = Buffer.from(isFinality ? block : quantity);
      runtime.after(10, () => {
        if (isFinality && index === 1)
          listener.failed(plainFailure("error", "unknown block"), null);
        else listener.result(answer, { start: 0, end: answer.length, idAt: null });
      });
      return { sent: true, cancel() {} };
    },
  };
  const told: number[] = [];
  const prober = new Prober({
    runtime,
    timerWheel: new TimerWheel(runtime),
    upstreams: { http: upstream },
    finality: true,
    tell(_tracker, _provider, fact) {
      if (fact.kind === "named") told.push(fact.height);
    },
  });
  prober.watch([tracker]);
  runtime.advance(120_000);
  const [well, refusing] = providers.map(({ id }) => asked.get(id) ?? 0);
  assert.ok(well !== undefined && well >= 3 && well <= 5, `${well} in two minutes`);
  assert.equal(refusing, 1);
  assert.equal(tracker.blocks.finalized(), 80 - 64);
  assert.deepEqual([...new Set(told)], [80]);
  assert.equal(tracker.health(providers[1] ?? assert.fail(), "http").breaker, "closed");
  prober.close();
});
