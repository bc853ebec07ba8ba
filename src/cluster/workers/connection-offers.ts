// Passes connections from the worker that accepted them to another one. The other one is asked
// first, and has to answer soon: a connection that is sent to a process which stands still would
// hang with it. Without an answer the connection goes back to the worker that accepted it.
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

/** Connections on their way from one worker to another. */
export interface ConnectionOffers {
  /** Passes a connection on. */
  pass(connection: RawConnection, from: WorkerId, to: WorkerId): void;
  /** Handles the answer of the worker that was asked. */
  accepted(by: WorkerId, offer: number): void;
  /** Returns the connections that a worker has not taken: it has ended or does not answer. */
  withdraw(from: WorkerId): void;
}

const ANSWER_MS = 250;
const MAX_OPEN = 1_024;

interface Offer {
  readonly connection: RawConnection;
  readonly from: WorkerId;
  readonly to: WorkerId;
  readonly cancel: () => void;
}

/** Creates an empty table of offers. */
export function createConnectionOffers(
  runtime: Pick<Runtime, "after">,
  targets: ConnectionTargets,
): ConnectionOffers {
  const open = new Map<number, Offer>();
  /** Workers that left an offer unanswered, until they answer one. */
  const late = new Set<WorkerId>();
  let last = 0;

  /** Gives a connection to the first worker that can be given it, else closes it. */
  function give(connection: RawConnection, ids: readonly WorkerId[]): void {
    for (const id of ids) if (targets.give(id, connection)) return;
    connection.close();
  }

  function giveBack(id: number): void {
    const offer = open.get(id);
    if (offer === undefined) return;
    open.delete(id);
    offer.cancel();
    const { connection, from, to } = offer;
    const others = targets.serving().filter((other) => other !== from && other !== to);
    give(connection, targets.serves(from) ? [from, ...others, to] : [...others, to]);
  }

  return {
    pass(connection, from, to) {
      const mayAsk = targets.serves(to) && !late.has(to) && open.size < MAX_OPEN;
      const id = ++last;
      const cancel = runtime.after(ANSWER_MS, () => {
        late.add(to);
        giveBack(id);
      });
      open.set(id, { connection, from, to, cancel });
      // One that is late is asked all the same: its answer shows that it is late no more.
      if (targets.serves(to)) targets.offer(to, id);
      if (!mayAsk) giveBack(id);
    },
    accepted(by, id) {
      late.delete(by);
      const offer = open.get(id);
      if (offer?.to !== by) return;
      open.delete(id);
      offer.cancel();
      const others = targets.serving().filter((other) => other !== by);
      give(offer.connection, [by, ...others]);
    },
    withdraw(from) {
      late.delete(from);
      for (const [id, { to }] of [...open]) if (to === from) giveBack(id);
    },
  };
}
