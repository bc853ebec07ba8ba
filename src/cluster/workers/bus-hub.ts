// The hub of the bus, in the supervisor: forwards packets between workers, announces which workers
// serve, and is itself an endpoint. Knows no topic and reads no packet body.
import { type Bus, SUPERVISOR, type WorkerId } from "../../core/workers/bus.ts";
import type { Runtime } from "../../runtime.ts";
import { BusEndpoint } from "./bus-endpoint.ts";
import { Outbox, type OutboxLimits, type SendPacket } from "./outbox.ts";
import type { Packet } from "./packet.ts";

export interface BusHub {
  /** The supervisor's own endpoint. */
  readonly bus: Bus;
  /** Connects a worker that was just started. */
  attach(id: WorkerId, send: SendPacket): AttachedWorker;
  /** Announces the workers that serve from now on, and those that live and do not answer. */
  setServing(ids: readonly WorkerId[], silent: readonly WorkerId[]): void;
}

/** The connection of one worker. */
export interface AttachedWorker {
  /** Handles a packet of the worker. */
  receive(packet: Packet): void;
  /** Disconnects a worker that has ended. */
  detach(): void;
}

/** Creates a hub without workers. */
export function createBusHub(
  runtime: Pick<Runtime, "after">,
  onError: (error: unknown) => void,
  limits?: OutboxLimits,
): BusHub {
  const outboxes = new Map<WorkerId, Outbox>();
  const endpoint = new BusEndpoint({
    self: SUPERVISOR,
    runtime,
    workers: [],
    send: pass,
    onError,
  });

  /** Forwards a packet to its destination; false = the queue there is full. */
  function pass(packet: Packet): boolean {
    if (packet.kind === "hint" || packet.kind === "workers") {
      for (const [id, outbox] of outboxes)
        if (packet.kind === "workers" || id !== packet.from) outbox.put(packet);
      if (packet.kind === "hint" && packet.from !== SUPERVISOR) endpoint.receive(packet);
      return true;
    }
    if (packet.to === SUPERVISOR) {
      endpoint.receive(packet);
      return true;
    }
    const outbox = outboxes.get(packet.to);
    const isTaken = outbox?.put(packet) === true;
    if (!isTaken && packet.kind === "question") {
      const reason = outbox === undefined ? "gone" : "busy";
      const { id, from, to } = packet;
      pass({ kind: "answer", id, from: to, to: from, reply: { ok: false, reason } });
    }
    return true;
  }

  return {
    bus: endpoint,
    attach(id, send) {
      const outbox = new Outbox(send, limits);
      outboxes.set(id, outbox);
      outbox.put({ kind: "workers", ids: endpoint.workers(), silent: endpoint.silent() });
      return {
        receive: pass,
        detach() {
          if (outboxes.get(id) === outbox) outboxes.delete(id);
        },
      };
    },
    setServing(ids, silent) {
      const packet: Packet = { kind: "workers", ids, silent };
      endpoint.receive(packet);
      pass(packet);
    },
  };
}
