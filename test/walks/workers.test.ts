// A service of several workers, as real processes behind real sockets: one port, shared evenly; one
// worker's death is nobody else's; signals, reload, drain and exit code are the service's.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { machineLimits, workersFor } from "../../src/cli/worker-count.ts";
import { freePort } from "../fakes/free-port.ts";
import { type ServiceProcess, startProcess } from "../fakes/process.ts";
import { configText } from "../fakes/service.ts";
import { until } from "../fakes/service-fixture.ts";
import { type ScriptedUpstream, scriptedUpstream } from "../fakes/upstream.ts";
import {
  childrenOf,
  isAlive,
  isStopped,
  openCaller,
  type WorkerCaller,
} from "../fakes/worker-load.ts";

const TWO_WORKERS = { server: { port: 0, workers: 2 } };

interface Fixture {
  readonly upstream: ScriptedUpstream;
  readonly service: ServiceProcess;
  readonly port: number;
}

async function fixture(
  t: TestContext,
  extra: Record<string, unknown> = {},
  atPort = 0,
): Promise<Fixture> {
  const upstream = await scriptedUpstream((_asked, reply) => reply.result('"0x1"'));
  t.after(() => upstream.close());
  const settings = { ...TWO_WORKERS, ...extra };
  const text = configText([{ id: "a", url: upstream.url }], settings, {}, "public");
  const service = await startProcess(t, text, {}, { atPort });
  return { upstream, service, port: Number(new URL(service.url).port) };
}

/** Stops a process; killed when the test is over, since one that is stopped would stay. */
function stand(t: TestContext, pid: number): void {
  process.kill(pid, "SIGSTOP");
  t.after(() => {
    if (isStopped(pid)) process.kill(pid, "SIGKILL");
  });
}

/** Calls on every connection until told to stop; resolves when all are idle. */
function load(callers: readonly WorkerCaller[]): () => Promise<void> {
  let isRunning = true;
  const loops = callers.map(async (caller) => {
    while (isRunning && !caller.isOver && (await caller.call())) await sleep(1);
  });
  return async () => {
    isRunning = false;
    await Promise.all(loops);
  };
}

function countBy(callers: readonly WorkerCaller[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const { worker } of callers)
    if (worker !== null) counts.set(worker, (counts.get(worker) ?? 0) + 1);
  return counts;
}

/**
 * Opens so many connections, and more until both workers serve some: one that a busy machine keeps
 * from answering an offer in time is spared. Each has made one call.
 */
async function callersOfBoth(
  t: TestContext,
  port: number,
  least: number,
): Promise<readonly WorkerCaller[]> {
  const callers = Array.from({ length: least }, () => openCaller(t, port));
  await callAll(callers);
  return until("connections of both workers", async () => {
    if (countBy(callers).size === 2) return callers;
    const another = openCaller(t, port);
    callers.push(another);
    await callAll([another]);
    return null;
  });
}

test("64 connections are shared by two workers, in a burst and one after the other", async (t) => {
  const { port } = await fixture(t);
  // A worker that does not answer an offer within 250 ms is spared: a busy machine shares a burst
  // less evenly, and evens it out with the connections after it. `connection-sharing` holds how a
  // burst is shared by workers that answer.
  const callers = [...(await callersOfBoth(t, port, 64))];
  await until("even shares", async () => {
    const counts = [...countBy(callers).values()];
    if (Math.min(...counts) >= 0.4 * callers.length) return true;
    const further = Array.from({ length: 16 }, () => openCaller(t, port));
    callers.push(...further);
    await callAll(further);
    return null;
  });
});

test("a killed worker fails calls on its own connections only, and is replaced", async (t) => {
  const { upstream, service, port } = await fixture(t);
  const callers = await callersOfBoth(t, port, 32);
  for (let n = 1; n < 20; n++) await callAll(callers);
  const known = await callsInHistory(service);
  assert.ok(known >= callers.length * 20, `${known} calls in history`);
  const held: (() => void)[] = [];
  upstream.script((_asked, reply) => void held.push(() => reply.result('"0x1"')));
  const underWay = callers.map((caller) => caller.call());
  await until("a call under way on each connection", () => held.length === callers.length);
  const [victim] = childrenOf(service.pid);
  assert.ok(victim);
  process.kill(victim, "SIGKILL");
  const died = await until("the line about the death", () =>
    /"worker":"(\d)","ended":"SIGKILL"/.exec(service.log()),
  );
  upstream.script((_asked, reply) => reply.result('"0x1"'));
  for (const answer of held) answer();
  const outcomes = await Promise.all(underWay);
  assert.deepEqual(
    outcomes,
    callers.map(({ worker }) => worker !== died[1]),
  );
  const others = callers.filter(({ worker }) => worker !== died[1]);
  for (let n = 0; n < 20; n++) await callAll(others);
  await until("a connection served by its successor", async () => {
    const caller = openCaller(t, port);
    return (await caller.call()) && caller.worker === died[1];
  });
  assert.equal(service.log().match(/a worker died/g)?.length, 1);
  assert.ok((await callsInHistory(service)) > known, "history outlives the worker that counted it");
});

