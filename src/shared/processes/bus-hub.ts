// The hub of the bus, in the supervisor: forwards packets between workers, announces which workers
// serve, and is itself an endpoint. Knows no topic and reads no packet body.
import { SUPERVISOR, type WorkerId } from "../../core/workers/bus.ts";
import type { Runtime } from "../../runtime.ts";
import { BusEndpoint } from "./bus-endpoint.ts";
import { Outbox, type OutboxLimits, type SendPacket } from "./outbox.ts";
import type { Packet } from "./packet.ts";

/** The hub of the bus, with a connection to each worker. */
export class BusHub {
  /** The bus of the supervisor itself. */
  readonly bus: BusEndpoint;
  readonly #limits: OutboxLimits | undefined;
  readonly #outboxes = new Map<WorkerId, Outbox>();

  constructor(
    runtime: Pick<Runtime, "after">,
    onError: (error: unknown) => void,
    limits?: OutboxLimits,
  ) {
    this.#limits = limits;
    this.bus = new BusEndpoint({
      self: SUPERVISOR,
      runtime,
      workers: [],
      send: (packet) => this.receive(packet),
      onError,
    });
  }

  /** Connects a worker that was just started. */
  attach(id: WorkerId, send: SendPacket): void {
    const outbox = new Outbox(send, this.#limits);
    this.#outboxes.set(id, outbox);
    outbox.put({ kind: "workers", ids: this.bus.workers(), silent: this.bus.silent() });
  }

  /** Disconnects a worker that has ended. */
  detach(id: WorkerId): void {
    this.#outboxes.delete(id);
  }

  /** Announces the workers that serve from now on, and those that live and do not answer. */
  setServing(ids: readonly WorkerId[], silent: readonly WorkerId[]): void {
    const packet: Packet = { kind: "workers", ids, silent };
    this.bus.receive(packet);
    this.receive(packet);
  }

  /** Handles a packet of a worker, or of the supervisor: forwards it to its destination. */
  receive(packet: Packet): boolean {
    if (packet.kind === "hint" || packet.kind === "workers") {
      for (const [id, outbox] of this.#outboxes)
        if (packet.kind === "workers" || id !== packet.from) outbox.put(packet);
      if (packet.kind === "hint" && packet.from !== SUPERVISOR) this.bus.receive(packet);
      return true;
    }
    if (packet.to === SUPERVISOR) {
      this.bus.receive(packet);
      return true;
    }
    const outbox = this.#outboxes.get(packet.to);
    const isTaken = outbox?.put(packet) === true;
    if (!isTaken && packet.kind === "question") {
      const reason = outbox === undefined ? "gone" : "busy";
      const { id, from, to } = packet;
      this.receive({ kind: "answer", id, from: to, to: from, reply: { ok: false, reason } });
    }
    return true;
  }
}
