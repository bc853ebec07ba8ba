// A bus in one process: a hub and workers whose packets travel by call, with links that can be held
// up and cut.
import { deserialize, serialize } from "node:v8";
import type { Bus } from "../../src/core/workers/bus.ts";
import { BusEndpoint } from "../../src/shared/processes/bus-endpoint.ts";
import { BusHub } from "../../src/shared/processes/bus-hub.ts";
import { Outbox, type OutboxLimits } from "../../src/shared/processes/outbox.ts";
import { type SimulatedWorld, simulatedWorld } from "../fakes/runtime.ts";

/** One worker on the bus. */
export interface TestWorker {
  readonly bus: Bus;
  /** While true, what is sent to it is not taken. */
  isStuck: boolean;
  /** While true, what it sends is lost. */
  isMute: boolean;
  /** Delivers what waits. */
  release(): void;
  /** The supervisor finds that it does not answer, or answers again. */
  setSilent(isSilent: boolean): void;
  /** The process ends. */
  end(): void;
}

/** A hub with its workers. */
export interface TestBus {
  readonly world: SimulatedWorld;
  readonly hub: Bus;
  readonly errors: unknown[];
  worker(id: string): TestWorker;
}

/** Starts a hub and workers of the given names, all of them serving. */
export function testBus(ids: readonly string[], limits?: OutboxLimits): TestBus {
  const world = simulatedWorld(1);
  const errors: unknown[] = [];
  const onError = (error: unknown): void => void errors.push(error);
  const hub = new BusHub(world, onError, limits);
  let living = [...ids];
  const silent = new Set<string>();
  const announce = (): void =>
    hub.setServing(
      living.filter((id) => !silent.has(id)),
      living.filter((id) => silent.has(id)),
    );
  const workers = new Map(
    ids.map((id): [string, TestWorker] => {
      const waiting: (() => void)[] = [];
      const link = { isStuck: false, isMute: false };
      const outbox = new Outbox((packet, taken) => {
        taken();
        if (!link.isMute) hub.receive(travelled(packet));
      });
      const bus = new BusEndpoint({
        self: id,
        runtime: world,
        workers: [],
        send: (packet) => outbox.put(packet),
        onError,
      });
      hub.attach(id, (packet, taken) => {
        const deliver = (): void => {
          bus.receive(travelled(packet));
          taken();
        };
        if (link.isStuck) waiting.push(deliver);
        else deliver();
      });
      const worker: TestWorker = {
        bus,
        get isStuck() {
          return link.isStuck;
        },
        set isStuck(isStuck) {
          link.isStuck = isStuck;
        },
        get isMute() {
          return link.isMute;
        },
        set isMute(isMute) {
          link.isMute = isMute;
        },
        release() {
          for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) next();
          link.isStuck = false;
        },
        setSilent(isSilent) {
          if (isSilent) silent.add(id);
          else silent.delete(id);
          announce();
        },
        end() {
          hub.detach(id);
          living = living.filter((other) => other !== id);
          announce();
        },
      };
      return [id, worker];
    }),
  );
  announce();
  return {
    world,
    hub: hub.bus,
    errors,
    worker(id) {
      const worker = workers.get(id);
      if (worker === undefined) throw new Error(`no worker ${id}`);
      return worker;
    },
  };
}

/** A value as it arrives at another process: Buffers stay Buffers. */
function travelled<T>(value: T): T {
  return deserialize(serialize(value));
}