/** One call on every connection, each of which is answered. */
async function callAll(callers: readonly WorkerCaller[]): Promise<void> {
  const answered = await Promise.all(callers.map((caller) => caller.call()));
  assert.deepEqual(
    answered,
    callers.map(() => true),
  );
}

/** The calls of the last hour, as the service tells. */
async function callsInHistory({ url }: ServiceProcess): Promise<number> {
  const response = await fetch(`${url}/api/v1/history`);
  const text = await response.text();
  assert.equal(response.status, 200, text);
  const { series } = JSON.parse(text);
  return series[0].calls.reduce((sum: number, calls: number | null) => sum + (calls ?? 0), 0);
}

/** So long that no worker is taken for hung, however slow the machine is. */
const NEVER_HUNG_MS = 3_600_000;

/** A service whose worker is ended when it does not answer for so long. */
async function endingAfter(t: TestContext, hungMs: number): Promise<Fixture> {
  const dataDir = await mkdtemp(join(tmpdir(), "svc-workers-"));
  t.after(() => rm(dataDir, { recursive: true, force: true }));
  return fixture(t, {
    data_dir: dataDir,
    hosted: { enabled: true, node_timeout_ms: hungMs, keyless: true },
  });
}

test("a worker that stands still keeps no new connection waiting", async (t) => {
  const { service, port } = await endingAfter(t, NEVER_HUNG_MS);
  await callersOfBoth(t, port, 8);
  const [victim] = childrenOf(service.pid);
  assert.ok(victim);
  stand(t, victim);
  // Far more than the other one is ahead by: each of them would be passed on to the one that
  // stands still. A call that hung would hold this loop up.
  const served: WorkerCaller[] = [];
  for (let n = 0; n < 100; n++) {
    const caller = openCaller(t, port);
    served.push(caller);
    assert.equal(await caller.call(), true);
  }
  assert.equal(countBy(served).size, 1);
});

test("a worker that stands still is ended in time, and replaced", async (t) => {
  const { service, port } = await endingAfter(t, 6_000);
  await callersOfBoth(t, port, 8);
  const [victim] = childrenOf(service.pid);
  assert.ok(victim);
  stand(t, victim);
  await until("the line about its silence", () =>
    service.log().includes("a worker does not answer"),
  );
  await until("its end", () => !isAlive(victim));
  await until("the line about its end", () =>
    service.log().includes("a worker that does not answer is ended"),
  );
  // Connections that the dead one had are no more: these are the other one's and its successor's.
  await callersOfBoth(t, port, 8);
});

test("a worker that stood still for a while serves on, and no sum has changed", async (t) => {
  const { service, port } = await fixture(t);
  const callers = await callersOfBoth(t, port, 8);
  const total = async (): Promise<number> => {
    const text = await (await fetch(`${service.url}/metrics`)).text();
    const found = /^svc_requests_total\{.*method="eth_call",outcome="answered"\} (\d+)$/m.exec(
      text,
    );
    return Number(found?.[1]);
  };
  assert.equal(await total(), callers.length);
  const workers = childrenOf(service.pid);
  const [victim] = workers;
  assert.ok(victim);
  stand(t, victim);
  await until("the line about its silence", () =>
    service.log().includes("a worker does not answer"),
  );
  process.kill(victim, "SIGCONT");
  await until("its answer", () => service.log().includes("a worker answers again"));
  for (const caller of callers) assert.ok(await caller.call());
  assert.equal(countBy(callers).size, 2);
  assert.equal(await total(), 2 * callers.length);
  assert.deepEqual(childrenOf(service.pid), workers);
});

