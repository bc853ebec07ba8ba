// Leased credit as a process alone opens it.
import {
  type Credit,
  type CreditParts,
  openCredit as openWith,
} from "../../src/hosted/credit/credit.ts";
import {
  CREDIT_BOUNDS,
  type CreditSettings,
  creditOn,
} from "../../src/hosted/credit/credit-store.ts";
import { newProcessId } from "../../src/shared/nodes/node-rows.ts";

type Given = Pick<CreditParts, "store" | "runtime" | "node" | "onError"> &
  Partial<Omit<CreditParts, "settings">> & {
    readonly settings: Pick<CreditSettings, "flushIntervalMs" | "nodeTimeoutMs" | "minSliceN"> &
      Partial<CreditSettings>;
  };

/** Opens credit; what is not given is as where one process serves alone. */
export function openCredit(given: Given): Promise<Credit> {
  const { store, runtime } = given;
  return openWith({
    replaces: "any",
    processId: newProcessId(runtime),
    transactions: creditOn(store),
    agreedMs: runtime.wallMs,
    recalls: false,
    recorded: () => {},
    ...given,
    settings: { ...CREDIT_BOUNDS, smallestN: 1, ...given.settings },
  });
}
