// Tracks the requests under way on each connection of node's HTTP server, so that a refusal is
// written after their answers and never between them. Knows nothing of their contents.
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";

/** The requests under way on one connection. */
interface Connection {
  readonly requests: Set<Exchange>;
  refusal: Buffer | null;
}

interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
}

export class ConnectionRequests {
  readonly #connections = new WeakMap<Duplex, Connection>();

  /** Adds a request. */
  add(request: IncomingMessage, response: ServerResponse): void {
    const { socket } = request;
    const connection = this.#of(socket);
    const exchange = { request, response };
    connection.requests.add(exchange);
    response.on("close", () => {
      connection.requests.delete(exchange);
      refuseWhenAnswered(socket, connection);
    });
  }

  /** Whether a request of this connection is not completely answered yet. */
  isBusy(socket: Duplex): boolean {
    return (this.#connections.get(socket)?.requests.size ?? 0) > 0;
  }

  /**
   * Writes the last answer of a connection after the answers to all earlier requests, then closes
   * it. Only the first call has an effect.
   */
  refuseNext(socket: Duplex, refusal: Buffer): void {
    const connection = this.#of(socket);
    if (connection.refusal !== null) return;
    connection.refusal = refusal;
    // The connection has no other listener now; further input and errors are ignored.
    socket.on("error", () => {});
    socket.resume();
    refuseWhenAnswered(socket, connection);
  }

  #of(socket: Duplex): Connection {
    const known = this.#connections.get(socket);
    if (known !== undefined) return known;
    const connection: Connection = { requests: new Set(), refusal: null };
    this.#connections.set(socket, connection);
    return connection;
  }
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
