// The routing state of one provider set, and the only mutable one: plans calls, records attempts
// and probes, reports health. Sends nothing.
import type { Attempt, Channel, Effect, Verdict } from "../../core/provider/attempt.ts";
import { BranchView, type PushedBlock } from "../../core/provider/blocks/branch-view.ts";
import { isFutureBlock } from "../../core/provider/blocks/future-block.ts";
import {
  type Consensus,
  consensusOf,
  HEAD_FRESH_MS,
  type HeadSample,
  lacksBlock,
  lagBlocks,
  plausibleLead,
  presenceOf,
} from "../../core/provider/blocks/head.ts";
import { admitted, type Breaker, CLOSED, openRemainingMs } from "../../core/provider/breaker.ts";
import { LearnedRate } from "../../core/provider/budget/learned-rate.ts";
import {
  type Condition,
  capability,
  learnedAtMs,
  learnedRange,
  mayLackOldLogs,
  rangeLimit,
  type SetView,
  unreachable,
} from "../../core/provider/capability.ts";
import type { ExclusionReason } from "../../core/provider/exclusion.ts";
import {
  type AttemptEnding,
  type Cordon,
  circuitOf,
  endWaits,
  Health,
  isBehind,
  methodLimitedForMs,
  NEVER_MS,
  recordAttempt,
  recordCircuitHint,
  recordCut,
  recordEffect,
  recordFailedProbe,
  recordGoodProbe,
  recordRefusedProbe,
  recordSilence,
  recordVerdict,
} from "../../core/provider/health.ts";
import {
  type MethodReport,
  methodReadings,
  type Reading,
  reading,
  STALE_MS,
  usualMs,
} from "../../core/provider/latency.ts";
import {
  type Provider,
  type ProviderSet,
  type Transport,
  transportsOf,
} from "../../core/provider/profile.ts";
import { type RegionPlacement, regionPlacement } from "../../core/provider/region.ts";
import { SERVICE_CALLER } from "../../core/provider/silence.ts";
import type { StallRecord } from "../../core/provider/stall.ts";
import {
  confirmUnserved,
  isUnserved,
  learnUnserved,
  noteServed,
  type ServedNames,
  UnservedMethods,
  unlearnUnserved,
  unservedNames,
} from "../../core/provider/unserved-methods.ts";
import { ExtraCalls, FIRST_RECHECKS } from "../../core/routing/extra-calls.ts";
import {
  type Awaited,
  betterOf,
  type Considered,
  type Plan,
  panicPlanOf,
  planOf,
  preferring,
  waitOf,
} from "../../core/routing/plan.ts";
import { PlanRecorder } from "../../core/routing/plan-inputs.ts";
import {
  type Draw,
  minCallsOf,
  type SelectionSettings,
  type Strategy,
} from "../../core/routing/strategy.ts";
import { isHeight } from "../../core/rpc/block-height.ts";
import { type BlockRef, type Call, NO_BLOCK } from "../../core/rpc/call.ts";
import { isKnownByName, type Method, methodOf } from "../../core/rpc/method.ts";
import type { View } from "../../core/rpc/view.ts";
import type { Runtime } from "../../runtime.ts";
import type { BudgetReport, ProviderBudget } from "../budget/provider-budget.ts";
import { type Allowance, type ShareUse, WHOLE_SHARES } from "../worker-shares.ts";
import { AttemptsOut } from "./attempts-in-flight.ts";
import {
  CIRCUIT_STATES,
  circuitStateOf,
  type HealthReport,
  type ProviderSummary,
  reportOf,
} from "./health-report.ts";
import { KnownBlocks } from "./known-blocks.ts";
import type { ProviderBlocks } from "./provider-blocks.ts";
import {
  type Departure,
  type Outstanding,
  SilenceWatch,
  type WatchedChannel,
} from "./silence-watch.ts";

/** The result of one probe. */
export interface Probe {
  readonly provider: Provider;
  readonly transport: Transport;
  readonly latencyMs: number;
  readonly result:
    | { readonly kind: "ok"; readonly chainId: number; readonly height: number }
    | {
        readonly kind: "failed";
        readonly category: string;
        /** It was told the same as a call before it: why the provider is excluded. */
        readonly cordon?: Cordon;
      };
}

/** Hears of changes in a provider set. */
export interface TrackerListener {
  /** No provider is usable any more. */
  outage(): void;
  /**
   * A provider with requests in flight has sent nothing for a while: check whether it is reachable.
   * At most once a second per provider.
   */
  quiet(provider: Provider, transport: Transport): void;
  /** A call was told that the provider refuses the service, or is of another chain. */
  suspected(channel: Channel): void;
  /** A circuit opened or closed, or a cordon began or ended. */
  changed(change: HealthChange): void;
  /** A provider has said something of itself in answer to a call; no failure was counted. */
  observed(channel: Channel, observation: Observation): void;
}

/** What a provider said of itself: a limit, its credentials, what it lacks. */
export interface Observation {
  readonly effect: Effect;
  /** As the caller wrote it. */
  readonly methodName: string;
  readonly block: BlockRef;
}

/** What another worker has found out about a provider by its own calls. */
export type HealthHint =
  | { readonly kind: "opened" | "closed" }
  | ({ readonly kind: "observed" } & Observation);

/** A change of a provider's health on a transport, for operators. */
export interface HealthChange {
  readonly provider: Provider;
  readonly transport: Transport;
  readonly event: "circuit_opened" | "circuit_closed" | "cordoned" | "cordon_lifted";
  /** The cause, for example an error category. */
  readonly cause: string;
}

/** That an operator took a provider out of use. */
export interface ProviderCordon {
  readonly reason: string | null;
  /** Wall clock. */
  readonly atMs: number;
}

/** How an attempt in flight ended, besides its verdict. */
export interface AttemptEnd {
  readonly attempt: Attempt;
  readonly call: Pick<Call, "method" | "methodName" | "block">;
  /** `answered`: by the provider. `failed`: on the way to it. `cut`: by the service itself. */
  readonly by: "answered" | "failed" | "cut";
}

/** How the providers of a call are selected; a pin leaves no choice. */
export interface Selection {
  readonly strategy: Strategy;
  /** Null = the better transport of each provider; HTTP if they are equal. */
  readonly transport: Transport | null;
  readonly pin: Provider | null;
  /** True = what the plan is made from is kept with it. */
  readonly record?: boolean;
  /** The view at which the call is answered: who lacks its tip is asked last. Absent = none. */
  readonly view?: View | null | undefined;
  /** Ids of providers that stand before all others of their tier. Absent = nobody does. */
  readonly prefer?: ReadonlySet<string> | null | undefined;
}

/**
 * The state of one provider, which a new tracker takes over when a profile is reloaded. Live and
 * mutable: not for readers.
 */
export interface ProviderState extends ProviderBlocks {
  /** Where it stands for this node. */
  readonly region: RegionPlacement;
  readonly http: Health | null;
  readonly ws: Health | null;
  /** Unlisted methods that it does not serve, on any transport. */
  readonly unserved: UnservedMethods;
  /** The channels with their attempts in flight. */
  readonly watched: Readonly<Record<Transport, WatchedChannel | null>>;
  /** True = the service is subscribed to its heads. */
  listening: boolean;
  /** Null = an operator lets it be used. */
  cordon: ProviderCordon | null;
  /** What may still be sent to it; null = it has no limits. */
  readonly budget: ProviderBudget | null;
  /** How many requests a second it seems to bear. */
  readonly rate: LearnedRate;
}

