// What the processes of a service have in common, from their first line to their end. They end
// gracefully and once, at the first signal or bug; at once if a second signal follows.
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { type Logger, pino } from "pino";
import type { Config } from "../config/config.ts";
import { errorText } from "../core/fields.ts";
import { realRuntime } from "../runtime.ts";
import { codeOf } from "./command.ts";

/** A running service. */
export interface Service {
  readonly port: number;
  /** Applies another configuration. Resolves with why it was rejected, or null. */
  reload(config: Config): Promise<string | null>;
  /** Completes accepted requests. */
  close(): Promise<void>;
  /** Ends child processes at once that would outlive this process. */
  kill(): void;
}

/** Creates a logger; with several workers, every line contains the worker. */
export function processLog({ logLevel }: Config, worker: string | null): Logger {
  return pino({
    level: logLevel,
    base: worker === null ? null : { worker },
    timestamp: pino.stdTimeFunctions.isoTime,
  });
}

/** The message for an error at the start. */
export function startProblem(error: unknown, { server }: Config): string {
  const syscall = error instanceof Error && "syscall" in error ? error.syscall : null;
  // A worker gets its socket from the supervisor, which binds the port.
  if (syscall !== "listen" && syscall !== "bind") return errorText(error);
  const place = `${server.host}:${server.port} (${codeOf(error)})`;
  return `cannot listen on ${place}; choose another with --port or --host`;
}

/**
 * Returns the memory that a start needs and serving does not to the system. Loading modules grows
 * the young generation of V8 to its largest size, and an idle process does not shrink it: up to a
 * third of its memory. Under load it grows again.
 */
export function collectStartGarbage(): void {
  // Node has no other way to ask for a collection.
  setFlagsFromString("--expose-gc");
  const collect: unknown = runInNewContext("gc");
  setFlagsFromString("--no-expose-gc");
  if (typeof collect === "function") collect({ type: "major", flavor: "last-resort" });
}

/** A second signal within this time counts as a repetition of the first. */
const REPEATED_MS = 1_000;

/** Signals that end a service. */
const SIGNALS = ["SIGTERM", "SIGINT"] as const;

/** How to end the process. */
export interface ProcessEnd {
  readonly log: Logger;
  /** Completes accepted requests. */
  readonly close: () => Promise<unknown>;
  /** Called at a repeated signal, before the process exits. */
  readonly kill: () => void;
}

/** Returns a function that ends the process gracefully, once. Uncaught exceptions also end it. */
export function endable({ log, close, kill }: ProcessEnd): (reason: string) => void {
  let isEnding = false;
  const end = async (signal: string): Promise<void> => {
    log.info({ signal }, "draining: finishing what was accepted");
    const startedAtMs = realRuntime.now();
    for (const again of SIGNALS) {
      // One Ctrl-C may arrive twice: from the terminal and from the parent process.
      process.on(again, () => {
        if (realRuntime.now() - startedAtMs <= REPEATED_MS) return;
        kill();
        process.exit(1);
      });
    }
    await close().catch((error: unknown) =>
      log.error({ err: error }, "bug: not everything could be ended"),
    );
    log.info("ended");
    process.exit();
  };
  const endOnce = (reason: string): void => {
    if (!isEnding) void end(reason);
    isEnding = true;
  };
  process.on("uncaughtException", (error) => {
    log.fatal({ err: error }, "bug: finishing what was accepted, then ending with exit code 1");
    process.exitCode = 1;
    endOnce("uncaughtException");
  });
  return endOnce;
}

/** Ends a process at the operator's signals. */
export function endOnSignals(ending: ProcessEnd): void {
  const endOnce = endable(ending);
  for (const signal of SIGNALS) process.once(signal, () => endOnce(signal));
}
