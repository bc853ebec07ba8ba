// Answers of `null`. A block that does not exist yet is `null` at once, and no provider is asked.
// "Not found" for a transaction, receipt or block may come from a provider that is a block behind:
// it is asked once more of one whose head is higher, before the caller is told: once in vain for
// each call and head, within a budget, and never for long. One who told of it a few blocks ago is
// asked also where nobody is ahead. What is named by its hash may be old, and dropped: it is asked
// once of one that has all such objects, where the budget leaves enough for the others.

import { setNewest } from "../../../core/newest.ts";
import type { Chain } from "../../../core/provider/chain.ts";
import type { Provider } from "../../../core/provider/profile.ts";
import type { CallerIdentity } from "../../../core/provider/silence.ts";
import { SHARED_SOURCE } from "../../../core/routing/answer-source.ts";
import type { Call } from "../../../core/rpc/call.ts";
import { blockNumberOf } from "../../../core/rpc/result-block.ts";
import type { Runtime } from "../../../runtime.ts";
import type { Tracker } from "../../health/tracker.ts";
import { type Answer, isNull, recycle, resultOf } from "../answer.ts";
import {
  type FurtherCall,
  type Layer,
  type LayerParts,
  LayerRun,
  OVER,
  type RouteRequest,
} from "../call-context.ts";

/** The layer of rechecks. */
export function recheckNull(runtime: Runtime): Layer {
  const memories = new WeakMap<Tracker, RecheckMemory>();
  return (next) => (context, listener) => {
    const { tracker } = context.request;
    const memory = memories.get(tracker) ?? new RecheckMemory();
    memories.set(tracker, memory);
    return new RecheckRun({ runtime, next, memory }, context, listener).start();
  };
}

/** Longest time that the second provider may take: an answer is there already. */
const SECOND_MS = 1_000;
/** Whoever is asked once more may fail as well, or hang. */
const SECOND_ATTEMPTS = 2;
/** Of the bytes of a request; a longer one is not asked again. */
const MAX_REQUEST_BYTES = 1_024;
/** Calls that are remembered, for one head or at all, and callers for one second. */
const MAX_KEYS = 4_096;
const PER_CALLER_AND_SECOND = 10;
/** How long what was found nowhere is not old, however often it is asked for. */
const ABSENT_MS = 600_000;
/** Rechecks that are left for what may be new. */
const KEPT_RECHECKS = 5;

/**
 * What is remembered of one provider set: what was asked again in vain since the head moved, for
 * whom within this second, and who told of what, by request.
 */
class RecheckMemory {
  readonly #keys = new Set<string>();
  #head = Number.NaN;
  readonly #callers = new Map<string, number>();
  #second = Number.NaN;
  readonly #known = new Map<string, { readonly id: string; readonly untilMs: number }>();
  /** What nobody has who has all: until when it is not asked for again. */
  readonly #absent = new Map<string, number>();