/** The providers with a higher head than another. */
export interface Ahead {
  /** The highest head known. */
  readonly head: number;
  /** Ids of those that have it. */
  readonly best: ReadonlySet<string>;
  /** Ids of those that are not ahead. */
  readonly others: ReadonlySet<string>;
}

/** The part of a tracker that routing needs. */
export type RoutingState = Pick<
  Tracker,
  | "set"
  | "head"
  | "rangeLimits"
  | "plan"
  | "hasRoom"
  | "admit"
  | "trialPatienceMs"
  | "extraCalls"
  | "rechecks"
  | "usualMs"
  | "mayBeAskedBeside"
  | "aheadOf"
  | "isFutureBlock"
  | "hasBlock"
  | "namedBlock"
  | "lacksBlock"
  | "begin"
  | "end"
  | "heard"
  | "record"
  | "waitMs"
  | "takePanicSlot"
  | "freePanicSlot"
  | "blocks"
  | "attend"
  | "profileId"
>;

/** Settings of a tracker. */
export interface TrackerSettings extends SelectionSettings {
  /** The id of its profile; absent = it has none. */
  readonly profileId?: string;
  /** This worker's share of a bound of the set; absent = all of it. */
  readonly shareOf?: (what: string, total: number, use: ShareUse) => Allowance;
  /** What may still be sent to a provider; absent = nobody has limits. */
  readonly budgetOf?: (provider: Provider) => ProviderBudget | null;
  /** Which providers an operator took out of use; absent = none. */
  readonly cordonOf?: (provider: Provider) => ProviderCordon | null;
  /** Hears of every attempt at its end; absent = nobody does. */
  readonly onAttempt?: AttemptListener | undefined;
}

/** Hears of attempts at their end. */
export type AttemptListener = (attempt: Attempt, method: Method) => void;

/** The routing state of one provider set. */
export class Tracker {
  readonly set: ProviderSet;
  /** The id of the profile that it belongs to. */
  readonly profileId: string;
  /** What this worker may ask of the set beyond one call a call. */
  readonly extraCalls: ExtraCalls;
  /** The budget of rechecks after an answer of `null`, in calls. */
  readonly rechecks: ExtraCalls;
  /** What the providers tell of their blocks. */
  readonly blocks: KnownBlocks;
  readonly #runtime: Runtime;
  readonly #providerStates: readonly ProviderState[];
  /** Unlisted methods that some provider served. */
  readonly #served: ServedNames = new Map();
  readonly #safeDraw: Draw;
  readonly #unsafeDraw: Draw;
  readonly #safeRecorder: PlanRecorder;
  readonly #unsafeRecorder: PlanRecorder;
  readonly #listeners = new Set<Partial<TrackerListener>>();
  readonly #silenceWatch: SilenceWatch;
  readonly #panicShare: Allowance;
  readonly #onAttempt: AttemptListener | undefined;
  #panicking = 0;
  /** Since this was last asked for. */
  #panicsRefused = 0;
  #consensus: Consensus = { height: null, fromMs: Number.POSITIVE_INFINITY, untilMs: NEVER_MS };

