// The supervisor with processes that are none: who is started when, what becomes of deaths, of
// starts that fail, of another configuration and of the end.
import assert from "node:assert/strict";
import { test } from "node:test";
import { pino } from "pino";
import { isRecord } from "../../src/core/fields.ts";
import type { Ports } from "../../src/shared/processes/control.ts";
import type { RawConnection } from "../../src/shared/processes/raw-connection.ts";
import { Supervisor, type WorkerEvents } from "../../src/shared/processes/supervisor.ts";
import { type SimulatedWorld, simulatedWorld } from "../fakes/runtime.ts";

interface FakeProcess {
  readonly events: WorkerEvents;
  readonly sent: readonly Readonly<Record<string, unknown>>[];
  readonly connections: readonly RawConnection[];
  isKilled: boolean;
}

interface TestConfig {
  readonly port: number;
}

interface Started {
  readonly world: SimulatedWorld;
  readonly supervisor: Supervisor<TestConfig>;
  readonly processes: readonly FakeProcess[];
  readonly log: () => string;
  /** The last process of a place. */
  at(id: string): FakeProcess;
}

const PORTS: Ports = { port: 4321, metricsPort: null };

function startSupervisor(count = 2): Started {
  const world = simulatedWorld(1);
  const processes: FakeProcess[] = [];
  let lines = "";
  const write = (line: string): void => {
    lines += line;
  };
  const supervisor = new Supervisor<TestConfig>({
    runtime: world,
    log: pino({ base: null }, { write }),
    count,
    startProcess(events) {
      const sent: Readonly<Record<string, unknown>>[] = [];
      const connections: RawConnection[] = [];
      const process: FakeProcess = { events, sent, connections, isKilled: false };
      processes.push(process);
      return {
        send(message, taken) {
          if (isRecord(message)) sent.push(message);
          taken();
        },
        closeListeners() {},
        sendConnection(_message, connection) {
          connections.push(connection);
          return true;
        },
        kill() {
          process.isKilled = true;
        },
      };
    },
    config: { port: 0 },
    version: "0",
    onWorkerEnd: () => {},
    startMs: () => 60_000,
    hungMs: () => 30_000,
    drainMs: () => 10_000,
  });
  return {
    world,
    supervisor,
    processes,
    log: () => lines,
    at(id) {
      const last = processes.findLast(({ sent }) => startOf(sent)["id"] === id);
      assert.ok(last, `no process at ${id}`);
      return last;
    },
  };
}

function startOf(sent: FakeProcess["sent"]): Readonly<Record<string, unknown>> {
  const start = sent[0]?.["start"];
  assert.ok(isRecord(start));
  return start;
}

function ready(process: FakeProcess): void {
  process.events.message({ kind: "ready", ports: PORTS }, null);
}

const kinds = ({ sent }: FakeProcess): readonly unknown[] => sent.map(({ kind }) => kind);

test("the service has started once every worker serves", async () => {
  const { supervisor, at } = startSupervisor();
  ready(at("1"));
  assert.deepEqual(supervisor.bus.workers(), ["1"]);
  ready(at("2"));
  assert.deepEqual(await supervisor.started, { ok: true, ports: PORTS });
  assert.deepEqual(supervisor.bus.workers(), ["1", "2"]);
});

test("where every worker fails to start, the service fails with what one of them says", async () => {
  const { world, supervisor, processes, at } = startSupervisor();
  for (const id of ["1", "2"]) {
    at(id).events.message({ kind: "failed", problem: "the port is taken" }, null);
    at(id).events.ended("exit code 1");
  }
  assert.deepEqual(await supervisor.started, { ok: false, problem: "the port is taken" });
  world.advance(60_000);
  assert.equal(processes.length, 2);
});

test("where one of two fails, the service serves and starts it again", async () => {
  const { world, supervisor, at, processes, log } = startSupervisor();
  at("1").events.ended("SIGKILL");
  ready(at("2"));
  assert.equal((await supervisor.started).ok, true);
  assert.match(log(), /a worker could not be started/);
  world.advance(100);
  assert.equal(processes.length, 3);
  ready(at("1"));
  assert.deepEqual(supervisor.bus.workers(), ["1", "2"]);
});

