// Calls rails: turns exceptions into values, logs them, and remembers whether a rail's chain is
// reachable, so that only payments that can be settled are offered. Knows no purchase.
import type { Logger } from "pino";
import type { Runtime } from "../runtime.ts";
import { ChainFailure } from "./rails/chain.ts";
import type { Rail } from "./rails/rail.ts";

/** The result of a call; `unavailable` = the chain did not answer as it should. */
export type RailResult<T> =
  | { readonly kind: "result"; readonly value: T }
  | { readonly kind: "unavailable" };

interface State {
  /** Null = reachable, as far as is known. */
  unreachedAtMs: number | null;
  loggedAtMs: number;
}

/** Between two log lines about failing calls of a rail. */
const LOG_MS = 60_000;
/** Between two checks of an unreachable chain on behalf of callers who want an offer. */
const RECHECK_MS = 2_000;

/** Calls rails. */
export class RailCalls {
  readonly #runtime: Runtime;
  readonly #log: Pick<Logger, "warn" | "info">;
  readonly #states = new Map<Rail, State>();

  constructor({ runtime, log }: { runtime: Runtime; log: Pick<Logger, "warn" | "info"> }) {
    this.#runtime = runtime;
    this.#log = log;
  }

  /** Never throws. */
  async call<T>(rail: Rail, run: () => Promise<T>): Promise<RailResult<T>> {
    try {
      return { kind: "result", value: await run() };
    } catch (error) {
      const state = this.#stateOf(rail);
      if (this.#runtime.now() - state.loggedAtMs >= LOG_MS) {
        state.loggedAtMs = this.#runtime.now();
        this.#log.warn(
          { ...about(rail), problem: problemOf(error) },
          "a payment chain did not answer as it should",
        );
      }
      return { kind: "unavailable" };
    }
  }

  /** Checks whether a rail's chain is reachable. Never throws. */
  async checkReachable(rail: Rail): Promise<boolean> {
    const state = this.#stateOf(rail);
    const before = state.unreachedAtMs;
    // Concurrent callers do not check as well.
    if (before !== null) state.unreachedAtMs = this.#runtime.now();
    const isReached = await rail.ping().then(
      () => true,
      (error: unknown) => {
        if (state.unreachedAtMs === null)
          this.#log.warn(
            { ...about(rail), problem: problemOf(error) },
            "a payment chain is not reached: nothing is offered on it",
          );
        return false;
      },
    );
    if (isReached && before !== null)
      this.#log.info(about(rail), "a payment chain is reached again");
    state.unreachedAtMs = isReached ? null : this.#runtime.now();
    return isReached;
  }

  /**
   * Whether the chain was unreachable at the last check. Failures of single payments do not count:
   * payers could cause them.
   */
  isUnreachable(rail: Rail): boolean {
    return this.#stateOf(rail).unreachedAtMs !== null;
  }

  /** As `isUnreachable`, but checks again if the last check is some time ago. */
  async isStillUnreachable(rail: Rail): Promise<boolean> {
    const { unreachedAtMs } = this.#stateOf(rail);
    if (unreachedAtMs === null) return false;
    return this.#runtime.now() - unreachedAtMs < RECHECK_MS || !(await this.checkReachable(rail));
  }

  #stateOf(rail: Rail): State {
    const known = this.#states.get(rail);
    if (known !== undefined) return known;
    const state = { unreachedAtMs: null, loggedAtMs: Number.NEGATIVE_INFINITY };
    this.#states.set(rail, state);
    return state;
  }
}

function about({ method, chainId }: Rail) {
  return { rail: method, chainId };
}

/** Repeats only texts that are known to hold no URL. */
function problemOf(error: unknown): string {
  if (!(error instanceof Error)) return "something else than an error was thrown";
  return error instanceof ChainFailure ? error.message : `${error.name} in the rail`;
}