  constructor(set: ProviderSet, runtime: Runtime, settings: TrackerSettings, previous?: Tracker) {
    this.set = set;
    this.profileId = settings.profileId ?? "";
    this.extraCalls = previous?.extraCalls ?? new ExtraCalls();
    this.rechecks = previous?.rechecks ?? new ExtraCalls(FIRST_RECHECKS);
    this.#runtime = runtime;
    this.#onAttempt = settings.onAttempt;
    const { shareOf = WHOLE_SHARES.of, budgetOf = () => null, cordonOf = () => null } = settings;
    this.#panicShare = shareOf("panic", PANIC_SLOTS, {
      used: () => this.#panicking,
      wanted: () => {
        const wanted = this.#panicking + this.#panicsRefused;
        this.#panicsRefused = 0;
        return wanted;
      },
    });
    this.#providerStates = set.providers.map((provider) =>
      createState(provider, regionPlacement(provider, set.regionPreference, settings.region), {
        before: previous?.inherit(provider) ?? null,
        budget: budgetOf(provider),
        cordon: cordonOf(provider),
      }),
    );
    this.blocks = new KnownBlocks(
      set,
      runtime,
      this.#providerStates,
      previous?.blocks.finalized() ?? null,
    );
    const watched = this.#providerStates
      .flatMap((state) => [state.watched.http, state.watched.ws])
      .filter((channel) => channel !== null);
    this.#silenceWatch = new SilenceWatch(runtime, watched, {
      silent: (channel, out) => this.#silent(channel, out),
      quiet: (channel) => this.#quiet(channel),
    });
    this.#safeDraw = { settings, random: runtime.random, replaySafe: true };
    this.#unsafeDraw = { settings, random: runtime.random, replaySafe: false };
    this.#safeRecorder = new PlanRecorder(this.#safeDraw);
    this.#unsafeRecorder = new PlanRecorder(this.#unsafeDraw);
  }

  /**
   * Plans a call: the providers to try, in order. A pin yields at most that provider: its limits
   * and the strategy are ignored, its circuit is not.
   */
  plan(call: Call, selection: Selection): Plan {
    const { strategy, pin, prefer = null } = selection;
    const query = this.#queryOf(call, selection);
    const draw = call.method.replaySafe ? this.#safeDraw : this.#unsafeDraw;
    if (pin !== null) {
      const providerState = this.#stateOf(pin);
      return planOf(
        providerState === null ? [] : [this.#consider(providerState, query)],
        call,
        strategy,
        draw,
      );
    }
    const considered = this.#considerAll(query);
    const recorder = selection.record === true ? this.#recorderOf(call) : null;
    recorder?.begin();
    const plan = planOf(considered, call, strategy, recorder?.draw ?? draw);
    const isPanic = plan.candidates.length === 0 && this.#allOpen(query.view.nowMs);
    const made = isPanic ? (panicPlanOf(considered, call) ?? plan) : plan;
    if (prefer !== null) return preferring(made, considered, prefer);
    if (recorder === null) return made;
    const { block, methodName } = call;
    const { providers } = this.set;
    // Not the call itself: its body is its caller's.
    const recorded = { block, methodName, strategy, providers };
    const inputs = recorder.inputs(recorded, considered, (each, minCalls) =>
      this.#readingOf(each, query, minCalls),
    );
    return { ...made, inputs };
  }

  #recorderOf({ method }: Call): PlanRecorder {
    return method.replaySafe ? this.#safeRecorder : this.#unsafeRecorder;
  }

  /** What a strategy would look at that needs so many calls. */
  #readingOf(
    { provider, transport }: Considered,
    { call, view }: PlanQuery,
    minCalls: number,
  ): Reading | null {
    const health = this.#healthOf(provider, transport);
    return health === null ? null : reading(health.latency, call.method, minCalls, view.nowMs);
  }

  /** Whether the provider's own limits let a call be sent to it now. */
  hasRoom(provider: Provider, { methodName }: Pick<Call, "methodName">): boolean {
    const budget = this.#stateOf(provider)?.budget ?? null;
    return budget === null || budget.shortageOf(methodName, this.#runtime.now()) === null;
  }

  /**
   * Requests permission to send; false = the circuit is open or its trial is in flight. `record`
   * must release the permission.
   */
  admit(provider: Provider, transport: Transport): boolean {
    const health = this.#healthOf(provider, transport);
    if (health === null) return false;
    if (health.breaker.kind === "closed") return true;
    const nowMs = this.#runtime.now();
    const breaker = admitted(circuitOf(health, nowMs), nowMs);
    if (breaker === null) return false;
    health.breaker = breaker;
    return true;
  }

  /**
   * Records a finished attempt. `block` is what the call read, so that refused ranges and tags are
   * learned; `name` is the method as the caller wrote it, so that refusals of unlisted methods are
   * learned by name.
   */
  record(
    method: Method,
    attempt: Attempt,
    block: BlockRef = NO_BLOCK,
    name: string = method.name,
  ): void {
    const channel = this.#watchedOf(attempt);
    const nowMs = this.#runtime.now();
    if (channel !== null)
      this.#record(channel, attempt, { method, block, methodName: name }, nowMs);
    else if (isKnownByName(method)) this.#recordName(name, attempt);
  }

  #record(
    channel: WatchedChannel,
    attempt: Attempt,
    { method, methodName, block }: AttemptEnd["call"],
    nowMs: number,
  ): void {
    if (isKnownByName(method)) this.#recordName(methodName, attempt);
    const { health } = channel;
    const { breaker, cordon } = health;
    recordAttempt(health, method, attempt, this.#ending(block, nowMs));
    if (health.breaker !== breaker || health.cordon !== cordon)
      this.#reportChange(channel, { breaker, cordon }, attempt.verdict?.category ?? "success");
    if (attempt.verdict !== null) {
      this.#learnRate(attempt.provider, attempt.verdict.effect);
      if (attempt.verdict.effect.kind === "cordon") this.#suspect(channel);
      this.#reportEffect(channel, attempt.verdict.effect, { methodName, block });
    }
    if (health.breaker !== breaker || health.cordon !== cordon)
      this.#changed(channel, breaker, "opened");
  }

  /** Learns from a refusal for the rate of all requests. */
  #learnRate(provider: Provider, effect: Effect): void {
    if (effect.kind !== "cooldown" || effect.scope === "method") return;
    const state = this.#stateOf(provider);
    if (state !== null) state.rate.refused(this.#runtime.now());
  }

  /** Learns from an attempt whether an unlisted method is served. */
  #recordName(name: string, { provider, verdict }: Attempt): void {
    const providerState = this.#stateOf(provider);
    const nowMs = this.#runtime.now();
    if (providerState === null) return;
    if (verdict === null) {
      unlearnUnserved(providerState.unserved, name);
      if (noteServed(this.#served, name, nowMs))
        for (const other of this.#providerStates) confirmUnserved(other.unserved, name);
    } else if (verdict.effect.kind === "learn" && verdict.effect.what === "method")
      learnUnserved(
        providerState.unserved,
        this.#served,
        name,
        learnedAtMs(nowMs, verdict.effect.brief === true),
      );
  }

  /** A call alone excludes nobody, whatever was said to it: a probe is asked. */
  #suspect(channel: WatchedChannel): void {
    for (const listener of [...this.#listeners]) listener.suspected?.(channel);
  }

  /**
   * How long (ms) a trial of the provider may keep its caller waiting, after it was admitted and
   * before it begins; null = its circuit is closed and no trial of a stalled one is due, so it is
   * not a trial.
   */
  trialPatienceMs(provider: Provider, transport: Transport, method: Method): number | null {
    const health = this.#healthOf(provider, transport);
    if (health === null) return null;
    const isTrial =
      health.breaker.kind !== "closed" || health.stall.isTrialDue(this.#runtime.now());
    return isTrial ? patienceMs(health, method) : null;
  }

  /**
   * The latency (ms) within which this share of answers to such calls arrived; null = unknown.
   */
  usualMs({ provider, transport }: Channel, method: Method, share: number): number | null {
    const health = this.#healthOf(provider, transport);
    return health === null ? null : usualMs(health.latency, method, share);
  }

  /** Whether a call may be asked of the provider beside another: it is in the best health. */
  mayBeAskedBeside({ provider, transport }: Channel, method: Method): boolean {
    const state = this.#stateOf(provider);
    const health = state?.[transport] ?? null;
    if (state === null || health === null || health.breaker.kind !== "closed") return false;
    const nowMs = this.#runtime.now();
    return (
      state.cordon === null &&
      !health.wrongChain &&
      health.cordon === null &&
      !health.stall.isStalled(nowMs) &&
      methodLimitedForMs(health, method, nowMs) === 0 &&
      !isSpared(state, nowMs)
    );
  }

  /**
   * Who may know more than a provider that does not have what a call asks for: who has the highest
   * head, and who is to be left out. Null = nobody in the best health has a higher head.
   */
  aheadOf(provider: Provider, call: Call): Ahead | null {
    const nowMs = this.#runtime.now();
    const heightOf = ({ sample, highest }: ProviderState): number =>
      sample !== null && nowMs - sample.atMs < HEAD_FRESH_MS
        ? Math.max(sample.height, highest)
        : -1;
    const asked = this.#stateOf(provider);
    if (asked === null) return null;
    const known = heightOf(asked);
    const least = call.block.kind === "number" ? Math.max(known + 1, call.block.number) : known + 1;
    const others = new Set<string>();
    const best = new Set<string>();
    let head = known;
    for (const state of this.#providerStates) {
      const { id } = state.provider;
      const height = heightOf(state);
      if (height < least || !this.#isInBestHealth(state, call)) {
        others.add(id);
        continue;
      }
      if (height > head) best.clear();
      head = Math.max(head, height);
      if (height === head) best.add(id);
    }
    return best.size === 0 ? null : { head, best, others };
  }

  /** Whether no provider can have a block of this number yet. */
  isFutureBlock(number: number): boolean {
    const samples = this.#providerStates.map(({ sample }) => sample);
    return isFutureBlock(number, samples, this.set.chain, this.#runtime.now());
  }

  #isInBestHealth({ provider, region }: ProviderState, call: Call): boolean {
    return (
      !provider.backup &&
      region.reason === null &&
      this.hasRoom(provider, call) &&
      transportsOf(provider).some((transport) =>
        this.mayBeAskedBeside({ provider, transport }, call.method),
      )
    );
  }

  /** Records the start of an attempt: from now on its provider may be found silent. */
  begin(out: Outstanding): void {
    const state = this.#stateOf(out.provider);
    const channel = state?.watched[out.transport] ?? null;
    if (state === null || channel === null) return;
    state.rate.count(out.startedAtMs);
    channel.health.stall.begin(out, out.startedAtMs);
    this.#silenceWatch.begin(channel, out);
  }

  /** Records the end of an attempt that began. True = its provider was silent. */
  end(out: Outstanding, { attempt, call, by }: AttemptEnd): boolean {
    const channel = this.#watchedOf(out);
    if (channel === null) return false;
    const { health } = channel;
    channel.out.delete(out);
    health.stall.end(out);
    this.#onAttempt?.(attempt, call.method);
    const { verdict, latencyMs } = attempt;
    if (by !== "cut" || verdict === null) {
      const nowMs = this.#runtime.now();
      if (by === "answered") health.heardAtMs = nowMs;
      this.#record(channel, attempt, call, nowMs);
      return false;
    }
    const { breaker } = health;
    const ending = this.#ending(call.block);
    const silent = out.counted || this.#silenceWatch.silenceOf(channel, out) === "silent";
    if (silent && !out.counted) countSilence(health, out, latencyMs, ending);
    const givenUp = out.sent && verdict.step !== "return" && out.batch?.isGivenUp !== true;
    if (givenUp && out.batch !== null) out.batch.isGivenUp = true;
    recordCut(health, call.method, { verdict, latencyMs, silent, givenUp }, ending);
    this.#reportChange(channel, { breaker, cordon: health.cordon }, "silence");
    if (health.breaker !== breaker) this.#changed(channel, breaker, "silence");
    return silent;
  }

  /** The provider has answered something other than an attempt. */
  heard(provider: Provider, transport: Transport): void {
    const health = this.#healthOf(provider, transport);
    if (health !== null) health.heardAtMs = this.#runtime.now();
  }

  /** A query sent at `sinceMs` was not answered. */
  recordUnheard(provider: Provider, transport: Transport, sinceMs: number): void {
    const channel = this.#watchedOf({ provider, transport });
    const nowMs = this.#runtime.now();
    if (channel === null || channel.health.heardAtMs >= sinceMs) return;
    const before = channel.unheardSinceMs;
    channel.unheardSinceMs = sinceMs;
    // The last usable provider is given more time: otherwise calls would be refused that a short
    // pause would only have delayed.
    const isSecond = before !== NEVER_MS && channel.health.heardAtMs < before;
    if (!isSecond && !this.#hasOther(provider, nowMs)) return;
    const { breaker } = channel.health;
    recordSilence(channel.health, SERVICE_CALLER.key, nowMs - sinceMs, this.#ending(NO_BLOCK));
    this.#reportChange(channel, { breaker, cordon: channel.health.cordon }, "silence");
    if (channel.health.breaker !== breaker) this.#changed(channel, breaker, "silence");
  }

  /** Takes one of the few slots for calls while every circuit is open. False = all are taken. */
  takePanicSlot(): boolean {
    if (this.#panicking >= this.#panicShare.limit) {
      this.#panicsRefused += 1;
      this.#panicShare.short();
      return false;
    }
    this.#panicking += 1;
    return true;
  }

  freePanicSlot(): void {
    this.#panicking -= 1;
  }

  /**
   * Records an event of a provider's socket, without a call: changes its circuit and limits, counts
   * no attempt. `incident` is the event itself, which may also have failed calls.
   */
  recordSocket(provider: Provider, verdict: Verdict, incident?: object): void {
    const channel = this.#watchedOf({ provider, transport: "ws" });
    if (channel === null) return;
    const { breaker, cordon } = channel.health;
    const heard = { verdict, latencyMs: 0, ...(incident === undefined ? {} : { incident }) };
    recordVerdict(channel.health, methodOf("eth_subscribe"), heard, this.#ending(NO_BLOCK));
    this.#reportChange(channel, { breaker, cordon }, verdict.category);
    if (channel.health.breaker !== breaker || channel.health.cordon !== cordon)
      this.#changed(channel, breaker, "opened");
  }

  /**
   * Records a probe: height, latency, wrong chain, end of a cordon; a good one makes an open
   * circuit half-open, and some in a row close one that no call tries. Never changes a success
   * rate.
   */
  recordProbe({ provider, transport, latencyMs, result }: Probe): void {
    const providerState = this.#stateOf(provider);
    const channel = providerState?.watched[transport] ?? null;
    if (providerState === null || channel === null) return;
    const { health } = channel;
    health.probedAtMs = this.#runtime.now();
    if (result.kind === "failed") {
      recordFailedProbe(health, health.probedAtMs);
      if (result.cordon !== undefined) this.#refused({ provider, transport }, result.cordon);
      return;
    }
    health.heardAtMs = health.probedAtMs;
    health.probeMs = latencyMs;
    const { wrongChain, breaker, cordon } = health;
    health.wrongChain = result.chainId !== this.set.chain.chainId;
    if (health.wrongChain) return this.#foundWrongChain(providerState, transport, !wrongChain);
    if (wrongChain || cordon !== null)
      this.#notifyListeners({ provider, transport, event: "cordon_lifted", cause: "probe" });
    health.cordon = null;
    recordGoodProbe(health, latencyMs, health.probedAtMs);
    this.#reportChange(channel, { breaker, cordon: null }, "probe");
    // A transport that is not probed takes the result of the other transport: otherwise its cordon
    // would never end.
    const other = transport === "http" ? providerState.ws : providerState.http;
    if (other !== null && other.probedAtMs === NEVER_MS) other.cordon = null;
    if (!isHeight(result.height) || providerState.cordon !== null) return;
    this.#sample(providerState, { height: result.height, atMs: health.probedAtMs, polled: true });
    this.#compare(providerState, result.height);
  }

  /** A socket that trails what its provider answers to polls vouches for nothing. */
  #compare(state: ProviderState, height: number): void {
    if (state.pushedNumber === -1) return;
    const mostAhead = Math.max(1, SOCKET_TRAILS_MS / Math.max(1, this.set.chain.blockTimeMs));
    const isAhead = height > state.pushedNumber + mostAhead;
    state.pollsAhead = isAhead ? Math.min(POLLS_AHEAD, state.pollsAhead + 1) : 0;
    if (state.pollsAhead === POLLS_AHEAD) this.blocks.clear(state);
  }

  #refused(at: Channel, reason: Cordon): void {
    const channel = this.#watchedOf(at);
    if (channel === null) return;
    const { breaker, cordon } = channel.health;
    recordRefusedProbe(channel.health, reason);
    this.#reportChange(channel, { breaker, cordon }, reason);
    if (cordon !== reason) this.#changed(channel, breaker, "opened");
  }

  #foundWrongChain(providerState: ProviderState, transport: Transport, isNew: boolean): void {
    const { provider } = providerState;
    const health = providerState[transport];
    if (health !== null) recordFailedProbe(health, health.probedAtMs);
    if (isNew)
      this.#notifyListeners({ provider, transport, event: "cordoned", cause: "wrong_chain" });
    this.#sample(providerState, null);
    providerState.finalized = null;
    providerState.safe = null;
    this.blocks.clear(providerState);
    if (isNew) this.#notifyOutage();
  }

  /** When the provider was last probed; -Infinity = never. */
  probedAtMs(provider: Provider, transport: Transport): number {
    return this.#healthOf(provider, transport)?.probedAtMs ?? NEVER_MS;
  }

  /** Records what another worker has found out; opens no circuit. */
  recordHint(provider: Provider, transport: Transport, hint: HealthHint): void {
    const channel = this.#watchedOf({ provider, transport });
    if (channel === null) return;
    const nowMs = this.#runtime.now();
    if (hint.kind !== "observed") return recordCircuitHint(channel.health, hint.kind, nowMs);
    const { effect, methodName, block } = hint;
    if (effect.kind === "cordon") return this.#suspect(channel);
    const method = methodOf(methodName);
    this.#learnRate(provider, effect);
    if (isKnownByName(method) && effect.kind === "learn" && effect.what === "method") {
      const state = this.#stateOf(provider);
      if (state !== null) learnUnserved(state.unserved, this.#served, methodName, nowMs);
    }
    recordEffect(channel.health, method, effect, this.#ending(block));
  }

  /** Sets whether the service is subscribed to the provider's heads. */
  listen(provider: Provider, listening: boolean): void {
    const providerState = this.#stateOf(provider);
    if (providerState === null) return;
    providerState.listening = listening;
    if (listening) return;
    providerState.pushedNumber = -1;
    providerState.pollsAhead = 0;
    this.blocks.clear(providerState);
  }

  /** Records a pushed head; without `block` its hash is not known. */
  recordHead(provider: Provider, height: number, block?: PushedBlock): void {
    const providerState = this.#stateOf(provider);
    if (providerState === null || providerState.ws?.wrongChain === true || !isHeight(height))
      return;
    if (providerState.cordon !== null) return;
    providerState.pushedAtMs = this.#runtime.now();
    if (providerState.ws !== null) {
      providerState.ws.heardAtMs = providerState.pushedAtMs;
      providerState.ws.hasAnswered = true;
    }
    providerState.pushedNumber = height;
    if (providerState.pollsAhead === POLLS_AHEAD) return;
    this.#sample(providerState, { height, atMs: providerState.pushedAtMs, polled: false });
    this.blocks.pushed(providerState, block ?? null);
  }

  /** Records the height that a provider reports as final. */
  recordFinalized(provider: Provider, height: number): void {
    const providerState = this.#stateOf(provider);
    if (providerState === null || !isHeight(height) || providerState.cordon !== null) return;
    if (providerState.http?.wrongChain === true || providerState.ws?.wrongChain === true) return;
    this.blocks.reportedFinal(providerState, height);
  }

  /** Records the height that a provider reports as safe. */
  recordSafe(provider: Provider, height: number): void {
    const state = this.#stateOf(provider);
    if (state === null || !isHeight(height) || state.cordon !== null) return;
    if (state.http?.wrongChain === true || state.ws?.wrongChain === true) return;
    this.blocks.reportedSafe(state, height);
  }

  /** A provider has answered at a block: its head is at least this. */
  hasBlock(provider: Provider, number: number): void {
    const state = this.#stateOf(provider);
    if (state === null) return;
    state.refused = null;
    this.#raiseHighest(state, number);
    if (state.sample !== null && state.sample.height >= number) return;
    this.#sample(state, { height: number, atMs: this.#runtime.now(), polled: true });
  }

  /** An answer of a provider named a block: its head is at least this, the tip stays as it is. */
  namedBlock(provider: Provider, number: number): void {
    const state = this.#stateOf(provider);
    if (state !== null && state.cordon === null) this.#raiseHighest(state, number);
  }

  /**
   * A provider has said that it does not have a block. Where it says so of its own head twice
   * running, it is asked for that by tag from now on.
   */
  lacksBlock(provider: Provider, number: number): void {
    const state = this.#stateOf(provider);
    if (state === null) return;
    state.missing = number;
    if (state.sample === null || state.sample.height < number) return;
    // One block may have been missing by chance.
    if (state.refused !== null && state.refused !== number)
      state.neededTagAtMs = this.#runtime.now();
    state.refused = number;
  }

  /** Records whether a provider answers reads of state by the hash of a block. */
  recordHashReads(provider: Provider, served: boolean): void {
    const state = this.#stateOf(provider);
    if (state === null) return;
    state.takesHash = served;
    state.hashReadsAtMs = this.#runtime.now();
  }

  /** Whether it does, and when that was found; null = not known. */
  hashReads(provider: Provider): { readonly served: boolean; readonly atMs: number } | null {
    const state = this.#stateOf(provider);
    if (state === null || state.hashReadsAtMs === NEVER_MS) return null;
    return { served: state.takesHash, atMs: state.hashReadsAtMs };
  }

  /** The same of a safe height. */
  safeAtMs(provider: Provider): number {
    return this.#stateOf(provider)?.safe?.atMs ?? NEVER_MS;
  }

  /** When the provider last reported a final height; -Infinity = never. */
  finalizedAtMs(provider: Provider): number {
    return this.#stateOf(provider)?.finalized?.atMs ?? NEVER_MS;
  }

  /**
   * The largest block ranges (last minus first block) that those who could serve a call over a
   * range accept, each once, largest first; infinite = no limit is known. Empty = nobody could.
   */
  rangeLimits(call: Call): readonly number[] {
    const nowMs = this.#runtime.now();
    if (!this.#providerStates.some((state) => isRangeLimited(state, nowMs))) return UNLIMITED;
    const { block } = call;
    const first = block.kind === "range" && block.from !== null ? block.from : 0;
    const least = { ...call, block: { kind: "range", from: first, to: first } } as const;
    const query = this.#queryOf(least, { strategy: "priority", transport: null, pin: null });
    const usable: ProviderState[] = [];
    const lagging: ProviderState[] = [];
    let isSure = false;
    for (const state of this.#providerStates) {
      const { reason, breaker } = this.#consider(state, query);
      if (breaker.kind === "open") continue;
      if (reason === null) usable.push(state);
      else if (reason === "lagging") lagging.push(state);
      isSure ||= reason === null && breaker.kind === "closed";
    }
    // As a plan does: those that lag are asked where no circuit of the others is closed.
    if (!isSure) usable.push(...lagging);
    // A backup is not asked for more because it would take more.
    const usual = usable.filter(({ provider }) => !provider.backup);
    const limits = (usual.length === 0 ? usable : usual).map(({ provider, http, ws }) => {
      const facts = http?.facts ?? ws?.facts ?? null;
      return rangeLimit(provider, call.method, facts, nowMs);
    });
    return [...new Set(limits)].sort((left, right) => right - left);
  }

  /** The consensus height; null = unknown. */
  head(): number | null {
    return this.#head(this.#runtime.now());
  }

  /** Whether the provider pushes its heads, so that they need not be polled. */
  pushesHeads(provider: Provider): boolean {
    return this.#runtime.now() - (this.#stateOf(provider)?.pushedAtMs ?? NEVER_MS) < HEAD_FRESH_MS;
  }

  health(provider: Provider, transport: Transport): HealthReport {
    const nowMs = this.#runtime.now();
    const providerState = this.#stateOf(provider);
    const sample = providerState?.sample ?? null;
    const position = {
      height: sample?.height ?? null,
      lagBlocks: lagBlocks(sample, this.#head(nowMs), this.set.chain, nowMs),
    };
    const report = reportOf(providerState?.[transport] ?? new Health(), position, nowMs);
    if (providerState === null) return report;
    const methods = [...report.learned.methods, ...unservedNames(providerState.unserved, nowMs)];
    const requestsPerSecond = providerState.rate.limit(nowMs);
    return { ...report, learned: { ...report.learned, methods, requestsPerSecond } };
  }

  /** The same in few words, over all transports. */
  summary(provider: Provider): ProviderSummary {
    const nowMs = this.#runtime.now();
    const state = this.#stateOf(provider);
    const lag = lagBlocks(state?.sample ?? null, this.#head(nowMs), this.set.chain, nowMs);
    const circuits = [state?.http ?? null, state?.ws ?? null]
      .filter((health) => health !== null)
      .map((health) => CIRCUIT_STATES.indexOf(circuitStateOf(health, nowMs)));
    const worst = CIRCUIT_STATES[Math.max(0, ...circuits)] ?? "closed";
    const circuit = state !== null && state.cordon !== null ? "cordoned" : worst;
    return { provider, lagBlocks: lag, circuit };
  }

  /** What was sent of what may be sent to the provider; null = it has no limits. */
  budget(provider: Provider): BudgetReport | null {
    return this.#stateOf(provider)?.budget?.report() ?? null;
  }

  /** Reports of the methods with fresh readings. */
  methods(provider: Provider, transport: Transport): readonly MethodReport[] {
    const health = this.#healthOf(provider, transport);
    return health === null ? [] : methodReadings(health.latency, this.#runtime.now());
  }

  /**
   * Milliseconds until some provider that can serve the call may be asked; null = waiting does not
   * help.
   */
  waitMs(call: Call, selection: Selection): number | null {
    const { pin, transport } = selection;
    const query = this.#queryOf(call, selection);
    const providerStates =
      pin === null ? this.#providerStates : [this.#stateOf(pin)].filter((state) => state !== null);
    const transports: readonly Transport[] = transport === null ? ["http", "ws"] : [transport];
    const isPanic = pin === null && this.#allOpen(query.view.nowMs);
    return waitOf(
      providerStates.flatMap((providerState) =>
        transports.map((way) => this.#awaitedOn(providerState, way, query, isPanic)),
      ),
      call,
    );
  }

  /**
   * Whether some provider is usable: its circuit is not open, and it is not excluded for its chain
   * or credentials.
   */
  isUsable(): boolean {
    const nowMs = this.#runtime.now();
    return this.#providerStates.some(
      ({ region, cordon, http, ws }) =>
        region.reason === null && cordon === null && (isUsable(http, nowMs) || isUsable(ws, nowMs)),
    );
  }

  /** Why this node asks the provider by a pin only; null = it asks it like any other. */
  refusalOf(provider: Provider): ExclusionReason | null {
    return this.#stateOf(provider)?.region.reason ?? null;
  }

  /**
   * Takes a provider out of use, or (null) back: while it is out nothing but probes is sent to it,
   * and what it tells of its blocks does not count.
   */
  setCordon(provider: Provider, cordon: ProviderCordon | null): void {
    const state = this.#stateOf(provider);
    if (state === null) return;
    const before = state.cordon;
    state.cordon = cordon;
    if ((before === null) === (cordon === null)) return;
    const event = cordon === null ? "cordon_lifted" : "cordoned";
    for (const transport of transportsOf(state.provider))
      this.#notifyListeners({ provider: state.provider, transport, event, cause: "operator" });
    if (cordon === null) return;
    this.#sample(state, null);
    state.finalized = null;
    state.safe = null;
    this.blocks.clear(state);
    this.#notifyOutage();
  }

  /** Null = an operator lets it be used. */
  cordonOf(provider: Provider): ProviderCordon | null {
    return this.#stateOf(provider)?.cordon ?? null;
  }

  /** Ends its waits: an open circuit is half-open, and what a refusal began no longer holds. */
  endWaits(provider: Provider): void {
    const state = this.#stateOf(provider);
    for (const health of [state?.http, state?.ws])
      if (health) endWaits(health, this.#runtime.now());
  }

  /** Adds a listener; the returned function removes it. */
  attend(listener: Partial<TrackerListener>): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** The live state of the provider with the same id, for a successor. */
  inherit(provider: Provider): ProviderState | null {
    return this.#providerStates.find((state) => state.provider.id === provider.id) ?? null;
  }

  #queryOf(call: Call, { strategy, transport, pin, view: at }: Selection): PlanQuery {
    const nowMs = this.#runtime.now();
    const { maxLagBlocks, archivalThreshold } = this.set;
    const view: SetView = { nowMs, head: this.#head(nowMs), archivalThreshold, maxLagBlocks };
    return { call, view, strategy, pinned: pin !== null, transport, at: at ?? null };
  }

  #considerAll(query: PlanQuery): readonly Considered[] {
    const all = this.#providerStates.map((providerState) => this.#consider(providerState, query));
    return query.call.block.kind === "range" && !query.pinned ? this.#thatReach(all, query) : all;
  }

  /**
   * A list that ends before its range looks like a whole one: who lacks the last block is asked
   * only where nobody is known to have it.
   */
  #thatReach(
    all: readonly Considered[],
    { call, view: { nowMs } }: PlanQuery,
  ): readonly Considered[] {
    const last = lastBlock(call.block);
    if (last === null) return all;
    const presences = this.#providerStates.map((state) => this.#presenceOf(state, last, nowMs));
    const isThere = all.some(({ reason }, at) => reason === null && presences[at] === "has");
    if (!isThere) return all;
    return all.map((considered, at) =>
      considered.reason === null && presences[at] === "lacks"
        ? { ...considered, reason: "block_missing" }
        : considered,
    );
  }

  /** Considers a provider on the requested transport, or on the better of its two. */
  #consider(providerState: ProviderState, query: PlanQuery): Considered {
    const { transport, call } = query;
    if (transport !== null) return this.#considerOn(providerState, transport, query);
    if (providerState.ws === null) return this.#considerOn(providerState, "http", query);
    if (providerState.http === null) return this.#considerOn(providerState, "ws", query);
    const first = this.#considerOn(providerState, "http", query);
    // Nothing is better than a healthy provider.
    if (
      first.reason === null &&
      first.breaker.kind === "closed" &&
      first.hasAnswered &&
      !first.limited &&
      !first.stalled
    )
      return first;
    return betterOf(first, this.#considerOn(providerState, "ws", query), call);
  }

  #considerOn(providerState: ProviderState, transport: Transport, query: PlanQuery): Considered {
    const { provider, region } = providerState;
    const { regionRank } = region;
    const health = providerState[transport];
    if (health === null) return { ...ABSENT, provider, transport, regionRank };
    const { call, strategy, pinned, at } = query;
    const { nowMs } = query.view;
    const condition = this.#conditionOf(providerState, transport, health, query);
    const reason =
      this.#reasonAgainst(providerState, query, condition) ??
      providerState.budget?.shortageOf(call.methodName, nowMs) ??
      null;
    const minCalls = pinned ? null : minCallsOf(strategy, this.#safeDraw.settings);
    const known = minCalls === null ? null : reading(health.latency, call.method, minCalls, nowMs);
    const probeMs = nowMs - health.probedAtMs < STALE_MS ? health.probeMs : null;
    const last = call.resolution === undefined ? lastBlock(call.block) : null;
    const presence = last === null ? null : this.#presenceOf(providerState, last, nowMs);
    const stalled = this.#isAskedLater(providerState, health.stall, query);
    const limited =
      methodLimitedForMs(health, call.method, nowMs) > 0 || isSpared(providerState, nowMs);
    return {
      provider,
      transport,
      reason,
      reading: known,
      probeMs,
      regionRank,
      breaker: circuitOf(health, nowMs),
      limited,
      stalled,
      lacking:
        mayLackOldLogs(provider, call, query.view) ||
        (presence === null
          ? at !== null && this.blocks.view.lacks(providerState, at, nowMs)
          : presence === "lacks"),
      unsure: presence === "unknown",
      hasAnswered: health.hasAnswered,
      heardAtMs: health.heardAtMs,
      lagBlocks: condition.lagBlocks,
    };
  }

  /**
   * Whether others are asked first since calls hang at it. Its trial stands in its own place; where
   * calls hang at all, there is none.
   */
  #isAskedLater({ provider }: ProviderState, stall: StallRecord, query: PlanQuery): boolean {
    const { call, view } = query;
    if (!stall.isStalled(view.nowMs)) return false;
    if (!call.method.replaySafe || !stall.isTrialDue(view.nowMs)) return true;
    return !this.#hasOther(provider, view.nowMs, isFlowing);
  }

  #presenceOf({ sample, highest }: ProviderState, block: number, nowMs: number) {
    return highest >= block ? "has" : presenceOf(sample, block, this.set.chain, nowMs);
  }

  #conditionOf(
    providerState: ProviderState,
    transport: Transport,
    health: Health,
    { call, view, pinned }: PlanQuery,
  ): Condition {
    const { nowMs } = view;
    const lag = pinned ? null : lagBlocks(providerState.sample, view.head, this.set.chain, nowMs);
    const lacking =
      providerState.listening &&
      call.block.kind === "number" &&
      lacksBlock(providerState.sample, call.block.number, view.head, nowMs);
    const unserved =
      isKnownByName(call.method) && isUnserved(providerState.unserved, call.methodName, nowMs);
    return {
      transport,
      wrongChain: health.wrongChain,
      cordoned: health.cordon !== null,
      cordonedByOperator: providerState.cordon !== null,
      behind: lacking || isBehind(health, nowMs),
      lagBlocks: lag,
      facts: health.facts,
      unserved,
    };
  }

  #reasonAgainst(
    providerState: ProviderState,
    { call, view, pinned }: PlanQuery,
    condition: Condition,
  ): ExclusionReason | null {
    return pinned
      ? unreachable(providerState.provider, condition)
      : (providerState.region.reason ?? capability(providerState.provider, call, view, condition));
  }

  /** When a provider can serve a call on one transport, if at all; a panic waits for no circuit. */
  #awaitedOn(
    providerState: ProviderState,
    transport: Transport,
    query: PlanQuery,
    isPanic: boolean,
  ): Awaited {
    const health = providerState[transport];
    if (health === null) return { reason: "transport_missing", waitMs: 0 };
    const { nowMs } = query.view;
    // Conditions that a probe may end are worth waiting for.
    const reason = this.#reasonAgainst(providerState, query, {
      ...this.#conditionOf(providerState, transport, health, query),
      wrongChain: false,
      cordoned: false,
    });
    const wrongChainMs = health.wrongChain ? this.set.probeIntervalMs : 0;
    const excluded = health.cordon === null ? wrongChainMs : CORDON_PROBE_MS;
    const untilProbeMs =
      excluded === 0 ? 0 : Math.max(LEAST_WAIT_MS, health.probedAtMs + excluded - nowMs);
    return {
      reason,
      waitMs: Math.max(
        untilProbeMs,
        providerState.budget?.waitMs(query.call.methodName) ?? 0,
        isPanic
          ? 0
          : circuitWaitMs(circuitOf(health, nowMs), patienceMs(health, query.call.method), nowMs),
      ),
    };
  }

  #stateOf(provider: Provider): ProviderState | null {
    const providerState = this.#providerStates[provider.index];
    return providerState !== undefined && providerState.provider.id === provider.id
      ? providerState
      : this.inherit(provider);
  }

  #healthOf(provider: Provider, transport: Transport): Health | null {
    return this.#stateOf(provider)?.[transport] ?? null;
  }

  #head(nowMs: number): number | null {
    if (nowMs < this.#consensus.fromMs || nowMs >= this.#consensus.untilMs) {
      this.#consensus = consensusOf(this.#providerStates, this.set.chain, nowMs);
    }
    return this.#consensus.height;
  }

  #watchedOf({
    provider,
    transport,
  }: Pick<Attempt, "provider" | "transport">): WatchedChannel | null {
    return this.#stateOf(provider)?.watched[transport] ?? null;
  }

  #ending(block: BlockRef, nowMs = this.#runtime.now()): AttemptEnding {
    return {
      block,
      head: this.#consensus.height,
      nowMs,
      random: this.#runtime.random,
    };
  }

  /** Handles an attempt that has met silence for longer than usual and is still in flight. */
  #silent(channel: WatchedChannel, out: Outstanding): void {
    const { breaker } = channel.health;
    const outMs = this.#runtime.now() - out.startedAtMs;
    out.counted = countSilence(channel.health, out, outMs, this.#ending(NO_BLOCK));
    this.#reportChange(channel, { breaker, cordon: channel.health.cordon }, "silence");
    if (channel.health.breaker !== breaker) this.#changed(channel, breaker, "silence");
  }

  #quiet(channel: WatchedChannel): void {
    const nowMs = this.#runtime.now();
    if (nowMs - channel.askedAtMs < ASK_EVERY_MS) return;
    channel.askedAtMs = nowMs;
    for (const listener of [...this.#listeners])
      listener.quiet?.(channel.provider, channel.transport);
  }

  /** Reports what changed of a channel whose circuit was `before`. */
  #reportChange(
    { provider, transport, health }: WatchedChannel,
    before: Pick<Health, "breaker" | "cordon">,
    cause: string,
  ): void {
    const [was, is] = [before.breaker.kind, health.breaker.kind];
    if (is === "open" && was !== "open")
      this.#notifyListeners({ provider, transport, event: "circuit_opened", cause });
    if (is === "closed" && was !== "closed")
      this.#notifyListeners({ provider, transport, event: "circuit_closed", cause });
    if (health.cordon !== null && before.cordon === null)
      this.#notifyListeners({ provider, transport, event: "cordoned", cause: health.cordon });
  }

  #reportEffect(channel: Channel, effect: Effect, about: Omit<Observation, "effect">): void {
    if (effect.kind === "ignored" || effect.kind === "failure" || effect.kind === "avoid") return;
    if (effect.kind === "learn" && effect.brief === true) return;
    for (const listener of [...this.#listeners]) listener.observed?.(channel, { effect, ...about });
  }

  #notifyListeners(change: HealthChange): void {
    for (const listener of [...this.#listeners]) listener.changed?.(change);
  }

  /** Handles a possible change of whether a provider may be asked. */
  #changed(channel: WatchedChannel, before: Breaker, why: Departure): void {
    const { health } = channel;
    if (isUsable(health, this.#runtime.now())) return;
    this.#notifyOutage();
    if (health.breaker.kind !== "open" || before.kind === "open") return;
    for (const out of channel.out.all()) out.leave(why);
  }

  #notifyOutage(): void {
    if (this.isUsable()) return;
    for (const listener of [...this.#listeners]) listener.outage?.();
  }

  /** Whether a provider other than this one may be asked, on a transport that is like this. */
  #hasOther({ id }: Provider, nowMs: number, isSo = isUsable): boolean {
    return this.#providerStates.some(
      ({ provider, region, cordon, http, ws }) =>
        provider.id !== id &&
        region.reason === null &&
        cordon === null &&
        (isSo(http, nowMs) || isSo(ws, nowMs)),
    );
  }

  /**
   * Whether some providers may be asked apart from their circuits, and the circuits of all of them
   * are open.
   */
  #allOpen(nowMs: number): boolean {
    const askable = this.#providerStates
      .filter(({ region, cordon }) => region.reason === null && cordon === null)
      .flatMap(({ http, ws }) => [http, ws])
      .filter((health) => health !== null && !health.wrongChain && health.cordon === null);
    return (
      askable.length > 0 &&
      askable.every((health) => health !== null && circuitOf(health, nowMs).kind === "open")
    );
  }

  /** It has this block, unless nobody could have it yet. */
  #raiseHighest(state: ProviderState, number: number): void {
    const tip = this.blocks.servedTip();
    if (number <= state.highest) return;
    if (tip !== null && number > tip + plausibleLead(this.set.chain)) return;
    state.highest = number;
    this.blocks.highestChanged();
  }

  /** Sets or clears a height sample; the consensus must then be computed again. */
  #sample(providerState: ProviderState, sample: HeadSample | null): void {
    const before = providerState.sample;
    if (sample !== null && (before === null || sample.height > before.height))
      providerState.roseAtMs = sample.atMs;
    if (sample !== null) providerState.missing = null;
    providerState.sample = sample;
    if (sample === null) providerState.highest = -1;
    else this.#raiseHighest(providerState, sample.height);
    if (sample !== null)
      for (const health of [providerState.http, providerState.ws])
        if (health !== null) health.behindAtMs = NEVER_MS;
    this.#consensus = { ...this.#consensus, untilMs: NEVER_MS };
    this.blocks.heightChanged();
  }
}

