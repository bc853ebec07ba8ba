// Connections on their way between processes: node's own sockets taken apart and put together. It
// sends open sockets between processes too, but reads from them on the way, so that bytes are lost
// where one passes through a third process. The only file that uses what node does not document.
import { Socket, type SocketConstructorOpts } from "node:net";

/** A connection that nobody reads; its owner closes it. */
export interface RawConnection {
  readStop(): unknown;
  close(): void;
}

/** Takes the connection out of a socket that was just accepted; null = it is closed already. */
export function takeConnection(socket: Socket): RawConnection | null {
  const holder = parseHolder(socket);
  const connection = parseConnection(holder._handle);
  if (connection === null) return null;
  // Reading has been asked for, and nothing has been read: this is still the turn of the accept.
  connection.readStop();
  holder._handle = null;
  socket.destroy();
  return connection;
}

/** A socket on a connection, as the service's listener makes them. */
export function socketOn(connection: RawConnection): Socket {
  const options = { handle: connection, readable: true, writable: true, allowHalfOpen: true };
  return new Socket(parseSocketOptions(options));
}

/** What came with a message, as a connection; null = nothing, or something else. */
export function parseConnection(value: unknown): RawConnection | null {
  if (typeof value !== "object" || value === null) return null;
  return "readStop" in value && "close" in value ? (value as RawConnection) : null;
}

/** A connection as the type of a message's companion: node sends these as well. */
export function parseSendHandle(connection: RawConnection): Socket {
  return connection as unknown as Socket;
}

function parseSocketOptions(options: unknown): SocketConstructorOpts {
  return options as SocketConstructorOpts;
}

function parseHolder(socket: Socket): { _handle: unknown } {
  return socket as unknown as { _handle: unknown };
}
