// Keeps the health of providers current, by probes and new heads: for this process alone, or shared
// with other workers.
import type { Consistency, Provider } from "../core/provider/profile.ts";
import type { Head } from "../core/stream/chain-event.ts";
import type { Bus } from "../core/workers/bus.ts";
import type { Runtime } from "../runtime.ts";
import type { AcceptedTransactions } from "../upstream/engine/exchange/accepted-transactions.ts";
import { ViewExchange } from "../upstream/engine/exchange/view-exchange.ts";
import { HeadWatch } from "../upstream/health/head-watch.ts";
import { Prober } from "../upstream/health/prober.ts";
import { SharedHealth } from "../upstream/health/shared-health.ts";
import type { Tracker } from "../upstream/health/tracker.ts";
import type { ProfileRegistry } from "../upstream/registry/profile-registry.ts";
import type { Subscriptions } from "../upstream/stream/subscriptions.ts";
import type { TimerWheel } from "../upstream/timer-wheel.ts";
import type { Sockets, Upstream } from "../upstream/transport.ts";

export interface HealthUpdateParts {
  readonly runtime: Runtime;
  readonly timerWheel: TimerWheel;
  readonly upstreams: { readonly http: Upstream; readonly ws: Upstream & Sockets };
  readonly registry: ProfileRegistry;
  /** Which view callers get where a profile does not say. */
  readonly consistency: () => Consistency;
  readonly subscriptions: Pick<Subscriptions, "headSeen">;
  readonly accepted: AcceptedTransactions;
}

/** Watches the providers of trackers. Has nothing to watch at its creation. */
export class HealthUpdates {
  readonly prober: Pick<Prober, "watch">;
  readonly headWatch: Pick<HeadWatch, "watch">;
  /** Exchanges views of the chain with the other processes of the service. */
  readonly viewExchange: ViewExchange;
  readonly #parts: readonly { close(): void }[];

  /** `bus` null = there are no other workers. */
  constructor(parts: HealthUpdateParts, bus: Bus | null) {
    const { runtime, timerWheel, upstreams, consistency, subscriptions, accepted } = parts;
    const headSeen = (tracker: Tracker, provider: Provider, head: Head): void =>
      subscriptions.headSeen(tracker, provider, head);
    const trackersByKey = () => parts.registry.trackersByKey();
    const common = { runtime, timerWheel, consistency };
    let shared: SharedHealth | null = null;
    const prober = new Prober({
      ...common,
      upstreams,
      finality: true,
      onFinalized: (tracker, provider, height) => shared?.finalized(tracker, provider, height),
      onSafe: (tracker, provider, height) => shared?.safe(tracker, provider, height),
      onHashReads: (tracker, provider, served) => shared?.hashReads(tracker, provider, served),
      onProbe: (tracker, probe) => shared?.probed(tracker, probe),
    });
    const headWatch = new HeadWatch({
      ...common,
      sockets: upstreams.ws,
      headSeen(tracker, provider, head) {
        headSeen(tracker, provider, head);
        shared?.headSeen(tracker, provider, head);
      },
      onListening: (...args) => shared?.listening(...args),
    });
    const viewExchange = new ViewExchange({ runtime, accepted, trackersByKey, bus });
    this.#parts = [viewExchange, prober, headWatch];
    if (bus !== null) {
      shared = new SharedHealth({ bus, runtime, prober, headWatch, headSeen, trackersByKey });
      this.#parts = [shared, ...this.#parts];
    }
    this.prober = withExchange(shared?.prober ?? prober, viewExchange);
    this.headWatch = shared?.headWatch ?? headWatch;
    this.viewExchange = viewExchange;
  }

  close(): void {
    for (const part of this.#parts) part.close();
  }
}

/** The trackers that are probed are those whose view is shared. */
function withExchange(
  prober: Pick<Prober, "watch">,
  exchange: ViewExchange,
): Pick<Prober, "watch"> {
  return {
    watch(...trackers) {
      prober.watch(...trackers);
      exchange.watch();
    },
  };
}
