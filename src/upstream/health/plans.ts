// Plans for calls to one provider set, made from its routing state: which providers may be asked,
// in which order, and how long to wait if none may be asked now. Changes nothing.
import type { Channel, Counting } from "../../core/provider/attempt.ts";
import {
  HEAD_FRESH_MS,
  isFutureBlock,
  lacksBlock,
  lagBlocks,
  presenceOf,
} from "../../core/provider/blocks/head.ts";
import { type Breaker, CLOSED, openRemainingMs } from "../../core/provider/breaker.ts";
import {
  type Condition,
  capability,
  mayLack,
  rangeLimit,
  type SetView,
  unreachable,
} from "../../core/provider/capability.ts";
import {
  circuitOf,
  type Health,
  isBehind,
  methodLimitedForMs,
  NEVER_MS,
} from "../../core/provider/health.ts";
import { type Reading, reading, STALE_MS, usualMs } from "../../core/provider/latency.ts";
import { isAskedFor, type MethodScope } from "../../core/provider/method-scope.ts";
import {
  type Provider,
  type ProviderSet,
  type Transport,
  transportsOf,
} from "../../core/provider/profile.ts";
import type { StallRecord } from "../../core/provider/stall.ts";
import { isUnserved } from "../../core/provider/unserved-methods.ts";
import {
  type Awaited,
  betterOf,
  type Considered,
  type Plan,
  type PlanInputs,
  panicPlanOf,
  planOf,
  preferring,
  waitOf,
} from "../../core/routing/plan.ts";
import {
  type Draw,
  minCallsOf,
  type SelectionSettings,
  STRATEGIES,
  type Strategy,
} from "../../core/routing/strategy.ts";
import type { BlockRef, Call, View } from "../../core/rpc/call.ts";
import { isKnownByName, type Method } from "../../core/rpc/method.ts";
import type { Runtime } from "../../runtime.ts";
import { ProviderRecords } from "./provider-records.ts";
import { isUsable, type ProviderState, type RecordSettings } from "./provider-state.ts";

/** How the providers of a call are selected; a pin leaves no choice. */
export interface Selection {
  readonly strategy: Strategy;
  /** Null = the better transport of each provider; HTTP if they are equal. */
  readonly transport: Transport | null;
  readonly pin: Provider | null;
  /** What the outcome of the call counts for; absent = everything. */
  readonly counts?: Counting | undefined;
  /** True = the plan keeps the inputs that it was made from. */
  readonly record?: boolean;
  /**
   * The view of the chain in which the call is answered. Providers that lack its newest block are
   * asked last. Absent = none.
   */
  readonly view?: View | null | undefined;
  /** Ids of providers that are asked before the others of their tier. Absent = none. */
  readonly prefer?: ReadonlySet<string> | null | undefined;
}

/** Settings of plans. */
export type PlanSettings = SelectionSettings & RecordSettings;

/** Makes plans for calls to one provider set. */
export class Plans extends ProviderRecords {
  readonly #safe: Draw;
  readonly #unsafe: Draw;

  constructor(
    set: ProviderSet,
    runtime: Runtime,
    settings: PlanSettings,
    previous: ProviderRecords | undefined,
  ) {
    super(set, runtime, settings, previous);
    this.#safe = { settings, random: runtime.random, replaySafe: true };
    this.#unsafe = { ...this.#safe, replaySafe: false };
  }

