// The bus between workers: hints reach all others, questions are answered or say why not, slow and
// dead workers cost nobody else anything.
import assert from "node:assert/strict";
import { test } from "node:test";
import { type QuestionTopic, SUPERVISOR, type Topic } from "../../src/core/workers/bus.ts";
import { createLocalBus } from "../../src/shared/processes/bus-endpoint.ts";
import { simulatedWorld } from "../fakes/runtime.ts";
import { testBus } from "./bus-fixture.ts";

const HEIGHT: Topic<number> = { name: "height" };
const DOUBLE: QuestionTopic<number, number> = { name: "double" };

test("a hint reaches every other worker and the supervisor, never its sender", () => {
  const { hub, worker } = testBus(["1", "2", "3"]);
  const heard: string[] = [];
  for (const id of ["1", "2", "3"])
    worker(id).bus.subscribe(HEIGHT, (n, from) => void heard.push(`${id} hears ${n} of ${from}`));
  hub.subscribe(HEIGHT, (n, from) => void heard.push(`hub hears ${n} of ${from}`));
  worker("2").bus.publish(HEIGHT, 7);
  assert.deepEqual(heard.sort(), ["1 hears 7 of 2", "3 hears 7 of 2", "hub hears 7 of 2"]);
});

test("a question is answered by another worker, by the supervisor, and by oneself", async () => {
  const { hub, worker } = testBus(["1", "2"]);
  worker("2").bus.serve(DOUBLE, (n) => n * 2);
  hub.serve(DOUBLE, async (n) => n * 20);
  const ask = (to: string) =>
    worker("1").bus.request(to, { topic: DOUBLE, message: 4, timeoutMs: 100 });
  assert.deepEqual(await ask("2"), { ok: true, value: 8 });
  assert.deepEqual(await ask(SUPERVISOR), { ok: true, value: 80 });
  assert.deepEqual(await ask("1"), { ok: false, reason: "refused" });
  worker("1").bus.serve(DOUBLE, (n) => n * 3);
  assert.deepEqual(await ask("1"), { ok: true, value: 12 });
});

test("a question says why it has no answer: too late, gone, refused", async () => {
  const { world, worker, errors } = testBus(["1", "2", "3"]);
  const ask = (to: string) =>
    worker("1").bus.request(to, { topic: DOUBLE, message: 4, timeoutMs: 100 });
  worker("2").bus.serve(DOUBLE, () => new Promise<number>(() => {}));
  const late = ask("2");
  world.advance(100);
  assert.deepEqual(await late, { ok: false, reason: "timeout" });
  const lost = ask("2");
  worker("2").end();
  assert.deepEqual(await lost, { ok: false, reason: "gone" });
  assert.deepEqual(await ask("2"), { ok: false, reason: "gone" });
  assert.deepEqual(await ask("3"), { ok: false, reason: "refused" });
  worker("3").bus.serve(DOUBLE, () => {
    throw new Error("broken");
  });
  assert.deepEqual(await ask("3"), { ok: false, reason: "refused" });
  assert.match(String(errors[0]), /broken/);
  assert.equal(world.pendingTimers(), 0);
});

test("a worker that does not read loses its oldest hints and no question", async () => {
  const { worker } = testBus(["1", "2"], { maxUntaken: 2, maxHints: 3, maxMessages: 10 });
  const heard: number[] = [];
  worker("2").bus.subscribe(HEIGHT, (n) => void heard.push(n));
  worker("2").bus.serve(DOUBLE, (n) => n * 2);
  worker("2").isStuck = true;
  for (let n = 1; n <= 10; n++) worker("1").bus.publish(HEIGHT, n);
  const answers = [1, 2, 3].map((message) =>
    worker("1").bus.request("2", { topic: DOUBLE, message, timeoutMs: 1_000 }),
  );
  worker("2").release();
  assert.deepEqual(
    await Promise.all(answers),
    [2, 4, 6].map((value) => ({ ok: true, value })),
  );
  assert.deepEqual(heard, [1, 2, 8, 9, 10]);
});

test("questions beyond the bound of a worker that does not read are refused at once", async () => {
  const { worker } = testBus(["1", "2"], { maxUntaken: 1, maxHints: 1, maxMessages: 1 });
  worker("2").bus.serve(DOUBLE, (n) => n * 2);
  worker("2").isStuck = true;
  const ask = () => worker("1").bus.request("2", { topic: DOUBLE, message: 1, timeoutMs: 1_000 });
  const [first, second, third] = [ask(), ask(), ask()];
  assert.deepEqual(await third, { ok: false, reason: "busy" });
  worker("2").release();
  assert.deepEqual(
    [await first, await second],
    [
      { ok: true, value: 2 },
      { ok: true, value: 2 },
    ],
  );
});

test("all agree on owners, and are told when they change", () => {
  const { hub, worker } = testBus(["1", "2", "3"]);
  const keys = Array.from({ length: 50 }, (_, n) => `chain-${n}`);
  const owners = (): readonly string[] => keys.map((key) => worker("1").bus.ownerOf(key));
  const before = owners();
  assert.deepEqual(
    keys.map((key) => hub.ownerOf(key)),
    before,
  );
  let told = 0;
  worker("1").bus.onWorkers(() => told++);
  worker("3").end();
  assert.equal(told, 1);
  assert.deepEqual(worker("1").bus.workers(), ["1", "2"]);
  for (const [n, owner] of owners().entries())
    assert.equal(owner, before[n] === "3" ? owner : before[n]);
  assert.ok(!owners().includes("3"));
});

test("one process alone owns everything, publishes to nobody and answers itself", async () => {
  const bus = createLocalBus(simulatedWorld(1), () => assert.fail());
  bus.subscribe(HEIGHT, () => assert.fail("nobody else is there"));
  bus.publish(HEIGHT, 1);
  assert.equal(bus.ownerOf("anything"), bus.self);
  bus.serve(DOUBLE, (n) => n * 2);
  const question = { topic: DOUBLE, message: 2, timeoutMs: 10 };
  assert.deepEqual(await bus.request(bus.self, question), { ok: true, value: 4 });
  assert.throws(() => bus.serve(DOUBLE, (n) => n), /two answer/);
});

test("a silent worker serves nothing and is asked nothing, but is not gone", async () => {
  const bus = testBus(["1", "2"]);
  const [one, two] = [bus.worker("1"), bus.worker("2")];
  two.isStuck = true;
  const open = one.bus.request("2", { topic: SILENCE, message: "?", timeoutMs: 60_000 });
  two.setSilent(true);
  assert.deepEqual(await open, { ok: false, reason: "timeout" });
  const again = await one.bus.request("2", { topic: SILENCE, message: "?", timeoutMs: 60_000 });
  assert.deepEqual(again, { ok: false, reason: "timeout" });
  assert.deepEqual([one.bus.workers(), one.bus.silent()], [["1"], ["2"]]);
  assert.equal(one.bus.ownerOf("any"), "1");
  two.release();
  two.setSilent(false);
  two.bus.serve(SILENCE, () => "here");
  const heard = await one.bus.request("2", { topic: SILENCE, message: "?", timeoutMs: 60_000 });
  assert.deepEqual(heard, { ok: true, value: "here" });
});

const SILENCE: QuestionTopic<string, string> = { name: "silence" };
