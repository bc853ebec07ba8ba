// The logs of blocks that a stream has yet to deliver, or delivered before they were checked:
// decides which blocks are checked and when, how long logs are held, and what is delivered. Knows
// nothing of heads, reorganisations, or how a source is found.
import { keccak_256 } from "@noble/hashes/sha3.js";
import type { Provider } from "../../../core/provider/profile.ts";
import type { Block, Log } from "../../../core/stream/chain-event.ts";
import { APART_MS } from "../../../core/stream/incomplete-blocks.ts";
import { type FilterBits, filterBits } from "../../../core/stream/log-bloom.ts";
import {
  differenceOf,
  type LogVerification,
  type Need,
  needOf,
  type Unconfirmed,
  verificationOf,
} from "../../../core/stream/log-verification.ts";
import type { Subscription } from "../../../core/stream/subscription.ts";
import type { Runtime } from "../../../runtime.ts";
import type { Timer, TimerWheel } from "../../timer-wheel.ts";
import type { BlockCheckResult } from "./block-check.ts";
import type { CheckedStream, LogChecks } from "./log-checks.ts";

/** What pending logs work with. */
export interface PendingParts {
  readonly runtime: Runtime;
  readonly timerWheel: TimerWheel;
  readonly subscription: Subscription;
  /** The current stream: a reload may change it. */
  readonly stream: () => CheckedStream;
  /** The log checks of its profile and chain. */
  readonly checks: LogChecks;
}

/** Receives logs that are ready for subscribers. */
export interface PendingListener {
  /** Logs of a block, in order. */
  ready(logs: readonly Log[]): void;
  /** All logs of the block are known. */
  settled(hash: string): void;
  /** The logs of the block are told, in spite of `strict`, before they were checked. */
  unconfirmed(block: Block, why: Unconfirmed): void;
  /** The source left logs out; they were delivered from elsewhere. */
  leftOut(): void;
}

/** Normal delay between a head and its logs; after it, it is known whether there are any. */
const GATHER_MS = 60;
/** Longest time that the logs of a block are held. */
const MOST_HELD_MS = 2_000;
/** How long logs of a block are gathered if the source sends them out of order. */
const ORDER_MS = 100;
/** Waits before a check that too few answered is repeated, while its block is remembered. */
const AGAIN_MS: readonly number[] = [
  1_000, 3_000, 5_000, 10_000, 10_000, 20_000, 20_000, 30_000, 60_000, 60_000,
];
/** Most blocks with open checks, and blocks kept after that. */
const MAX_BLOCKS = 256;
const MAX_DONE = 4;
/** Timers of one block: its deadline, and its next step. */
const MAX_TIMERS = 2;

/** A block whose logs are held, gathered or checked. */
class PendingBlock {
  readonly block: Block;
  readonly source: Provider;
  readonly atMs: number;
  /** True = the logs were queried and are complete; false = they are pushed, and more may come. */
  readonly given: boolean;
  /** Logs to deliver, by log index. */
  readonly logs: Map<number, Log>;
  /** Log indexes that the source pushed. */
  readonly pushed: Set<number>;
  held: boolean;
  /** It may be delivered. */
  ready = false;
  /** Its checks are over. */
  done = false;
  /** Its bloom excludes matching logs. */
  excluded = false;
  need: Need = "none";
  /** A check was skipped for lack of budget. */
  overBudget = false;
  tries = 0;
  timers: Timer[] = [];

  constructor(
    block: Block,
    source: Provider,
    given: readonly Log[] | null,
    { atMs, held }: { readonly atMs: number; readonly held: boolean },
  ) {
    this.block = block;
    this.source = source;
    this.atMs = atMs;
    this.given = given !== null;
    this.logs = new Map((held ? (given ?? []) : []).map((log) => [log.logIndex, log]));
    this.pushed = new Set(given?.map((log) => log.logIndex));
    this.held = held;
  }
}

/** The pending blocks of one stream. */
export class PendingLogs {
  readonly #parts: PendingParts;
  readonly #listener: PendingListener;
  #bits: FilterBits | null = null;
  #pendingBlocks: PendingBlock[] = [];
  /** The source sends logs out of order, so they are gathered first. */
  #disorderly = false;

  constructor(parts: PendingParts, listener: PendingListener) {
    this.#parts = parts;
    this.#listener = listener;
  }

