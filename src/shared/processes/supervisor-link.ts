// The worker's connection to its supervisor: its endpoint of the bus, the supervisor's commands,
// and the detection of the supervisor's end. The only file that knows how messages reach a worker.
import cluster from "node:cluster";
import type { Socket } from "node:net";
import type { Bus, WorkerId } from "../../core/workers/bus.ts";
import type { Runtime } from "../../runtime.ts";
import { BusEndpoint } from "./bus-endpoint.ts";
import type { Command, Report, SupervisorMessage, WorkerStart } from "./control.ts";
import { Outbox } from "./outbox.ts";
import { parseConnection, parseSendHandle, socketOn, takeConnection } from "./raw-connection.ts";

/** The connection of a worker to its supervisor. */
export interface SupervisorLink<C> {
  readonly start: WorkerStart<C>;
  readonly bus: Bus;
  report(report: Report): void;
  /** Handles commands from now on, including those received before. */
  onCommand(run: (command: LaterCommand<C>) => void): void;
  /** Calls back when the supervisor has ended. */
  onOrphaned(run: () => void): void;
  /** Passes a socket that was just accepted to another worker; false = it must be served here. */
  passOn(socket: Socket, to: WorkerId): boolean;
  /** Serves sockets passed on by other workers, including those received before. */
  onPassed(serve: (socket: Socket) => void): void;
  /** Closes the connection, so that the process can end. */
  close(): void;
}

/** A command that the worker carries out. */
export type LaterCommand<C> = Extract<Command<C>, { readonly kind: "reload" | "drain" }>;

export interface LinkParts {
  readonly runtime: Runtime;
  readonly onError: (error: unknown) => void;
}

/** Most connections on their way to other workers: further ones are served here. */
const MAX_PASSING = 64;
const LOOK_MS = 1_000;

/** Waits for the start command; null = this process was not started by a supervisor. */
export async function linkToSupervisor<C>(parts: LinkParts): Promise<SupervisorLink<C> | null> {
  const { worker } = cluster;
  if (worker === undefined || process.send === undefined) return null;
  const commands = createQueue<LaterCommand<C>>();
  const passed = createQueue<Socket>();
  const orphan = createQueue<null>();
  watch(parts.runtime, () => orphan.put(null));
  const { start, bus } = await new Promise<Begun<C>>((resolve) => {
    let endpoint: BusEndpoint | null = null;
    worker.on("disconnect", () => {
      // By default node exits a worker whose supervisor has ended; this one completes its requests
      // first.
      worker.exitedAfterDisconnect = true;
      orphan.put(null);
    });
    process.on("message", (message: SupervisorMessage<C>, companion: unknown) => {
      const connection = parseConnection(companion);
      if (connection !== null) return passed.put(socketOn(connection));
      switch (message.kind) {
        case "start":
          endpoint ??= endpointOf(message.start.id, parts);
          return resolve({ start: message.start, bus: endpoint });
        case "ping":
          return sendReport({ kind: "pong" });
        case "offer":
          return sendReport({ kind: "accepted", offer: message.offer });
        case "reload":
        case "drain":
          return commands.put(message);
        case "connection":
          return;
        default:
          endpoint?.receive(message);
      }
    });
  });
  return {
    start,
    bus,
    report: sendReport,
    onCommand: commands.hear,
    onOrphaned: (run) => orphan.hear(() => run()),
    passOn: createPassing(),
    onPassed: passed.hear,
    close: () => process.connected && process.disconnect(),
  };
}

type Begun<C> = Pick<SupervisorLink<C>, "start" | "bus">;

function endpointOf(self: string, { runtime, onError }: LinkParts): BusEndpoint {
  const outbox = new Outbox(sendUp);
  return new BusEndpoint({
    self,
    runtime,
    workers: [],
    send: (packet) => outbox.put(packet),
    onError,
  });
}

function sendReport(report: Report): void {
  sendUp(report, () => {});
}

function sendUp(message: object, taken: () => void): void {
  if (!process.connected) return taken();
  process.send?.(message, undefined, {}, () => taken());
}

/** Calls back after the supervisor's end: node does not, while connections wait to be sent. */
function watch(runtime: Pick<Runtime, "after">, ended: () => void): void {
  if (process.connected) runtime.after(LOOK_MS, () => watch(runtime, ended));
  else ended();
}

function createPassing(): SupervisorLink<unknown>["passOn"] {
  let passing = 0;
  return (socket, to) => {
    if (!process.connected || passing >= MAX_PASSING) return false;
    const connection = takeConnection(socket);
    if (connection === null) return true;
    passing++;
    const report: Report = { kind: "connection", to };
    process.send?.(report, parseSendHandle(connection), {}, () => {
      passing--;
      connection.close();
    });
    return true;
  };
}

/** Queues messages until a handler is set. */
function createQueue<T>() {
  let run: ((item: T) => void) | null = null;
  const early: T[] = [];
  return {
    put(item: T): void {
      if (run === null) early.push(item);
      else run(item);
    },
    hear(listener: (item: T) => void): void {
      run = listener;
      for (const item of early.splice(0)) listener(item);
    },
  };
}
