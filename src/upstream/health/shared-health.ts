// The health of providers in a service of several workers: for each provider set one worker probes
// and listens to heads, and tells the others; each tells what its own calls have found. Every
// worker keeps its own trackers and decides alone. Never used with one worker.
import type { Channel } from "../../core/provider/attempt.ts";
import { NEVER_MS } from "../../core/provider/health.ts";
import type { Provider } from "../../core/provider/profile.ts";
import type { Head } from "../../core/stream/chain-event.ts";
import type { Bus, WorkerId } from "../../core/workers/bus.ts";
import { ownerAmong } from "../../core/workers/rendezvous.ts";
import type { Runtime } from "../../runtime.ts";
import { REPORT_EVERY_MS } from "./background-queries.ts";
import {
  FACTS,
  FactLimit,
  type FactMessage,
  type HealthFact,
  OUTAGES,
  SERVED,
  STATES,
  type StateMessage,
} from "./health-messages.ts";
import type { Prober } from "./prober.ts";
import type { HealthHint } from "./provider-records.ts";
import type { Tracker } from "./tracker.ts";

/** What sharing works with. */
export interface SharedHealthParts {
  readonly bus: Bus;
  readonly runtime: Runtime;
  /** The trackers that this worker serves now, by profile id and chain name. */
  readonly trackersByKey: () => ReadonlyMap<string, Tracker>;
  readonly prober: Prober;
  /** Hears the heads that another worker has heard. */
  readonly headSeen: (tracker: Tracker, provider: Provider, head: Head) => void;
}

/** After workers or profiles change, owners are found anew once that has come to rest. */
const SETTLE_MS = 100;
/** How often a worker says that it finds no provider usable. */
const OUTAGE_MS = 1_000;
/** A probe older than this says nothing to a worker that has just started. */
const KEPT_MS = 30_000;

/** How often a worker tells everything anew. */
const STATE_MS = 10_000;
/** Probe intervals, or such times, after which an owner that was not heard of is passed over. */
const UNHEARD = 3;

/** A fact that was told of a probe. */
type ProbeMessage = FactMessage & { readonly fact: { readonly kind: "probe" } };

/** A set that this worker serves. */
class SharedSet {
  readonly tracker: Tracker;
  /** Null = not known yet. */
  owner: WorkerId | null = null;
  /** For how long the owner was not heard of, counted in whole `STATE_MS`. */
  unheardMs = 0;
  /** Workers that were passed over as owners, until they are heard of. */
  readonly unheard = new Set<WorkerId>();
  /** Last probes by channel, as the others were told. */
  readonly probes = new Map<string, { readonly message: ProbeMessage; readonly atMs: number }>();
  detach = (): void => {};
  cancelOutage: (() => void) | null = null;

  constructor(tracker: Tracker) {
    this.tracker = tracker;
  }
}

/** Shares health between workers. */
export class SharedHealth {
  readonly #parts: SharedHealthParts;
  readonly #stops: readonly (() => void)[];
  /** Keys that other workers serve. */
  readonly #servedBy = new Map<WorkerId, ReadonlySet<string>>();
  readonly #limit = new FactLimit();
  #sets: ReadonlyMap<string, SharedSet> = new Map();
  #cancelSettle: (() => void) | null = null;
  #cancelState: () => void;

