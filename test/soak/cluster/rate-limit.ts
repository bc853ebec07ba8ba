// An account that asks for far more than its rate at all nodes together, and how much of it was
// served.
import { setTimeout as sleep } from "node:timers/promises";
import type { NodeProcess } from "./node-process.ts";
import { PUBLIC_RATE } from "./site.ts";
import type { CallRecord, SpendingAccount } from "./traffic.ts";

/** What was served within the limit. */
export interface RateFindings {
  /** Calls that were answered. One whose answer was lost may have been refused. */
  readonly served: number;
  /** The most that the limit allows in this time. */
  readonly allowed: number;
  /** Calls that were refused for the limit; 0 = too few were sent to say anything. */
  readonly refused: number;
}

/** How far more may be served than the limit says. */
const TOLERANCE = 1.05;
/** Nodes tell each other four times a second what they let through. */
const EXCHANGE_S = 0.25;
/** Until the burst of a fresh account, and what nodes give before they exchange, is used up. */
const WARM_MS = 2_500;
const MEASURED_MS = 3_000;
const CALLERS_PER_NODE = 2;
const PAUSE_MS = 10;

/** Calls at every node, and counts what is served once the limit has been reached. */
export async function tryRateLimit(
  record: CallRecord,
  account: SpendingAccount,
  nodes: readonly NodeProcess[],
): Promise<RateFindings> {
  const fromMs = performance.now() + WARM_MS;
  const toMs = fromMs + MEASURED_MS;
  let served = 0;
  let refused = 0;
  const asking = nodes.flatMap((node) => Array.from({ length: CALLERS_PER_NODE }, () => node));
  await Promise.all(
    asking.map(async (node) => {
      while (performance.now() < toMs) {
        const sentMs = performance.now();
        const result = await record.call(node, account, "profile/public/ethereum");
        if (sentMs >= fromMs) {
          if (result.kind === "answered") served++;
          else if (result.kind === "refused" && result.code === "rate_limit_exceeded") refused++;
        }
        await sleep(PAUSE_MS);
      }
    }),
  );
  const measuredS = (performance.now() - fromMs) / 1_000;
  const allowed = Math.ceil(PUBLIC_RATE.per_second * (measuredS * TOLERANCE + EXCHANGE_S));
  return { served, allowed, refused };
}
