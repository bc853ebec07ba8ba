// Keeps the health of providers current, by probes and new heads: for this process alone, or shared
// with other workers.
import type { Consistency, Provider } from "../core/provider/profile.ts";
import type { Head } from "../core/stream/chain-event.ts";
import type { Runtime } from "../runtime.ts";
import type { AcceptedTransactions } from "../upstream/engine/exchange/accepted-transactions.ts";
import { ViewExchange } from "../upstream/engine/exchange/view-exchange.ts";
import type { FactListener } from "../upstream/health/health-messages.ts";
import { Prober } from "../upstream/health/prober.ts";
import { SharedHealth } from "../upstream/health/shared-health.ts";
import type { Tracker } from "../upstream/health/tracker.ts";
import type { ProfileRegistry } from "../upstream/registry/profile-registry.ts";
import type { Subscriptions } from "../upstream/stream/subscriptions.ts";
import type { TimerWheel } from "../upstream/timer-wheel.ts";
import type { Sockets, Upstream } from "../upstream/transport.ts";
import type { ServiceParts } from "./service-parts.ts";

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
  /** Exchanges views of the chain with the other processes of the service. */
  readonly viewExchange: ViewExchange;
  readonly #prober: Prober;
  /** Null = there are no other workers. */
  readonly #shared: SharedHealth | null;

  constructor(parts: HealthUpdateParts, { bus, workers }: Pick<ServiceParts, "bus" | "workers">) {
    const { runtime, timerWheel, upstreams, consistency, subscriptions, accepted } = parts;
    const headSeen = (tracker: Tracker, provider: Provider, head: Head): void =>
      subscriptions.headSeen(tracker, provider, head);
    const trackersByKey = () => parts.registry.trackersByKey();
    const tell: FactListener = (tracker, provider, fact) => {
      if (fact.kind === "head" && fact.head !== null) headSeen(tracker, provider, fact.head);
      this.#shared?.tell(tracker, provider, fact);
    };
    const sockets = upstreams.ws;
    const common = { runtime, timerWheel, consistency, tell };
    const prober = new Prober({ ...common, upstreams, sockets, finality: true });
    this.#prober = prober;
    this.viewExchange = new ViewExchange({ runtime, accepted, trackersByKey, bus });
    this.#shared =
      workers === 1 ? null : new SharedHealth({ bus, runtime, prober, headSeen, trackersByKey });
  }

  /** Watches the providers of these trackers, which are those that are served now. */
  watch(trackers: readonly Tracker[]): void {
    if (this.#shared !== null) this.#shared.watch();
    else this.#prober.watch(trackers);
    this.viewExchange.watch();
  }

  close(): void {
    this.#shared?.close();
    this.viewExchange.close();
    this.#prober.close();
  }
}
