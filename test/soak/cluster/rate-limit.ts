// An account that asks for far more than its rate at all nodes together, and how much of it was
// served.
import { setTimeout as sleep } from "node:timers/promises";
import type { NodeProcess } from "./node-process.ts";
import { PUBLIC_RATE } from "./site.ts";
import type { CallRecord, SpendingAccount } from "./traffic.ts";

/** What was served within the limit. */
export interface RateFindings {
  readonly served: number;
  /** The most that the limit allows in this time. */
  readonly allowed: number;
  /** Calls that were refused for the limit; 0 = too few were sent to say anything. */
  readonly refused: number;
}

/** How far more may be served than the limit says: the nodes agree four times a second. */
const TOLERANCE = 1.05;
const CALLERS_PER_NODE = 2;
const PAUSE_MS = 10;

/** Calls at every node for a time. */
export async function tryRateLimit(
  record: CallRecord,
  account: SpendingAccount,
  { nodes, ms }: { readonly nodes: readonly NodeProcess[]; readonly ms: number },
): Promise<RateFindings> {
  const startedAtMs = performance.now();
  let served = 0;
  let refused = 0;
  const asking = nodes.flatMap((node) => Array.from({ length: CALLERS_PER_NODE }, () => node));
  await Promise.all(
    asking.map(async (node) => {
      while (performance.now() - startedAtMs < ms) {
        const result = await record.call(node, account, "profile/public/ethereum");
        if (result.kind === "answered" || result.kind === "unknown") served++;
        else if (result.kind === "refused" && result.code === "rate_limit_exceeded") refused++;
        await sleep(PAUSE_MS);
      }
    }),
  );
  const tookS = (performance.now() - startedAtMs) / 1_000;
  const allowed = Math.ceil(PUBLIC_RATE.burst + PUBLIC_RATE.per_second * tookS * TOLERANCE);
  return { served, allowed, refused };
}