/**
 * Counts a silent attempt. True = it has counted, by itself or with the others of its batch: one
 * request that is not answered is one silence.
 */
function countSilence(
  health: Health,
  { batch, caller }: Outstanding,
  latencyMs: number,
  ending: AttemptEnding,
): boolean {
  if (batch?.isSilent === true) return true;
  const counted = recordSilence(health, caller.key, latencyMs, ending);
  if (counted && batch !== null) batch.isSilent = true;
  return counted;
}

/** Whether others are asked first, so that a provider keeps credits or need not refuse. */
function isSpared({ budget, rate }: ProviderState, nowMs: number): boolean {
  return budget?.isAheadOfPace(nowMs) === true || rate.isBeyond(nowMs);
}

function createState(
  provider: Provider,
  region: RegionPlacement,
  {
    before,
    budget,
    cordon,
  }: Pick<ProviderState, "budget" | "cordon"> & { readonly before: ProviderState | null },
): ProviderState {
  const http = before !== null && before.provider.url === provider.url ? before.http : null;
  const ws = before !== null && before.provider.wsUrl === provider.wsUrl ? before.ws : null;
  const isNew = http === null && ws === null;
  const httpHealth = provider.url === null ? null : (http ?? new Health());
  const wsHealth = provider.wsUrl === null ? null : (ws ?? new Health());
  return {
    provider,
    region,
    http: httpHealth,
    ws: wsHealth,
    watched: {
      http: watchedOf({ provider, transport: "http" }, httpHealth, before),
      ws: watchedOf({ provider, transport: "ws" }, wsHealth, before),
    },
    unserved: isNew ? new UnservedMethods() : (before?.unserved ?? new UnservedMethods()),
    sample: isNew || cordon !== null ? null : (before?.sample ?? null),
    finalized: isNew || cordon !== null ? null : (before?.finalized ?? null),
    safe: isNew || cordon !== null ? null : (before?.safe ?? null),
    highest: isNew || cordon !== null ? -1 : (before?.highest ?? -1),
    roseAtMs: before?.roseAtMs ?? NEVER_MS,
    missing: null,
    refused: null,
    neededTagAtMs: isNew ? NEVER_MS : (before?.neededTagAtMs ?? NEVER_MS),
    takesHash: !isNew && before?.takesHash === true,
    hashReadsAtMs: isNew ? NEVER_MS : (before?.hashReadsAtMs ?? NEVER_MS),
    branch: new BranchView(),
    listening: false,
    cordon,
    pushedAtMs: NEVER_MS,
    pushedNumber: -1,
    pollsAhead: 0,
    budget,
    rate: (isNew ? null : before?.rate) ?? new LearnedRate(),
  };
}

