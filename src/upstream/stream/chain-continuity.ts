// Continuity of heads and logs across a change of providers: follows the chain block by block,
// fetches what was missed, and delivers events in order. Knows no subscriber.
import {
  type Block,
  type Head,
  type Log,
  readHead,
  readLog,
} from "../../core/stream/chain-event.ts";
import { lacks, wasTakenBack } from "../../core/stream/delivered-logs.ts";
import {
  comesLate,
  type DeliveryState,
  dropHeld,
  insertLogs,
  MAX_HELD_LOGS,
  stateAfter,
  takeHead,
  takeLog,
} from "../../core/stream/delivery-state.ts";
import { APART_MS, IncompleteBlocks } from "../../core/stream/incomplete-blocks.ts";
import { type Unconfirmed, verificationOf } from "../../core/stream/log-verification.ts";
import { holds, place, tipOf, windowFor } from "../../core/stream/recent-blocks.ts";
import {
  eventsSince,
  type MarkDifference,
  markOf,
  type StreamMark,
  stateAt,
  unsureIn,
} from "../../core/stream/stream-mark.ts";
import { type Backfill, backfillTo, blockAt, logsOf, withBackfillDeadline } from "./backfill.ts";
import { PendingLogs } from "./checks/pending-logs.ts";
import type { Continuity, ContinuityParts, EventSink, SourceFailure } from "./continuity.ts";
import type { Source } from "./source.ts";
import type { EventBlock } from "./tip-buffer.ts";

const MAX_WAITING = 10_000;
const MAX_WAITING_BYTES = 33_554_432;
/** A log may arrive before its block; after this time the block is queried. */
const HELD_MS = 250;
/** Most restarts of a backfill when the provider's chain changes meanwhile. */
const MAX_RESTARTS = 8;
/** A stream begins at the tip if its source is at most so many blocks ahead of it. */
const MAX_LEAD_BLOCKS = 5;

/**
 * How catching up ended: null = nothing is missing; a failure of the source; or `reorged` = the
 * requested blocks have meanwhile left the provider's chain.
 */
type Found = SourceFailure | "reorged" | null;

interface DeliverOptions {
  /** The source pushed the head; absent = it was queried. */
  readonly pushed?: Head | null;
  readonly maxBlocks?: number;
  readonly below?: number;
}

interface WaitingEvent {
  readonly raw: Buffer;
  readonly head: boolean;
  readonly atMs: number;
}

/** Follows heads, or logs together with the heads of their blocks. */
export class ChainContinuity implements Continuity {
  lastHeadAtMs: number;
  filledBlocks = 0;
  readonly #parts: ContinuityParts;
  readonly #kind: "newHeads" | "logs";
  readonly #eventSink: EventSink;
  #state: DeliveryState | null = null;
  #source: Source | null = null;
  #waiting: WaitingEvent[] = [];
  #waitingBytes = 0;
  /** False while the source is being queried: events are queued. */
  #level = false;
  #watchingHeld = false;
  #attachedAtMs = 0;
  /** More events arrived than may be queued. */
  #overrun = false;
  readonly #incomplete = new IncompleteBlocks();
  #onProgress: () => void = nothing;
  /** Null = a subscription to heads. */
  readonly #pending: PendingLogs | null;
  /** Hashes of blocks whose logs were queried again since the last head. */
  readonly #lookedUp = new Set<string>();

  constructor(parts: ContinuityParts, kind: "newHeads" | "logs", eventSink: EventSink) {
    this.#parts = parts;
    this.#kind = kind;
    this.#eventSink = eventSink;
    this.lastHeadAtMs = parts.runtime.now();
    const listener = {
      ready: (logs: readonly Log[]) => this.#insert(logs),
      settled: (hash: string) => this.#incomplete.settle(hash),
      unconfirmed: (block: Block, why: Unconfirmed) => eventSink.unconfirmed(block, why),
      leftOut: () => eventSink.failed("missing_logs"),
    };
    this.#pending = kind === "logs" ? new PendingLogs(parts, listener) : null;
    const { resume } = parts;
    if (resume === null) return;
    this.#state = stateAt(resume, windowFor(this.#maxBackfillBlocks()));
    for (const hash of unsureIn(resume)) this.#incomplete.abandoned(hash);
  }

