// Decides which worker serves a new connection. All workers accept from one socket, and the kernel
// gives a connection to any worker that is awake; a worker with clearly more connections than
// another one passes new ones on to it. This is rare, because passing on costs a few hundred
// microseconds and accepting costs ten. Knows no socket.
import type { Bus, Topic, WorkerId } from "../../core/workers/bus.ts";
import type { Runtime } from "../../runtime.ts";

/** Assigns new connections to workers, and counts those served here. */
export interface ConnectionSharing {
  /** The worker that is to serve a new connection; null = this one. */
  otherFor(): WorkerId | null;
  /** Counts a connection served here; call the returned function once, at its end. */
  opened(): () => void;
  /** Number of connections served here. */
  readonly count: number;
}

/** Smaller differences, or less than a share of the own number, are ignored. */
const SLACK = 4;
const SLACK_SHARE = 0.25;
/** Limit on passed connections: the burst, and its refill per second. */
const BURST = 512;
const PER_SECOND = 50;
/**
 * Shortest interval between announcements of the own number, and the smallest change announced.
 */
const TELL_MS = 10;
const TELL_CHANGE = 2;

const CONNECTIONS: Topic<number> = { name: "connections" };

/** Creates the sharing with other workers on the bus. */
export function createConnectionSharing(
  bus: Bus,
  runtime: Pick<Runtime, "now" | "after">,
): ConnectionSharing {
  /** Connections of the other workers, as last announced. */
  const others = new Map<WorkerId, number>();
  let count = 0;
  let toldCount = 0;
  let isTelling = false;
  let tokens = BURST;
  let tokensAtMs = runtime.now();

  function tell(): void {
    if (Math.abs(count - toldCount) < TELL_CHANGE) return;
    if (isTelling) return;
    toldCount = count;
    bus.publish(CONNECTIONS, count);
    isTelling = true;
    runtime.after(TELL_MS, () => {
      isTelling = false;
      tell();
    });
  }

  function mayPass(): boolean {
    const nowMs = runtime.now();
    tokens = Math.min(BURST, tokens + ((nowMs - tokensAtMs) / 1_000) * PER_SECOND);
    tokensAtMs = nowMs;
    if (tokens < 1) return false;
    tokens -= 1;
    return true;
  }

  function leastLoaded(): WorkerId | null {
    let least: WorkerId | null = null;
    for (const id of bus.workers())
      if (id !== bus.self && (least === null || loadOf(id) < loadOf(least))) least = id;
    return least;
  }

  const loadOf = (id: WorkerId): number => others.get(id) ?? 0;
  bus.subscribe(CONNECTIONS, (n, from) => void others.set(from, n));
  bus.onWorkers(() => {
    for (const id of [...others.keys()]) if (!bus.workers().includes(id)) others.delete(id);
    // A worker that has just started has heard no announcements yet.
    if (count > 0) bus.publish(CONNECTIONS, count);
  });
  return {
    get count() {
      return count;
    },
    otherFor() {
      const id = leastLoaded();
      if (id === null || count - loadOf(id) < SLACK + count * SLACK_SHARE) return null;
      if (!mayPass()) return null;
      others.set(id, loadOf(id) + 1);
      return id;
    },
    opened() {
      count++;
      tell();
      return () => {
        count--;
        tell();
      };
    },
  };
}
