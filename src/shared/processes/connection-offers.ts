// Passes connections from the worker that accepted them to another one. The other worker is asked
// first and must answer soon: a connection sent to a worker that stands still would hang. Without
// an answer the connection goes back to the worker that accepted it.
import type { WorkerId } from "../../core/workers/bus.ts";
import type { Runtime } from "../../runtime.ts";
import type { RawConnection } from "./raw-connection.ts";

/** The processes of workers, as far as connections go. */
export interface ConnectionTargets {
  /** Whether the worker may be asked. */
  serves(id: WorkerId): boolean;
  /** Asks a worker whether it takes a connection now. */
  offer(id: WorkerId, offer: number): void;
  /** Gives a worker a connection, which is not held here any more; false = it cannot be given. */
  give(id: WorkerId, connection: RawConnection): boolean;
  /** Workers that serve. */
  serving(): readonly WorkerId[];
}

const ANSWER_MS = 250;
const MAX_OPEN = 1_024;

interface Offer {
  readonly connection: RawConnection;
  readonly from: WorkerId;
  readonly to: WorkerId;
  readonly cancel: () => void;
}

/** Connections on their way from one worker to another. */
export class ConnectionOffers {
  readonly #runtime: Pick<Runtime, "after">;
  readonly #targets: ConnectionTargets;
  readonly #open = new Map<number, Offer>();
  /** Workers that left an offer unanswered, until they answer one. */
  readonly #late = new Set<WorkerId>();
  #last = 0;

  constructor(runtime: Pick<Runtime, "after">, targets: ConnectionTargets) {
    this.#runtime = runtime;
    this.#targets = targets;
  }

  /** Passes a connection on. */
  pass(connection: RawConnection, from: WorkerId, to: WorkerId): void {
    const mayAsk = this.#targets.serves(to) && !this.#late.has(to) && this.#open.size < MAX_OPEN;
    const id = ++this.#last;
    const cancel = this.#runtime.after(ANSWER_MS, () => {
      this.#late.add(to);
      this.#giveBack(id);
    });
    this.#open.set(id, { connection, from, to, cancel });
    // A late worker is asked as well, since its answer shows that it is responsive again.
    if (this.#targets.serves(to)) this.#targets.offer(to, id);
    if (!mayAsk) this.#giveBack(id);
  }

  /** Handles the answer of the worker that was asked. */
  accepted(by: WorkerId, id: number): void {
    this.#late.delete(by);
    const offer = this.#open.get(id);
    if (offer?.to !== by) return;
    this.#open.delete(id);
    offer.cancel();
    const others = this.#targets.serving().filter((other) => other !== by);
    this.#give(offer.connection, [by, ...others]);
  }

  /** Returns the connections that a worker has not taken: it has ended or does not answer. */
  withdraw(from: WorkerId): void {
    this.#late.delete(from);
    for (const [id, { to }] of [...this.#open]) if (to === from) this.#giveBack(id);
  }

  /** Gives a connection to the first worker that can be given it, else closes it. */
  #give(connection: RawConnection, ids: readonly WorkerId[]): void {
    for (const id of ids) if (this.#targets.give(id, connection)) return;
    connection.close();
  }

  #giveBack(id: number): void {
    const offer = this.#open.get(id);
    if (offer === undefined) return;
    this.#open.delete(id);
    offer.cancel();
    const { connection, from, to } = offer;
    const others = this.#targets.serving().filter((other) => other !== from && other !== to);
    this.#give(connection, this.#targets.serves(from) ? [from, ...others, to] : [...others, to]);
  }
}
