// Whether a provider can serve a call at all, from its declared limits, what its refusals taught,
// and the head of the chain. Knows neither strategies nor circuits.

import { isFresh } from "../fresh.ts";
import { type BlockRef, type Call, OPTIONAL_TAGS, type OptionalTag } from "../rpc/call.ts";
import { isKnownByName, METHODS, type Method, RESOURCES, type Resource } from "../rpc/method.ts";
import type { Effect } from "./attempt.ts";
import type { Shortage } from "./budget/budget-limits.ts";
import {
  ARCHIVED,
  type HistoryBound,
  type KnownHistory,
  type PlannedHistory,
  WHOLE,
} from "./history.ts";
import type { Provider, Transport } from "./profile.ts";

/** Facts that apply to every provider of a set at one moment. */
export interface SetView {
  readonly nowMs: number;
  /** Consensus height; null = unknown. */
  readonly head: number | null;
  readonly archivalThreshold: number;
  readonly maxLagBlocks: number;
}

/** The condition of one provider on one transport, besides its declaration. */
export interface Condition {
  readonly transport: Transport;
  readonly wrongChain: boolean;
  readonly cordoned: boolean;
  /** An operator took it out of use. */
  readonly cordonedByOperator: boolean;
  /** Its own error said that it is behind. */
  readonly behind: boolean;
  /** Null = unknown, which excludes nobody. */
  readonly lagBlocks: number | null;
  readonly facts: LearnedFacts | null;
  /** How far back it has what calls read. */
  readonly history: PlannedHistory;
  /**
   * The provider said that it does not serve this method, and the method has no row in the table.
   */
  readonly unserved: boolean;
}

/**
 * When a reason for exclusion may be waived because no other provider is left. `limit`: first,
 * since a declared or learned limit may be out of date. `lag`: only if that finds nobody. `never`:
 * not at all.
 */
export type Waiver = "limit" | "lag" | "never";

/** How long a learned fact is valid. */
export const FACT_MS = 600_000;
/** How long it holds where the caller may have chosen the words that taught it. */
export const BRIEF_MS = 30_000;
/** How long a learned block range is valid. */
export const RANGE_FACT_MS = 3_600_000;

/**
 * A refused range of fewer blocks than this, without a number in the error, is about the amount of
 * logs: no block range is learned from it.
 */
const LEAST_GUESSED_RANGE = 100;
const GUESSED_SHARE = 0.75;
/**
 * Method rows below this index are shared by many names: nothing learned of one name applies to
 * another.
 */
const FIRST_NAMED_METHOD = 2;

/** Why a provider cannot serve a call; null = it can. */
export function capability(
  provider: Provider,
  call: Call,
  view: SetView,
  condition: Condition,
): ExclusionReason | null {
  return (
    unreachable(provider, condition) ??
    unsupported(provider, call, view, condition) ??
    (call.block.kind === "none" || call.block.kind === "tag"
      ? null
      : beyondLimits(provider, call, view, condition)) ??
    (condition.behind || (condition.lagBlocks !== null && condition.lagBlocks > view.maxLagBlocks)
      ? "lagging"
      : null)
  );
}

/** Why a provider must not be asked at all over a transport, pinned or not; null = it may be. */
export function unreachable(provider: Provider, condition: Condition): ExclusionReason | null {
  if ((condition.transport === "http" ? provider.url : provider.wsUrl) === null)
    return "transport_missing";
  if (condition.cordonedByOperator) return "cordoned_by_operator";
  if (condition.wrongChain) return "wrong_chain";
  return condition.cordoned ? "cordoned" : null;
}

/** When a reason may be waived so that some provider remains. */
export function waiverOf(reason: ExclusionReason, block: BlockRef): Waiver {
  return reason === "archival_required" && block.kind === "earliest" ? "never" : WAIVERS[reason];
}

/** What of a call says which old blocks it reads. */
type OldRead = Pick<Call, "method" | "block">;

/** The block that an attempt read, and the head and time at its end. */
export interface CallEnding {
  readonly block: BlockRef;
  readonly head: number | null;
  readonly nowMs: number;
}

