// Decides what a reload may change.
import { isDeepStrictEqual } from "node:util";
import type { Logger } from "pino";
import { setNewest } from "../core/newest.ts";
import type { Chain } from "../core/provider/chain.ts";
import type { Config } from "./config.ts";

/** Sections of the configuration that a reload does not change. */
const FIXED_SECTIONS = ["server", "upstream", "hosted"] as const;

/** Most names of chains that are remembered. */
const MAX_NAMES = 10_000;

/**
 * The ids of all chains that were served since the start, by their names. History, filters, cordons
 * and callers know a chain by its name: it never stands for another chain.
 */
export class ChainIds {
  readonly #byName = new Map<string, number>();

  constructor(chains: readonly Chain[]) {
    this.add(chains);
  }

  /** Why these chains cannot be served; null = they can. */
  problemOf(chains: readonly Chain[]): string | null {
    for (const { chainName, chainId } of chains) {
      const before = this.#byName.get(chainName) ?? chainId;
      if (before !== chainId)
        return (
          `the chain ${chainName} had the id ${before} before, and has ${chainId} now: give the ` +
          "other chain another name, or restart"
        );
    }
    return null;
  }

  add(chains: readonly Chain[]): void {
    for (const { chainName, chainId } of chains)
      setNewest(this.#byName, chainName, chainId, MAX_NAMES);
  }
}

/** A running configuration with what a reload changes of it; the rest stays until restart. */
export function reloaded(running: Config, next: Config): Config {
  const { chains, onDemand, profiles, limits, logs, deadlines, methods } = next;
  const { cache, redisUrl, coalesce, hedge, consistency } = next;
  const engine = { cache, redisUrl, coalesce, hedge, consistency };
  const routing = { chains, onDemand, profiles, limits, logs, deadlines, methods, ...engine };
  return { ...running, ...routing, console: next.console };
}

/** Logs a warning for each changed section that a reload does not apply. */
export function warnOfFixedSections(log: Logger, running: Config, next: Config): void {
  for (const section of FIXED_SECTIONS)
    if (!isDeepStrictEqual(next[section], running[section]))
      log.warn(`\`${section}\` differs, and takes effect at restart; the rest is reloaded`);
}
