// Makes a plan from the state of each provider: leaves out those that cannot serve the call, with
// the reason, puts the rest in the order of the strategy, and then sorts them by health tier. Knows
// no clock and keeps no state.
import type { Channel } from "../provider/attempt.ts";
import type { Breaker } from "../provider/breaker.ts";
import {
  type Exclusion,
  type ExclusionReason,
  type Waiver,
  waiverOf,
} from "../provider/capability.ts";
import type { Reading } from "../provider/latency.ts";
import type { Call } from "../rpc/call.ts";
import {
  type Draw,
  type Entrant,
  order,
  type SelectionSettings,
  type Strategy,
} from "./strategy.ts";

/** A provider that a plan considers, on the transport that it would use. */
export interface Considered extends Entrant, Channel {
  /** Why it cannot serve the call; null = it can. */
  readonly reason: ExclusionReason | null;
  /** As of the time of the plan: `settled` has been applied. */
  readonly breaker: Breaker;
  readonly limited: boolean;
  /** The provider stalls although its circuit is closed, and this call is not the trial call. */
  readonly stalled: boolean;
  /** It lacks the block at which the call is answered, or may lack what the call reads. */
  readonly lacking: boolean;
  /** It is not known to have the block that the call names by number. */
  readonly unsure: boolean;
  /** The call is of those that it is there for: it stands first in its tier. */
  readonly preferred: boolean;
  /** A good probe or answer came over its transport at least once. */
  readonly hasAnswered: boolean;
  /** When it last answered anything. */
  readonly heardAtMs: number;
  /** Blocks behind the head; null = unknown. */
  readonly lagBlocks: number | null;
}

/** What a plan reads of its call. */
export type PlannedCall = Pick<Call, "block" | "methodName">;

/** The inputs of a plan, kept so that other plans can be computed from them later. */
export interface PlanInputs extends PlannedCall {
  readonly strategy: Strategy;
  readonly replaySafe: boolean;
  readonly settings: SelectionSettings;
  readonly considered: readonly Considered[];
  /** What each other strategy that reads latencies would look at, by provider. */
  readonly readings: ReadonlyMap<Strategy, readonly (Reading | null)[]>;
  /** The random numbers that the plan took, in order. */
  readonly drawn: readonly number[];
}

/** A provider on one transport, and the time until it may be asked again. */
export interface Awaited extends Pick<Considered, "reason"> {
  readonly waitMs: number;
}

/**
 * The providers to ask, in order. Tiers by circuit and rate limit: closed; closed and limited or
 * stalled; half-open; half-open and limited or stalled. Then the same four tiers of providers that
 * may lack the block of the call, of providers that never answered, of `backup` providers, and of
 * providers that lack the block or may lack old logs. Open circuits are excluded. A plan names each
 * provider once. A small share of replay-safe calls tries a half-open provider first: otherwise one
 * whose neighbours are healthy would never be tried, and would never be found well again. Where no
 * candidate has a closed circuit, lagging providers follow, the freshest first: the providers ahead
 * of them are gone. Where one has, they are kept in reserve.
 */
export function planOf(
  considered: readonly Considered[],
  call: PlannedCall,
  strategy: Strategy,
  draw: Draw,
): Plan {
  const excluded: Exclusion[] = [];
  const capable = capableOf(considered, call, excluded);
  order(capable, strategy, draw, call.methodName);
  const lagWaived = capable[0]?.reason === "lagging";
  const tiers = tiersOf(capable);
  if (tiers === null) {
    const plan = { candidates: capable, excluded };
    if (excluded.length === 0 && !lagWaived) return plan;
    return withReserve(withWaiver(plan, lagWaived), considered);
  }
  const ranking: Ranking = { candidates: [], tiers: [] };
  const { candidates } = ranking;
  let hasTrial = false;
  for (const [at, considered] of capable.entries()) {
    const { provider, breaker } = considered;
    const reason = breaker.kind === "closed" ? null : circuitReason(breaker);
    if (reason === null) insertByTier(ranking, considered, tiers[at]);
    else excluded.push({ provider, reason });
    hasTrial ||= breaker.kind === "half_open";
  }
  if (!lagWaived && !candidates.some(({ breaker }) => breaker.kind === "closed")) {
    const lagging = laggingOf(considered);
    order(lagging, strategy, draw, call.methodName);
    if (lagging.length > 0) return withLagging({ candidates, excluded }, lagging);
  }
  if (hasTrial && draw.replaySafe) explore(candidates, draw);
  return withReserve(withWaiver({ candidates, excluded }, lagWaived), considered);
}

/** The plan with lagging providers in reserve, except those that lack the block. */
function withReserve(plan: Plan, considered: readonly Considered[]): Plan {
  if (plan.excluded.length === 0 || plan.lagWaived === true) return plan;
  const reserve = laggingOf(considered).filter(({ lacking }) => !lacking);
  return reserve.length === 0 ? plan : { ...plan, reserve: reserve.sort(byLag) };
}