  constructor(parts: SharedHealthParts) {
    this.#parts = parts;
    const { bus } = parts;
    this.#stops = [
      bus.onWorkers(() => this.#workersChanged()),
      bus.subscribe(SERVED, ({ added, removed }, from) => {
        const before = this.#servedBy.get(from) ?? new Set();
        this.#hearServed(from, before.union(new Set(added)).difference(new Set(removed)));
        this.#settleSoon();
      }),
      bus.subscribe(STATES, (state, from) => this.#hearState(state, from)),
      bus.subscribe(FACTS, (message, from) => this.#hear(message, from)),
      bus.subscribe(OUTAGES, (set) => {
        const shared = this.#sets.get(set);
        if (shared !== undefined && this.#isOurs(shared)) parts.prober.hurry(shared.tracker);
      }),
    ];
    this.#cancelState = parts.runtime.after(STATE_MS, () => this.#tellState());
  }

  /** Tells the others what was found out here. */
  tell(tracker: Tracker, { id: provider }: Provider, fact: HealthFact): void {
    const shared = this.#sets.get(tracker.key);
    if (shared?.tracker !== tracker) return;
    const message = { set: tracker.key, provider, fact };
    // Told again to workers that start later.
    if (fact.kind === "probe")
      shared.probes.set(`${fact.transport} ${provider}`, {
        message: { ...message, fact },
        atMs: this.#parts.runtime.now(),
      });
    this.#publish(message);
  }

  #publish(message: FactMessage): void {
    const fact = this.#limit.allowed(message, this.#parts.runtime.now());
    if (fact !== null) this.#parts.bus.publish(FACTS, { ...message, fact });
  }

  close(): void {
    for (const stop of this.#stops) stop();
    this.#cancelSettle?.();
    this.#cancelState();
    for (const shared of this.#sets.values()) this.#leave(shared);
    this.#sets = new Map();
  }

  /** Probes and listens to the sets that belong to this worker, of those that are served now. */
  watch(): void {
    const before = this.#sets;
    const now = this.#parts.trackersByKey();
    this.#sets = new Map(
      [...now].map(([key, tracker]) => {
        const known = before.get(key);
        return [key, known?.tracker === tracker ? known : this.#join(tracker)];
      }),
    );
    for (const [key, shared] of before) if (this.#sets.get(key) !== shared) this.#leave(shared);
    const added = [...now.keys()].filter((key) => !before.has(key));
    const removed = [...before.keys()].filter((key) => !now.has(key));
    if (added.length + removed.length > 0) this.#parts.bus.publish(SERVED, { added, removed });
    this.#settle();
  }

  #join(tracker: Tracker): SharedSet {
    const shared = new SharedSet(tracker);
    const hint = ({ provider: { id: provider }, transport }: Channel, what: HealthHint): void => {
      const fact = { kind: "hint", transport, hint: what } as const;
      this.#publish({ set: tracker.key, provider, fact });
    };
    shared.detach = tracker.attend({
      changed: ({ event, ...channel }) => {
        if (event === "circuit_opened") hint(channel, { kind: "opened" });
        if (event === "circuit_closed") hint(channel, { kind: "closed" });
      },
      observed: (channel, observation) => hint(channel, { kind: "observed", ...observation }),
      outage: () => this.#outage(shared),
    });
    return shared;
  }

  #leave({ detach, cancelOutage }: SharedSet): void {
    detach();
    cancelOutage?.();
  }

  /** Says every second that nobody is usable here, until somebody is. */
  #outage(shared: SharedSet): void {
    if (shared.cancelOutage !== null || this.#isOurs(shared)) return;
    const tell = (): void => {
      shared.cancelOutage = null;
      if (shared.tracker.isUsable() || this.#isOurs(shared)) return;
      this.#parts.bus.publish(OUTAGES, shared.tracker.key);
      shared.cancelOutage = this.#parts.runtime.after(OUTAGE_MS, tell);
    };
    tell();
  }

  /** Records what another worker found out, if the provider is served here. */
  #hear({ set, provider: id, fact }: FactMessage, from: WorkerId): void {
    if (fact.kind === "probe" || fact.kind === "head") this.#heardOf(set, from);
    const tracker = this.#sets.get(set)?.tracker;
    const provider = tracker?.set.providers.find((known) => known.id === id);
    if (tracker === undefined || provider === undefined) return;
    switch (fact.kind) {
      case "probe":
        // One that is told again, since another worker has started, counts once.
        if (
          fact.ageMs === 0 ||
          tracker.stateOf(provider)?.[fact.transport]?.probedAtMs === NEVER_MS
        )
          tracker.recordProbe({ ...fact, provider });
        return;
      case "head": {
        const { head, height } = fact;
        tracker.recordHead(provider, height, head ?? undefined);
        if (head !== null)
          this.#parts.headSeen(tracker, provider, { ...head, raw: Buffer.from(head.raw) });
        return;
      }
      case "named":
        return tracker.recordNamed(provider, fact.tag, fact.height);
      case "hash_reads":
        return tracker.recordHashReads(provider, fact.served);
      case "history":
        return tracker.recordHistory(provider, fact.reported, REPORT_EVERY_MS);
      case "listening":
        return tracker.listen(provider, fact.listening);
      case "hint":
        return tracker.recordHint(provider, fact.transport, fact.hint);
    }
  }

  #workersChanged(): void {
    const living = new Set(this.#parts.bus.workers());
    for (const worker of this.#servedBy.keys())
      if (!living.has(worker)) this.#servedBy.delete(worker);
    this.#tellServed();
    for (const shared of this.#sets.values()) if (this.#isOurs(shared)) this.#tellProbes(shared);
    this.#settleSoon();
  }

  #tellServed(): void {
    const ours = [...this.#sets].filter(([, shared]) => this.#isOurs(shared));
    this.#parts.bus.publish(STATES, {
      served: [...this.#sets.keys()],
      owned: ours.map(([key]) => key),
      listening: ours.flatMap(([key, { tracker }]) =>
        tracker.set.providers
          .filter((provider) => tracker.stateOf(provider)?.listening)
          .map(({ id }) => [key, id] as const),
      ),
    });
  }

  /** Tells everything anew, and passes over owners that were not heard of for too long. */
  #tellState(): void {
    this.#cancelState = this.#parts.runtime.after(STATE_MS, () => this.#tellState());
    this.#tellServed();
    const sets = this.#sets.values();
    for (const shared of sets) {
      const { owner, tracker } = shared;
      if (owner === null || this.#isOurs(shared)) continue;
      shared.unheardMs += STATE_MS;
      if (shared.unheardMs <= UNHEARD * Math.max(STATE_MS, tracker.set.probeIntervalMs)) continue;
      shared.unheard.add(owner);
      this.#settleSoon();
    }
  }

  #hearState({ served, owned, listening }: StateMessage, from: WorkerId): void {
    const isChanged = this.#hearServed(from, new Set(served));
    for (const key of owned) this.#heardOf(key, from);
    // Owners first: a new owner is listened to for what it tells here.
    if (isChanged) this.#settle();
    const heard = new Set(listening.map(([set, provider]) => `${set} ${provider}`));
    for (const key of owned) {
      const shared = this.#sets.get(key);
      if (shared?.owner !== from) continue;
      for (const provider of shared.tracker.set.providers)
        shared.tracker.listen(provider, heard.has(`${key} ${provider.id}`));
    }
  }

  /** Which sets another worker serves now. True = these are others than before. */
  #hearServed(from: WorkerId, keys: ReadonlySet<string>): boolean {
    const before = this.#servedBy.get(from) ?? new Set();
    this.#servedBy.set(from, keys);
    const added = keys.difference(before);
    for (const key of added) {
      const shared = this.#sets.get(key);
      if (shared === undefined || !this.#isOurs(shared)) continue;
      this.#tellRareFacts(shared);
      // Chains open while workers run: a worker that opens one waits for a good probe.
      this.#tellProbes(shared);
    }
    return added.size > 0 || keys.size < before.size;
  }

  /** Records that a worker told something of a set that it probes. */
  #heardOf(key: string, from: WorkerId): void {
    const shared = this.#sets.get(key);
    if (shared === undefined) return;
    if (shared.owner === from) shared.unheardMs = 0;
    if (shared.unheard.delete(from)) this.#settle();
  }

  /** Tells what a worker that has just started needs to know. */
  #tellProbes({ probes }: SharedSet): void {
    const { bus, runtime } = this.#parts;
    for (const { message, atMs } of probes.values()) {
      const ageMs = runtime.now() - atMs;
      if (ageMs < KEPT_MS) bus.publish(FACTS, { ...message, fact: { ...message.fact, ageMs } });
    }
  }

  /** Providers are asked rarely, so a worker that serves the set later would not hear of it. */
  #tellRareFacts({ tracker }: SharedSet): void {
    for (const provider of tracker.set.providers) {
      const state = tracker.stateOf(provider);
      const { takesHash: served = false, hashReadsAtMs = NEVER_MS, reported = null } = state ?? {};
      if (hashReadsAtMs !== NEVER_MS) this.tell(tracker, provider, { kind: "hash_reads", served });
      if (reported !== null) this.tell(tracker, provider, { kind: "history", reported });
    }
  }