  /**
   * Plans a call: the providers to try, in order. With a pin the plan holds at most the pinned
   * provider. A pin overrides the strategy and what the provider can serve, but not its circuit,
   * cordon or budget.
   */
  plan(call: Call, selection: Selection, nowMs = this.runtime.now()): Plan {
    const { counts = "all", pin, transport } = selection;
    if (counts === "all") return this.#plan(call, selection, nowMs);
    if (counts === "answers")
      return withOpenCircuits(this.#plan(call, selection, nowMs), transport);
    // `limits` and `nothing`: the provider and its transport are chosen already.
    const chosen = pin === null || transport === null ? [] : [{ provider: pin, transport }];
    return { candidates: chosen, excluded: [] };
  }

  #plan(call: Call, selection: Selection, nowMs: number): Plan {
    const { strategy, pin, prefer = null } = selection;
    const query = this.#queryOf(call, selection, nowMs);
    const usual = call.method.replaySafe ? this.#safe : this.#unsafe;
    const drawn: number[] | null = selection.record === true ? [] : null;
    const draw = drawn === null ? usual : recording(usual, drawn);
    if (pin !== null) {
      const state = this.stateOf(pin);
      return planOf(state === null ? [] : [this.#consider(state, query)], call, strategy, draw);
    }
    const considered = this.#considerAll(query);
    const plan = planOf(considered, call, strategy, draw);
    const isPanic = plan.candidates.length === 0 && this.#allOpen(call, query.view.nowMs);
    const made = isPanic ? (panicPlanOf(considered, call) ?? plan) : plan;
    if (prefer !== null) return preferring(made, considered, prefer);
    if (drawn === null) return made;
    const { block, methodName } = call;
    const { settings, replaySafe } = usual;
    const readings = this.#readingsFor(considered, query);
    // The inputs leave out the call itself, since its body is private to the caller.
    const inputs = {
      block,
      methodName,
      strategy,
      settings,
      replaySafe,
      considered,
      readings,
      drawn,
    };
    return { ...made, inputs };
  }

  /** The latency readings that other strategies would use, by strategy. */
  #readingsFor(considered: readonly Considered[], query: PlanQuery): PlanInputs["readings"] {
    const readings = new Map<Strategy, readonly (Reading | null)[]>();
    for (const { name, minCalls } of STRATEGIES)
      if (minCalls !== null && name !== query.strategy) {
        const calls = minCalls(this.#safe.settings);
        readings.set(
          name,
          considered.map((each) => this.#readingOf(each, query, calls)),
        );
      }
    return readings;
  }

  /** The latency reading for a strategy that needs `minCalls` calls. */
  #readingOf(
    { provider, transport }: Considered,
    { call, view }: PlanQuery,
    minCalls: number,
  ): Reading | null {
    const health = this.healthOf({ provider, transport });
    return health === null ? null : reading(health.latency, call.method, minCalls, view.nowMs);
  }

  /**
   * Milliseconds until some provider that can serve the call may be asked; null = waiting does not
   * help.
   */
  waitMs(call: Call, selection: Selection): number | null {
    const { pin, transport } = selection;
    const query = this.#queryOf(call, selection);
    const states =
      pin === null ? this.states : [this.stateOf(pin)].filter((state) => state !== null);
    const transports: readonly Transport[] = transport === null ? ["http", "ws"] : [transport];
    const isPanic = pin === null && this.#allOpen(call, query.view.nowMs);
    return waitOf(
      states.flatMap((state) =>
        transports.map((way) => this.#awaitedOn(state, way, query, isPanic)),
      ),
      call,
    );
  }

  /**
   * The largest block ranges (last minus first block) that the providers able to serve a call
   * accept, each once, largest first; infinite = a provider has no known limit. Empty = no provider
   * could serve the call.
   */
  rangeLimits(call: Call): readonly number[] {
    const nowMs = this.runtime.now();
    if (!this.states.some((state) => isRangeLimited(state, nowMs))) return UNLIMITED;
    const { block } = call;
    const first = block.kind === "range" && block.from !== null ? block.from : 0;
    const least = { ...call, block: { kind: "range", from: first, to: first } } as const;
    const query = this.#queryOf(least, { strategy: "priority", transport: null, pin: null });
    let usable: ProviderState[] = [];
    const lagging: ProviderState[] = [];
    const unsure = new Set<ProviderState>();
    let isSure = false;
    for (const state of this.states) {
      const { reason, breaker, lacking } = this.#consider(state, query);
      if (breaker.kind === "open") continue;
      if (lacking) unsure.add(state);
      if (reason === null) usable.push(state);
      else if (reason === "lagging") lagging.push(state);
      isSure ||= reason === null && breaker.kind === "closed";
    }
    // As in a plan: lagging providers are asked only if no other provider has a closed circuit.
    if (!isSure) usable.push(...lagging);
    // Neither a provider that may lack old logs nor a backup is preferred for a larger limit: they
    // count only if no other provider is usable.
    if (usable.some((state) => !unsure.has(state)))
      usable = usable.filter((state) => !unsure.has(state));
    const usual = usable.filter(({ provider }) => !provider.backup);
    const limits = (usual.length === 0 ? usable : usual).map(({ provider, http, ws }) => {
      const facts = http?.facts ?? ws?.facts ?? null;
      return rangeLimit(provider, call.method, facts, nowMs);
    });
    return [...new Set(limits)].sort((left, right) => right - left);
  }

  /** Whether the provider's budget allows a call of this method now. */
  hasRoom(provider: Provider, { methodName }: Pick<Call, "methodName">): boolean {
    const budget = this.stateOf(provider)?.budget ?? null;
    return budget === null || budget.shortageOf(methodName, this.runtime.now()) === null;
  }

  /** The latency (ms) within which a share of the answers to a method arrived; null = unknown. */
  usualMs({ provider, transport }: Channel, method: Method, share: number): number | null {
    const health = this.healthOf({ provider, transport });
    return health === null ? null : usualMs(health.latency, method, share);
  }

  /**
   * Whether the provider is healthy enough to be asked in addition to another provider, by a hedge
   * or a recheck.
   */
  mayBeAskedBeside({ provider, transport }: Channel, method: Method): boolean {
    const state = this.stateOf(provider);
    const health = state?.[transport] ?? null;
    if (state === null || health === null || health.breaker.kind !== "closed") return false;
    const nowMs = this.runtime.now();
    return (
      state.cordon === null &&
      !health.wrongChain &&
      health.cordon === null &&
      !health.stall.isStalled(nowMs) &&
      methodLimitedForMs(health, method, nowMs) === 0 &&
      !state.isSpared(nowMs)
    );
  }

  /**
   * For a call whose data `provider` lacks: which providers may have the data. `head`: the highest
   * head of the providers in the best health; `best`: ids of the providers that have this head;
   * `others`: ids of providers that must be left out. Null = no provider in the best health has a
   * higher head.
   */
  aheadOf(provider: Provider, call: Call) {
    const nowMs = this.runtime.now();
    const heightOf = ({ sample, highest }: ProviderState): number =>
      sample !== null && nowMs - sample.atMs < HEAD_FRESH_MS
        ? Math.max(sample.height, highest)
        : -1;
    const asked = this.stateOf(provider);
    if (asked === null) return null;
    const known = heightOf(asked);
    const least = call.block.kind === "number" ? Math.max(known + 1, call.block.number) : known + 1;
    const others = new Set<string>();
    const best = new Set<string>();
    let head = known;
    for (const state of this.states) {
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

  /**
   * For an object of unknown age that `provider` lacks: which healthy providers have all of what
   * the method reads, while it is not known to. Null = there is none.
   */
  beyondReachOf(provider: Provider, call: Call) {
    const { resource } = call.method;
    const hasAll = ({ history: { [resource]: bound } }: ProviderState): boolean =>
      bound !== null && bound.oldest === 0 && bound.window === Number.POSITIVE_INFINITY;
    const asked = this.stateOf(provider);
    if (asked === null || hasAll(asked)) return null;
    const best = this.states.filter((state) => hasAll(state) && this.#isInBestHealth(state, call));
    if (best.length === 0) return null;
    const ids = new Set(best.map((state) => state.provider.id));
    const rest = this.states.map((state) => state.provider.id).filter((id) => !ids.has(id));
    return { best: ids, others: new Set(rest) };
  }

  /** Whether a provider has the old blocks that a call reads; `has` as well if it reads none. */
  presenceOfOld(provider: Provider, call: Call): "has" | "lacks" | "unknown" {
    const state = this.stateOf(provider);
    if (state === null) return "unknown";
    const { archivalThreshold, maxLagBlocks } = this.set;
    const nowMs = this.runtime.now();
    const view = { nowMs, head: this.head(nowMs), archivalThreshold, maxLagBlocks };
    const { history, http, ws } = state;
    if (http?.facts?.isPruned(call, view) || ws?.facts?.isPruned(call, view)) return "lacks";
    if (!mayLack(history, call, view)) return "has";
    return history[call.method.resource] === null ? "unknown" : "lacks";
  }

  #isInBestHealth({ provider, region }: ProviderState, call: Call): boolean {
    return (
      !provider.backup &&
      region.reason === null &&
      isAskedFor(provider, call.methodName) &&
      this.hasRoom(provider, call) &&
      transportsOf(provider).some((transport) =>
        this.mayBeAskedBeside({ provider, transport }, call.method),
      )
    );
  }

  /** Whether no provider can have a block of this number yet. */
  isFutureBlock(number: number): boolean {
    const samples = this.states.map(({ sample }) => sample);
    return isFutureBlock(number, samples, this.set.chain, this.runtime.now());
  }

  #queryOf(
    call: Call,
    { strategy, transport, pin, view: at }: Selection,
    nowMs = this.runtime.now(),
  ): PlanQuery {
    const { maxLagBlocks, archivalThreshold } = this.set;
    const view: SetView = { nowMs, head: this.head(nowMs), archivalThreshold, maxLagBlocks };
    const pinned = pin !== null;
    return {
      call,
      view,
      strategy,
      minCalls: pinned ? null : minCallsOf(strategy, this.#safe.settings),
      isByName: isKnownByName(call.method),
      pinned,
      transport,
      at: at ?? null,
    };
  }

  #considerAll(query: PlanQuery): readonly Considered[] {
    const all: Considered[] = [];
    for (const state of this.states) all.push(this.#consider(state, query));
    return query.call.block.kind === "range" && !query.pinned ? this.#thatReach(all, query) : all;
  }

  /**
   * A list of results that ends before its range looks complete. So a provider that lacks the last
   * block is excluded if another provider is known to have it.
   */
  #thatReach(
    all: readonly Considered[],
    { call, view: { nowMs } }: PlanQuery,
  ): readonly Considered[] {
    const last = lastBlock(call.block);
    if (last === null) return all;
    const presences = this.states.map((state) => this.#presenceOf(state, last, nowMs));
    const isThere = all.some(({ reason }, at) => reason === null && presences[at] === "has");
    if (!isThere) return all;
    return all.map((considered, at) =>
      considered.reason === null && presences[at] === "lacks"
        ? { ...considered, reason: "block_missing" }
        : considered,
    );
  }

  /** Considers a provider on the requested transport, or on the better of its two. */
  #consider(state: ProviderState, query: PlanQuery): Considered {
    const { transport, call } = query;
    if (transport !== null) return this.#considerOn(state, transport, query);
    if (state.ws === null) return this.#considerOn(state, "http", query);
    if (state.http === null) return this.#considerOn(state, "ws", query);
    const first = this.#considerOn(state, "http", query);
    // A healthy HTTP channel cannot be beaten by the WebSocket.
    if (
      first.reason === null &&
      first.breaker.kind === "closed" &&
      first.hasAnswered &&
      !first.limited &&
      !first.stalled
    )
      return first;
    return betterOf(first, this.#considerOn(state, "ws", query), call);
  }

  #considerOn(state: ProviderState, transport: Transport, query: PlanQuery): Considered {
    const { provider, region } = state;
    const { regionRank } = region;
    const { scope = null } = provider;
    const health = state[transport];
    if (health === null) return { ...ABSENT, provider, transport, regionRank };
    const { call, minCalls, at } = query;
    const { nowMs } = query.view;
    const condition = this.#conditionOf(state, transport, health, query);
    const reason =
      (scope === null || isAskedFor(provider, call.methodName, query.pinned)
        ? null
        : OUT_OF_SCOPE) ??
      (query.pinned
        ? unreachable(provider, condition)
        : (region.reason ?? capability(provider, call, query.view, condition))) ??
      state.budget?.shortageOf(call.methodName, nowMs) ??
      null;
    const known = minCalls === null ? null : reading(health.latency, call.method, minCalls, nowMs);
    const probeMs = nowMs - health.probedAtMs < STALE_MS ? health.probeMs : null;
    const last = call.resolution === undefined ? lastBlock(call.block) : null;
    const presence = last === null ? null : this.#presenceOf(state, last, nowMs);
    const isHanging = health.stall.hung > 0 && health.stall.isStalled(nowMs);
    const stalled = isHanging && this.#isAskedLater(state, health.stall, query);
    const isThrottled = health.throttle !== null || health.methodThrottles.size > 0;
    const limited =
      (isThrottled && methodLimitedForMs(health, call.method, nowMs) > 0) || state.isSpared(nowMs);
    return {
      provider,
      transport,
      reason,
      reading: known,
      probeMs,
      regionRank,
      breaker: health.breaker.kind === "closed" ? health.breaker : circuitOf(health, nowMs),
      limited,
      stalled,
      lacking:
        (call.method.resource === "logs" && mayLack(state.history, call, query.view)) ||
        (presence === null
          ? at !== null && this.blocks.view.lacks(state, at, nowMs)
          : presence === "lacks"),
      unsure: presence === "unknown",
      preferred: scope !== null && isGivenFirst(scope, call),
      hasAnswered: health.hasAnswered,
      heardAtMs: health.heardAtMs,
      lagBlocks: condition.lagBlocks,
    };
  }

  /**
   * Whether a provider at which calls hang is asked after the others. A read that is due as its
   * trial is not moved back, unless calls hang at all other usable providers too.
   */
  #isAskedLater({ provider }: ProviderState, stall: StallRecord, query: PlanQuery): boolean {
    const { call, view } = query;
    if (!call.method.replaySafe || !stall.isTrialDue(view.nowMs)) return true;
    return !this.hasOther(provider, view.nowMs, isFlowing);
  }

  #presenceOf({ sample, highest }: ProviderState, block: number, nowMs: number) {
    return highest >= block ? "has" : presenceOf(sample, block, this.set.chain, nowMs);
  }

  #conditionOf(
    state: ProviderState,
    transport: Transport,
    health: Health,
    { call, view, pinned, isByName }: PlanQuery,
  ): Condition {
    const { nowMs } = view;
    const lag = pinned ? null : lagBlocks(state.sample, view.head, this.set.chain, nowMs);
    const lacking =
      state.listening &&
      call.block.kind === "number" &&
      lacksBlock(state.sample, call.block.number, view.head, nowMs);
    const unserved = isByName && isUnserved(state.unserved, call.methodName, nowMs);
    return {
      transport,
      wrongChain: health.wrongChain,
      cordoned: health.cordon !== null,
      cordonedByOperator: state.cordon !== null,
      behind: lacking || (health.behindAtMs !== NEVER_MS && isBehind(health, nowMs)),
      lagBlocks: lag,
      facts: health.facts,
      history: state.history,
      unserved,
    };
  }

  /**
   * When a provider can serve a call on one transport, or why it cannot. In a panic an open circuit
   * causes no wait.
   */
  #awaitedOn(
    state: ProviderState,
    transport: Transport,
    query: PlanQuery,
    isPanic: boolean,
  ): Awaited {
    const health = state[transport];
    if (health === null) return { reason: "transport_missing", waitMs: 0 };
    const { call, view, pinned } = query;
    const { nowMs } = view;
    // A probe may end a wrong chain or a cordon, so these cause a wait and are no reason against
    // the provider.
    const now = this.#conditionOf(state, transport, health, query);
    const condition = { ...now, wrongChain: false, cordoned: false };
    const reason =
      (isAskedFor(state.provider, call.methodName, pinned) ? null : OUT_OF_SCOPE) ??
      (pinned
        ? unreachable(state.provider, condition)
        : (state.region.reason ?? capability(state.provider, call, view, condition)));
    const wrongChainMs = health.wrongChain ? this.set.probeIntervalMs : 0;
    const excluded = health.cordon === null ? wrongChainMs : CORDON_PROBE_MS;
    const untilProbeMs =
      excluded === 0 ? 0 : Math.max(LEAST_WAIT_MS, health.probedAtMs + excluded - nowMs);
    return {
      reason,
      waitMs: Math.max(
        untilProbeMs,
        state.budget?.waitMs(call.methodName) ?? 0,
        isPanic
          ? 0
          : circuitWaitMs(circuitOf(health, nowMs), patienceMs(health, call.method), nowMs),
      ),
    };
  }