test("a drain under load fails no call, and the exit code is 0", async (t) => {
  const { service, port } = await fixture(t);
  const callers = Array.from({ length: 32 }, () => openCaller(t, port));
  const stop = load(callers);
  await until("calls on all connections", () => callers.every(({ answered }) => answered > 20));
  const workers = childrenOf(service.pid);
  service.signal("SIGTERM");
  assert.equal(await service.ended, 0);
  await stop();
  assert.deepEqual(
    callers.map(({ failed }) => failed),
    callers.map(() => 0),
  );
  assert.equal(workers.length, 2);
  assert.deepEqual(workers.filter(isAlive), []);
});

test("when the last worker has closed its socket, nobody takes connections that are not served", async (t) => {
  // Nobody else listens there afterwards.
  const { service, port } = await fixture(t, {}, await freePort());
  const workers = childrenOf(service.pid);
  const [slow = 0] = workers;
  stand(t, slow);
  service.signal("SIGTERM");
  const drains = () => service.log().split("draining: ").length - 1;
  await until("the drain of the supervisor and the other worker", () => drains() === 2);
  // It stands still when the last worker closes, as on a machine that has no time for it.
  service.signal("SIGSTOP");
  t.after(() => service.signal("SIGCONT"));
  process.kill(slow, "SIGCONT");
  await until("the end of the workers", () => !workers.some(isAlive));
  const outcome = await new Promise<string>((resolve) => {
    const socket = connect(port, "127.0.0.1", () => resolve("connected"));
    socket.on("error", (error: NodeJS.ErrnoException) => resolve(error.code ?? ""));
    t.after(() => socket.destroy());
  });
  assert.equal(outcome, "ECONNREFUSED");
  service.signal("SIGCONT");
  assert.equal(await service.ended, 0);
});

test("a reload is taken by all workers, and a broken file by none", async (t) => {
  const { service, upstream, port } = await fixture(t);
  const other = await scriptedUpstream((_asked, reply) => reply.result('"0x1"'));
  t.after(() => other.close());
  const callers = await callersOfBoth(t, port, 16);
  await writeFile(
    service.file,
    configText([{ id: "b", url: other.url }], TWO_WORKERS, {}, "public"),
  );
  service.signal("SIGHUP");
  await until("the reload", () => service.log().includes("configuration reloaded"));
  const askedBefore = upstream.asked.length;
  await callAll(callers);
  assert.deepEqual([upstream.asked.length, other.asked.length], [askedBefore, callers.length]);
  await writeFile(service.file, "server: { wombat: 1 }");
  service.signal("SIGHUP");
  await until("the refusal", () => service.log().includes("configuration not reloaded"));
  await callAll(callers);
  assert.equal(other.asked.length, 2 * callers.length);
});

test("workers: auto is one for each core and each 500 MB that this process may use", async (t) => {
  const upstream = await scriptedUpstream((_asked, reply) => reply.result('"0x1"'));
  t.after(() => upstream.close());
  const text = configText([{ id: "a", url: upstream.url }]);
  const service = await startProcess(t, text, { SVC_WORKERS: "auto" });
  const cores = workersFor(machineLimits());
  assert.equal(childrenOf(service.pid).length, cores === 1 ? 0 : cores);
  assert.equal(await openCaller(t, Number(new URL(service.url).port)).call(), true);
});

test("workers end when their supervisor is killed", async (t) => {
  const { service, port } = await fixture(t);
  const caller = openCaller(t, port);
  assert.equal(await caller.call(), true);
  const workers = childrenOf(service.pid);
  assert.equal(workers.length, 2);
  service.signal("SIGKILL");
  assert.equal(await service.ended, "SIGKILL");
  // What they have accepted is answered, also now.
  assert.equal(await caller.call(), true);
  await until("the end of the workers", () => !workers.some(isAlive));
});

test("a worker whose connections wait to be passed on ends when its supervisor is killed", async (t) => {
  const { service, port } = await fixture(t);
  // Each has begun to serve, and needs nothing of the supervisor for the next calls.
  await callAll(Array.from({ length: 16 }, () => openCaller(t, port)));
  const workers = childrenOf(service.pid);
  const [slow = 0] = workers;
  // The other worker accepts all connections, and none of those that it passes on gets anywhere.
  for (const pid of [slow, service.pid]) stand(t, pid);
  const callers = Array.from({ length: 100 }, () => openCaller(t, port));
  const outcomes = callers.map((caller) => caller.call());
  await Promise.any(outcomes);
  service.signal("SIGKILL");
  process.kill(slow, "SIGKILL");
  await until("the end of the other worker", () => !workers.some(isAlive));
  await Promise.all(outcomes);
});

