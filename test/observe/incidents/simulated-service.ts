// Four providers under traffic in simulated time, with real trackers, circuits, counts and clock of
// history; each provider does what a test tells it. Judged by a real book.
import type { Effect } from "../../../src/core/provider/attempt.ts";
import type { Provider } from "../../../src/core/provider/profile.ts";
import { NO_BLOCK } from "../../../src/core/rpc/call.ts";
import { methodOf } from "../../../src/core/rpc/method.ts";
import { FailureCounts } from "../../../src/observe/history/failure-counts.ts";
import { HistoryClock } from "../../../src/observe/history/history-clock.ts";
import { HistoryCounts } from "../../../src/observe/history/history-counts.ts";
import type { Incident } from "../../../src/observe/incidents/incident.ts";
import {
  IncidentBook,
  type IncidentView,
  type JudgedState,
} from "../../../src/observe/incidents/incident-book.ts";
import { Tracker } from "../../../src/upstream/health/tracker.ts";
import type { ProfileRegistry } from "../../../src/upstream/registry/profile-registry.ts";
import { fakeProvider, fakeSet, SELECTION } from "../../fakes/providers.ts";
import { simulatedWorld } from "../../fakes/runtime.ts";

const BALANCE = methodOf("eth_getBalance");
const TICK_MS = 100;
const STEP_MS = 10_000;
const PROBE_MS = 12_000;
const BLOCK_MS = 12_000;
const USUAL_MS = 40;

/** What a provider does; the defaults are those of a good one. */
export interface Behaviour {
  /** Part of its calls that fail so. */
  share: number;
  failure: "HTTP 502" | "HTTP 429";
  addedMs: number;
  behind: number;
  dead: boolean;
}

const FAILURES: Readonly<
  Record<Behaviour["failure"], { category: string; effect: Effect; status: number }>
> = {
  "HTTP 502": { category: "server", effect: { kind: "failure", cause: "server" }, status: 502 },
  "HTTP 429": { category: "rate_limit", effect: { kind: "cooldown", ms: 5_000 }, status: 429 },
};
const UNSENT = { category: "unsent", effect: { kind: "failure", cause: "network" } } as const;

