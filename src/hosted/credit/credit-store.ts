// What leased credit asks of the store while calls are served: to write what was spent, and to
// lease more. Each is one transaction, so that the process with the store can run it in one go.
import type { Epoch } from "../../cluster/node-rows.ts";
import { type Store, urgently } from "../../store/store.ts";
import { type LeaseGrant, type LeaseRequest, type LeaseTerms, lease } from "./lease.ts";
import { type FlushInput, type FlushOutcome, flush } from "./node.ts";
import { isDryHere, recall } from "./recall.ts";

/** Requests for credit of many accounts. */
export interface RefillInput {
  readonly requests: readonly LeaseRequest[];
  readonly terms: LeaseTerms;
  /** Accounts that other nodes may be asked for, where a balance is dry here. */
  readonly recallable: readonly string[];
}

/** The transactions of leased credit. */
export interface CreditStore {
  flush(epoch: Epoch, input: FlushInput): Promise<FlushOutcome>;
  /** The answers in the order of the requests; null = this epoch is over. */
  refill(epoch: Epoch, input: RefillInput): Promise<readonly LeaseGrant[] | null>;
}

/** Runs them on a store. */
export function creditOn(store: Store): CreditStore {
  return {
    flush: (epoch, input) => flush(urgently(store), epoch, input),
    refill: (epoch, { requests, terms, recallable }) =>
      store.transaction(async (tx) => {
        const grants = await lease(tx, epoch, { requests, terms });
        const dry = requests.filter((request, at) => {
          const grant = grants?.[at];
          return grant !== undefined && isDryHere(request, grant);
        });
        const called = dry.map(({ accountId }) => accountId);
        await recall(
          tx,
          called.filter((accountId) => recallable.includes(accountId)),
        );
        return grants;
      }),
  };
}
