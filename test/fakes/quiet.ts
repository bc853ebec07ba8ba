// When a store is quiet: nobody waits for its database. A database takes real time; simulated time
// that passed meanwhile would make every bound of the simulated world depend on how busy the
// machine is.
import { Pool } from "pg";

const pools = new Set<Pool>();
// The only place that knows who waits is the pool, and a store keeps its own to itself.
Pool.prototype.connect = new Proxy(Pool.prototype.connect, {
  apply(connect, pool, args) {
    pools.add(pool);
    return Reflect.apply(connect, pool, args);
  },
});

/**
 * A statement that waits for longer than this waits for the simulated world, not for the database.
 */
const MOST_MS = 5_000;
/** A listener that heard an answer may yield before the next statement. */
const IN_A_ROW = 2;

/**
 * Comes back when no statement is under way on any store of this process and what the answers led
 * to has run. Lets others run once at least.
 */
export async function quiet(): Promise<void> {
  const deadline = performance.now() + MOST_MS;
  for (let idle = 0; idle < IN_A_ROW && performance.now() < deadline; ) {
    await new Promise(setImmediate);
    idle = isBusy() ? 0 : idle + 1;
    if (idle === 0) await new Promise((resolve) => setTimeout(resolve, 0));
  }
}

function isBusy(): boolean {
  for (const { waitingCount, totalCount, idleCount } of pools)
    if (waitingCount + totalCount > idleCount) return true;
  return false;
}