test("where no worker can start, the service says why and ends with 1, as one process does", async (t) => {
  const taken = createServer().listen(0, "127.0.0.1");
  t.after(() => taken.close());
  await new Promise((resolve) => taken.once("listening", resolve));
  const address = taken.address();
  assert.ok(typeof address === "object" && address !== null);
  const directory = await mkdtemp(join(tmpdir(), "svc-workers-"));
  t.after(() => rm(directory, { recursive: true, force: true }));
  const file = join(directory, "svc.yml");
  await writeFile(file, configText([{ id: "a", url: "http://127.0.0.1:9" }]));
  const outcomes = await Promise.all(
    ["1", "2"].map((workers) => run(file, ["--port", String(address.port), "--workers", workers])),
  );
  const text =
    `svc: cannot listen on 127.0.0.1:${address.port} (EADDRINUSE); choose another with ` +
    "--port or --host\n";
  assert.deepEqual(outcomes, [
    { code: 1, stderr: text },
    { code: 1, stderr: text },
  ]);
});

test("svc worker alone says that it is not for people", async (t) => {
  const directory = await mkdtemp(join(tmpdir(), "svc-workers-"));
  t.after(() => rm(directory, { recursive: true, force: true }));
  const main = new URL("../../src/main.ts", import.meta.url).pathname;
  const { code, stderr } = await finished(spawn(process.execPath, [main, "worker"]));
  assert.deepEqual([code, /started by svc serve/.test(stderr)], [1, true]);
});

function run(file: string, flags: readonly string[]) {
  const main = new URL("../../src/main.ts", import.meta.url).pathname;
  return finished(spawn(process.execPath, [main, "serve", "--config", file, ...flags]));
}

async function finished(
  child: ReturnType<typeof spawn>,
): Promise<{ readonly code: number | null; readonly stderr: string }> {
  let stderr = "";
  child.stderr?.on("data", (chunk: Buffer) => {
    stderr += chunk.toString();
  });
  child.stdout?.resume();
  const code = await new Promise<number | null>((resolve) => child.once("close", resolve));
  return { code, stderr };
}

test("metrics are the service's at every worker, and no sum falls when workers are killed", async (t) => {
  const { service, port } = await fixture(t);
  const callers = await callersOfBoth(t, port, 8);
  for (const caller of callers) for (let n = 1; n < 5; n++) assert.ok(await caller.call());
  const made = 5 * callers.length;
  const requests = async (): Promise<number> => {
    const text = await (await fetch(`${service.url}/metrics`)).text();
    const found = /^svc_requests_total\{.*method="eth_call",outcome="answered"\} (\d+)$/m.exec(
      text,
    );
    return Number(found?.[1]);
  };
  const shown = async (): Promise<readonly unknown[]> => {
    const text = await (await fetch(`${service.url}/api/metrics/1`)).text();
    const [profile] = JSON.parse(text).profiles;
    return [profile.calls, profile.providers[0].transports[0].outcomes.delivered];
  };
  // Enough connections that both workers are asked.
  for (let n = 0; n < 8; n++) {
    assert.equal(await requests(), made);
    assert.deepEqual(await shown(), [made, made]);
  }
  for (const pid of childrenOf(service.pid)) {
    const before = await Promise.all([requests(), shown()]);
    process.kill(pid, "SIGKILL");
    await until("its end", () => !isAlive(pid));
    const sums = await until("an answer", () =>
      Promise.all([requests(), shown()]).catch(() => null),
    );
    assert.deepEqual(sums, before);
    await until("its successor", () => childrenOf(service.pid).length === 2);
    await until("both serve", async () => {
      const again = Array.from({ length: 8 }, () => openCaller(t, port));
      await Promise.all(again.map((caller) => caller.call()));
      return countBy(again).size === 2;
    });
  }
});

test("metrics_listen is there once for all workers, and health tells when the service started", async (t) => {
  const metrics = `127.0.0.1:${await freePort()}`;
  const { service } = await fixture(t, {
    server: { port: 0, workers: 2, metrics_listen: metrics },
  });
  const text = await (await fetch(`http://${metrics}/metrics`)).text();
  assert.match(text, /^svc_build_info\{version=".+"\} 1$/m);
  assert.match(text, /^svc_upstream_attempts_total\{.*provider="a"/m);
  const ready = await until("readiness", async () => {
    const response = await fetch(`${service.url}/api/ready`);
    return response.status === 200 ? response.text() : null;
  });
  assert.equal(JSON.parse(ready).ready, true);
});
