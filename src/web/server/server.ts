// The HTTP server: one listener, whose connections go to the fast path or to node's HTTP server,
// and a drain that loses no accepted request.
import { createServer, type Server, type Socket } from "node:net";
import type { Activity } from "../http/activity.ts";
import { createFastPathServer, type FastPathServer } from "../rpc/fast-path.ts";
import { createNodeServer, type NodeServer, type NodeServerParts } from "./node-server.ts";

/** What the server is built from. */
export interface ServerParts extends Omit<NodeServerParts, "activity"> {
  /** `off`: every connection is served by node's HTTP server. */
  readonly fastPath: "auto" | "off";
  /** Null = this process accepts alone. */
  readonly otherWorkers: OtherWorkers | null;
}

/** Other processes that accept from the same socket. */
export interface OtherWorkers {
  /** True = another one serves this connection, which was just accepted. */
  takes(socket: Socket): boolean;
  /** Counts a connection that is served here. */
  opened(): () => void;
  /** Serves connections that others have passed on. */
  onPassed(serve: (socket: Socket) => void): void;
}

/** A server that listens. */
export interface WebServer {
  readonly port: number;
  readonly draining: boolean;
  /** Stops accepting, finishes what was accepted, then closes. */
  drain(): Promise<void>;
}

const BACKLOG = 1_024;

/** Starts listening; rejects where the address cannot be had. */
export function listen(parts: ServerParts, host: string, port: number): Promise<WebServer> {
  const activity: Activity = { active: 0, lastMs: 0, draining: false, ended: false };
  const node = createNodeServer({ ...parts, activity });
  const fastPath = parts.fastPath === "off" ? null : fastPathOf(parts, node, activity);
  const serve = (socket: Socket): void => (fastPath ?? node).accept(socket);
  const accept = acceptBeside(parts.otherWorkers, serve);
  // As node's HTTP server makes its connections: it, too, is half open until it ends itself.
  const listener = createServer({ allowHalfOpen: true, keepAlive: true, noDelay: true }, accept);
  listener.maxConnections = parts.limits.maxConnections;
  return new Promise((resolve, reject) => {
    listener.once("error", reject);
    listener.listen(port, host, BACKLOG, () => {
      listener.off("error", reject);
      node.start();
      resolve({
        port: portOf(listener, port),
        get draining() {
          return activity.draining;
        },
        drain: () => drain(parts, { listener, fastPath, node }, activity),
      });
    });
  });
}

/** How connections are accepted beside others who accept from the same socket. */
function acceptBeside(
  others: OtherWorkers | null,
  serve: (socket: Socket) => void,
): (socket: Socket) => void {
  if (others === null) return serve;
  const serveCounted = (socket: Socket): void => {
    socket.once("close", others.opened());
    serve(socket);
  };
  others.onPassed(serveCounted);
  return (socket) => {
    if (!others.takes(socket)) serveCounted(socket);
  };
}

/** A connection goes on to node's server with the first request that is not a plain RPC call. */
function fastPathOf(parts: ServerParts, node: NodeServer, activity: Activity): FastPathServer {
  const { runtime, rpc, requestId, limits } = parts;
  return createFastPathServer({
    runtime,
    rpc,
    requestId,
    activity,
    keepAliveTimeoutMs: limits.keepAliveTimeoutMs,
    firstRequestMs: limits.headersTimeoutMs,
    handOver: (socket) => node.accept(socket),
  });
}

function portOf(listener: Server, asked: number): number {
  const address = listener.address();
  return typeof address === "object" && address !== null ? address.port : asked;
}

/** Everything that holds connections. */
interface Connections {
  readonly listener: Server;
  /** Null = switched off. */
  readonly fastPath: FastPathServer | null;
  readonly node: NodeServer;
}

/** A drain is quiet once nothing has come for this long. */
const QUIET_MS = 300;
/** WebSockets may take this long for their closing handshake. */
const CLOSING_HANDSHAKE_MS = 1_500;
const STEP_MS = 25;

/**
 * Stops accepting connections and serves what comes on those that are open, telling each client to
 * close. Idle connections end once nothing has come for a while: closing them at once would lose a
 * request that is on its way. WebSockets are closed once nothing is under way.
 */
async function drain(
  { runtime, limits }: Pick<ServerParts, "runtime" | "limits">,
  { listener, fastPath, node }: Connections,
  activity: Activity,
): Promise<void> {
  if (activity.draining) return;
  activity.draining = true;
  const startedAtMs = runtime.now();
  activity.lastMs = startedAtMs;
  listener.close();
  const isQuiet = (): boolean =>
    activity.active === 0 && runtime.now() - activity.lastMs >= QUIET_MS;
  while (runtime.now() - startedAtMs < limits.drainTimeoutMs && !isQuiet()) await step();
  activity.ended = true;
  node.closeSockets();
  const closingAtMs = runtime.now();
  while (node.openSockets > 0 && runtime.now() - closingAtMs < CLOSING_HANDSHAKE_MS) await step();
  fastPath?.destroyAll();
  node.destroyAll();
}

/** A timer that keeps the process alive: there may be nothing else left that does. */
function step(): Promise<void> {
  return new Promise((resolve) => void setTimeout(resolve, STEP_MS));
}