/** What the refusals of a provider taught: the time (ms) at which each fact was learned. */
export class LearnedFacts {
  /** By method index. */
  readonly methodAtMs = new Float64Array(METHODS.length).fill(NEVER);
  /** By method index × tag. */
  readonly #tagAtMs = new Float64Array(METHODS.length * OPTIONAL_TAGS.length).fill(NEVER);
  /** By resource. */
  readonly #prunedAtMs = new Float64Array(RESOURCES.length).fill(NEVER);
  /** By resource: the oldest block that is left, as the refusal named it; infinite = not named. */
  readonly #oldestLeft = new Float64Array(RESOURCES.length).fill(Number.POSITIVE_INFINITY);
  /** By method index: old blocks were said to be gone in a refusal of this method alone. */
  readonly #prunedMethodAtMs = new Float64Array(METHODS.length).fill(NEVER);
  #maxBlockRange = 0;
  #rangeAtMs = NEVER;

  /**
   * Learns from the refusal of a call of `block`. Unlisted methods share a row and are learned by
   * name, in `unserved-methods.ts`.
   */
  learn(
    method: Method,
    effect: Extract<Effect, { kind: "learn" }>,
    { block, head, nowMs }: CallEnding,
  ): void {
    const isBrief = effect.brief === true;
    const atMs = learnedAtMs(nowMs, isBrief);
    const hasOwnRow = method.index >= FIRST_NAMED_METHOD && !isKnownByName(method);
    switch (effect.what) {
      case "method":
        if (hasOwnRow) learnAt(this.methodAtMs, method.index, atMs);
        return;
      case "tag":
        if (method.index >= FIRST_NAMED_METHOD && block.kind === "tag")
          learnAt(this.#tagAtMs, tagCell(method, block.tag), atMs);
        return;
      case "pruned":
        // What the method reads, and nothing else, was dropped for old blocks.
        if (!isBrief) this.#learnPruned(method.resource, effect.oldest ?? null, block, nowMs);
        else if (hasOwnRow) this.#prunedMethodAtMs[method.index] = nowMs;
        return;
      // A range binds every method that reads logs.
      case "range":
        if (bindsRange(method) && !isBrief)
          this.#learnRange(effect.maxBlockRange, blockSpan(method, block, head), nowMs);
        return;
      // A refused kind of subscription says nothing about the others.
      case "subscription":
        return;
    }
  }

  /** A number that does not explain the refusal of this block counts as none. */
  #learnPruned(resource: Resource, named: number | null, block: BlockRef, nowMs: number): void {
    const at = RESOURCES.indexOf(resource);
    const isPlausible = named !== null && isBeyond(block, { ...WHOLE, oldest: named }, null, 0);
    this.#prunedAtMs[at] = nowMs;
    this.#oldestLeft[at] = isPlausible ? named : Number.POSITIVE_INFINITY;
  }

