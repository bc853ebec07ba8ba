// Logs of blocks that a stream has yet to tell, or has told before they were checked: which blocks
// are checked and when, how long they are held, and what is told in the end. Knows nothing of
// heads, of reorganisations, or of how a source is found.
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

/** Hears what is to be told. */
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
/** Of one block at once: when it is due, and when it is looked at next. */
const MAX_ALARMS = 2;

/** One block. */
interface Page {
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
  alarms: Timer[];
}

/** The blocks of one stream, by number. */
export class PendingLogs {
  readonly #parts: PendingParts;
  readonly #listener: PendingListener;
  #bits: FilterBits | null = null;
  #pages: Page[] = [];
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
    const logs = new Map((held ? (given ?? []) : []).map((it) => [it.logIndex, it]));
    const pushed = new Set(given?.map((it) => it.logIndex));
    const atMs = this.#parts.runtime.now();
    const page = {
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
      alarms: [],
    };
    this.#insert(page);
    if (!held) this.#listener.ready(given ?? []);
    const mostMs = Math.min(this.#blockTimeMs, MOST_HELD_MS);
    if (held) this.#later(page, mode === "strict" ? mostMs : ORDER_MS, () => this.#overdue(page));
    this.#later(
      page,
      given !== null ? 0 : mode === "sampled" ? mostMs : Math.min(GATHER_MS, mostMs),
      () => this.#decide(page),
    );
    if (this.#pages.length > MAX_BLOCKS) this.#giveUp(this.#pages[0] ?? page);
  }

  /** A log that was pushed. True = it is told later. */
  take(log: Log): boolean {
    const page = this.#pageOf(log.blockHash);
    if (page === undefined) return false;
    page.pushed.add(log.logIndex);
    if (page.excluded) this.#parts.checks.contradict(log.blockHash);
    if (page.held) page.logs.set(log.logIndex, log);
    return page.held;
  }

  /** A log that its provider takes back. True = it was never told. */
  takeBack({ blockHash, logIndex }: Log): boolean {
    const page = this.#pageOf(blockHash);
    page?.pushed.delete(logIndex);
    return page?.logs.delete(logIndex) === true;
  }

  /** The source sent logs of one block out of order. */
  gather(): void {
    this.#disorderly = true;
  }

  /** A block has left the chain: of its logs nothing is told. */
  drop(hash: string): void {
    const page = this.#pageOf(hash);
    if (page === undefined) return;
    this.#pages = this.#pages.filter((it) => it !== page);
    end(page);
    this.#release();
  }

  /** The source is gone. Hashes of the blocks of which not all is known. */
  abandon(): readonly string[] {
    const open = this.#pages.filter((it) => !it.done || it.held);
    for (const page of this.#pages) end(page);
    this.#pages = [];
    this.#disorderly = false;
    return open.map((it) => it.block.hash);
  }

  get #mode(): LogVerification {
    return this.#parts.stream().tracker.set.logVerification;
  }

