// The HTTP server: one listener that gives its connections to the fast path or to node's HTTP
// server, and a drain that loses no accepted request.
import { createServer, type Server, type Socket } from "node:net";
import type { Activity } from "../http/activity.ts";
import { FastPathServer } from "../rpc/connections/fast-path.ts";
import { ConnectionShares } from "./connection-shares.ts";
import { NodeServer, type NodeServerParts } from "./node-server.ts";

export interface ServerParts extends Omit<NodeServerParts, "activity"> {
  /** `off`: node's HTTP server serves every connection. */
  readonly fastPath: "auto" | "off";
  /** Null = no other process accepts from this socket. */
  readonly otherWorkers: OtherWorkers | null;
}

/** Other worker processes that accept from the same socket. */
export interface OtherWorkers {
  /** Offers a connection that was just accepted; true = another worker serves it. */
  takes(socket: Socket): boolean;
  /** Counts a connection served here; the returned function counts its end. */
  opened(): () => void;
  /** Registers the function that serves connections passed on by other workers. */
  onPassed(serve: (socket: Socket) => void): void;
}

/** A listening server. */
export interface WebServer {
  readonly port: number;
  readonly draining: boolean;
  /** Closes the WebSockets of chains that are served no more. */
  forgetChains(names: ReadonlySet<string>): void;
  /** Stops accepting, completes accepted requests, then closes. */
  drain(): Promise<void>;
}

/**
 * Connections that may wait to be accepted: callers of one that does not fit try again after a
 * second. The kernel allows no more than its `net.core.somaxconn`, 4,096 unless configured.
 */
const BACKLOG = 16_384;

/** Starts listening; rejects if the address is not available. */
export function listen(parts: ServerParts, host: string, port: number): Promise<WebServer> {
  const activity: Activity = { active: 0, lastMs: 0, draining: false, ended: false };
  const node = new NodeServer({ ...parts, activity });
  const fastPath =
    parts.fastPath === "off"
      ? null
      : new FastPathServer({ ...parts, activity, handOver: (socket) => node.accept(socket) });
  const shares = new ConnectionShares(parts.limits.maxConnections, parts.rpc.proxies);
  const serve = (socket: Socket): void => {
    if (shares.takes(socket)) (fastPath ?? node).accept(socket);
    else socket.destroy();
  };
  const accept = acceptBeside(parts.otherWorkers, serve);
  // Same options as node's HTTP server: a connection stays half open until the server ends its
  // side.
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
        forgetChains: (names) => node.sockets.forgetChains(names),
        drain: () => drain(parts, { listener, fastPath, node }, activity),
      });
    });
  });
}

/** Accepts connections next to other workers that accept from the same socket. */
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

/** The port that a server listens on, once it does. */
export function portOf(listener: Server, asked: number): number {
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

/** A drain is complete once no request has arrived for this long. */
const QUIET_MS = 300;
/** Time for the closing handshake of WebSockets. */
const CLOSING_HANDSHAKE_MS = 1_500;
const STEP_MS = 25;

/**
 * Stops accepting connections, serves what arrives on open ones, and tells each client to close.
 * Idle connections are closed after a quiet period, because closing them at once would lose a
 * request in flight. WebSockets are closed once no request is under way.
 */
async function drain(
  { runtime, limits }: Pick<ServerParts, "runtime" | "limits">,
  { listener, fastPath, node }: Connections,
  activity: Activity,
): Promise<void> {
  if (activity.draining) return;
  activity.draining = true;
  node.sockets.refuseWaiting();
  const startedAtMs = runtime.now();
  activity.lastMs = startedAtMs;
  await acceptWaiting(runtime, listener);
  listener.close();
  const isQuiet = (): boolean =>
    activity.active === 0 && runtime.now() - activity.lastMs >= QUIET_MS;
  while (runtime.now() - startedAtMs < limits.drainTimeoutMs && !isQuiet()) await step();
  activity.ended = true;
  node.sockets.close();
  const closingAtMs = runtime.now();
  while (node.sockets.open > 0 && runtime.now() - closingAtMs < CLOSING_HANDSHAKE_MS) await step();
  fastPath?.destroyAll();
  node.destroyAll();
}

/** How long connections are still accepted for, where one comes after the other. */
const ACCEPT_MS = 1_000;
/** The last of them are accepted when none came for so many turns. */
const QUIET_TURNS = 2;

/**
 * Accepts the connections that wait in the kernel, which resets them when the socket is closed. One
 * is accepted in each turn of the event loop.
 */
async function acceptWaiting(runtime: ServerParts["runtime"], listener: Server): Promise<void> {
  shrinkBacklog(listener);
  const untilMs = runtime.now() + ACCEPT_MS;
  let quietTurns = 0;
  const onConnection = (): void => {
    quietTurns = 0;
  };
  listener.on("connection", onConnection);
  while (quietTurns < QUIET_TURNS && runtime.now() < untilMs) {
    await new Promise<void>((resolve) => runtime.atTurnEnd(resolve));
    quietTurns++;
  }
  listener.off("connection", onConnection);
}

/** A timer that keeps the process alive during a drain, when nothing else may. */
function step(): Promise<void> {
  return new Promise((resolve) => void setTimeout(resolve, STEP_MS));
}

/**
 * Has the kernel make no further connections beyond the one that it cannot be kept from: clients
 * try again after a second, and are refused once the socket is closed. Nothing happens where node
 * has no such handle.
 */
function shrinkBacklog(listener: Server): void {
  parseListening(listener)._handle?.listen?.(0);
}

interface Listening {
  readonly _handle?: { listen?(backlog: number): unknown } | null;
}

function parseListening(listener: unknown): Listening {
  return listener as Listening;
}
