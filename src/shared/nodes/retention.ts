// Removes rows that no process needs any more: changes that all have read, nodes that ended, and
// limits that nobody uses. Every service on a store does this, also one without a cluster: it
// writes such rows all the same.
import type { Runtime } from "../../runtime.ts";
import { removeOldChanges } from "../changes/change-log.ts";
import { removeOldQuotas } from "../leases/stored-quotas.ts";
import { removeOldShares } from "../leases/stored-shares.ts";
import { removeOldLimits } from "../leases/stored-tokens.ts";
import type { Store } from "../store/store.ts";
import { type JobClaims, repeatJobs } from "./job-claims.ts";
import { removeOldReports } from "./node-reports.ts";
import { forgetNodes } from "./node-rows.ts";
import { removeExpiredFilters } from "./stored-filters.ts";

/** What is swept with. */
interface SweepParts {
  readonly store: Store;
  readonly runtime: Runtime;
  readonly claims: JobClaims;
  /** What else is swept: each removes a bounded number of rows; true = there may be more. */
  readonly further: readonly ((store: Store) => Promise<boolean>)[];
  readonly onError: (error: unknown) => void;
}

/** From the start to the first sweep, and from one to the next. */
const SWEEP_MS = 600_000;
/** Nodes that ended longer ago than this are forgotten. */
const FORGOTTEN_MS = 7 * 86_400_000;
/** Statements of one sweep for one table; each removes a bounded number of rows. */
const MAX_STEPS = 1_000;

/** Sweeps again and again, on one process of several; the returned function ends that. */
export function startRetention(parts: SweepParts): () => Promise<void> {
  const { store, runtime, claims, further, onError } = parts;
  let isClosed = false;
  const steps = [
    () => removeOldChanges(store),
    () => removeOldLimits(store),
    () => removeOldShares(store),
    () => removeOldQuotas(store),
    () => removeExpiredFilters(store),
    () => forgetNodes(store, FORGOTTEN_MS),
    () => removeOldReports(store),
    ...further.map((remove) => () => remove(store)),
  ];
  async function run(): Promise<void> {
    for (const step of steps) {
      let mayBeMore = true;
      for (let left = MAX_STEPS; mayBeMore && left > 0 && !isClosed; left--)
        mayBeMore = await step();
    }
  }
  const job = { name: "retention", everyMs: SWEEP_MS, run };
  const end = repeatJobs({ runtime, checkEveryMs: SWEEP_MS, claims, onError }, [job]);
  return () => {
    isClosed = true;
    return end();
  };
}
