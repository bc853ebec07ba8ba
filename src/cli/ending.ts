// How a process of the service ends: once, at the first signal or bug, and at once if asked again.
import type { Logger } from "pino";
import { realRuntime } from "../runtime.ts";

/** A second signal within this time is taken for the same one. */
const REPEATED_MS = 1_000;

/** The signals that end a service. */
const SIGNALS = ["SIGTERM", "SIGINT"] as const;

/** What ends, and how it is heard of. */
export interface ProcessEnd {
  readonly log: Logger;
  /** Finishes what was accepted. */
  readonly close: () => Promise<unknown>;
  /** What is done at once, when a signal comes again. */
  readonly kill: () => void;
}

/** Lets a process end by the returned function, once, or by a bug. */
export function endable({ log, close, kill }: ProcessEnd): (reason: string) => void {
  let isEnding = false;
  const end = async (signal: string): Promise<void> => {
    log.info({ signal }, "draining: finishing what was accepted");
    const startedAtMs = realRuntime.now();
    for (const again of SIGNALS) {
      // One Ctrl-C may arrive twice: from the terminal, and from the process that started this one.
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

/** Ends a process at the signals of its operator. */
export function endOnSignals(ending: ProcessEnd): void {
  const endOnce = endable(ending);
  for (const signal of SIGNALS) process.once(signal, () => endOnce(signal));
}
