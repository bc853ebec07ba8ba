// What leased credit asks of the store while calls are served: to write what was spent, to lease
// more, and to return leases. Each operation is one transaction, so that the process with the store
// runs it in one go.
import type { Runtime } from "../../runtime.ts";
import { recordChange } from "../../shared/changes/change-log.ts";
import type { NodeIdentity } from "../../shared/nodes/identity.ts";
import type { Epoch } from "../../shared/nodes/node-rows.ts";
import { type Store, urgently } from "../../shared/store/store.ts";
import {
  closeLeases,
  type LeaseClosing,
  type LeaseGrant,
  type LeaseRequest,
  type LeaseTerms,
  lease,
} from "./lease.ts";
import { type FlushInput, type FlushOutcome, flush } from "./node.ts";
import { type ReturnedCredits, returnCredit } from "./recall.ts";

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
  /** Returns parts of leases that go on; resolves with the accounts of which that was done. */
  returnParts(epoch: Epoch, input: ReturnedCredits): Promise<readonly string[]>;
  /** Closes some leases; resolves with how many it found. */
  close(closing: LeaseClosing, atMs: number): Promise<number>;
}

/** Runs them on a store. */
export function creditOn(store: Store): CreditStore {
  return {
    flush: (epoch, input) => flush(urgently(store), epoch, input),
    returnParts: (epoch, input) => store.transaction((tx) => returnCredit(tx, epoch, input)),
    close: (closing, atMs) => store.transaction((tx) => closeLeases(tx, closing, atMs)),
    refill: (epoch, { requests, terms, recallable }) =>
      store.transaction(async (tx) => {
        const grants = await lease(tx, epoch, { requests, terms });
        const dry = requests.filter((_, at) => grants?.[at]?.isDry === true);
        // Has the other nodes return what they can spare.
        const recalled = dry.filter(({ accountId }) => recallable.includes(accountId));
        const changes = recalled.map(({ accountId: ref }) => ({ topic: "recall", ref }) as const);
        await recordChange(tx, ...changes);
        return grants;
      }),
  };
}

/** Leases that one sweep closes at most: 200 a step. */
const MAX_STEPS = 10_000;

/** Closes every lease of epochs that are over. */
export async function closeEnded(credit: Pick<CreditStore, "close">, atMs: number): Promise<void> {
  for (let step = 0; step < MAX_STEPS; step++)
    if ((await credit.close({ kind: "ended" }, atMs)) === 0) return;
}

/** Times, slices and bounds of the credit. */
export interface CreditSettings {
  readonly flushIntervalMs: number;
  readonly nodeTimeoutMs: number;
  /** The smallest lease, nano-USD. */
  readonly minSliceN: number;
  /** The price of the cheapest call, nano-USD: an account with less has run out. */
  readonly smallestN: number;
  /** A wallet unused for this long is returned. */
  readonly idleMs: number;
  /** Wallets in memory; beyond, accounts read "unreachable" until some wallets are returned. */
  readonly maxWallets: number;
}

/** The bounds that are no setting. */
export const CREDIT_BOUNDS = { idleMs: 60_000, maxWallets: 100_000 } as const;

/** What all of credit works with. */
export interface CreditContext {
  readonly store: Store;
  /** Runs the transactions of credit. */
  readonly transactions: CreditStore;
  readonly runtime: Runtime;
  readonly node: NodeIdentity;
  /** What the row of this node has of this process, by which it knows its own row again. */
  readonly processId: string;
  readonly settings: CreditSettings;
  /** The clock that nodes agree on, in milliseconds since the epoch. */
  readonly agreedMs: () => number;
  /** Receives failures in the background, and reports of lost usage. */
  readonly onError: (error: unknown) => void;
}