  get height(): number | null {
    return this.#state === null ? null : (tipOf(this.#state.recent)?.number ?? null);
  }

  async attach(source: Source, round: number): Promise<SourceFailure | null> {
    this.#source = source;
    this.#attachedAtMs = this.#parts.runtime.now();
    if (this.#overrun) return "backlog";
    const found = await this.#patiently(round, () => this.#catchUpAtLast(source));
    return found === "reorged" ? "unanswered" : found;
  }

  /**
   * Bounds the time of a source's backfill: a source that returns nothing useful is left while
   * there is time to try another.
   */
  async #patiently(round: number, begin: () => Promise<Found>): Promise<Found> {
    const outageMs = this.#parts.stream().tracker.set.backfillTimeoutMs;
    return withBackfillDeadline(this.#parts.timerWheel, { outageMs, round }, (progress) => {
      this.#onProgress = progress;
      return begin();
    });
  }

  async #catchUpAtLast(source: Source): Promise<Found> {
    for (let tries = 0; tries < MAX_RESTARTS; tries++) {
      const found = await this.#catchUp(source);
      if (found !== "reorged") return found;
    }
    return "unanswered";
  }

  async #catchUp(source: Source): Promise<Found> {
    const newest = await blockAt(source, "latest");
    if (newest === null) return "unanswered";
    this.#onProgress();
    const state = this.#state;
    if (state === null) return this.#begin(source, newest);
    return this.#fill(source, state, newest);
  }

  /**
   * Begins at the source's newest block, or at the tip if the source is ahead of it: subscribers
   * that ask for the height are told the tip, and expect the block after it.
   */
  async #begin(source: Source, newest: Head): Promise<Found> {
    const tip = this.#parts.tip();
    const isAhead = tip !== null && tip < newest.number && newest.number - tip <= MAX_LEAD_BLOCKS;
    const first = isAhead ? await blockAt(source, tip) : newest;
    if (this.#source !== source) return "unanswered";
    if (first !== null && first !== newest) {
      const state = this.#beginAt(first);
      if ((await this.#fill(source, state, newest)) === null) return null;
      // A search for a source must not fail for this.
      if (this.#source !== source || this.#state !== state) return "unanswered";
      if (this.height !== first.number) return null;
    }
    this.#beginAt(newest);
    return null;
  }

  #beginAt(head: Head): DeliveryState {
    const state = stateAfter(this.#kind, head, windowFor(this.#maxBackfillBlocks()));
    this.#state = state;
    this.lastHeadAtMs = this.#parts.runtime.now();
    return state;
  }

  /** Delivers the blocks after the last one, up to the source's newest. */
  async #fill(source: Source, state: DeliveryState, newest: Head): Promise<Found> {
    // The newest block is among the missed ones.
    const maxBlocks = this.#maxBackfillBlocks() - 1;
    const failure = await this.#deliverTo(source, state, newest, {
      maxBlocks,
      below: newest.number,
    });
    this.lastHeadAtMs = this.#parts.runtime.now();
    return failure;
  }

  release(): void {
    this.#level = true;
    this.#pump();
  }

  detach(): void {
    this.#source = null;
    this.#level = false;
    this.#waiting = [];
    this.#waitingBytes = 0;
    this.#overrun = false;
    if (this.#state === null) return;
    this.#state.held = [];
    for (const hash of this.#pending?.abandon() ?? []) this.#incomplete.abandoned(hash);
    for (const hash of takenBackIn(this.#state)) this.#incomplete.abandoned(hash);
  }

  mark(): StreamMark | null {
    const state = this.#state;
    if (state === null) return null;
    const unsure = [
      ...this.#incomplete.unsure.keys(),
      ...(this.#pending?.unfinished ?? []),
      ...takenBackIn(state),
    ];
    return markOf(state, new Set(unsure));
  }

  since(mark: StreamMark): MarkDifference {
    return this.#state === null ? { kind: "behind" } : eventsSince(this.#state, mark);
  }

  hear(raw: Buffer, head: boolean): void {
    const full =
      this.#waiting.length >= MAX_WAITING || this.#waitingBytes + raw.length > MAX_WAITING_BYTES;
    // One message may always be queued, however long it is.
    if (full && this.#waiting.length > 0) {
      this.#overrun = true;
      return this.#eventSink.failed("backlog");
    }
    this.#waiting.push({ raw, head, atMs: this.#parts.runtime.now() });
    this.#waitingBytes += raw.length;
    if (this.#level) this.#pump();
  }

  #pump(): void {
    while (this.#level) {
      const next = this.#waiting.shift();
      if (next === undefined) return;
      this.#waitingBytes -= next.raw.length;
      if (this.#state === null || this.#source === null) continue;
      if (next.head) this.#takeHead(this.#source, this.#state, next);
      else this.#takeLog(this.#source, this.#state, next);
    }
  }

  #takeHead(source: Source, state: DeliveryState, { raw, atMs }: WaitingEvent): void {
    const head = readHead(raw);
    if (head === null) return;
    const placement = place(state.recent, head, this.#maxBackfillBlocks());
    if (placement === "known" && this.#incomplete.unsure.has(head.hash))
      this.#pushedAgain(source, state, head);
    if (placement === "known" || placement === "old") return;
    this.lastHeadAtMs = this.#parts.runtime.now();
    switch (placement) {
      case "next":
        if (this.#isDoubtful(source, state, head, atMs))
          return this.#pause(() => this.#deliverTo(source, state, head, { pushed: head }));
        this.#pushed(head, state);
        return this.#adopt(source, state, head, { pushed: true, logs: null });
      case "far":
        return this.#eventSink.failed("far");
      case "unlinked":
        return this.#pause(() => this.#deliverTo(source, state, head, { pushed: head }));
    }
  }

  #takeLog(source: Source, state: DeliveryState, event: WaitingEvent): void {
    const log = readLog(event.raw);
    if (log === null) return;
    const owed =
      this.#incomplete.isOwed(this.#attachedAtMs) &&
      holds(state.recent, log.blockNumber, log.blockHash)
        ? this.#incomplete.unsureBelow(state.recent.blocks, log.blockNumber)
        : [];
    if (owed.length > 0) {
      this.#waiting.unshift(event);
      this.#waitingBytes += event.raw.length;
      return this.#pause(() => this.#link(source, state, { path: [], asked: owed, pushed: null }));
    }
    const { delivered } = state;
    if (delivered !== null && !log.removed && wasTakenBack(delivered, log))
      return this.#lookUp(source, state, log);
    if (this.#deliver(state, log)) return;
    if (state.held.length > MAX_HELD_LOGS) return this.#eventSink.failed("backlog");
    this.#watchHeld();
  }

  /**
   * Delivers the blocks up to a head whose parent is unknown (the provider left blocks out or
   * switched to another branch), or some of whose logs may be missing. Logs that are owed of known
   * blocks come before; where there are no new blocks, those up to `below`.
   */
  async #deliverTo(
    source: Source,
    state: DeliveryState,
    head: Head,
    { pushed = null, maxBlocks = this.#maxBackfillBlocks(), below = -1 }: DeliverOptions,
  ): Promise<Found> {
    const path = await backfillTo({ ...this.#backfillFrom(source, state), maxBlocks }, head);
    if (typeof path === "string") return path;
    const first = path[0]?.number ?? below + 1;
    const owed = this.#incomplete.unsureBelow(state.recent.blocks, first);
    return this.#link(source, state, { path, asked: [...owed, ...path], pushed });
  }

  /**
   * Delivers blocks that link to known ones. Fetches the logs of the blocks in `asked`: some of the
   * path, and known ones before it.
   */
  async #link(
    source: Source,
    state: DeliveryState,
    found: {
      readonly path: readonly Head[];
      readonly asked: readonly Block[];
      readonly pushed: Head | null;
    },
  ): Promise<Found> {
    const { path, asked, pushed } = found;
    const logs = await logsOf(this.#backfillFrom(source, state), asked);
    if (this.#source !== source) return null;
    if (typeof logs === "string") return logs;
    // Delivering may reveal that the source left logs out, so that it is detached in the middle of
    // this.
    for (const block of asked)
      if (this.#source === source && holds(state.recent, block.number, block.hash))
        this.#given(source, block, logs.get(block.hash) ?? []);
    for (const head of path) {
      if (this.#source !== source) return null;
      const own = logs.get(head.hash) ?? null;
      if (own === null) this.#pushed(head, state);
      this.#adopt(source, state, head, { pushed: head === pushed, logs: own });
    }
    this.filledBlocks += path.length - (pushed === null ? 0 : 1);
    return null;
  }

  /** Accepts queried logs of a block, which are all that the source has. */
  #given(source: Source, block: Block, logs: readonly Log[]): void {
    this.#incomplete.settle(block.hash);
    this.#pending?.begin(block, source.provider, logs);
  }

  /** Emits a log, or holds it until it may be emitted. False = its block is not known yet. */
  #deliver(state: DeliveryState, log: Log): boolean {
    if (log.removed && this.#pending?.takeBack(log) === true) return true;
    if (!log.removed && holds(state.recent, log.blockNumber, log.blockHash)) {
      if (this.#pending?.take(log) === true) return true;
      if (comesLate(state, log)) this.#pending?.gather();
      this.#insert([log]);
      return true;
    }
    if (!log.removed) this.#eventSink.expect(log.blockNumber);
    const ready = takeLog(state, log);
    if (ready !== null) this.#emit(ready, log.removed ? null : blockOf(log));
    return ready !== null;
  }

  /** Emits logs of one block at their position in the chain. */
  #insert(logs: readonly Log[]): void {
    const [first] = logs;
    if (this.#state === null || first === undefined) return;
    this.#eventSink.expect(first.blockNumber);
    this.#emit(insertLogs(this.#state, logs), blockOf(first));
  }

  /**
   * Handles a removed log that arrives again: it is valid if its block is on the source's chain,
   * otherwise it is a late duplicate.
   */
  #lookUp(source: Source, state: DeliveryState, { blockNumber, blockHash }: Log): void {
    const block = state.recent.blocks.find((known) => known.hash === blockHash);
    if (block === undefined || this.#lookedUp.has(blockHash)) return;
    this.#lookedUp.add(blockHash);
    this.#pause(async () => {
      const there = await blockAt(source, blockNumber);
      if (there?.hash !== blockHash) return null;
      return this.#link(source, state, { path: [], asked: [block], pushed: null });
    });
  }

  /**
   * Whether the logs of a head must be queried: the source does not push logs, or may have pushed
   * them before it was attached, or the block is doubtful, or logs of earlier blocks are still
   * owed.
   */
  #isDoubtful(
    { pushesLogs }: Source,
    { delivered }: DeliveryState,
    { hash }: Head,
    heardAtMs: number,
  ): boolean {
    return (
      delivered !== null &&
      (!pushesLogs ||
        this.#incomplete.suspects.has(hash) ||
        this.#incomplete.isOwed(this.#attachedAtMs) ||
        heardAtMs - this.#attachedAtMs < APART_MS)
    );
  }

  /** Handles a known block that this source has too, and whose logs are owed. */
  #pushedAgain(source: Source, state: DeliveryState, head: Head): void {
    if (source.pushesLogs) {
      this.#pushed(head, state);
      return this.#pending?.begin(head, source.provider, null);
    }
    const asked = this.#incomplete.unsureBelow(state.recent.blocks, head.number + 1);
    this.#pause(() => this.#link(source, state, { path: [], asked, pushed: null }));
  }

  /** Records a block whose logs are still to come. */
  #pushed({ hash }: Head, { delivered, recent }: DeliveryState): void {
    if (delivered !== null)
      this.#incomplete.pushed(hash, {
        nowMs: this.#parts.runtime.now(),
        attachedAtMs: this.#attachedAtMs,
        window: recent.window,
      });
  }

  #watchHeld(): void {
    if (this.#watchingHeld) return;
    this.#watchingHeld = true;
    this.#parts.timerWheel.set(HELD_MS, () => {
      this.#watchingHeld = false;
      const [source, state] = [this.#source, this.#state];
      const [first] = state?.held ?? [];
      if (source === null || state === null || first === undefined) return;
      if (this.#level)
        this.#pause(() =>
          this.#findBlock(source, state, { number: first.blockNumber, hash: first.blockHash }),
        );
      this.#watchHeld();
    });
  }

  /**
   * Queries the block of a log that arrived without its head. On the provider's chain the block is
   * adopted; otherwise its logs are dropped.
   */
  async #findBlock(
    source: Source,
    state: DeliveryState,
    { number, hash }: { readonly number: number; readonly hash: string },
  ): Promise<Found> {
    const head = await blockAt(source, number);
    if (head?.hash === hash) return this.#deliverTo(source, state, head, {});
    if (this.#source !== source) return null;
    dropHeld(state, hash);
    this.#incomplete.suspect(hash);
    return null;
  }

  /**
   * Adopts a head into the chain. `logs`: all of its logs as the source returned them; null = they
   * are pushed.
   */
  #adopt(
    source: Source,
    state: DeliveryState,
    head: Head,
    { pushed, logs }: { readonly pushed: boolean; readonly logs: readonly Log[] | null },
  ): void {
    const leaves =
      state.delivered === null || (this.height ?? 0) < head.number
        ? []
        : state.recent.blocks.filter((block) => block.number >= head.number);
    for (const { hash } of leaves) {
      this.#incomplete.suspect(hash);
      this.#pending?.drop(hash);
    }
    this.#lookedUp.clear();
    const early =
      state.delivered === null ? [] : state.held.filter((log) => log.blockHash === head.hash);
    if (early.length > 0) dropHeld(state, head.hash);
    this.#eventSink.expect(head.number);
    this.#emit(takeHead(state, head, pushed), { number: head.number, hash: head.hash });
    if (this.#pending === null || this.#source !== source) return;
    if (verificationOf(this.#parts.stream().tracker.set) !== "off")
      this.#parts.checks.see(source.provider, head.hash, head.raw);
    if (logs !== null) return this.#given(source, head, logs);
    this.#pending.begin(head, source.provider, null);
    for (const log of early) this.#deliver(state, log);
  }

  /** Queues events while `work` queries the source. */
  #pause(work: () => Promise<Found>): void {
    const source = this.#source;
    this.#level = false;
    void this.#patiently(0, work).then((failure) => {
      if (this.#source !== source) return;
      // After a reorganisation the provider pushes the replacing blocks.
      if (failure !== null && failure !== "reorged") return this.#eventSink.failed(failure);
      this.release();
    });
  }

  #emit(results: readonly Buffer[] | null, block: EventBlock | null): void {
    if (results === null) this.#eventSink.failed("forgotten");
    else if (results.length > 0) this.#eventSink.emit(results, block);
  }

  #backfillFrom(source: Source, state: DeliveryState): Backfill {
    const { runtime, subscription, checks, stream } = this.#parts;
    return {
      runtime,
      query: (method, params) => source.query(method, params),
      logsOf: (block, filter, queryAlone) => {
        const { provider, pushesLogs } = source;
        const channel = { provider, transport: pushesLogs ? "ws" : "http" } as const;
        return checks.logsFrom({ tracker: stream().tracker, channel, block }, filter, queryAlone);
      },
      state,
      subscription,
      maxBlocks: this.#maxBackfillBlocks(),
      progress: () => this.#onProgress(),
    };
  }

  #maxBackfillBlocks(): number {
    return this.#parts.stream().tracker.set.maxBackfillBlocks;
  }
}

function blockOf({ blockNumber, blockHash }: Log): EventBlock {
  return { number: blockNumber, hash: blockHash };
}

/** Hashes of blocks of which the provider took a log back. */
function takenBackIn({ delivered, recent }: DeliveryState): readonly string[] {
  return delivered === null
    ? []
    : recent.blocks.flatMap(({ hash }) => (lacks(delivered, hash) ? [hash] : []));
}

function nothing(): void {}
