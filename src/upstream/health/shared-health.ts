// The health of providers in a service of several workers: for each provider set one worker probes
// and listens to heads, and tells the others; each tells what its own calls have found. Every
// worker keeps its own trackers and decides alone. Never used with one worker.
import type { Channel } from "../../core/provider/attempt.ts";
import { NEVER_MS } from "../../core/provider/health.ts";
import type { Provider } from "../../core/provider/profile.ts";
import { type Head, readHead } from "../../core/stream/chain-event.ts";
import type { Bus, WorkerId } from "../../core/workers/bus.ts";
import { ownerAmong } from "../../core/workers/rendezvous.ts";
import type { Runtime } from "../../runtime.ts";
import type { HeadWatch } from "./head-watch.ts";
import {
  FINALIZED,
  HASH_READS,
  HEADS,
  type HeadMessage,
  HINTS,
  LISTENING,
  MAX_HEAD_BYTES,
  OUTAGES,
  PROBES,
  type ProbeMessage,
  SAFE,
  SERVED,
  STATES,
  type StateMessage,
} from "./health-messages.ts";
import { HintLimit } from "./hint-limit.ts";
import type { Prober } from "./prober.ts";
import type { HealthChange, Observation, Probe } from "./provider-records.ts";
import type { Tracker } from "./tracker.ts";

/** What sharing works with. */
export interface SharedHealthParts {
  readonly bus: Bus;
  readonly runtime: Runtime;
  /** The trackers that this worker serves now, by profile id and chain name. */
  readonly trackersByKey: () => ReadonlyMap<string, Tracker>;
  readonly prober: Prober;
  readonly headWatch: HeadWatch;
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

/** A set that this worker serves. */
interface SharedSet {
  readonly key: string;
  readonly tracker: Tracker;
  /** Null = not known yet. */
  owner: WorkerId | null;
  /** For how long the owner was not heard of, counted in whole `STATE_MS`. */
  unheardMs: number;
  /** Workers that were passed over as owners, until they are heard of. */
  readonly unheard: Set<WorkerId>;
  /** Last probes by channel, and providers that are listened to, as the others were told. */
  readonly probes: Map<string, { readonly message: ProbeMessage; readonly atMs: number }>;
  readonly listening: Set<string>;
  readonly detach: () => void;
  cancelOutage: (() => void) | null;
}

/** Shares health between workers. */
export class SharedHealth {
  /** In place of the prober: probes the sets that belong to this worker. */
  readonly prober: Pick<Prober, "watch">;
  /** In place of the watch over heads. */
  readonly headWatch: Pick<HeadWatch, "watch">;
  readonly #parts: SharedHealthParts;
  readonly #stops: readonly (() => void)[];
  /** Keys that other workers serve. */
  readonly #servedBy = new Map<WorkerId, Set<string>>();
  readonly #limit = new HintLimit();
  #sets: ReadonlyMap<string, SharedSet> = new Map();
  #byTracker: ReadonlyMap<Tracker, SharedSet> = new Map();
  #cancelSettle: (() => void) | null = null;
  #cancelState: () => void;

