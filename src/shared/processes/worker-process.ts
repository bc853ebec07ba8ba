// Runs a worker as a process of node's cluster module: all workers accept from one listening
// socket, and the supervisor accepts nothing. The only file that knows how workers become
// processes.
import cluster from "node:cluster";
import { getCompileCacheDir } from "node:module";
import type { WorkerMessage } from "./control.ts";
import { parseConnection, parseSendHandle } from "./raw-connection.ts";
import type { WorkerEvents, WorkerProcess } from "./supervisor.ts";

/** The command that a worker's process runs. */
const WORKER_COMMAND = "worker";

/** Whether this process can start workers: a worker itself cannot. */
export function canSupervise(): boolean {
  return cluster.isPrimary;
}

/** Prepares this process for starting workers that run the program at `path`. */
export function workerProcesses(path: string): (events: WorkerEvents) => WorkerProcess {
  cluster.schedulingPolicy = cluster.SCHED_NONE;
  cluster.setupPrimary({ exec: path, args: [WORKER_COMMAND], serialization: "advanced" });
  return startProcess;
}

function startProcess(events: WorkerEvents): WorkerProcess {
  const compileCache = getCompileCacheDir();
  const { process: child } = cluster.fork(
    compileCache === undefined ? {} : { NODE_COMPILE_CACHE: compileCache },
  );
  let isOver = false;
  const ended = (how: string): void => {
    if (isOver) return;
    isOver = true;
    events.ended(how);
  };
  child.on("message", (message: WorkerMessage, companion: unknown) =>
    events.message(message, parseConnection(companion)),
  );
  child.on("exit", (code, signal) => ended(signal ?? `exit code ${code}`));
  child.on("error", (error) => {
    if (child.pid === undefined) ended(error.message);
  });
  return {
    send(message, taken) {
      if (!child.connected) return taken();
      child.send(message, () => taken());
    },
    sendConnection(message, connection) {
      if (!child.connected) return false;
      child.send(message, parseSendHandle(connection), {}, () => connection.close());
      return true;
    },
    // The only way to have the cluster module close its copies: it does so for a process that it
    // takes for disconnected. The connection to the process stays.
    closeListeners: () => void child.emit("disconnect"),
    kill: () => void child.kill("SIGKILL"),
  };
}