test("a worker that dies is replaced soon, one that goes on dying ever later", () => {
  const { world, at, processes, log } = startSupervisor();
  for (const id of ["1", "2"]) ready(at(id));
  world.advance(3_600_000);
  const waits: number[] = [];
  for (let death = 0; death < 12; death++) {
    at("2").events.ended("SIGKILL");
    const before = processes.length;
    let waitedMs = 0;
    for (; processes.length === before; waitedMs += 100) world.advance(100);
    waits.push(waitedMs);
    ready(at("2"));
    world.advance(1_000);
  }
  assert.deepEqual(
    waits,
    [100, 200, 400, 800, 1_600, 3_200, 6_400, 12_800, 25_600, 30_000, 30_000, 30_000],
  );
  assert.equal(log().match(/a worker died/g)?.length, 12);
  world.advance(60_000);
  at("2").events.ended("SIGKILL");
  assert.match(log().trimEnd().split("\n").at(-1) ?? "", /"restart_in_ms":100,/);
});

test("the successor of a worker is told the same service", () => {
  const { world, at } = startSupervisor();
  ready(at("1"));
  ready(at("2"));
  const before = startOf(at("2").sent)["serviceId"];
  assert.equal(typeof before, "string");
  at("2").events.ended("SIGKILL");
  world.advance(100);
  assert.equal(startOf(at("2").sent)["serviceId"], before);
});

test("a worker that does not begin to serve is ended", () => {
  const started = startSupervisor();
  const { at } = started;
  ready(at("1"));
  pass(started, 60, ["1"]);
  assert.deepEqual([at("1").isKilled, at("2").isKilled], [false, true]);
});

test("another configuration goes to all, and to those that start later", async () => {
  const { world, supervisor, at } = startSupervisor();
  ready(at("1"));
  ready(at("2"));
  const reloaded = supervisor.reload({ port: 7 });
  for (const id of ["1", "2"]) {
    const { id: reload, config } = at(id).sent.at(-1) ?? {};
    assert.deepEqual(config, { port: 7 });
    at(id).events.message({ kind: "reloaded", id: Number(reload), problem: null }, null);
  }
  assert.equal(await reloaded, null);
  at("1").events.ended("SIGKILL");
  world.advance(100);
  assert.deepEqual(startOf(at("1").sent)["config"], { port: 7 });
});

test("a worker that starts while others reload gets what they took", async () => {
  const { world, supervisor, at } = startSupervisor();
  ready(at("1"));
  ready(at("2"));
  const reloaded = supervisor.reload({ port: 7 });
  at("2").events.ended("SIGKILL");
  world.advance(100);
  assert.deepEqual(startOf(at("2").sent)["config"], { port: 0 });
  at("1").events.message({ kind: "reloaded", id: 1, problem: null }, null);
  assert.equal(await reloaded, null);
  assert.deepEqual(at("2").sent.at(-1)?.["config"], { port: 7 });
  assert.equal(at("1").sent.filter(({ kind }) => kind === "reload").length, 1);
});

test("what one worker refuses, no worker keeps, nor one that starts later", async () => {
  const { world, supervisor, at } = startSupervisor();
  ready(at("1"));
  ready(at("2"));
  const reloaded = supervisor.reload({ port: 7 });
  at("1").events.message({ kind: "reloaded", id: 1, problem: null }, null);
  at("2").events.message({ kind: "reloaded", id: 1, problem: "the chains differ" }, null);
  assert.equal(await reloaded, "the chains differ");
  assert.deepEqual(at("1").sent.at(-1)?.["config"], { port: 0 });
  at("2").events.ended("SIGKILL");
  world.advance(100);
  assert.deepEqual(startOf(at("2").sent)["config"], { port: 0 });
});

