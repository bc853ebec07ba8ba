// A simulated process that can end at any call that leaves it. A dead process changes nothing any
// more: its timers do not run, and its store cannot be reached.
import type { KyselyPlugin } from "kysely";
import type { Runtime } from "../../src/runtime.ts";
import type { Store } from "../../src/shared/store/store.ts";
import type { Outside } from "./fake-rail.ts";

/**
 * What happens at a call that leaves the process, by its number and name: nothing, or trouble
 * before or after the act.
 */
export type Fate = (
  call: number,
  name: string,
) => "fine" | "lost request" | "lost answer" | "crash before" | "crash after";

/** The process has ended. */
export class Dead extends Error {}

/** A process that lives until it is killed. */
export interface MortalProcess {
  readonly store: Store;
  readonly runtime: Runtime;
  /** Takes a call outside, where its fate allows. */
  readonly outside: Outside;
  readonly log: () => string;
  readonly write: (fields: unknown, message?: unknown) => void;
  isDead(): boolean;
  /** Nothing that it does takes effect any more. */
  kill(): void;
  /** Calls that have left it. */
  calls(): number;
  /** Rejects when it is dead: no answer comes any more. */
  readonly end: Promise<never>;
}

/** How a process is made. */
export interface MortalParts {
  readonly store: Store;
  readonly runtime: Runtime;
  readonly fate: Fate | undefined;
  /** The error of a request or answer that was lost. */
  readonly lost: (what: string) => Error;
}

/** Starts one. */
export function mortalProcess({ store, runtime, fate, lost }: MortalParts): MortalProcess {
  const ended = Promise.withResolvers<never>();
  ended.promise.catch(() => {});
  const state = { isDead: false, calls: 0 };
  let log = "";
  const kill = (): void => {
    state.isDead = true;
    ended.reject(new Dead("the process has ended"));
  };
  const outside: Outside = async (name, act) => {
    await Promise.resolve();
    if (state.isDead) throw new Dead("the process has ended");
    state.calls++;
    const what = fate?.(state.calls, name) ?? "fine";
    if (what === "crash before") kill();
    if (what === "crash before") throw new Dead(what);
    if (what === "lost request") throw lost(what);
    const value = await act();
    if (what === "crash after") kill();
    if (state.isDead) throw new Dead(what);
    if (what === "lost answer") throw lost(what);
    return value;
  };
  return {
    store: mortalStore(store, state, outside),
    runtime: {
      ...runtime,
      after: (ms, run) => runtime.after(ms, () => (state.isDead ? undefined : run())),
    },
    outside,
    log: () => log,
    write(fields, message) {
      log += `${JSON.stringify(fields)} ${String(message)}\n`;
    },
    isDead: () => state.isDead,
    kill,
    calls: () => state.calls,
    end: ended.promise,
  };
}

/**
 * A store that a dead process cannot reach, and whose transactions are calls to the outside like
 * all others.
 */
function mortalStore(store: Store, state: { readonly isDead: boolean }, outside: Outside): Store {
  const plugin: KyselyPlugin = {
    transformQuery({ node }) {
      if (state.isDead) throw new Dead("the process has ended");
      return node;
    },
    transformResult: async ({ result }) => result,
  };
  // A transaction that has begun goes on to its end, as in a database whose client dies while it
  // commits.
  return {
    ...store,
    db: store.db.withPlugin(plugin),
    transaction: async (run) => await outside("transaction", () => store.transaction(run)),
  };
}
