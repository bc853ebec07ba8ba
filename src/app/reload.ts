// What a reload may change, and what it leaves alone.
import { isDeepStrictEqual } from "node:util";
import type { Logger } from "pino";
import type { Config } from "../config/config.ts";

/** Sections of the configuration that a reload leaves alone. */
const FIXED_SECTIONS = ["server", "upstream", "hosted"] as const;

/** Why a running service cannot take another configuration; null = it can. */
export function reloadProblem(running: Config, next: Config): string | null {
  return JSON.stringify(running.chains) === JSON.stringify(next.chains)
    ? null
    : "the chains differ, and chains are fixed until restart";
}

/** Warns of sections that differ and are left alone. */
export function warnOfFixedSections(log: Logger, running: Config, next: Config): void {
  for (const section of FIXED_SECTIONS)
    if (!isDeepStrictEqual(next[section], running[section]))
      log.warn(`\`${section}\` differs, and takes effect at restart; the rest is reloaded`);
}