  /**
   * Adds a block of the chain. `given`: all its logs as the source returned them; null = they are
   * pushed.
   */
  begin({ number, hash, parentHash }: Block, source: Provider, given: readonly Log[] | null): void {
    const block = { number, hash, parentHash };
    const mode = this.#mode;
    if (mode === "off" && !(this.#disorderly && given === null))
      return this.#listener.ready(given ?? []);
    this.drop(block.hash);
    const held = mode === "strict" || (this.#disorderly && given === null);
    const atMs = this.#parts.runtime.now();
    const pending = new PendingBlock(block, source, given, { atMs, held });
    this.#insert(pending);
    if (!held) this.#listener.ready(given ?? []);
    const { chain } = this.#parts.stream().tracker.set;
    const mostMs = Math.min(chain.blockTimeMs, MOST_HELD_MS);
    if (held)
      this.#later(pending, mode === "strict" ? mostMs : ORDER_MS, () => this.#overdue(pending));
    this.#later(pending, decisionDelayMs(mode, given !== null, mostMs), () =>
      this.#decide(pending),
    );
    if (this.#pendingBlocks.length > MAX_BLOCKS) this.#giveUp(this.#pendingBlocks[0] ?? pending);
  }

  /** Accepts a pushed log. True = it is delivered later. */
  take(log: Log): boolean {
    const pending = this.#pendingBlockOf(log.blockHash);
    if (pending === undefined) return false;
    pending.pushed.add(log.logIndex);
    if (pending.excluded) this.#parts.checks.distrust(log.blockHash);
    if (pending.held) pending.logs.set(log.logIndex, log);
    return pending.held;
  }

  /** Accepts the removal of a log. True = the log was never delivered. */
  takeBack({ blockHash, logIndex }: Log): boolean {
    const pending = this.#pendingBlockOf(blockHash);
    pending?.pushed.delete(logIndex);
    return pending?.logs.delete(logIndex) === true;
  }

  /** Starts gathering, after the source sent logs of one block out of order. */
  gather(): void {
    this.#disorderly = true;
  }

  /** Drops the logs of a block that left the chain. */
  drop(hash: string): void {
    const pending = this.#pendingBlockOf(hash);
    if (pending === undefined) return;
    this.#pendingBlocks = this.#pendingBlocks.filter((other) => other !== pending);
    end(pending);
    this.#release();
  }

  /** Hashes of blocks that are not fully known, or whose logs are held. */
  get unfinished(): readonly string[] {
    return this.#pendingBlocks.flatMap(({ block, done, held }) =>
      !done || held ? [block.hash] : [],
    );
  }

  /** Detaches the source. Returns the hashes of blocks that are not fully known. */
  abandon(): readonly string[] {
    const { unfinished } = this;
    for (const pending of this.#pendingBlocks) end(pending);
    this.#pendingBlocks = [];
    this.#disorderly = false;
    return unfinished;
  }

  get #mode(): LogVerification {
    return verificationOf(this.#parts.stream().tracker.set);
  }

  #pendingBlockOf(hash: string): PendingBlock | undefined {
    return this.#pendingBlocks.findLast((pending) => pending.block.hash === hash);
  }

  #insert(pending: PendingBlock): void {
    const at = this.#pendingBlocks.findLastIndex(
      (other) => other.block.number <= pending.block.number,
    );
    this.#pendingBlocks.splice(at + 1, 0, pending);
  }

  #later(pending: PendingBlock, ms: number, run: () => void): void {
    if (ms === 0) return run();
    pending.timers = [...pending.timers.slice(-MAX_TIMERS), this.#parts.timerWheel.set(ms, run)];
  }

