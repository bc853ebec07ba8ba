// Decides which worker serves a new connection. All workers accept from one socket, and the kernel
// gives a connection to any worker that is awake; a worker with clearly more connections than
// another one passes new ones on to it. This is rare, because passing on costs a few hundred
// microseconds and accepting costs ten. Knows no socket.
import { FULL_MS, type RateLimitSize, take } from "../../core/billing/gcra.ts";
import type { Bus, Topic, WorkerId } from "../../core/workers/bus.ts";
import type { Runtime } from "../../runtime.ts";

/** Smaller differences, or less than a share of the own number, are ignored. */
const SLACK = 4;
const SLACK_SHARE = 0.25;
/** Limit on passed connections: the burst, and its refill per second. */
const PASSED: RateLimitSize = { burst: 512, perSecond: 50 };
/**
 * Shortest interval between announcements of the own number, and the smallest change announced.
 */
const TELL_MS = 10;
const TELL_CHANGE = 2;

const CONNECTIONS: Topic<number> = { name: "connections" };

/** Assigns new connections to workers, and counts those served here. */
export class ConnectionSharing {
  readonly #bus: Bus;
  readonly #runtime: Pick<Runtime, "now" | "after">;
  /** Connections of the other workers, as last announced. */
  readonly #others = new Map<WorkerId, number>();
  #count = 0;
  #toldCount = 0;
  #isTelling = false;
  #passedFullAtMs = FULL_MS;

  constructor(bus: Bus, runtime: Pick<Runtime, "now" | "after">) {
    this.#bus = bus;
    this.#runtime = runtime;
    bus.subscribe(CONNECTIONS, (n, from) => void this.#others.set(from, n));
    bus.onWorkers(() => {
      for (const id of [...this.#others.keys()])
        if (!bus.workers().includes(id)) this.#others.delete(id);
      // A worker that has just started has heard no announcements yet.
      if (this.#count > 0) bus.publish(CONNECTIONS, this.#count);
    });
  }

  /** Number of connections served here. */
  get count(): number {
    return this.#count;
  }

  /** The worker that is to serve a new connection; null = this one. */
  otherFor(): WorkerId | null {
    const id = this.#leastLoaded();
    if (id === null || this.#count - this.#loadOf(id) < SLACK + this.#count * SLACK_SHARE)
      return null;
    if (!this.#mayPass()) return null;
    this.#others.set(id, this.#loadOf(id) + 1);
    return id;
  }

  /** Counts a connection served here; call the returned function once, at its end. */
  opened(): () => void {
    this.#count++;
    this.#tell();
    return () => {
      this.#count--;
      this.#tell();
    };
  }

  #tell(): void {
    if (Math.abs(this.#count - this.#toldCount) < TELL_CHANGE) return;
    if (this.#isTelling) return;
    this.#toldCount = this.#count;
    this.#bus.publish(CONNECTIONS, this.#count);
    this.#isTelling = true;
    this.#runtime.after(TELL_MS, () => {
      this.#isTelling = false;
      this.#tell();
    });
  }

  #mayPass(): boolean {
    const after = take(this.#passedFullAtMs, PASSED, this.#runtime.now());
    this.#passedFullAtMs = after ?? this.#passedFullAtMs;
    return after !== null;
  }

  #leastLoaded(): WorkerId | null {
    let least: WorkerId | null = null;
    for (const id of this.#bus.workers())
      if (id !== this.#bus.self && (least === null || this.#loadOf(id) < this.#loadOf(least)))
        least = id;
    return least;
  }

  #loadOf(id: WorkerId): number {
    return this.#others.get(id) ?? 0;
  }
}