/** The plan once lagging providers are asked as well, after all others. */
export function withReserveAsked(plan: Plan, reserve: readonly Channel[]): Plan {
  const { candidates, excluded } = plan;
  return {
    ...plan,
    candidates: [...candidates, ...reserve],
    excluded: excluded.filter(
      ({ provider }) => !reserve.some((added) => added.provider === provider),
    ),
    lagWaived: true,
  };
}

function withWaiver(plan: Plan, lagWaived: boolean): Plan {
  return lagWaived && plan.candidates.length > 0 ? { ...plan, lagWaived } : plan;
}

/** The providers that only lag, and whose circuits let them be asked. */
function laggingOf(considered: readonly Considered[]): Considered[] {
  return considered.filter(
    ({ reason, breaker }) => reason === "lagging" && circuitReason(breaker) === null,
  );
}

/** The plan with providers behind its candidates that it had excluded for their lag. */
function withLagging(plan: Plan, lagging: Considered[]): Plan {
  const behind: Considered[] = [];
  const ranking: Ranking = { candidates: behind, tiers: [] };
  for (const added of lagging.sort(byLag)) insertByTier(ranking, added);
  return withReserveAsked(plan, behind);
}

function byLag(left: Considered, right: Considered): number {
  return (left.lagBlocks ?? UNKNOWN_LAG) - (right.lagBlocks ?? UNKNOWN_LAG);
}

const UNKNOWN_LAG = Number.MAX_SAFE_INTEGER;

/**
 * The plan when every circuit of the set is open: the providers that could serve the call, the one
 * heard from last first; then lagging providers. Null = no provider could.
 */
export function panicPlanOf(considered: readonly Considered[], call: PlannedCall): Plan | null {
  const excluded: Exclusion[] = [];
  const capable = capableOf(considered, call, excluded).sort(byPanic);
  if (capable.length === 0) return null;
  if (capable[0]?.reason === "lagging")
    return { candidates: capable, excluded, panic: true, lagWaived: true };
  const lagging = considered.filter(({ reason }) => reason === "lagging").sort(byPanic);
  if (lagging.length === 0) return { candidates: capable, excluded, panic: true };
  return {
    candidates: [...capable, ...lagging],
    excluded: excluded.filter(({ reason }) => reason !== "lagging"),
    panic: true,
    lagWaived: true,
  };
}

/** The plan with some providers before all others that stand in the same tier. */
export function preferring(
  plan: Plan,
  considered: readonly Considered[],
  preferred: ReadonlySet<string>,
): Plan {
  const tiers = new Map(considered.map((each) => [each.provider.id, positionOf(each)]));
  const candidates = [...plan.candidates];
  for (const [from, candidate] of plan.candidates.entries()) {
    if (!preferred.has(candidate.provider.id)) continue;
    const tier = tiers.get(candidate.provider.id);
    let at = from;
    for (; at > 0; at--) {
      const before = candidates[at - 1];
      if (before === undefined || preferred.has(before.provider.id)) break;
      if (tiers.get(before.provider.id) !== tier) break;
      candidates[at] = before;
    }
    candidates[at] = candidate;
  }
  return { ...plan, candidates };
}

function byPanic(left: Considered, right: Considered): number {
  return (
    Number(left.lacking) - Number(right.lacking) ||
    Number(left.provider.backup) - Number(right.provider.backup) ||
    Number(left.limited) - Number(right.limited) ||
    right.heardAtMs - left.heardAtMs ||
    0
  );
}

/**
 * Milliseconds until some provider that can serve the call may be asked; null = waiting does not
 * help. Those that lag are asked while the others are not.
 */
export function waitOf(channels: readonly Awaited[], call: Call): number | null {
  const usable = channels.some(({ reason }) => reason === null) ? null : "limit";
  const able = channels.filter(({ reason }) => {
    const waiver = reason === null ? null : waiverOf(reason, call.block);
    return waiver === usable || waiver === "lag";
  });
  return able.length === 0 ? null : Math.min(...able.map((channel) => channel.waitMs));
}

/**
 * The position of a candidate's tier: 1 to 4; half of one less if it is there for such calls; 5
 * more if it is not known to have the block of the call, 10 if it never answered, 20 if it is a
 * backup, and 40 if it lacks the block.
 */
export function positionOf(considered: Considered): number {
  const { provider, breaker, limited, stalled, lacking, unsure, hasAnswered } = considered;
  const isBest = breaker.kind === "closed" && !limited && !stalled;
  return (
    (isBest ? 1 : tierOf(breaker, limited || stalled)) -
    (considered.preferred ? PREFERRED : 0) +
    (unsure ? OPEN_TIER : 0) +
    (hasAnswered ? 0 : 2 * OPEN_TIER) +
    (provider.backup ? 4 * OPEN_TIER : 0) +
    (lacking ? 8 * OPEN_TIER : 0)
  );
}

