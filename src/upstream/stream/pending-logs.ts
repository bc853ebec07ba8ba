// Logs of blocks that a stream has yet to deliver, or has delivered before they were checked:
// decides which blocks are checked and when, how long their logs are held, and what is delivered.
// Knows nothing of heads, of reorganisations, or of how a source is found.
import { keccak_256 } from "@noble/hashes/sha3.js";
import type { Provider } from "../../core/provider/profile.ts";
import type { Block, Log } from "../../core/stream/chain-event.ts";
import { APART_MS } from "../../core/stream/incomplete-blocks.ts";
import { type FilterBits, filterBits } from "../../core/stream/log-bloom.ts";
import {
  differenceOf,
  type LogVerification,
  type Need,
  needOf,
} from "../../core/stream/log-verification.ts";
import type { Subscription } from "../../core/stream/subscription.ts";
import type { Runtime } from "../../runtime.ts";
import type { Timer, TimerWheel } from "../timer-wheel.ts";
import type { BlockCheckResult } from "./block-check.ts";
import type { CheckedStream, LogChecks } from "./log-checks.ts";

/** What a stream's logs are checked with. */
export interface PendingParts {
  readonly runtime: Runtime;
  readonly timerWheel: TimerWheel;
  readonly subscription: Subscription;
  /** As it is now: a reload may change it. */
  readonly stream: () => CheckedStream;
  readonly checks: LogChecks;
}

/** Receives the logs that are ready for subscribers. */
export interface PendingListener {
  /** Logs of a block, in order. */
  ready(logs: readonly Log[]): void;
  /** All logs of the block are known. */
  settled(hash: string): void;
  /** The source left logs out, which have been told. */
  leftOut(): void;
}

/**
 * Logs come this much after their head at most where all is well; then it is known whether there
 * were any.
 */
const GATHER_MS = 60;
/** Longest time that the logs of a block are held. */
const MOST_HELD_MS = 2_000;
/** How long the logs of a block are gathered where the source sends them out of order. */
const ORDER_MS = 100;
/** Checks that too few answered are made again after these, while their block is remembered. */
const AGAIN_MS: readonly number[] = [
  1_000, 3_000, 5_000, 10_000, 10_000, 20_000, 20_000, 30_000, 60_000, 60_000,
];
/** Blocks of which something is to be found out, and blocks kept when nothing more is. */
const MAX_BLOCKS = 256;
const MAX_DONE = 4;
/** Timers of one block: when it is due, and when it is looked at next. */
const MAX_TIMERS = 2;

/** A block whose logs are held, gathered or checked. */
interface PendingBlock {
  readonly block: Block;
  readonly source: Provider;
  readonly atMs: number;
  /** What was asked for is all there is; what is pushed may yet come. */
  readonly given: boolean;
  /** Yet to be told. */
  readonly logs: Map<number, Log>;
  /** Positions of what the source told. */
  readonly pushed: Set<number>;
  held: boolean;
  /** Nothing has to be waited for any more. */
  ready: boolean;
  /** Nothing more is to be found out. */
  done: boolean;
  /** The bloom says that it holds nothing. */
  excluded: boolean;
  need: Need;
  /** It could not be checked at some time for want of budget. */
  overBudget: boolean;
  tries: number;
  timers: Timer[];
}

/** The blocks of one stream, by number. */
export class PendingLogs {
  readonly #parts: PendingParts;
  readonly #listener: PendingListener;
  #bits: FilterBits | null = null;
  #pendingBlocks: PendingBlock[] = [];
  /** The source sends logs out of order: they are gathered first. */
  #disorderly = false;

  constructor(parts: PendingParts, listener: PendingListener) {
    this.#parts = parts;
    this.#listener = listener;
  }

