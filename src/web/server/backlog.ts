// The queue of connections that the kernel has made and that nobody has accepted yet. Uses an
// undocumented part of node: its server has no other way to the length of that queue.
import type { Server } from "node:net";

/**
 * Has the kernel make no further connections beyond the one that it cannot be kept from: clients
 * try again after a second, and are refused once the socket is closed. Nothing happens where node
 * has no such handle.
 */
export function shrinkBacklog(listener: Server): void {
  parseListening(listener)._handle?.listen?.(0);
}

interface Listening {
  readonly _handle?: { listen?(backlog: number): unknown } | null;
}

function parseListening(listener: unknown): Listening {
  return listener as Listening;
}
