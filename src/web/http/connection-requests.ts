// The requests that are under way on each connection of node's HTTP server: what cannot be served
// after them is refused behind their answers, never among them. Knows no request's content.
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";

/** The requests of all connections. */
export interface ConnectionRequests {
  /** A request has come. */
  add(request: IncomingMessage, response: ServerResponse): void;
  /** Whether a request of this connection has yet to be answered in full. */
  isBusy(socket: Duplex): boolean;
  /**
   * Writes the last answer of a connection once every request before has its own, then closes it.
   * Only the first one counts.
   */
  refuseNext(socket: Duplex, refusal: Buffer): void;
}

/** What is under way on one connection. */
interface Connection {
  readonly requests: Set<Exchange>;
  refusal: Buffer | null;
}

interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
}

/** Nothing is under way. */
export function createConnectionRequests(): ConnectionRequests {
  const connections = new WeakMap<Duplex, Connection>();

  function of(socket: Duplex): Connection {
    const known = connections.get(socket);
    if (known !== undefined) return known;
    const connection: Connection = { requests: new Set(), refusal: null };
    connections.set(socket, connection);
    return connection;
  }

  return {
    add(request, response) {
      const { socket } = request;
      const connection = of(socket);
      const exchange = { request, response };
      connection.requests.add(exchange);
      response.on("close", () => {
        connection.requests.delete(exchange);
        refuseWhenAnswered(socket, connection);
      });
    },
    isBusy: (socket) => (connections.get(socket)?.requests.size ?? 0) > 0,
    refuseNext(socket, refusal) {
      const connection = of(socket);
      if (connection.refusal !== null) return;
      connection.refusal = refusal;
      // Nobody else may listen any more; what still comes is not looked at.
      socket.on("error", () => {});
      socket.resume();
      refuseWhenAnswered(socket, connection);
    },
  };
}

/**
 * Ends the connection if nothing has to be answered before. A request that has not come whole never
 * will: the refusal is its answer, unless it has one.
 */
function refuseWhenAnswered(socket: Duplex, connection: Connection): void {
  const { requests, refusal } = connection;
  if (refusal === null || socket.destroyed) return;
  let broken: ServerResponse | null = null;
  for (const { request, response } of requests) {
    if (request.complete) return;
    broken = response;
  }
  if (broken?.writableEnded === true) connection.refusal = NOTHING;
  else if (broken?.headersSent === true || !socket.writable) socket.destroy();
  else socket.end(refusal);
}

const NOTHING = Buffer.alloc(0);