  /**
   * A block is in the chain. `given` = all its logs as the source answered them; null = they are
   * pushed.
   */
  begin(block: Block, source: Provider, given: readonly Log[] | null): void {
    const mode = this.#mode;
    if (mode === "off" && !(this.#disorderly && given === null))
      return this.#listener.ready(given ?? []);
    this.drop(block.hash);
    const held = mode === "strict" || (this.#disorderly && given === null);
    const logs = new Map((held ? (given ?? []) : []).map((log) => [log.logIndex, log]));
    const pushed = new Set(given?.map((log) => log.logIndex));
    const atMs = this.#parts.runtime.now();
    const pending = {
      block,
      source,
      atMs,
      given: given !== null,
      logs,
      pushed,
      held,
      ready: false,
      done: false,
      excluded: false,
      need: "none" as Need,
      overBudget: false,
      tries: 0,
      timers: [],
    };
    this.#insert(pending);
    if (!held) this.#listener.ready(given ?? []);
    const mostMs = Math.min(this.#blockTimeMs, MOST_HELD_MS);
    if (held)
      this.#later(pending, mode === "strict" ? mostMs : ORDER_MS, () => this.#overdue(pending));
    this.#later(pending, decisionDelayMs(mode, given !== null, mostMs), () =>
      this.#decide(pending),
    );
    if (this.#pendingBlocks.length > MAX_BLOCKS) this.#giveUp(this.#pendingBlocks[0] ?? pending);
  }

  /** A log that was pushed. True = it is delivered later. */
  take(log: Log): boolean {
    const pending = this.#pendingBlockOf(log.blockHash);
    if (pending === undefined) return false;
    pending.pushed.add(log.logIndex);
    if (pending.excluded) this.#parts.checks.contradict(log.blockHash);
    if (pending.held) pending.logs.set(log.logIndex, log);
    return pending.held;
  }

  /** A log that its provider takes back. True = it was never told. */
  takeBack({ blockHash, logIndex }: Log): boolean {
    const pending = this.#pendingBlockOf(blockHash);
    pending?.pushed.delete(logIndex);
    return pending?.logs.delete(logIndex) === true;
  }

  /** The source sent logs of one block out of order. */
  gather(): void {
    this.#disorderly = true;
  }

  /** A block has left the chain: its logs are dropped. */
  drop(hash: string): void {
    const pending = this.#pendingBlockOf(hash);
    if (pending === undefined) return;
    this.#pendingBlocks = this.#pendingBlocks.filter((other) => other !== pending);
    end(pending);
    this.#release();
  }

  /** The source is gone. Hashes of the blocks of which not all is known. */
  abandon(): readonly string[] {
    const open = this.#pendingBlocks.filter((pending) => !pending.done || pending.held);
    for (const pending of this.#pendingBlocks) end(pending);
    this.#pendingBlocks = [];
    this.#disorderly = false;
    return open.map((pending) => pending.block.hash);
  }

  get #mode(): LogVerification {
    return this.#parts.stream().tracker.set.logVerification;
  }

  get #blockTimeMs(): number {
    return this.#parts.stream().tracker.set.chain.blockTimeMs;
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
    if (pending.excluded && evidence.brought) checks.contradict(pending.block.hash);
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
    if (missing.length === 0 && !result.firm) return this.#unchecked(pending, "unanswered");
    if (missing.length === 0) {
      if (surplus === 0) checks.agree(pending.block.hash, result.logs, result.independent);
      this.#listener.settled(pending.block.hash);
      return this.#finish(pending);
    }
    pending.ready = true;
    this.#release();
    // What is pushed may just be slow.
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

  #unchecked(pending: PendingBlock, why: "over_budget" | "unanswered"): void {
    const againMs = AGAIN_MS[pending.tries++];
    if (why === "unanswered") this.#parts.checks.skip(againMs === undefined ? "given_up" : why);
    // Counted once, when it could not be checked in time; one that brought no logs is checked
    // later, when there is room.
    else if (!pending.overBudget) this.#parts.checks.skip(why);
    pending.overBudget ||= why === "over_budget";
    if ((why === "over_budget" && pending.need !== "needed") || againMs === undefined)
      return this.#finish(pending);
    this.#overdue(pending);
    this.#later(pending, againMs, () => this.#decide(pending));
  }

  /** More blocks wait for answers than may. */
  #giveUp(pending: PendingBlock): void {
    this.#parts.checks.skip("given_up");
    this.#finish(pending);
    end(pending);
    this.#pendingBlocks = this.#pendingBlocks.filter((other) => other !== pending);
  }

  #finish(pending: PendingBlock): void {
    pending.ready = true;
    pending.done = true;
    this.#release();
  }

  /** Tells what is due, in the order of the chain. */
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

/** How long pushed logs are awaited before it is decided whether their block is checked. */
function decisionDelayMs(mode: LogVerification, isComplete: boolean, mostMs: number): number {
  if (isComplete) return 0;
  return mode === "sampled" ? mostMs : Math.min(GATHER_MS, mostMs);
}

function end(pending: PendingBlock): void {
  for (const timer of pending.timers) timer.clear();
  pending.timers = [];
}
