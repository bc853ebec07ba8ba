// A store whose calls fail when the test says so: a statement that never arrives, or a transaction
// that commits and whose answer is lost.
import type { KyselyPlugin } from "kysely";
import type { Store } from "../../../src/shared/store/store.ts";

/** How the next calls fail. */
export interface Faults {
  /** Statements that still succeed before one fails; null = none fails. */
  statements: number | null;
  /**
   * Transactions that still succeed before the answer of one is lost after its commit; null = none
   * is.
   */
  answers: number | null;
  /** Everything fails. */
  isGone: boolean;
  /** Faults that happened. */
  count: number;
}

class InjectedFault extends Error {}

/** A store like the given one, and the switch of its faults. */
export function faultyStore(store: Store): { readonly store: Store; readonly faults: Faults } {
  const faults: Faults = { statements: null, answers: null, isGone: false, count: 0 };
  const fail = (what: string): never => {
    faults.count += 1;
    throw new InjectedFault(what);
  };
  const plugin: KyselyPlugin = {
    transformQuery({ node }) {
      if (faults.isGone) fail("the database is gone");
      if (faults.statements !== null) {
        faults.statements -= 1;
        if (faults.statements < 0) {
          faults.statements = null;
          fail("a statement failed");
        }
      }
      return node;
    },
    transformResult: async ({ result }) => result,
  };
  const faulty: Store = {
    ...store,
    db: store.db.withPlugin(plugin),
    async transaction(run) {
      const result = await store.transaction((tx) => run(tx.withPlugin(plugin)));
      if (faults.answers !== null) {
        faults.answers -= 1;
        if (faults.answers < 0) {
          faults.answers = null;
          fail("the answer was lost after the commit");
        }
      }
      return result;
    },
  };
  return { store: faulty, faults };
}
