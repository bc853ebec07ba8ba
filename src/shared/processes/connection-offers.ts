// Passes connections from the worker that accepted them to another one. The other worker is asked
// first and must answer soon: a connection sent to a worker that stands still would hang. Without
// an answer the connection goes back to the worker that accepted it.
import type { WorkerId } from "../../core/workers/bus.ts";
import type { Runtime } from "../../runtime.ts";
import type { RawConnection } from "./raw-connection.ts";

/** A worker that serves, as far as connections go. */
export interface ConnectionTarget {
  readonly id: WorkerId;
  /** Asks the worker whether it takes a connection now. */
  offer(offer: number): void;
  /** Gives it a connection, which is not held here any more; false = it cannot be given. */
  give(connection: RawConnection): boolean;
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
  readonly #serving: () => readonly ConnectionTarget[];
  readonly #open = new Map<number, Offer>();
  /** Workers that left an offer unanswered, until they answer one. */
  readonly #late = new Set<WorkerId>();
  #last = 0;

  constructor(runtime: Pick<Runtime, "after">, serving: () => readonly ConnectionTarget[]) {
    this.#runtime = runtime;
    this.#serving = serving;
  }

  /** Passes a connection on. */
  pass(connection: RawConnection, from: WorkerId, to: WorkerId): void {
    const target = this.#targetOf(to);
    const mayAsk = target !== undefined && !this.#late.has(to) && this.#open.size < MAX_OPEN;
    const id = ++this.#last;
    const cancel = this.#runtime.after(ANSWER_MS, () => {
      this.#late.add(to);
      this.#giveBack(id);
    });
    this.#open.set(id, { connection, from, to, cancel });
    // A late worker is asked as well, since its answer shows that it is responsive again.
    target?.offer(id);
    if (!mayAsk) this.#giveBack(id);
  }

  /** Handles the answer of the worker that was asked. */
  accepted(by: WorkerId, id: number): void {
    this.#late.delete(by);
    const offer = this.#open.get(id);
    if (offer?.to !== by) return;
    this.#open.delete(id);
    offer.cancel();
    this.#give(offer.connection, [by, ...this.#servingBeside(by)]);
  }

  /** Returns the connections that a worker has not taken: it has ended or does not answer. */
  withdraw(from: WorkerId): void {
    this.#late.delete(from);
    for (const [id, { to }] of [...this.#open]) if (to === from) this.#giveBack(id);
  }

  #targetOf(id: WorkerId): ConnectionTarget | undefined {
    return this.#serving().find((target) => target.id === id);
  }

  #servingBeside(...ids: readonly WorkerId[]): readonly WorkerId[] {
    return this.#serving().flatMap(({ id }) => (ids.includes(id) ? [] : [id]));
  }

  /** Gives a connection to the first worker that can be given it, else closes it. */
  #give(connection: RawConnection, ids: readonly WorkerId[]): void {
    for (const id of ids) if (this.#targetOf(id)?.give(connection) === true) return;
    connection.close();
  }

  #giveBack(id: number): void {
    const offer = this.#open.get(id);
    if (offer === undefined) return;
    this.#open.delete(id);
    offer.cancel();
    const { connection, from, to } = offer;
    this.#give(connection, [from, ...this.#servingBeside(from, to), to]);
  }
}
