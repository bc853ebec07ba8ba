// Ends a process of the service: gracefully and once, at the first signal or bug; at once if a
// second signal follows.
import type { Logger } from "pino";
import { realRuntime } from "../runtime.ts";

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
