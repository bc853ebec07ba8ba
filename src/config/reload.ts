// Decides what a reload may change.
import { isDeepStrictEqual } from "node:util";
import type { Logger } from "pino";
import type { Config } from "./config.ts";

/** Sections of the configuration that a reload does not change. */
const FIXED_SECTIONS = ["server", "upstream", "hosted"] as const;

/** Why a running service cannot take another configuration; null = it can. */
export function reloadProblem(running: Config, next: Config): string | null {
  return JSON.stringify(running.chains) === JSON.stringify(next.chains)
    ? null
    : "the chains differ, and chains are fixed until restart";
}

/** A running configuration with what a reload changes of it; the rest stays until restart. */
export function reloaded(running: Config, next: Config): Config {
  const { profiles, limits, logs, deadlines, methods } = next;
  const { cache, redisUrl, coalesce, hedge, consistency } = next;
  const engine = { cache, redisUrl, coalesce, hedge, consistency };
  const routing = { profiles, limits, logs, deadlines, methods, ...engine };
  return { ...running, ...routing, console: next.console };
}

/** Logs a warning for each changed section that a reload does not apply. */
export function warnOfFixedSections(log: Logger, running: Config, next: Config): void {
  for (const section of FIXED_SECTIONS)
    if (!isDeepStrictEqual(next[section], running[section]))
      log.warn(`\`${section}\` differs, and takes effect at restart; the rest is reloaded`);
}