test("a reload tells of a worker that does not answer, and does not wait for one that dies", async () => {
  const { world, supervisor, at } = startSupervisor();
  ready(at("1"));
  ready(at("2"));
  const silent = supervisor.reload({ port: 7 });
  world.advance(5_000);
  assert.match((await silent) ?? "", /did not answer/);
  const again = supervisor.reload({ port: 8 });
  at("1").events.message({ kind: "reloaded", id: 2, problem: null }, null);
  at("2").events.ended("SIGKILL");
  assert.equal(await again, null);
});

test("a drain is passed on to all, and over when the last has ended", async () => {
  const { world, supervisor, at, processes } = startSupervisor();
  ready(at("1"));
  ready(at("2"));
  const drained = supervisor.drain();
  for (const id of ["1", "2"]) {
    assert.ok(kinds(at(id)).includes("drain"));
    at(id).events.ended("exit code 0");
  }
  assert.equal(await drained, true);
  world.advance(60_000);
  assert.equal(processes.length, 2);
});

test("a worker that does not end with the drain is ended, and that is told", async () => {
  const { world, supervisor, at } = startSupervisor();
  ready(at("1"));
  ready(at("2"));
  const drained = supervisor.drain();
  at("1").events.ended("exit code 0");
  world.advance(10_000);
  assert.equal(at("2").isKilled, true);
  at("2").events.ended("SIGKILL");
  assert.equal(await drained, false);
});

test("a drain waits for no worker that waits for its start", async () => {
  const { world, supervisor, at, processes } = startSupervisor();
  ready(at("1"));
  ready(at("2"));
  at("2").events.ended("SIGKILL");
  const drained = supervisor.drain();
  at("1").events.ended("exit code 0");
  assert.equal(await drained, true);
  world.advance(60_000);
  assert.equal(processes.length, 2);
});

/** Answers what was asked of a process since the last time. */
function answer(process: FakeProcess, from = 0): number {
  for (const { kind } of process.sent.slice(from))
    if (kind === "ping") process.events.message({ kind: "pong" }, null);
  return process.sent.length;
}

/** Lets seconds pass in which only the given workers answer. */
function pass({ world, at }: Started, seconds: number, answering: readonly string[]): void {
  const seen = new Map<FakeProcess, number>();
  for (let n = 0; n < seconds; n++) {
    world.advance(1_000);
    for (const id of answering) seen.set(at(id), answer(at(id), seen.get(at(id))));
  }
}

test("a worker that answers once a second serves on; one that does not is told to all", () => {
  const started = startSupervisor(3);
  const { supervisor, at, log } = started;
  for (const id of ["1", "2", "3"]) ready(at(id));
  pass(started, 120, ["1", "2", "3"]);
  assert.deepEqual(supervisor.bus.workers(), ["1", "2", "3"]);
  pass(started, 3, ["1", "3"]);
  assert.deepEqual(supervisor.bus.workers(), ["1", "2", "3"]);
  pass(started, 1, ["1", "3"]);
  assert.deepEqual([supervisor.bus.workers(), supervisor.bus.silent()], [["1", "3"], ["2"]]);
  const told = at("1").sent.findLast(({ kind }) => kind === "workers");
  assert.deepEqual([told?.["ids"], told?.["silent"]], [["1", "3"], ["2"]]);
  assert.match(log(), /"worker":"2".*a worker does not answer/);
});

test("a silent worker serves again once it answers, and keeps its process", () => {
  const started = startSupervisor();
  const { supervisor, at, processes, log } = started;
  for (const id of ["1", "2"]) ready(at(id));
  pass(started, 20, ["1"]);
  assert.deepEqual(supervisor.bus.workers(), ["1"]);
  at("2").events.message({ kind: "pong" }, null);
  assert.deepEqual([supervisor.bus.workers(), supervisor.bus.silent()], [["1", "2"], []]);
  assert.match(log(), /a worker answers again/);
  pass(started, 60, ["1", "2"]);
  assert.equal(processes.length, 2);
  assert.equal(at("2").isKilled, false);
});

