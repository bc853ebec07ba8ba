// The logger of a process: JSON lines on standard output.
import { type Logger, pino } from "pino";
import type { Config } from "../config/config.ts";

/** Creates a logger; with several workers, every line contains the worker. */
export function processLog({ logLevel }: Config, worker: string | null): Logger {
  return pino({
    level: logLevel,
    base: worker === null ? null : { worker },
    timestamp: pino.stdTimeFunctions.isoTime,
  });
}
