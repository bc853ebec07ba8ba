// Passes connections between processes as node's internal handles. Node can send open sockets, too,
// but it starts reading from them first, so that bytes are lost if a third process is in between.
// Undocumented parts of node: here, in `worker-process.ts` and in `web/server/server.ts`.
import { Socket, type SocketConstructorOpts } from "node:net";

/** A connection that is not being read; its owner must close it. */
export interface RawConnection {
  readStop(): unknown;
  close(): void;
}

/** Takes the connection out of a socket that was just accepted; null = it is closed already. */
export function takeConnection(socket: Socket): RawConnection | null {
  const holder = parseHolder(socket);
  const connection = parseConnection(holder._handle);
  if (connection === null) return null;
  // Reading was started, but nothing has been read yet, since this is still the turn of the accept
  // event.
  connection.readStop();
  holder._handle = null;
  socket.destroy();
  return connection;
}

/** Creates a socket on a connection, with the options of the service's listener. */
export function socketOn(connection: RawConnection): Socket {
  const options = { handle: connection, readable: true, writable: true, allowHalfOpen: true };
  return new Socket(parseSocketOptions(options));
}

/** The connection attached to a message; null = none, or something else. */
export function parseConnection(value: unknown): RawConnection | null {
  if (typeof value !== "object" || value === null) return null;
  return "readStop" in value && "close" in value ? (value as RawConnection) : null;
}

/** A connection in the type that node's `send` declares; node accepts these handles as well. */
export function parseSendHandle(connection: RawConnection): Socket {
  return connection as unknown as Socket;
}

function parseSocketOptions(options: unknown): SocketConstructorOpts {
  return options as SocketConstructorOpts;
}

function parseHolder(socket: Socket): { _handle: unknown } {
  return socket as unknown as { _handle: unknown };
}