  #settleSoon(): void {
    this.#cancelSettle ??= this.#parts.runtime.after(SETTLE_MS, () => this.#settle());
  }

  /** Finds the owners, and begins or ends probing and listening where they changed. */
  #settle(): void {
    this.#cancelSettle?.();
    this.#cancelSettle = null;
    for (const shared of this.#sets.values()) {
      const owner = this.#ownerOf(shared);
      if (owner === shared.owner) continue;
      shared.owner = owner;
      shared.unheardMs = 0;
      shared.probes.clear();
      // The new owner says what it listens to.
      for (const provider of shared.tracker.set.providers) shared.tracker.listen(provider, false);
      if (this.#isOurs(shared)) shared.cancelOutage?.();
      else if (!shared.tracker.isUsable()) this.#outage(shared);
    }
    const all = [...this.#sets.values()];
    const trackers = all.map((shared) => shared.tracker);
    const ours = new Set(
      all.filter((shared) => this.#isOurs(shared)).map(({ tracker }) => tracker),
    );
    this.#parts.prober.watch(trackers, (tracker) => ours.has(tracker));
  }

  /** One of the serving workers that have the set; null = none has. */
  #ownerOf({ tracker: { key }, unheard }: SharedSet): WorkerId | null {
    const { bus } = this.#parts;
    const having = bus
      .workers()
      .filter((id) =>
        id === bus.self
          ? this.#sets.has(key)
          : this.#servedBy.get(id)?.has(key) === true && !unheard.has(id),
      );
    return ownerAmong(having, key);
  }

  #isOurs({ owner }: SharedSet): boolean {
    return owner === this.#parts.bus.self;
  }
}
