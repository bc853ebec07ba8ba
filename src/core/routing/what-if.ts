// What another plan of the same call would have been: under another strategy, or without one of the
// providers. Made by the same functions from the inputs that were recorded with the plan. Knows no
// clock. Its random numbers are the call's own, then a sequence derived from them.
import {
  type Considered,
  type Plan,
  type PlanInputs,
  panicPlanOf,
  planOf,
  positionOf,
} from "./plan.ts";
import { type Entrants, orderReason, type Strategy } from "./strategy.ts";

/** The change to a plan. */
export interface PlanChange {
  readonly strategy: Strategy;
  /** Id of a provider that is left out; null = none. */
  readonly without: string | null;
}

/** Another plan of a call. */
export interface AlternativePlan extends Pick<Plan, "excluded" | "panic"> {
  /**
   * In the order that the random numbers of the call give; `firstShare`: of how many of the
   * drawings it comes first, 0 to 1.
   */
  readonly candidates: readonly { readonly considered: Considered; readonly firstShare: number }[];
  /** Whether other random numbers would give another order. */
  readonly isRandom: boolean;
}

/** How often an order is drawn to learn who comes first. */
const DRAWINGS = 500;

/** What the plan would have been. */
export function alternativePlan(inputs: PlanInputs, change: PlanChange): AlternativePlan {
  const considered = consideredUnder(inputs, change);
  const { drawn } = inputs;
  const random = sequenceAfter(drawn);
  const own = ordered(inputs, considered, change.strategy, recordedFirst(drawn, random));
  const first = new Map<string, number>();
  const ids = idsOf(own);
  let isRandom = false;
  for (let drawing = 0; drawing < DRAWINGS; drawing++) {
    const plan = ordered(inputs, considered, change.strategy, random);
    const [leader] = plan.candidates;
    if (leader !== undefined)
      first.set(leader.provider.id, (first.get(leader.provider.id) ?? 0) + 1);
    isRandom ||= idsOf(plan) !== ids;
  }
  const byId = new Map(considered.map((each) => [each.provider.id, each]));
  return {
    candidates: own.candidates.flatMap(({ provider: { id } }) => {
      const each = byId.get(id);
      const firstShare = (first.get(id) ?? 0) / DRAWINGS;
      return each === undefined ? [] : [{ considered: each, firstShare }];
    }),
    excluded: own.excluded,
    isRandom,
    ...(own.panic === true ? { panic: true } : {}),
  };
}

/** The providers of a plan as another strategy sees them. */
export function consideredUnder(
  inputs: PlanInputs,
  { strategy, without }: PlanChange,
): readonly Considered[] {
  const readings = inputs.readings.get(strategy);
  const considered =
    strategy === inputs.strategy
      ? inputs.considered
      : inputs.considered.map((each, at) => ({ ...each, reading: readings?.[at] ?? null }));
  return considered.filter(({ provider }) => provider.id !== without);
}

/** Why a candidate stands where it stands, in a few words: its tier, or what the strategy saw. */
export function positionReason(candidate: Considered, strategy: Strategy, among: Entrants): string {
  return positionOf(candidate) === 1
    ? orderReason(candidate, strategy, among)
    : tierReasons(candidate).join(", ");
}

function tierReasons(candidate: Considered): readonly string[] {
  const { provider, breaker, limited, stalled, lacking, unsure, hasAnswered } = candidate;
  return [
    ...(candidate.preferred ? ["there for such calls"] : []),
    ...(lacking ? ["lacks the block"] : []),
    ...(provider.backup ? ["backup"] : []),
    ...(hasAnswered ? [] : ["never answered"]),
    ...(unsure ? ["not known to have the block"] : []),
    ...(breaker.kind === "closed" ? [] : [CIRCUIT_REASONS[breaker.kind]]),
    ...(limited || stalled ? ["limited or stalled"] : []),
  ];
}

const CIRCUIT_REASONS = { half_open: "half-open circuit", open: "open circuit" } as const;

function ordered(
  inputs: PlanInputs,
  considered: readonly Considered[],
  strategy: Strategy,
  random: () => number,
): Plan {
  const { settings, replaySafe } = inputs;
  const plan = planOf(considered, inputs, strategy, { settings, replaySafe, random });
  if (plan.candidates.length > 0 || !areAllOpen(considered)) return plan;
  return panicPlanOf(considered, inputs) ?? plan;
}

/** Whether some could be asked apart from their circuits, and all of these are open. */
function areAllOpen(considered: readonly Considered[]): boolean {
  const askable = considered.filter(({ reason }) => !NEVER_ASKED.has(reason ?? ""));
  return askable.length > 0 && askable.every(({ breaker }) => breaker.kind === "open");
}

const NEVER_ASKED: ReadonlySet<string> = new Set(
  "wrong_chain cordoned other_region transport_missing out_of_scope".split(" "),
);

function idsOf({ candidates }: Plan): string {
  return JSON.stringify(candidates.map(({ provider }) => provider.id));
}

/** The recorded numbers, and then those of a sequence. */
function recordedFirst(drawn: readonly number[], random: () => number): () => number {
  let at = 0;
  return () => drawn[at++] ?? random();
}

/** Uniform numbers in [0, 1) that follow from the recorded ones alone (mulberry32). */
function sequenceAfter(drawn: readonly number[]): () => number {
  let state = 0x9e3779b9;
  for (const number of drawn) state = (Math.imul(state, 31) + Math.floor(number * 2 ** 32)) | 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