/** A service of four providers; `callsPerTick` of its callers each tenth of a second. */
export class SimulatedService {
  readonly world;
  readonly book: IncidentBook;
  readonly opened: Incident[] = [];
  readonly closed: Incident[] = [];
  readonly providers = Array.from({ length: 4 }, (_, at) => fakeProvider(at, { wsUrl: null }));
  readonly tracker: Tracker;
  callsPerTick: number;
  /** Blocks come. */
  isMining = true;
  view: IncidentView | null = null;
  readonly #behaviours: Behaviour[] = this.providers.map(() => ({
    share: 0,
    failure: "HTTP 502",
    addedMs: 0,
    behind: 0,
    dead: false,
  }));
  readonly #failures = new FailureCounts("salt");
  readonly #counts = new HistoryCounts();
  readonly #clock: HistoryClock;
  #nextProbeMs: number[];
  #head = 1_000;
  #ticks = 0;

  constructor(seed: number, callsPerTick: number) {
    const world = simulatedWorld(seed);
    this.world = world;
    this.callsPerTick = callsPerTick;
    world.advance(STEP_MS - (world.wallMs() % STEP_MS));
    let ids = 0;
    this.book = new IncidentBook(() => `inc_${++ids}`, world.wallMs());
    const set = fakeSet(this.providers);
    this.tracker = new Tracker(set, world, SELECTION);
    this.tracker.attend({
      changed: ({ event, provider }) => {
        if (event === "circuit_opened") this.#counts.chain("team", "test").opened(provider);
      },
    });
    const profiles = [{ profile: { slug: "team" }, trackers: new Map([["test", this.tracker]]) }];
    this.#clock = new HistoryClock({
      counts: this.#counts,
      failures: this.#failures,
      feed: { emit: () => {} },
      registry: { profiles } as unknown as Pick<ProfileRegistry, "profiles">,
      runtime: { ...world, after: () => () => {} },
      receive: (step) => this.book.add(step, world.wallMs()),
    });
    this.#nextProbeMs = this.providers.map((_, at) => world.now() + at * 1_000);
  }

  behave(provider: number, change: Partial<Behaviour>): void {
    Object.assign(this.#behaviours[provider] ?? {}, change);
  }

  /** Ends after so many steps, or when `isOver` says so; returns the seconds that passed. */
  run(steps: number, isOver: () => boolean = () => false): number {
    for (let step = 1; step <= steps; step++) {
      for (let ms = 0; ms < STEP_MS; ms += TICK_MS) this.#tick();
      this.#clock.refresh();
      this.view = this.book.evaluate(this.world.wallMs());
      for (const incident of this.view.changed)
        (incident.endedMs === null ? this.opened : this.closed).push(incident);
      if (isOver()) return (step * STEP_MS) / 1_000;
    }
    return (steps * STEP_MS) / 1_000;
  }

  judged(provider: number): JudgedState | undefined {
    return this.view?.providers.find((each) => each.provider === `p${provider}`);
  }

  state(provider: number): string | undefined {
    return this.judged(provider)?.state;
  }

  words(provider: number): string | null | undefined {
    return this.judged(provider)?.words;
  }

  #tick(): void {
    this.world.advance(TICK_MS);
    this.#ticks++;
    if (this.isMining && (this.#ticks * TICK_MS) % BLOCK_MS === 0) this.#head++;
    for (const provider of this.providers) this.#probe(provider);
    for (let n = 0; n < this.callsPerTick; n++) this.#call();
  }

  #probe(provider: Provider): void {
    const { index } = provider;
    if (this.world.now() < (this.#nextProbeMs[index] ?? 0)) return;
    const { dead, behind, addedMs } = this.#of(provider);
    const result = dead
      ? ({ kind: "failed", category: "unsent" } as const)
      : ({ kind: "ok", chainId: 1, height: this.#head - behind } as const);
    const latencyMs = USUAL_MS + addedMs;
    this.tracker.recordProbe({ provider, transport: "http", latencyMs, result });
    this.#nextProbeMs[index] = this.world.now() + (dead ? 4_000 : PROBE_MS);
  }

  /** Asks the providers in any order until one answers: the limited last, the open never. */
  #call(): void {
    const { random } = this.world;
    const isLimited = (provider: Provider): boolean =>
      this.tracker.health(provider, "http").rateLimitedForMs > 0;
    const order = this.providers
      .map((provider) => ({ provider, at: random() + (isLimited(provider) ? 1 : 0) }))
      .sort((left, right) => left.at - right.at)
      .map(({ provider }) => provider)
      .filter((provider) => this.tracker.cordonOf(provider) === null);
    for (const provider of order) {
      if (!this.tracker.admit(provider, "http")) continue;
      if (this.#attempt(provider)) return;
    }
  }

  #attempt(provider: Provider): boolean {
    const { random } = this.world;
    const { share, failure, addedMs, dead } = this.#of(provider);
    const failed = dead ? UNSENT : random() < share ? FAILURES[failure] : null;
    const latencyMs = (USUAL_MS + addedMs) * (0.5 + random());
    const verdict = failed === null ? null : { ...failed, step: "next" as const };
    const attempt = { provider, transport: "http", latencyMs, verdict, code: null } as const;
    this.tracker.record(BALANCE, attempt, NO_BLOCK);
    this.#counts.chain("team", "test").attempted(attempt, BALANCE);
    const status = failed !== null && "status" in failed ? failed.status : 0;
    if (failed !== null)
      this.#failures.attempt({ profile: "team", chain: "test" }, attempt, status);
    return failed === null;
  }

  #of({ index }: Provider): Behaviour {
    const behaviour = this.#behaviours[index];
    if (behaviour === undefined) throw new Error("no such provider");
    return behaviour;
  }
}
