// Asking rails about their chains: trouble on the way becomes a value here and is logged; whether a
// chain is reached at all is remembered, so that nobody is offered what cannot be settled. Knows no
// purchase.
import type { Logger } from "pino";
import type { Runtime } from "../runtime.ts";
import type { Rail } from "./rails/rail.ts";

/** What a rail said, or that its chain could not be asked. */
export type RailResult<T> =
  | { readonly kind: "told"; readonly value: T }
  | { readonly kind: "trouble" };

/** Asks rails. */
export interface RailCalls {
  /** Never throws. */
  ask<T>(rail: Rail, run: () => Promise<T>): Promise<RailResult<T>>;
  /** Finds out whether a rail's chain is reached. Never throws. */
  reach(rail: Rail): Promise<boolean>;
  /**
   * Whether it was not reached the last time that was found out. What goes wrong with single
   * payments does not count: payers could bring that about.
   */
  isTroubled(rail: Rail): boolean;
  /** As `isTroubled`, but finds out anew where that is some time ago. */
  isOut(rail: Rail): Promise<boolean>;
}

interface State {
  /** Null = it is reached, as far as is known. */
  unreachedAtMs: number | null;
  loggedAtMs: number;
}

/**
 * How often trouble with a rail's questions is logged at most, and a chain that is not reached
 * tried again for somebody who asks for an offer.
 */
const LOG_MS = 60_000;
const AGAIN_MS = 2_000;

/** Asks that nothing is known of. */
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
  const isTroubled = (rail: Rail): boolean => stateOf(rail).unreachedAtMs !== null;

  async function reach(rail: Rail): Promise<boolean> {
    const state = stateOf(rail);
    const before = state.unreachedAtMs;
    // Those who ask meanwhile do not ask as well.
    if (before !== null) state.unreachedAtMs = runtime.now();
    const isReached = await rail.reach().then(
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
    async ask(rail, run) {
      try {
        return { kind: "told", value: await run() };
      } catch (error) {
        const state = stateOf(rail);
        if (runtime.now() - state.loggedAtMs >= LOG_MS) {
          state.loggedAtMs = runtime.now();
          log.warn(
            { ...about(rail), problem: problemOf(error) },
            "a payment chain did not answer as it should",
          );
        }
        return { kind: "trouble" };
      }
    },
    reach,
    isTroubled,
    async isOut(rail) {
      const { unreachedAtMs } = stateOf(rail);
      if (unreachedAtMs === null) return false;
      return runtime.now() - unreachedAtMs < AGAIN_MS || !(await reach(rail));
    },
  };
}

/** Only what is known to hold no URL is repeated. */
function problemOf(error: unknown): string {
  if (!(error instanceof Error)) return "something else than an error was thrown";
  return error.name === "ChainTrouble" ? error.message : `${error.name} in the rail`;
}