  constructor(parts: SharedHealthParts) {
    this.#parts = parts;
    this.prober = { watch: () => this.#watch() };
    // Both are told together, by the prober's half.
    this.headWatch = { watch() {} };
    const { bus } = parts;
    this.#stops = [
      bus.onWorkers(() => this.#workersChanged()),
      bus.subscribe(SERVED, ({ whole, added, removed }, from) => {
        const keys = whole ? new Set<string>() : (this.#servedBy.get(from) ?? new Set<string>());
        for (const key of added) if (keys.size < MAX_SETS) keys.add(key);
        for (const key of removed) keys.delete(key);
        this.#servedBy.set(from, keys);
        for (const key of added) {
          const shared = this.#sets.get(key);
          if (shared !== undefined && this.#isOurs(shared)) this.#tellHashReads(shared);
        }
        this.#settleSoon();
      }),
      bus.subscribe(STATES, (state, from) => this.#hearState(state, from)),
      bus.subscribe(PROBES, (message, from) => {
        this.#heardOf(message.set, from);
        this.#hearProbe(message);
      }),
      bus.subscribe(HEADS, (message, from) => {
        this.#heardOf(message.set, from);
        this.#hearHead(message);
      }),
      bus.subscribe(FINALIZED, ({ set, provider, height }) =>
        this.#of(set, provider, ({ tracker }, known) =>
          tracker.recordNamed(known, "finalized", height),
        ),
      ),
      bus.subscribe(SAFE, ({ set, provider, height }) =>
        this.#of(set, provider, ({ tracker }, known) => tracker.recordNamed(known, "safe", height)),
      ),
      bus.subscribe(HASH_READS, ({ set, provider, served }) =>
        this.#of(set, provider, ({ tracker }, known) => tracker.recordHashReads(known, served)),
      ),
      bus.subscribe(LISTENING, ({ set, provider, listening }) =>
        this.#of(set, provider, ({ tracker }, known) => tracker.listen(known, listening)),
      ),
      bus.subscribe(HINTS, ({ set, provider, transport, hint }) =>
        this.#of(set, provider, ({ tracker }, known) => tracker.recordHint(known, transport, hint)),
      ),
      bus.subscribe(OUTAGES, (set) => {
        const shared = this.#sets.get(set);
        if (shared !== undefined && this.#isOurs(shared)) parts.prober.hurry(shared.tracker);
      }),
    ];
    this.#cancelState = parts.runtime.after(STATE_MS, () => this.#tellState());
  }

  /** Tells the others of a probe of ours. */
  probed(tracker: Tracker, { provider, transport, latencyMs, result }: Probe): void {
    const shared = this.#byTracker.get(tracker);
    if (shared === undefined) return;
    const { key: set, probes } = shared;
    const message = { set, provider: provider.id, transport, latencyMs, result, ageMs: 0 };
    probes.set(`${transport} ${provider.id}`, { message, atMs: this.#parts.runtime.now() });
    this.#parts.bus.publish(PROBES, message);
  }

  /** Tells the others of a head that was pushed to us. */
  headSeen(tracker: Tracker, { id: provider }: Provider, { number: height, raw }: Head): void {
    const set = this.#byTracker.get(tracker)?.key;
    if (set === undefined || !this.#limit.head(set, this.#parts.runtime.now())) return;
    const isLong = raw.length > MAX_HEAD_BYTES;
    this.#parts.bus.publish(HEADS, { set, provider, height, raw: isLong ? null : raw });
  }

  /** Tells the others what a provider has reported to us as final. */
  finalized(tracker: Tracker, { id: provider }: Provider, height: number): void {
    const set = this.#byTracker.get(tracker)?.key;
    if (set !== undefined) this.#parts.bus.publish(FINALIZED, { set, provider, height });
  }

  /** The same of a safe height. */
  safe(tracker: Tracker, { id: provider }: Provider, height: number): void {
    const set = this.#byTracker.get(tracker)?.key;
    if (set !== undefined) this.#parts.bus.publish(SAFE, { set, provider, height });
  }

  /** Tells the others whether a provider reads state by the hash of a block. */
  hashReads(tracker: Tracker, { id: provider }: Provider, served: boolean): void {
    const set = this.#byTracker.get(tracker)?.key;
    if (set !== undefined) this.#parts.bus.publish(HASH_READS, { set, provider, served });
  }

  listening(tracker: Tracker, { id: provider }: Provider, listening: boolean): void {
    const shared = this.#byTracker.get(tracker);
    if (shared === undefined || shared.listening.has(provider) === listening) return;
    if (listening) shared.listening.add(provider);
    else shared.listening.delete(provider);
    this.#parts.bus.publish(LISTENING, { set: shared.key, provider, listening });
  }

  close(): void {
    for (const stop of this.#stops) stop();
    this.#cancelSettle?.();
    this.#cancelState();
    for (const shared of this.#sets.values()) this.#leave(shared);
    this.#sets = new Map();
    this.#byTracker = new Map();
  }

  /** Takes over what the registry serves now. */
  #watch(): void {
    const before = this.#sets;
    const now = this.#parts.trackersByKey();
    this.#sets = new Map(
      [...now].map(([key, tracker]) => {
        const known = before.get(key);
        return [key, known?.tracker === tracker ? known : this.#join(key, tracker)];
      }),
    );
    this.#byTracker = new Map([...this.#sets.values()].map((shared) => [shared.tracker, shared]));
    for (const [key, shared] of before) if (this.#sets.get(key) !== shared) this.#leave(shared);
    const added = [...now.keys()].filter((key) => !before.has(key));
    const removed = [...before.keys()].filter((key) => !now.has(key));
    if (added.length + removed.length > 0)
      this.#parts.bus.publish(SERVED, { whole: false, added, removed });
    this.#settle();
  }

  #join(key: string, tracker: Tracker): SharedSet {
    const detach = tracker.attend({
      changed: (change) => this.#changed(key, change),
      observed: (channel, observation) => this.#observed(key, channel, observation),
      outage: () => this.#outage(shared),
    });
    const shared: SharedSet = {
      key,
      tracker,
      owner: null,
      unheardMs: 0,
      unheard: new Set(),
      probes: new Map(),
      listening: new Set(),
      detach,
      cancelOutage: null,
    };
    return shared;
  }

  #leave({ detach, cancelOutage }: SharedSet): void {
    detach();
    cancelOutage?.();
  }

  #changed(set: string, { provider: { id: provider }, transport, event }: HealthChange): void {
    if (event !== "circuit_opened" && event !== "circuit_closed") return;
    const kind = event === "circuit_opened" ? "opened" : "closed";
    this.#parts.bus.publish(HINTS, { set, provider, transport, hint: { kind } });
  }

  #observed(set: string, { provider, transport }: Channel, observation: Observation): void {
    const { effect } = observation;
    const what = effect.kind === "learn" ? effect.what : effect.kind;
    const about = `${set} ${provider.id} ${transport} ${what} ${observation.methodName}`;
    if (!this.#limit.hint(about, this.#parts.runtime.now())) return;
    const hint = { kind: "observed", ...observation } as const;
    this.#parts.bus.publish(HINTS, { set, provider: provider.id, transport, hint });
  }

  /** Says every second that nobody is usable here, until somebody is. */
  #outage(shared: SharedSet): void {
    if (shared.cancelOutage !== null || this.#isOurs(shared)) return;
    const tell = (): void => {
      shared.cancelOutage = null;
      if (shared.tracker.isUsable() || this.#isOurs(shared)) return;
      this.#parts.bus.publish(OUTAGES, shared.key);
      shared.cancelOutage = this.#parts.runtime.after(OUTAGE_MS, tell);
    };
    tell();
  }

  #hearProbe({ set, provider, transport, latencyMs, result, ageMs }: ProbeMessage): void {
    this.#of(set, provider, ({ tracker }, known) => {
      // One that is told again, since another worker has started, counts once.
      if (ageMs > 0 && tracker.probedAtMs(known, transport) !== NEVER_MS) return;
      tracker.recordProbe({ provider: known, transport, latencyMs, result });
    });
  }

  #hearHead({ set, provider, height, raw }: HeadMessage): void {
    this.#of(set, provider, ({ tracker }, known) => {
      const head = raw === null ? null : readHead(Buffer.from(raw));
      tracker.recordHead(known, height, head ?? undefined);
      if (head !== null) this.#parts.headSeen(tracker, known, head);
    });
  }

  /** Runs with the provider that a message names, if it is served here. */
  #of(set: string, id: string, run: (shared: SharedSet, provider: Provider) => void): void {
    const shared = this.#sets.get(set);
    const provider = shared?.tracker.set.providers.find((known) => known.id === id);
    if (shared !== undefined && provider !== undefined) run(shared, provider);
  }