const OPEN_TIER = 5;
const PREFERRED = 0.5;

/** The tier of a provider's health, 1 to 4; 5 = open. */
export function tierOf(breaker: Breaker, limited: boolean): number {
  switch (breaker.kind) {
    case "closed":
      return limited ? 2 : 1;
    case "half_open":
      return limited ? 4 : 3;
    case "open":
      return OPEN_TIER;
  }
}

/** The better of the two transports of one provider; the first one if they are equal. */
export function betterOf(first: Considered, second: Considered, call: Call): Considered {
  return rankOf(second, call) < rankOf(first, call) ? second : first;
}

/**
 * Lower is better: the tier of a provider that can serve the call, then providers whose reason can
 * be waived, then the rest.
 */
function rankOf(considered: Considered, call: Call): number {
  const { reason, breaker, limited, stalled, hasAnswered } = considered;
  if (reason === null && breaker.kind === "open") return 2 * OPEN_TIER;
  if (reason === null) return tierOf(breaker, limited || stalled) + (hasAnswered ? 0 : OPEN_TIER);
  return waiverOf(reason, call.block) === "never" ? 20 : 15;
}

/**
 * The providers without a reason for exclusion; else those excluded for a limit, which may be out
 * of date; else lagging providers. Adds all others to `excluded`.
 */
function capableOf(
  considered: readonly Considered[],
  call: PlannedCall,
  excluded: Exclusion[],
): Considered[] {
  if (areAllCapable(considered)) return considered.slice();
  const waived = (waiver: Waiver): Considered[] =>
    considered.filter(({ reason }) => reason !== null && waiverOf(reason, call.block) === waiver);
  let capable = considered.filter(({ reason }) => reason === null);
  if (capable.length === 0) capable = waived("limit");
  if (capable.length === 0) capable = waived("lag");
  if (capable.length === considered.length) return capable;
  for (const candidate of considered) {
    const { provider, reason } = candidate;
    if (reason !== null && !capable.includes(candidate)) excluded.push({ provider, reason });
  }
  return capable;
}

function areAllCapable(considered: readonly Considered[]): boolean {
  for (const { reason } of considered) if (reason !== null) return false;
  return true;
}

/** The tier of each; null = all have closed circuits and stand in one: tiers change nothing. */
function tiersOf(considered: readonly Considered[]): readonly number[] | null {
  let tier: number | null = null;
  for (const each of considered) {
    const position = positionOf(each);
    if (each.breaker.kind !== "closed" || (tier ?? position) !== position)
      return considered.map(positionOf);
    tier = position;
  }
  return null;
}

function circuitReason(breaker: Breaker): ExclusionReason | null {
  if (breaker.kind === "open") return "circuit_open";
  return breaker.kind === "half_open" && breaker.trialAtMs !== null ? "trial_in_flight" : null;
}

/** Candidates in the order of their tiers, and the tier of each. */
interface Ranking {
  readonly candidates: Considered[];
  readonly tiers: number[];
}

/** Inserts behind the last candidate of the same or a better tier: keeps the order of a tier. */
function insertByTier(
  { candidates, tiers }: Ranking,
  added: Considered,
  tier = positionOf(added),
): void {
  let at = candidates.length;
  while (at > 0 && (tiers[at - 1] ?? 0) > tier) at--;
  candidates.splice(at, 0, added);
  tiers.splice(at, 0, tier);
}

function explore(candidates: Considered[], { settings, random }: Draw): void {
  const at = candidates.findIndex(
    ({ provider, breaker, limited, stalled, lacking }) =>
      breaker.kind === "half_open" && !limited && !stalled && !lacking && !provider.backup,
  );
  const trial = candidates[at];
  if (trial === undefined || at === 0 || random() >= settings.exploreShare) return;
  candidates.splice(at, 1);
  candidates.unshift(trial);
}

/** The channels to try, in order, and the excluded providers. No provider occurs twice. */
export interface Plan {
  readonly candidates: readonly Channel[];
  readonly excluded: readonly Exclusion[];
  /**
   * Every circuit of the set is open: the plan comes from `panicPlanOf`, and only a few calls at a
   * time may use it.
   */
  readonly panic?: true;
  /** Some of the candidates lag: they are asked since nobody else can be, or may be well. */
  readonly lagWaived?: true;
  /** Excluded since they lag, the freshest first: asked where every candidate turns out to fail. */
  readonly reserve?: readonly Channel[];
  /** Only where it was recorded. */
  readonly inputs?: PlanInputs;
}
