// Builds the parts that keep the health of providers current: probes and new heads, for this
// process alone or shared with other workers.
import type { Consistency, Provider } from "../core/provider/profile.ts";
import type { Head } from "../core/stream/chain-event.ts";
import type { Bus } from "../core/workers/bus.ts";
import type { Runtime } from "../runtime.ts";
import type { AcceptedTransactions } from "../upstream/engine/accepted-transactions.ts";
import { ViewExchange } from "../upstream/engine/view-exchange.ts";
import { HeadWatch } from "../upstream/health/head-watch.ts";
import { Prober } from "../upstream/health/prober.ts";
import { SharedHealth } from "../upstream/health/shared-health.ts";
import type { Tracker } from "../upstream/health/tracker.ts";
import type { ProfileRegistry } from "../upstream/registry/profile-registry.ts";
import type { Subscriptions } from "../upstream/stream/subscriptions.ts";
import type { TimerWheel } from "../upstream/timer-wheel.ts";
import type { Sockets, Upstream } from "../upstream/transport.ts";

export interface HealthSideParts {
  readonly runtime: Runtime;
  readonly timerWheel: TimerWheel;
  readonly upstreams: { readonly http: Upstream; readonly ws: Upstream & Sockets };
  readonly registry: ProfileRegistry;
  /** Which view callers get where a profile does not say. */
  readonly consistency: () => Consistency;
  readonly subscriptions: Pick<Subscriptions, "headSeen">;
  readonly accepted: AcceptedTransactions;
}

/** Watches the providers of trackers. */
export interface HealthSide {
  readonly prober: Pick<Prober, "watch">;
  readonly headWatch: Pick<HeadWatch, "watch">;
  /** What the processes of the service tell each other of their view of the chain. */
  readonly viewExchange: Pick<ViewExchange, "join">;
  close(): void;
}

/** Creates them with nothing to watch yet; `bus` null = there are no other workers. */
export function createHealthSide(parts: HealthSideParts, bus: Bus | null): HealthSide {
  const { runtime, timerWheel, upstreams, consistency, subscriptions, accepted } = parts;
  const trackersByKey = () => parts.registry.trackersByKey();
  const common = { runtime, timerWheel, consistency };
  const headSeen = (tracker: Tracker, provider: Provider, head: Head): void =>
    subscriptions.headSeen(tracker, provider, head);
  const viewExchange = new ViewExchange({ runtime, accepted, trackersByKey, bus });
  if (bus === null) {
    const prober = new Prober({ ...common, upstreams, finality: true });
    const headWatch = new HeadWatch({ ...common, sockets: upstreams.ws, headSeen });
    const close = (): void => closeAll(viewExchange, prober, headWatch);
    return { prober: withExchange(prober, viewExchange), headWatch, viewExchange, close };
  }
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
    onListening: (tracker, provider, listening) => shared?.listening(tracker, provider, listening),
  });
  shared = new SharedHealth({ bus, runtime, prober, headWatch, headSeen, trackersByKey });
  const { close } = shared;
  return {
    prober: withExchange(shared.prober, viewExchange),
    headWatch: shared.headWatch,
    viewExchange,
    close() {
      close.call(shared);
      closeAll(viewExchange, prober, headWatch);
    },
  };
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

function closeAll(...parts: readonly { close(): void }[]): void {
  for (const part of parts) part.close();
}