  /**
   * Whether only circuits keep all providers from being asked: some providers may be asked but for
   * their circuits, and all these circuits are open.
   */
  #allOpen({ methodName }: Call, nowMs: number): boolean {
    const askable = this.states
      .filter(
        ({ provider, region, cordon }) =>
          region.reason === null && cordon === null && isAskedFor(provider, methodName),
      )
      .flatMap(({ http, ws }) => [http, ws])
      .filter((health) => health !== null && !health.wrongChain && health.cordon === null);
    return (
      askable.length > 0 &&
      askable.every((health) => health !== null && circuitOf(health, nowMs).kind === "open")
    );
  }
}

/** The number of the last block that a call reads; null = the call names no number. */
function lastBlock(block: BlockRef): number | null {
  if (block.kind === "number") return block.number;
  return block.kind === "range" ? block.to : null;
}

/**
 * How long (ms) a trial may keep its caller waiting: the time within which 95 % of the answers to
 * the method arrive, within bounds.
 */
export function patienceMs(health: Health, method: Method): number {
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

const LONGEST_TRIAL_MS = 1_000;
const SHORTEST_TRIAL_MS = 20;
/** Time from one probe of a cordoned provider to the next. */
const CORDON_PROBE_MS = 120_000;
/** The shortest `retry_after_ms`. */
const LEAST_WAIT_MS = 100;

/** Whether a channel is usable, and calls do not hang there. */
function isFlowing(health: Health | null, nowMs: number): boolean {
  return health !== null && !health.stall.isStalled(nowMs) && isUsable(health, nowMs);
}

/** Input of one plan. */
interface PlanQuery {
  readonly call: Call;
  readonly view: SetView;
  readonly strategy: Strategy;
  /**
   * Calls that the strategy needs of a provider to read its latency; null = it reads no latency.
   */
  readonly minCalls: number | null;
  /** The method has no built-in row, so refusals are learned by name. */
  readonly isByName: boolean;
  readonly pinned: boolean;
  readonly transport: Transport | null;
  /** The view of the chain in which the call is answered; null = none. */
  readonly at: View | null;
}

/** Whether a provider is there for such calls. */
function isGivenFirst({ first }: MethodScope, { method }: Call): boolean {
  return first === "all" || (first === "logs" && method.resource === "logs");
}

const OUT_OF_SCOPE = "out_of_scope";

const ABSENT = {
  lacking: false,
  unsure: false,
  preferred: false,
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
    (http?.facts?.range(nowMs) ?? null) !== null ||
    (ws?.facts?.range(nowMs) ?? null) !== null
  );
}

/** A draw that appends its random numbers to `drawn`. */
function recording(draw: Draw, drawn: number[]): Draw {
  const random = (): number => {
    const number = draw.random();
    drawn.push(number);
    return number;
  };
  return { ...draw, random };
}

/**
 * Adds the providers with an open circuit to a plan, after all others; does nothing without a fixed
 * transport.
 */
function withOpenCircuits({ candidates, excluded }: Plan, transport: Transport | null): Plan {
  if (transport === null) return { candidates, excluded };
  const isOpen = ({ reason }: Plan["excluded"][number]): boolean =>
    reason === "circuit_open" || reason === "trial_in_flight";
  const last = excluded.filter(isOpen).map(({ provider }) => ({ provider, transport }));
  return {
    candidates: [...candidates, ...last],
    excluded: excluded.filter((exclusion) => !isOpen(exclusion)),
  };
}