  /** Whether a call may be asked again at this height. */
  mayRecheck(key: string, head: number): boolean {
    if (head !== this.#head) this.#keys.clear();
    this.#head = head;
    return this.#keys.size < MAX_KEYS && !this.#keys.has(key);
  }

  /** It was asked again in vain. */
  add(key: string): void {
    this.#keys.add(key);
  }

  /** Whether providers with all old objects did not lack it a short while ago. */
  mayBeOld(key: string, nowMs: number): boolean {
    return nowMs >= (this.#absent.get(key) ?? Number.NEGATIVE_INFINITY);
  }

  /** A provider with all old objects lacks it. */
  addAbsent(key: string, nowMs: number): void {
    setNewest(this.#absent, key, nowMs + ABSENT_MS, MAX_KEYS);
  }

  /** Counts a recheck of a caller; false = these are too many. */
  count({ key }: CallerIdentity, nowMs: number): boolean {
    const second = Math.floor(nowMs / 1_000);
    if (second !== this.#second) this.#callers.clear();
    this.#second = second;
    const count = (this.#callers.get(key) ?? 0) + 1;
    if (count > PER_CALLER_AND_SECOND || this.#callers.size >= MAX_KEYS) return false;
    this.#callers.set(key, count);
    return true;
  }

  /** A provider has told of a block or transaction. */
  addKnown(key: string, id: string, { blockTimeMs }: Chain, nowMs: number): void {
    const forMs = Math.min(MOST_MS, Math.max(LEAST_MS, BLOCKS * blockTimeMs));
    setNewest(this.#known, key, { id, untilMs: nowMs + forMs }, MAX_KEYS);
  }

  /** The id of the provider that told; null = nobody did lately. */
  providerOf(key: string, nowMs: number): string | null {
    const known = this.#known.get(key);
    return known === undefined || nowMs >= known.untilMs ? null : known.id;
  }
}

/** A call that may be asked again. */
class RecheckRun extends LayerRun<LayerParts & { readonly memory: RecheckMemory }> {
  /** The call for which the recheck was taken from the budget; null = it was not. */
  #taken: { readonly key: string; readonly isOld: boolean } | null = null;

  protected judge(answer: Answer): void {
    const isMissing = isNull(answer.outcome);
    if (!isMissing) this.#noteRecent(answer);
    const second = isMissing ? this.#secondCall(answer) : null;
    if (second === null) return this.finish(answer);
    const { outcome, source } = answer;
    recycle(outcome);
    this.#recheck(second, { outcome: resultOf("null"), source });
  }

  /** The call to a provider that may know more; null = there is none. */
  #secondCall({ source }: Answer): FurtherCall | null {
    const { request, policy, endsAtMs } = this.context;
    if (source.kind !== "provider" || request.call.body.length > MAX_REQUEST_BYTES) return null;
    const deadlineMs = Math.min(SECOND_MS, endsAtMs - this.parts.runtime.now());
    const asked = deadlineMs > 0 ? this.#askedAgain(source.provider) : null;
    if (asked === null) return null;
    return {
      ...asked,
      policy: { ...policy, recheckNull: false, maxAttempts: SECOND_ATTEMPTS },
      deadlineMs,
      mayStream: request.mayStream,
    };
  }

  /** Who is asked after this provider's `null`; null = nobody is. */
  #askedAgain(provider: Provider): Pick<RouteRequest, "avoid" | "prefer"> | null {
    const { memory, runtime } = this.parts;
    const { tracker, call, caller } = this.context.request;
    const nowMs = runtime.now();
    const key = keyOf(call);
    const known = memory.providerOf(key, nowMs);
    if (known !== null && known !== provider.id) {
      if (memory.count(caller, nowMs))
        return {
          avoid: new Set(tracker.set.providers.flatMap(({ id }) => (id === known ? [] : [id]))),
        };
      this.context.overBudget = true;
      return null;
    }
    const holders = call.block.kind === "none" ? tracker.beyondReachOf(provider, call) : null;
    if (holders !== null && this.#mayTakeOld(key, nowMs)) {
      this.#taken = { key, isOld: true };
      return { avoid: holders.others, prefer: holders.best };
    }
    const ahead = tracker.aheadOf(provider, call);
    if (ahead === null || !memory.mayRecheck(key, ahead.head)) return null;
    if (!memory.count(caller, nowMs) || !tracker.rechecks.take(1)) {
      this.context.overBudget = true;
      return null;
    }
    this.#taken = { key, isOld: false };
    return { avoid: ahead.others, prefer: ahead.best };
  }

  /** Takes a recheck of what may be old; false = it is not, or the budget does not allow it. */
  #mayTakeOld(key: string, nowMs: number): boolean {
    const { memory } = this.parts;
    const { tracker, caller } = this.context.request;
    if (!memory.mayBeOld(key, nowMs) || tracker.rechecks.credits < KEPT_RECHECKS + 1) return false;
    return memory.count(caller, nowMs) && tracker.rechecks.take(1);
  }

  /**
   * What was found cost nothing: only rechecks in vain are bounded. One that was not answered says
   * nothing of the next.
   */
  #settle(isFound: boolean, hasAnswer: boolean): void {
    if (this.#taken === null) return;
    const { memory, runtime } = this.parts;
    if (isFound) this.context.request.tracker.rechecks.giveBack(1);
    else if (!hasAnswer) return;
    else if (this.#taken.isOld) memory.addAbsent(this.#taken.key, runtime.now());
    else memory.add(this.#taken.key);
  }

  /** Remembers who told of a block or transaction near the served tip. */
  #noteRecent({ outcome, source }: Answer): void {
    const { tracker, call } = this.context.request;
    if (source.kind !== "provider" || outcome.kind !== "result") return;
    if (call.body.length > MAX_REQUEST_BYTES) return;
    const tip = tracker.blocks.servedTip();
    const block = tip === null ? null : blockNumberOf(call, outcome.body, outcome);
    if (block === null || tip === null || !isRecent(block, tip)) return;
    const { memory, runtime } = this.parts;
    memory.addKnown(keyOf(call), source.provider.id, tracker.set.chain, runtime.now());
  }

  #recheck(second: FurtherCall, otherwise: Answer): void {
    this.callFurther(second, (answer, { plan }) => {
      const { outcome } = answer;
      const hasAnswer = outcome.kind === "result" || outcome.kind === "stream";
      this.context.plan = plan;
      this.#noteRecent(answer);
      const isFound = hasAnswer && !isNull(outcome);
      this.context.rechecked = isFound ? "found" : "missing";
      this.#settle(isFound, hasAnswer);
      this.finish(hasAnswer ? answer : otherwise);
    });
  }
}

/** All bytes of a request but those of its id. */
function keyOf({ body, idStart, idEnd }: Call): string {
  return `${body.toString("latin1", 0, idStart)}\n${body.toString("latin1", idEnd)}`;
}

/** The layer of blocks by number. */
export function futureBlock(): Layer {
  return (next) => (context, listener) => {
    const { tracker, call, pin, avoid, upstreams } = context.request;
    const isUnrestricted = pin === null && avoid === null && upstreams === undefined;
    if (
      !isUnrestricted ||
      call.block.kind !== "number" ||
      !tracker.isFutureBlock(call.block.number)
    )
      return next(context, listener);
    listener.ended({ outcome: resultOf("null"), source: SHARED_SOURCE });
    return OVER;
  };
}

/** For so many blocks it is remembered, within these bounds. */
const BLOCKS = 5;
const LEAST_MS = 2_000;
const MOST_MS = 60_000;
/** Of the block that was told, from the served tip: as deep as reorganisations usually go. */
const MAX_BLOCKS_BELOW = 8;
/** A block further above the served tip is none that a provider can have. */
const MAX_BLOCKS_ABOVE = 16;

/** Whether a block is near enough to the served tip. */
function isRecent(block: number, tip: number): boolean {
  return block >= tip - MAX_BLOCKS_BELOW && block <= tip + MAX_BLOCKS_ABOVE;
}
