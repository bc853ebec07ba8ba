// Calls rails: turns what they throw into a value, logs it, and remembers whether a rail's chain is
// reachable, so that nothing is offered that cannot be settled. Knows no purchase.
import type { Logger } from "pino";
import type { Runtime } from "../runtime.ts";
import { ChainFailure } from "./rails/chain.ts";
import type { Rail } from "./rails/rail.ts";

/** The result of a call; `unavailable` = the chain did not answer as it should. */
export type RailResult<T> =
  | { readonly kind: "result"; readonly value: T }
  | { readonly kind: "unavailable" };

/** Calls rails. */
export interface RailCalls {
  /** Never throws. */
  call<T>(rail: Rail, run: () => Promise<T>): Promise<RailResult<T>>;
  /** Checks whether a rail's chain is reachable. Never throws. */
  checkReachable(rail: Rail): Promise<boolean>;
  /**
   * Whether the chain was unreachable at the last check. Failures of single payments do not count:
   * payers could cause them.
   */
  isUnreachable(rail: Rail): boolean;
  /** As `isUnreachable`, but checks again if the last check is some time ago. */
  isStillUnreachable(rail: Rail): Promise<boolean>;
}

interface State {
  /** Null = reachable, as far as is known. */
  unreachedAtMs: number | null;
  loggedAtMs: number;
}

/** Between two log lines about failing calls of a rail. */
const LOG_MS = 60_000;
/** Between two checks of an unreachable chain on behalf of callers who want an offer. */
const RECHECK_MS = 2_000;

/** Calls of rails about which nothing is known yet. */
export function createRailCalls({
  runtime,
  log,
}: {
  readonly runtime: Runtime;
  readonly log: Pick<Logger, "warn" | "info">;
}): RailCalls {
  const states = new Map<Rail, State>();
  const stateOf = (rail: Rail): State => {
    const state = states.get(rail) ?? { unreachedAtMs: null, loggedAtMs: Number.NEGATIVE_INFINITY };
    states.set(rail, state);
    return state;
  };
  const about = ({ method, chainId }: Rail) => ({ rail: method, chainId });
  const isUnreachable = (rail: Rail): boolean => stateOf(rail).unreachedAtMs !== null;

  async function checkReachable(rail: Rail): Promise<boolean> {
    const state = stateOf(rail);
    const before = state.unreachedAtMs;
    // Concurrent callers do not check as well.
    if (before !== null) state.unreachedAtMs = runtime.now();
    const isReached = await rail.ping().then(
      () => true,
      (error: unknown) => {
        if (state.unreachedAtMs === null)
          log.warn(
            { ...about(rail), problem: problemOf(error) },
            "a payment chain is not reached: nothing is offered on it",
          );
        return false;
      },
    );
    if (isReached && before !== null) log.info(about(rail), "a payment chain is reached again");
    state.unreachedAtMs = isReached ? null : runtime.now();
    return isReached;
  }

  return {
    async call(rail, run) {
      try {
        return { kind: "result", value: await run() };
      } catch (error) {
        const state = stateOf(rail);
        if (runtime.now() - state.loggedAtMs >= LOG_MS) {
          state.loggedAtMs = runtime.now();
          log.warn(
            { ...about(rail), problem: problemOf(error) },
            "a payment chain did not answer as it should",
          );
        }
        return { kind: "unavailable" };
      }
    },
    checkReachable,
    isUnreachable,
    async isStillUnreachable(rail) {
      const { unreachedAtMs } = stateOf(rail);
      if (unreachedAtMs === null) return false;
      return runtime.now() - unreachedAtMs < RECHECK_MS || !(await checkReachable(rail));
    },
  };
}

/** Repeats only texts that are known to hold no URL. */
function problemOf(error: unknown): string {
  if (!(error instanceof Error)) return "something else than an error was thrown";
  return error instanceof ChainFailure ? error.message : `${error.name} in the rail`;
}
