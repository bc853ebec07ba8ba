// Connections to a server of the test, with bounds of the test's own.
import { realRuntime } from "../../src/runtime.ts";
import { BufferPool } from "../../src/upstream/http/buffer-pool.ts";
import { noConnections } from "../../src/upstream/http/connections.ts";
import { Origin, type OriginParts } from "../../src/upstream/http/origin.ts";

/** What a test may choose. */
export interface OriginBounds extends Partial<Omit<OriginParts, "limits" | "shareOf">> {
  readonly scheme?: "http" | "https";
  readonly host?: string;
  readonly connections?: number;
  readonly queue?: number;
  readonly connectTimeoutMs?: number;
}

/** Connections to a port of this machine; one connection unless the test says more. */
export function originAt(port: number, bounds: OriginBounds = {}): Origin {
  const {
    scheme = "http",
    host = "127.0.0.1",
    connections = 1,
    queue = 100,
    connectTimeoutMs = 60_000,
  } = bounds;
  const limits = { connectionsPerOrigin: connections, maxWaiting: queue, connectTimeoutMs };
  const { runtime = realRuntime, lookup = null, buffers = new BufferPool() } = bounds;
  const shareOf = () => ({ limit: connections, close() {} });
  return new Origin(new URL(`${scheme}://${host}:${port}`), {
    limits,
    runtime,
    lookup,
    buffers,
    shareOf,
    onHandshake: bounds.onHandshake ?? (() => {}),
    onAgain: bounds.onAgain ?? (() => {}),
    successor:
      bounds.successor ?? (() => noConnections(new Error("no other protocol in this test"))),
  });
}