  get #blockTimeMs(): number {
    return this.#parts.stream().tracker.set.chain.blockTimeMs;
  }

  #pageOf(hash: string): Page | undefined {
    return this.#pages.findLast((it) => it.block.hash === hash);
  }

  #insert(page: Page): void {
    const at = this.#pages.findLastIndex((it) => it.block.number <= page.block.number);
    this.#pages.splice(at + 1, 0, page);
  }

  #later(page: Page, ms: number, run: () => void): void {
    if (ms === 0) return run();
    page.alarms = [...page.alarms.slice(-MAX_ALARMS), this.#parts.timerWheel.set(ms, run)];
  }

  #overdue(page: Page): void {
    page.ready = true;
    this.#release();
  }

  #decide(page: Page): void {
    const { checks, runtime, subscription, stream } = this.#parts;
    this.#bits ??= filterBits(subscription.filter ?? { addresses: [], topics: [] }, keccak_256);
    const mayHold = checks.mayHold(page.block.hash, this.#bits);
    const roomy = checks.isRoomy(stream().tracker);
    const evidence = {
      mayHold,
      brought: page.pushed.size > 0,
      alarmed: checks.alarmed,
      roomy,
      chance: runtime.random(),
    };
    const need = needOf(this.#mode, evidence);
    page.need = need;
    page.excluded = mayHold === "no";
    if (page.excluded && evidence.brought) checks.contradict(page.block.hash);
    if (need === "none") return this.#finish(page);
    const second =
      mayHold === "yes" ? "needed" : this.#mode === "strict" ? "if there is room" : "no";
    const query = {
      ...stream(),
      block: page.block,
      need,
      subscription,
      source: page.source.id,
      second,
    } as const;
    checks.check(query, (result) => {
      if (this.#pages.includes(page)) this.#checked(page, result);
    });
  }

  #checked(page: Page, result: BlockCheckResult): void {
    if (result.kind === "unchecked") return this.#unchecked(page, result.why);
    const { checks } = this.#parts;
    const { missing, surplus } = differenceOf(page.pushed, result.logs);
    if (surplus > 0) checks.disagree(page.source, page.block, { missing: 0, surplus });
    if (page.held) for (const log of missing) page.logs.set(log.logIndex, log);
    else if (missing.length > 0) this.#listener.ready(missing);
    if (missing.length === 0 && !result.firm) return this.#unchecked(page, "unanswered");
    if (missing.length === 0) {
      if (surplus === 0) checks.agree(page.block.hash, result.logs, result.independent);
      this.#listener.settled(page.block.hash);
      return this.#finish(page);
    }
    page.ready = true;
    this.#release();
    // What is pushed may just be slow.
    const restMs = page.given ? 0 : Math.max(0, page.atMs + APART_MS - this.#parts.runtime.now());
    this.#later(page, restMs, () => this.#judge(page, result.logs));
  }

  #judge(page: Page, logs: readonly Log[]): void {
    const { missing } = differenceOf(page.pushed, logs);
    this.#listener.settled(page.block.hash);
    this.#finish(page);
    if (missing.length === 0) return this.#parts.checks.agree(page.block.hash, logs, true);
    this.#parts.checks.disagree(page.source, page.block, { missing: missing.length, surplus: 0 });
    this.#listener.leftOut();
  }

  #unchecked(page: Page, why: "over_budget" | "unanswered"): void {
    const againMs = AGAIN_MS[page.tries++];
    if (why === "unanswered") this.#parts.checks.skip(againMs === undefined ? "given_up" : why);
    // Counted once, when it could not be checked in time; one that brought no logs is checked
    // later, when there is room.
    else if (!page.overBudget) this.#parts.checks.skip(why);
    page.overBudget ||= why === "over_budget";
    if ((why === "over_budget" && page.need !== "needed") || againMs === undefined)
      return this.#finish(page);
    this.#overdue(page);
    this.#later(page, againMs, () => this.#decide(page));
  }

  /** More blocks wait for answers than may. */
  #giveUp(page: Page): void {
    this.#parts.checks.skip("given_up");
    this.#finish(page);
    end(page);
    this.#pages = this.#pages.filter((it) => it !== page);
  }

  #finish(page: Page): void {
    page.ready = true;
    page.done = true;
    this.#release();
  }

  /** Tells what is due, in the order of the chain. */
  #release(): void {
    for (let page = this.#nextHeld(); page?.ready === true; page = this.#nextHeld()) {
      page.held = false;
      const logs = [...page.logs.values()].sort((left, right) => left.logIndex - right.logIndex);
      page.logs.clear();
      if (logs.length > 0) this.#listener.ready(logs);
    }
    this.#forgetDone();
  }

  #nextHeld(): Page | undefined {
    return this.#pages.find((it) => it.held);
  }

  #forgetDone(): void {
    const done = this.#pages.filter((it) => it.done && !it.held);
    for (const page of done.slice(0, Math.max(0, done.length - MAX_DONE))) {
      end(page);
      this.#pages = this.#pages.filter((it) => it !== page);
    }
  }
}

function end(page: Page): void {
  for (const timer of page.alarms) timer.clear();
  page.alarms = [];
}
