// From what is known of each provider to a plan: who is left out and why, the strategy's order,
// then the health tiers. Knows no clock and keeps nothing.
import type { Channel } from "../provider/attempt.ts";
import type { Breaker } from "../provider/breaker.ts";
import { waiverOf } from "../provider/capability.ts";
import type { Exclusion, ExclusionReason } from "../provider/exclusion.ts";
import type { Call } from "../rpc/call.ts";
import type { Strategy } from "./strategy.ts";
import { type Draw, type Entrant, order } from "./strategy.ts";

/** A provider as a plan sees it, on the transport that would be taken. */
export interface Considered extends Entrant, Channel {
  /** Why it cannot serve the call; null = it can. */
  readonly reason: ExclusionReason | null;
  /** Settled for the time of the plan. */
  readonly breaker: Breaker;
  readonly limited: boolean;
  /** When it last answered anything. */
  readonly heardAtMs: number;
}

/** A provider on one transport, and how long it takes until it may be asked again. */
export interface Awaited extends Pick<Considered, "reason"> {
  readonly waitMs: number;
}

/**
 * Who may be asked, in order. Tiers: closed, closed and limited, half-open, half-open and limited;
 * open ones are left out. A provider is never asked twice in a plan. A small share of replay-safe
 * calls asks a half-open provider first: without it, one whose neighbours are well would never be
 * asked again.
 */
export function planOf(
  considered: readonly Considered[],
  call: Call,
  strategy: Strategy,
  draw: Draw,
): Plan {
  const excluded: Exclusion[] = [];
  const capable = capableOf(considered, call, excluded);
  order(capable, strategy, draw);
  const candidates: Considered[] = [];
  for (const it of capable) {
    const reason = circuitReason(it.breaker);
    if (reason === null) insertByTier(candidates, it);
    else excluded.push({ provider: it.provider, reason });
  }
  if (draw.replaySafe) exploreHalfOpen(candidates, draw);
  return { candidates, excluded };
}

/**
 * Whom to ask when every circuit of the set is open: those who could serve the call, the one that
 * answered last first. Null = nobody could.
 */
export function panicPlanOf(considered: readonly Considered[], call: Call): Plan | null {
  const excluded: Exclusion[] = [];
  const candidates = capableOf(considered, call, excluded);
  if (candidates.length === 0) return null;
  candidates.sort(
    (left, right) =>
      Number(left.limited) - Number(right.limited) || right.heardAtMs - left.heardAtMs || 0,
  );
  return { candidates, excluded, panic: true };
}

/** How long until one of those who could serve a call may be asked; null = waiting cannot help. */
export function waitOf(channels: readonly Awaited[], call: Call): number | null {
  for (const waiver of [null, "limit", "lag"] as const) {
    const able = channels.filter(({ reason }) =>
      reason === null
        ? waiver === null
        : waiver !== null && waiverOf(reason, call.block) === waiver,
    );
    if (able.length > 0) return Math.min(...able.map((it) => it.waitMs));
  }
  return null;
}

/** The position of a provider's tier, 1 to 4; 5 = open. */
export function tierOf(breaker: Breaker, limited: boolean): number {
  switch (breaker.kind) {
    case "closed":
      return limited ? 2 : 1;
    case "half_open":
      return limited ? 4 : 3;
    case "open":
      return 5;
  }
}

/** The better of two ways of reaching one provider; the first where they are alike. */
export function betterOf(first: Considered, second: Considered, call: Call): Considered {
  return rankOf(second, call) < rankOf(first, call) ? second : first;
}

/**
 * Tier of one that can serve the call; behind them those whose reason may be set aside, then the
 * rest.
 */
function rankOf({ reason, breaker, limited }: Considered, call: Call): number {
  if (reason === null) return tierOf(breaker, limited);
  return waiverOf(reason, call.block) === "never" ? 20 : 10;
}

/**
 * Those without a reason against them; if that is nobody, those whose limits may be stale; if that
 * is nobody, those that lag.
 */
function capableOf(
  considered: readonly Considered[],
  call: Call,
  excluded: Exclusion[],
): Considered[] {
  let capable = considered.filter((it) => it.reason === null);
  if (capable.length === 0)
    capable = considered.filter(
      (it) => it.reason !== null && waiverOf(it.reason, call.block) === "limit",
    );
  if (capable.length === 0)
    capable = considered.filter(
      (it) => it.reason !== null && waiverOf(it.reason, call.block) === "lag",
    );
  if (capable.length === considered.length) return capable;
  for (const it of considered) {
    if (it.reason !== null && !capable.includes(it))
      excluded.push({ provider: it.provider, reason: it.reason });
  }
  return capable;
}

function circuitReason(breaker: Breaker): ExclusionReason | null {
  if (breaker.kind === "open") return "circuit_open";
  return breaker.kind === "half_open" && breaker.trialAtMs !== null ? "trial_in_flight" : null;
}

/** Behind all of its own tier and better ones: the strategy's order stays within a tier. */
function insertByTier(candidates: Considered[], it: Considered): void {
  const tier = tierOf(it.breaker, it.limited);
  let at = candidates.length;
  candidates.push(it);
  for (; at > 0; at--) {
    const before = candidates[at - 1];
    if (before === undefined || tierOf(before.breaker, before.limited) <= tier) break;
    candidates[at] = before;
  }
  candidates[at] = it;
}

function exploreHalfOpen(candidates: Considered[], { settings, random }: Draw): void {
  const at = candidates.findIndex((it) => it.breaker.kind === "half_open" && !it.limited);
  const trial = candidates[at];
  if (trial === undefined || at === 0 || random() >= settings.exploreShare) return;
  candidates.splice(at, 1);
  candidates.unshift(trial);
}

/** Who may be asked, in order, and how. No provider occurs twice. */
export interface Plan {
  readonly candidates: readonly Channel[];
  readonly excluded: readonly Exclusion[];
  /**
   * Every circuit of the set is open: the candidates are the least bad, and only a few calls at
   * once may ask them.
   */
  readonly panic?: true;
}