test("a worker that stays silent is ended and replaced after a wait", () => {
  const started = startSupervisor();
  const { world, supervisor, at, processes } = started;
  for (const id of ["1", "2"]) ready(at(id));
  const hung = at("2");
  pass(started, 30, ["1"]);
  assert.equal(hung.isKilled, false);
  pass(started, 1, ["1"]);
  assert.equal(hung.isKilled, true);
  hung.events.ended("SIGKILL");
  assert.deepEqual(supervisor.bus.silent(), []);
  assert.equal(processes.length, 2);
  world.advance(100);
  assert.equal(processes.length, 3);
  ready(at("2"));
  assert.deepEqual(supervisor.bus.workers(), ["1", "2"]);
});

test("a supervisor that stood still takes no worker for silent", () => {
  const { world, supervisor, at } = startSupervisor();
  for (const id of ["1", "2"]) ready(at(id));
  // Timers that are due many times over run once, as after SIGCONT.
  world.stall(3_600_000);
  world.advance(0);
  assert.deepEqual(supervisor.bus.workers(), ["1", "2"]);
});

test("a worker that starts or drains is not asked", async () => {
  const { world, supervisor, at } = startSupervisor();
  ready(at("1"));
  world.advance(5_000);
  assert.equal(kinds(at("2")).includes("ping"), false);
  ready(at("2"));
  const drained = supervisor.drain();
  const before = at("2").sent.length;
  world.advance(9_000);
  assert.deepEqual(kinds(at("2")).slice(before), []);
  assert.deepEqual([at("1").isKilled, at("2").isKilled], [false, false]);
  for (const id of ["1", "2"]) at(id).events.ended("exit code 0");
  assert.equal(await drained, true);
});

/** A connection that counts how often it is closed. */
function connectionCounted(): RawConnection & { readonly closed: number } {
  let closed = 0;
  return {
    get closed() {
      return closed;
    },
    readStop: () => 0,
    close: () => void closed++,
  };
}

/** The number of the last offer that a process was sent. */
function lastOffer({ sent }: FakeProcess): unknown {
  return sent.findLast(({ kind }) => kind === "offer")?.["offer"];
}

function accept(process: FakeProcess): void {
  process.events.message({ kind: "accepted", offer: Number(lastOffer(process)) }, null);
}

function passOn(from: FakeProcess, to: string): ReturnType<typeof connectionCounted> {
  const connection = connectionCounted();
  from.events.message({ kind: "connection", to }, connection);
  return connection;
}

test("a connection goes to the worker that it is for once that one has answered", () => {
  const { at } = startSupervisor();
  for (const id of ["1", "2"]) ready(at(id));
  const connection = passOn(at("1"), "2");
  assert.deepEqual(at("2").connections, []);
  accept(at("2"));
  accept(at("2"));
  assert.deepEqual(at("2").connections, [connection]);
});

test("a connection goes back where the other worker does not answer in time, and late ones stay", () => {
  const { world, at } = startSupervisor();
  for (const id of ["1", "2"]) ready(at(id));
  const first = passOn(at("1"), "2");
  world.advance(250);
  assert.deepEqual([at("1").connections, at("2").connections], [[first], []]);
  // The next one does not wait.
  const second = passOn(at("1"), "2");
  assert.deepEqual(at("1").connections, [first, second]);
  accept(at("2"));
  assert.deepEqual(at("2").connections, []);
  const third = passOn(at("1"), "2");
  accept(at("2"));
  assert.deepEqual(at("2").connections, [third]);
});

test("a connection for a worker that ended, starts or is silent stays; without workers it is closed", () => {
  const started = startSupervisor(3);
  const { at } = started;
  assert.equal(passOn(at("1"), "2").closed, 1);
  for (const id of ["1", "3"]) ready(at(id));
  passOn(at("1"), "2");
  assert.equal(at("1").connections.length, 1);
  passOn(at("1"), "3");
  at("3").events.ended("SIGKILL");
  assert.equal(at("1").connections.length, 2);
  ready(at("2"));
  pass(started, 4, ["1"]);
  passOn(at("1"), "2");
  assert.equal(at("1").connections.length, 3);
  assert.equal(lastOffer(at("2")), undefined);
});
