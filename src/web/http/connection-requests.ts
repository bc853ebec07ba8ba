// Tracks the requests under way on each connection of node's HTTP server, so that a refusal is
// written after their answers and never between them. Knows nothing of their contents.
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";

export interface ConnectionRequests {
  /** Adds a request. */
  add(request: IncomingMessage, response: ServerResponse): void;
  /** Whether a request of this connection is not completely answered yet. */
  isBusy(socket: Duplex): boolean;
  /**
   * Writes the last answer of a connection after the answers to all earlier requests, then closes
   * it. Only the first call has an effect.
   */
  refuseNext(socket: Duplex, refusal: Buffer): void;
}

/** The requests under way on one connection. */
interface Connection {
  readonly requests: Set<Exchange>;
  refusal: Buffer | null;
}

interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
}

/** Creates an empty registry. */
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
      // The connection has no other listener now; further input and errors are ignored.
      socket.on("error", () => {});
      socket.resume();
      refuseWhenAnswered(socket, connection);
    },
  };
}

/**
 * Closes the connection with the refusal if no earlier request is to be answered. A request that
 * did not arrive completely never will: the refusal is its answer, unless it has been answered
 * already.
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
