// The log checks of every profile and chain that has streams, and their counts for display.

import { keepNewest } from "../../../core/newest.ts";
import type { Provider } from "../../../core/provider/profile.ts";
import type { Head } from "../../../core/stream/chain-event.ts";
import type { Tracker } from "../../health/tracker.ts";
import { CountsByChain } from "../counts-by-chain.ts";
import { BlockLogs } from "./block-logs.ts";
import { LogChecks, type LogChecksParts, NO_CHECKS } from "./log-checks.ts";

/** Most profiles and chains that are remembered; beyond that the oldest starts from nothing. */
const MAX_REMEMBERED = 10_000;

/** The log checks of all profiles and chains. */
export class LogCheckRegistry {
  readonly #parts: LogChecksParts;
  readonly #blockLogs = new BlockLogs();
  readonly #byKey = new Map<string, LogChecks>();
  readonly #byTracker = new WeakMap<Tracker, Set<LogChecks>>();
  readonly #counts = new CountsByChain(() => ({ ...NO_CHECKS }));

  constructor(parts: LogChecksParts) {
    this.#parts = parts;
  }

  /** The checks of one profile on the chain of a tracker. */
  of(profile: string, tracker: Tracker): LogChecks {
    const key = `${profile} ${tracker.set.chain.chainName}`;
    const checks =
      this.#byKey.get(key) ??
      new LogChecks(key, this.#parts, this.#counts.of(profile, tracker), this.#blockLogs);
    checks.bind(tracker);
    this.#byKey.set(key, checks);
    this.#byTracker.set(tracker, (this.#byTracker.get(tracker) ?? new Set()).add(checks));
    keepNewest(this.#byKey, MAX_REMEMBERED);
    return checks;
  }

  /** Records a head that a provider pushed. */
  see(tracker: Tracker, provider: Provider, head: Head): void {
    if (tracker.set.logVerification === "off") return;
    for (const checks of this.#byTracker.get(tracker) ?? [])
      checks.see(provider, head.hash, head.raw);
  }

  counts() {
    return this.#counts.all();
  }
}
