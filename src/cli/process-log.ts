// The log of a process of the service: lines of JSON on the standard output.
import { type Logger, pino } from "pino";
import type { Config } from "../config/config.ts";

/** A log; every line names the worker, where there are several. */
export function processLog({ logLevel }: Config, worker: string | null): Logger {
  return pino({
    level: logLevel,
    base: worker === null ? null : { worker },
    timestamp: pino.stdTimeFunctions.isoTime,
  });
}