  /**
   * Learns the largest block range: the limit that the error names, or else three quarters of the
   * span that was refused (null = neither is known). One block less would be refused as well, and
   * so would be nearly every part of that size.
   */
  #learnRange(named: number | null, refusedSpan: number | null, nowMs: number): void {
    if (named !== null) {
      if (!(named >= 1)) return;
      this.#maxBlockRange = named;
    } else {
      if (refusedSpan === null || refusedSpan < LEAST_GUESSED_RANGE) return;
      const guessed = Math.floor(refusedSpan * GUESSED_SHARE);
      this.#maxBlockRange = Math.min(this.range(nowMs) ?? guessed, guessed);
    }
    this.#rangeAtMs = nowMs;
  }

  /** Forgets that a method is not served, after it was. */
  unlearn({ index }: Method): void {
    this.methodAtMs[index] = NEVER;
  }

  isUnserved({ index }: Method, nowMs: number): boolean {
    return isFresh(this.methodAtMs[index], FACT_MS, nowMs);
  }

  isTagRefused(method: Method, tag: OptionalTag, nowMs: number): boolean {
    return isFresh(this.#tagAtMs[tagCell(method, tag)], FACT_MS, nowMs);
  }

  /** Whether a call reads old blocks of something that was said to be gone. */
  isPruned(call: OldRead, view: SetView): boolean {
    const { method, block } = call;
    const { nowMs, head, archivalThreshold } = view;
    const isBrief = isFresh(this.#prunedMethodAtMs[method.index], BRIEF_MS, nowMs);
    const left = isBrief ? Number.POSITIVE_INFINITY : this.oldestLeft(method.resource, nowMs);
    if (left === null) return false;
    return left === Number.POSITIVE_INFINITY
      ? readsOldBlocks(call, view)
      : isBeyond(block, { ...WHOLE, oldest: left }, head, archivalThreshold);
  }

  /**
   * The oldest block that refusals left of a resource; infinite = old ones are gone, null = none
   * was refused.
   */
  oldestLeft(resource: Resource, nowMs: number): number | null {
    const at = RESOURCES.indexOf(resource);
    return isFresh(this.#prunedAtMs[at], FACT_MS, nowMs) ? (this.#oldestLeft[at] ?? null) : null;
  }

  /** The largest block range, if still valid; null = none. */
  range(nowMs: number): number | null {
    return isFresh(this.#rangeAtMs, RANGE_FACT_MS, nowMs) ? this.#maxBlockRange : null;
  }

  /** Names of the methods that are not served. */
  methods(nowMs: number): readonly string[] {
    return METHODS.filter((method) => this.isUnserved(method, nowMs)).map(({ name }) => name);
  }

  /** What was dropped for old blocks. */
  pruned(nowMs: number): readonly Resource[] {
    return RESOURCES.filter((resource) => this.oldestLeft(resource, nowMs) !== null);
  }
}

/** When a fact counts as learned that is learned now: a brief one has only `BRIEF_MS` left. */
export function learnedAtMs(nowMs: number, isBrief: boolean): number {
  return isBrief ? nowMs - (FACT_MS - BRIEF_MS) : nowMs;
}

/** A fact that holds for longer stays. */
function learnAt(facts: Float64Array, cell: number, atMs: number): void {
  facts[cell] = Math.max(facts[cell] ?? NEVER, atMs);
}

/**
 * The largest block range that a provider accepts for a method, declared or learned; infinite =
 * none is known.
 */
export function rangeLimit(
  { maxBlockRange }: Provider,
  method: Method,
  facts: LearnedFacts | null,
  nowMs: number,
): number {
  if (!bindsRange(method)) return Number.POSITIVE_INFINITY;
  return Math.min(
    maxBlockRange ?? Number.POSITIVE_INFINITY,
    facts?.range(nowMs) ?? Number.POSITIVE_INFINITY,
  );
}

/**
 * Whether a call reads old blocks of which the provider is not known to have what is asked for: an
 * empty answer may mean that it was dropped.
 */
export function mayLack(history: KnownHistory, call: Call, view: SetView): boolean {
  if (!readsOldBlocks(call, view)) return false;
  const bound = history[call.method.resource];
  return bound === null || isBeyond(call.block, bound, view.head, view.archivalThreshold);
}

/**
 * Whether a call reads blocks outside of a bound. A block named by its hash may be of any age: it
 * counts as old only for nodes that keep no more than `usual` blocks.
 */
export function isBeyond(
  block: BlockRef,
  { oldest, window }: HistoryBound,
  head: number | null,
  usual: number,
): boolean {
  switch (block.kind) {
    case "none":
    case "tag":
      return false;
    case "hash":
      return oldest === Number.POSITIVE_INFINITY || (head !== null && window <= usual);
    case "earliest":
      return isBefore(0, oldest, window, head ?? Number.POSITIVE_INFINITY);
    case "number":
      return isBefore(block.number, oldest, window, head);
    case "range":
      if (block.from === null) return oldest === Number.POSITIVE_INFINITY;
      // Every chain of which nothing is known is older than a window.
      return isBefore(
        block.from,
        oldest,
        window,
        block.from === 0 ? (head ?? Number.POSITIVE_INFINITY) : head,
      );
  }
}

function isBefore(number: number, oldest: number, window: number, head: number | null): boolean {
  return number < oldest || (head !== null && head - number > window);
}

/** Whether block range limits apply to a method: to log queries and filters, not to traces. */
function bindsRange(method: Method): boolean {
  return method.category === "logs" || method.category === "filters";
}

/** Number of blocks in a log range; null = it cannot be known. */
function blockSpan(method: Method, block: BlockRef, head: number | null): number | null {
  if (block.kind !== "range" || !bindsRange(method)) return null;
  if (block.from === null) return 0;
  const to = block.to ?? head;
  return to === null ? null : Math.max(0, to - block.from);
}

const NEVER = Number.NEGATIVE_INFINITY;

function unsupported(
  provider: Provider,
  call: Call,
  { nowMs }: SetView,
  { facts, unserved }: Condition,
): ExclusionReason | null {
  if (unserved || provider.unsupportedMethods.has(call.methodName)) return "method_unsupported";
  if (provider.unsupportedCategories.has(call.method.category)) return "category_unsupported";
  if (facts === null) return null;
  if (facts.isUnserved(call.method, nowMs)) return "method_unsupported";
  return call.block.kind === "tag" && facts.isTagRefused(call.method, call.block.tag, nowMs)
    ? "tag_unsupported"
    : null;
}

function beyondLimits(
  provider: Provider,
  call: Call,
  view: SetView,
  { facts, history }: Pick<Condition, "facts" | "history">,
): ExclusionReason | null {
  if (call.block.kind === "range") {
    const span = blockSpan(call.method, call.block, view.head);
    const limit = rangeLimit(provider, call.method, facts, view.nowMs);
    if (span !== null && span > limit) return "block_range_limit";
  }
  if (facts === null && provider.maxBlockAge === null && isWithin(call.block, history.common, view))
    return null;
  const { resource } = call.method;
  const bound = history[resource];
  if (bound !== null && isBeyond(call.block, bound, view.head, view.archivalThreshold))
    return ARCHIVED.has(resource) && bound.source !== "declared"
      ? "archival_required"
      : "block_age_limit";
  if (facts?.isPruned(call, view) === true) return "archival_required";
  if (provider.maxBlockAge === null || !provider.blockAgeMethods.has(call.methodName)) return null;
  const age = blockAge(call.block, view.head);
  return age !== null && age > provider.maxBlockAge ? "block_age_limit" : null;
}

/** Whether a block that is named by its number, as most are under a view, lies within a bound. */
function isWithin(block: BlockRef, { oldest, window }: HistoryBound, { head }: SetView): boolean {
  if (block.kind !== "number" || head === null) return false;
  return block.number >= oldest && head - block.number <= window;
}

/**
 * Whether a call reads what nodes may have dropped: state of the earliest block, unless the chain
 * is young, while the block itself is everywhere; old blocks, and state by the hash of a block, if
 * the head is known.
 */
function readsOldBlocks({ method, block }: OldRead, { head, archivalThreshold }: SetView): boolean {
  if (block.kind === "earliest")
    return ARCHIVED.has(method.resource) && (head === null || head > archivalThreshold);
  if (head === null) return block.kind === "range" && block.from === 0;
  if (block.kind === "hash") return ARCHIVED.has(method.resource);
  const age = blockAge(block, head);
  return age !== null && age > archivalThreshold;
}

/**
 * Number of blocks between the oldest block that a call reads and the head; null = unknown or near
 * the head.
 */
function blockAge(block: BlockRef, head: number | null): number | null {
  if (head === null) return null;
  if (block.kind === "earliest") return head;
  if (block.kind === "number") return head - block.number;
  return block.kind === "range" && block.from !== null ? head - block.from : null;
}

function tagCell(method: Method, tag: OptionalTag): number {
  return method.index * OPTIONAL_TAGS.length + OPTIONAL_TAGS.indexOf(tag);
}

// Reasons for excluding a provider from a plan.

const WAIVERS = {
  transport_missing: "never",
  method_unsupported: "limit",
  category_unsupported: "limit",
  block_range_limit: "limit",
  // Not of the earliest block: only an archive has what is left of it.
  archival_required: "limit",
  block_age_limit: "limit",
  tag_unsupported: "limit",
  lagging: "lag",
  block_missing: "never",
  // It is asked for other methods alone, or only where a call pins it.
  out_of_scope: "never",
  wrong_chain: "never",
  cordoned: "never",
  cordoned_by_operator: "never",
  other_region: "never",
  circuit_open: "never",
  trial_in_flight: "never",
  rps_limit: "never",
  concurrency_limit: "never",
  daily_limit: "never",
  monthly_limit: "never",
} as const satisfies Readonly<Record<string, Waiver>> & Readonly<Record<Shortage, Waiver>>;

/** Why a provider was excluded from a plan. */
export type ExclusionReason = keyof typeof WAIVERS;

/** An excluded provider and the reason. */
export interface Exclusion {
  readonly provider: Provider;
  readonly reason: ExclusionReason;
}