/** How far (ms) the heads that a provider pushes may be behind those that it answers polls with. */
const SOCKET_TRAILS_MS = 2_000;
/** So often running it is found to be further behind. */
const POLLS_AHEAD = 2;

const FRESH = { out: null, askedAtMs: NEVER_MS, unheardSinceMs: NEVER_MS } as const;

/** The last block that a call reads, if it names it by number. */
function lastBlock(block: BlockRef): number | null {
  if (block.kind === "number") return block.number;
  return block.kind === "range" ? block.to : null;
}

/** The channel of a successor with the same health keeps the attempts in flight. */
function watchedOf(
  channel: Channel,
  health: Health | null,
  before: ProviderState | null,
): WatchedChannel | null {
  if (health === null) return null;
  const known = before?.watched[channel.transport] ?? null;
  const { out, askedAtMs, unheardSinceMs } = known?.health === health ? known : FRESH;
  return {
    ...channel,
    health,
    out: out ?? new AttemptsOut<Outstanding>(),
    askedAtMs,
    unheardSinceMs,
  };
}

/**
 * How long (ms) a trial may keep its caller waiting: as long as answers to such calls usually take.
 */
function patienceMs(health: Health, method: Method): number {
  return Math.min(
    LONGEST_TRIAL_MS,
    Math.max(SHORTEST_TRIAL_MS, usualMs(health.latency, method, 0.95) ?? LONGEST_TRIAL_MS),
  );
}