  #overdue(pending: PendingBlock): void {
    this.#tellUnconfirmed(pending, "unanswered");
    pending.ready = true;
    this.#release();
  }

  #decide(pending: PendingBlock): void {
    const { checks, runtime, subscription, stream } = this.#parts;
    this.#bits ??= filterBits(subscription.filter ?? { addresses: [], topics: [] }, keccak_256);
    const mayHold = checks.mayHold(pending.block.hash, this.#bits);
    const roomy = checks.isRoomy(stream().tracker);
    const evidence = {
      mayHold,
      brought: pending.pushed.size > 0,
      alarmed: checks.alarmed,
      roomy,
      chance: runtime.random(),
    };
    const need = needOf(this.#mode, evidence);
    pending.need = need;
    pending.excluded = mayHold === "no";
    if (pending.excluded && evidence.brought) checks.distrust(pending.block.hash);
    if (need === "none") return this.#finish(pending);
    const unsure = this.#mode === "strict" ? "if there is room" : "no";
    const second = mayHold === "yes" ? "needed" : unsure;
    const query = {
      ...stream(),
      block: pending.block,
      need,
      subscription,
      source: pending.source.id,
      second,
    } as const;
    checks.check(query, (result) => {
      if (this.#pendingBlocks.includes(pending)) this.#checked(pending, result);
    });
  }

  #checked(pending: PendingBlock, result: BlockCheckResult): void {
    if (result.kind === "unchecked") return this.#unchecked(pending, result.why);
    const { checks } = this.#parts;
    const { missing, surplus } = differenceOf(pending.pushed, result.logs);
    if (surplus > 0) checks.disagree(pending.source, pending.block, { missing: 0, surplus });
    if (pending.held) for (const log of missing) pending.logs.set(log.logIndex, log);
    else if (missing.length > 0) this.#listener.ready(missing);
    if (!result.firm) return this.#unchecked(pending, "unanswered");
    if (missing.length === 0) {
      if (surplus === 0) checks.agree(pending.block.hash, result.logs, result.independent);
      this.#listener.settled(pending.block.hash);
      return this.#finish(pending);
    }
    pending.ready = true;
    this.#release();
    // Pushed logs may only be late.
    const restMs = pending.given
      ? 0
      : Math.max(0, pending.atMs + APART_MS - this.#parts.runtime.now());
    this.#later(pending, restMs, () => this.#judge(pending, result.logs));
  }

  #judge(pending: PendingBlock, logs: readonly Log[]): void {
    const { missing } = differenceOf(pending.pushed, logs);
    this.#listener.settled(pending.block.hash);
    this.#finish(pending);
    if (missing.length === 0) return this.#parts.checks.agree(pending.block.hash, logs, true);
    this.#parts.checks.disagree(pending.source, pending.block, {
      missing: missing.length,
      surplus: 0,
    });
    this.#listener.leftOut();
  }

  #unchecked(pending: PendingBlock, why: Unconfirmed): void {
    this.#tellUnconfirmed(pending, why);
    const againMs = AGAIN_MS[pending.tries++];
    if (why === "unanswered") this.#parts.checks.skip(againMs === undefined ? "given_up" : why);
    // Counted once, if it could not be checked in time. A block without logs is checked later, when
    // the budget allows.
    else if (!pending.overBudget) this.#parts.checks.skip(why);
    pending.overBudget ||= why === "over_budget";
    if ((why === "over_budget" && pending.need !== "needed") || againMs === undefined)
      return this.#finish(pending);
    this.#overdue(pending);
    this.#later(pending, againMs, () => this.#decide(pending));
  }

  /** Its logs are told before they were checked. */
  #tellUnconfirmed(pending: PendingBlock, why: Unconfirmed): void {
    if (this.#mode !== "strict" || pending.ready) return;
    pending.ready = true;
    this.#listener.unconfirmed(pending.block, why);
  }

  /** Gives up the check of a block, when too many are open. */
  #giveUp(pending: PendingBlock): void {
    this.#parts.checks.skip("given_up");
    this.#tellUnconfirmed(pending, "unanswered");
    this.#finish(pending);
    end(pending);
    this.#pendingBlocks = this.#pendingBlocks.filter((other) => other !== pending);
  }

  #finish(pending: PendingBlock): void {
    pending.ready = true;
    pending.done = true;
    this.#release();
  }

  /** Delivers what is due, in the order of the chain. */
  #release(): void {
    for (let pending = this.#nextHeld(); pending?.ready === true; pending = this.#nextHeld()) {
      pending.held = false;
      const logs = [...pending.logs.values()].sort((left, right) => left.logIndex - right.logIndex);
      pending.logs.clear();
      if (logs.length > 0) this.#listener.ready(logs);
    }
    this.#forgetDone();
  }

  #nextHeld(): PendingBlock | undefined {
    return this.#pendingBlocks.find((pending) => pending.held);
  }

  #forgetDone(): void {
    const done = this.#pendingBlocks.filter((pending) => pending.done && !pending.held);
    for (const pending of done.slice(0, Math.max(0, done.length - MAX_DONE))) {
      end(pending);
      this.#pendingBlocks = this.#pendingBlocks.filter((other) => other !== pending);
    }
  }
}

/** How long (ms) to wait for pushed logs before deciding whether their block is checked. */
function decisionDelayMs(mode: LogVerification, isComplete: boolean, mostMs: number): number {
  if (isComplete) return 0;
  return mode === "sampled" ? mostMs : Math.min(GATHER_MS, mostMs);
}

function end(pending: PendingBlock): void {
  for (const timer of pending.timers) timer.clear();
  pending.timers = [];
}