  #workersChanged(): void {
    const { bus } = this.#parts;
    const living = new Set(bus.workers());
    for (const worker of this.#servedBy.keys())
      if (!living.has(worker)) this.#servedBy.delete(worker);
    bus.publish(SERVED, { whole: true, added: [...this.#sets.keys()], removed: [] });
    for (const shared of this.#sets.values()) if (this.#isOurs(shared)) this.#tellAll(shared);
    this.#settleSoon();
  }

  /** Tells everything anew, and passes over owners that were not heard of for too long. */
  #tellState(): void {
    this.#cancelState = this.#parts.runtime.after(STATE_MS, () => this.#tellState());
    const sets = [...this.#sets.values()];
    const ours = sets.filter((shared) => this.#isOurs(shared));
    this.#parts.bus.publish(STATES, {
      served: sets.map(({ key }) => key),
      owned: ours.map(({ key }) => key),
      listening: ours.flatMap(({ key, listening }) =>
        [...listening].map((provider) => [key, provider] as const),
      ),
    });
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
    const before = this.#servedBy.get(from);
    this.#servedBy.set(from, new Set(served));
    for (const key of owned) this.#heardOf(key, from);
    // Owners first: a new owner is listened to for what it tells here.
    if (before?.size !== served.length || !served.every((key) => before.has(key))) this.#settle();
    const heard = new Set(listening.map(([set, provider]) => `${set} ${provider}`));
    for (const key of owned) {
      const shared = this.#sets.get(key);
      if (shared?.owner !== from) continue;
      for (const provider of shared.tracker.set.providers)
        shared.tracker.listen(provider, heard.has(`${key} ${provider.id}`));
    }
  }

  /** Records that a worker told something of a set that it probes. */
  #heardOf(key: string, from: WorkerId): void {
    const shared = this.#sets.get(key);
    if (shared === undefined) return;
    if (shared.owner === from) shared.unheardMs = 0;
    if (shared.unheard.delete(from)) this.#settle();
  }

  /** Tells what a worker that has just started needs to know. */
  #tellAll({ key: set, probes, listening }: SharedSet): void {
    const { bus, runtime } = this.#parts;
    for (const { message, atMs } of probes.values()) {
      const ageMs = runtime.now() - atMs;
      if (ageMs < KEPT_MS) bus.publish(PROBES, { ...message, ageMs });
    }
    for (const provider of listening) bus.publish(LISTENING, { set, provider, listening: true });
  }

  /** Providers are asked once, so a worker that serves the set later would not hear of it. */
  #tellHashReads({ tracker }: SharedSet): void {
    for (const provider of tracker.set.providers) {
      const known = tracker.hashReads(provider);
      if (known !== null) this.hashReads(tracker, provider, known.served);
    }
  }

  #settleSoon(): void {
    this.#cancelSettle ??= this.#parts.runtime.after(SETTLE_MS, () => this.#settle());
  }

  /** Finds the owners, and begins or ends probing and listening where they changed. */
  #settle(): void {
    this.#cancelSettle?.();
    this.#cancelSettle = null;
    const { prober, headWatch } = this.#parts;
    for (const shared of this.#sets.values()) {
      const owner = this.#ownerOf(shared);
      if (owner === shared.owner) continue;
      shared.owner = owner;
      shared.unheardMs = 0;
      shared.probes.clear();
      shared.listening.clear();
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
    prober.watch(trackers, (tracker) => ours.has(tracker));
    headWatch.watch([...ours]);
  }

  /** One of the serving workers that have the set; null = none has. */
  #ownerOf({ key, unheard }: SharedSet): WorkerId | null {
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

/** Most sets of one other worker that are remembered. */
const MAX_SETS = 10_000;