/** Milliseconds until a circuit admits an attempt. */
function circuitWaitMs(breaker: Breaker, trialMs: number, nowMs: number): number {
  if (breaker.kind === "half_open" && breaker.trialAtMs !== null)
    return Math.max(LEAST_WAIT_MS, breaker.trialAtMs + trialMs - nowMs);
  return openRemainingMs(breaker, nowMs);
}

/** Most concurrent calls while every circuit of a set is open. */
const PANIC_SLOTS = 4;
/** Least interval between reachability checks of a provider. */
const ASK_EVERY_MS = 1_000;
const LONGEST_TRIAL_MS = 1_000;
const SHORTEST_TRIAL_MS = 20;
/** When a provider that refuses the service is probed again. */
const CORDON_PROBE_MS = 120_000;
/** The shortest `retry_after_ms`. */
const LEAST_WAIT_MS = 100;

function isUsable(health: Health | null, nowMs: number): boolean {
  return (
    health !== null &&
    !health.wrongChain &&
    health.cordon === null &&
    circuitOf(health, nowMs).kind !== "open"
  );
}

/** Whether it is usable, and calls do not hang at it. */
function isFlowing(health: Health | null, nowMs: number): boolean {
  return health !== null && !health.stall.isStalled(nowMs) && isUsable(health, nowMs);
}

/** Input of one plan. */
interface PlanQuery {
  readonly call: Call;
  readonly view: SetView;
  readonly strategy: Strategy;
  readonly pinned: boolean;
  readonly transport: Transport | null;
  /** The view at which the call is answered; null = none. */
  readonly at: View | null;
}

const ABSENT = {
  lacking: false,
  unsure: false,
  hasAnswered: false,
  reason: "transport_missing",
  reading: null,
  probeMs: null,
  breaker: CLOSED,
  limited: false,
  stalled: false,
  heardAtMs: NEVER_MS,
  lagBlocks: null,
} as const;

const UNLIMITED: readonly number[] = [Number.POSITIVE_INFINITY];

function isRangeLimited({ provider, http, ws }: ProviderState, nowMs: number): boolean {
  return (
    provider.maxBlockRange !== null ||
    learnedRange(http?.facts ?? null, nowMs) !== null ||
    learnedRange(ws?.facts ?? null, nowMs) !== null
  );
}
