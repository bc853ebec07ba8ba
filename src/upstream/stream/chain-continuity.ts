// Heads and logs across a change of providers: followed along the chain, so that what was missed is
// asked for and told in order. Knows no subscriber.
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
  createDeliveryState,
  type DeliveryState,
  dropHeld,
  insertLogs,
  MAX_HELD_LOGS,
  takeHead,
  takeLog,
} from "../../core/stream/delivery-state.ts";
import {
  APART_MS,
  createIncompleteBlocks,
  isOwed,
  noteAbandoned,
  notePushed,
  settle,
  suspect,
  unsureBelow,
} from "../../core/stream/incomplete-blocks.ts";
import { holds, place, tipOf, windowFor } from "../../core/stream/recent-blocks.ts";
import { type Backfill, backfillTo, blockAt, logsOf, newestBlock } from "./backfill.ts";
import { backfillDeadlineFor, withBackfillDeadline } from "./backfill-deadline.ts";
import type { Continuity, ContinuityParts, EventSink, SourceFailure } from "./continuity.ts";
import { PendingLogs } from "./pending-logs.ts";
import type { Source } from "./source.ts";

const MAX_WAITING = 10_000;
const MAX_WAITING_BYTES = 33_554_432;
/** A log may come before its block; after this the provider is asked for that block. */
const HELD_MS = 250;
/** A provider whose chain changes while it is asked is asked anew, so often. */
const MAX_RESTARTS = 8;

/**
 * How finding out ended: with nothing missing, a trouble, or blocks that have meanwhile left the
 * provider's chain.
 */
type Found = SourceFailure | "moved" | null;

interface Waiting {
  readonly raw: Buffer;
  readonly head: boolean;
  readonly atMs: number;
}

/** Follows heads, and logs with their heads, along the chain. */
export class ChainContinuity implements Continuity {
  lastHeadAtMs: number;
  filledBlocks = 0;
  strays = 0;
  readonly #parts: ContinuityParts;
  readonly #kind: "newHeads" | "logs";
  readonly #eventSink: EventSink;
  #track: DeliveryState | null = null;
  #source: Source | null = null;
  #waiting: Waiting[] = [];
  #waitingBytes = 0;
  /** False while something has to be found out first: events wait. */
  #level = false;
  #watchingHeld = false;
  #attachedAtMs = 0;
  /** More came than may wait. */
  #overrun = false;
  readonly #doubt = createIncompleteBlocks();
  #progress: () => void = nothing;
  /** Only for logs. */
  readonly #pending: PendingLogs | null;
  /** Blocks whose logs were looked up again since the last head. */
  readonly #lookedUp = new Set<string>();

  constructor(parts: ContinuityParts, kind: "newHeads" | "logs", eventSink: EventSink) {
    this.#parts = parts;
    this.#kind = kind;
    this.#eventSink = eventSink;
    this.lastHeadAtMs = parts.runtime.now();
    const listener = {
      ready: (logs: readonly Log[]) => this.#insert(logs),
      settled: (hash: string) => settle(this.#doubt, hash),
      leftOut: () => eventSink.failed("missing_logs"),
    };
    this.#pending = kind === "logs" ? new PendingLogs(parts, listener) : null;
  }

  get height(): number | null {
    return this.#track === null ? null : (tipOf(this.#track.view)?.number ?? null);
  }

  async attach(source: Source, round: number): Promise<SourceFailure | null> {
    this.#source = source;
    this.#attachedAtMs = this.#parts.runtime.now();
    if (this.#overrun) return "backlog";
    const found = await this.#patiently(round, () => this.#catchUpAtLast(source));
    return found === "moved" ? "unanswered" : found;
  }

  /**
   * Bounds what a source is asked: one that gives nothing useful is left while there is still time
   * to ask another.
   */
  async #patiently(round: number, begin: () => Promise<Found>): Promise<Found> {
    const found = await withBackfillDeadline(
      this.#parts.timerWheel,
      backfillDeadlineFor(this.#parts.set().backfillTimeoutMs, round),
      (progress) => {
        this.#progress = progress;
        return begin();
      },
    );
    return found === "given up" ? "unanswered" : found;
  }

  async #catchUpAtLast(source: Source): Promise<Found> {
    for (let tries = 0; tries < MAX_RESTARTS; tries++) {
      const found = await this.#catchUp(source);
      if (found !== "moved") return found;
    }
    return "unanswered";
  }

  async #catchUp(source: Source): Promise<Found> {
    const newest = await newestBlock(source);
    if (newest === null) return "unanswered";
    this.#progress();
    const track = this.#track;
    if (track === null) {
      this.#track = createDeliveryState(this.#kind, newest, windowFor(this.#reach()));
      this.lastHeadAtMs = this.#parts.runtime.now();
      return null;
    }
    // The newest block is one of those that were missed.
    const caught = await backfillTo(
      { ...this.#chase(source, track), reach: this.#reach() - 1 },
      newest,
    );
    if (caught.kind !== "path") return caught.kind;
    const { path } = caught;
    const asked = [...this.#unsureBelow(track, path[0]?.number ?? newest.number + 1), ...path];
    const trouble = await this.#link(source, track, { path, asked, pushed: null });
    this.lastHeadAtMs = this.#parts.runtime.now();
    return trouble;
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
    if (this.#track === null) return;
    const { book, view } = this.#track;
    this.#track.held = [];
    for (const hash of this.#pending?.abandon() ?? []) noteAbandoned(this.#doubt, hash);
    if (book !== null)
      for (const { hash } of view.blocks) if (lacks(book, hash)) noteAbandoned(this.#doubt, hash);
  }

  hear(raw: Buffer, head: boolean): void {
    const full =
      this.#waiting.length >= MAX_WAITING || this.#waitingBytes + raw.length > MAX_WAITING_BYTES;
    // However long it is, one message may always wait.
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
      if (this.#track === null || this.#source === null) continue;
      if (next.head) this.#takeHead(this.#source, this.#track, next);
      else this.#takeLog(this.#source, this.#track, next);
    }
  }

  #takeHead(source: Source, track: DeliveryState, { raw, atMs }: Waiting): void {
    const head = readHead(raw);
    if (head === null) return void this.strays++;
    const placement = place(track.view, head, this.#reach());
    if (placement === "known" && this.#doubt.unsure.has(head.hash))
      this.#pushedAgain(source, track, head);
    if (placement === "known" || placement === "old") return;
    this.lastHeadAtMs = this.#parts.runtime.now();
    switch (placement) {
      case "next":
        if (this.#isDoubtful(source, track, head, atMs))
          return this.#pause(() => this.#trace(source, track, head));
        this.#pushed(head, track);
        return this.#adopt(source, track, head, { pushed: true, logs: null });
      case "far":
        return this.#eventSink.failed("far");
      case "unlinked":
        return this.#pause(() => this.#trace(source, track, head));
    }
  }

  #takeLog(source: Source, track: DeliveryState, event: Waiting): void {
    const log = readLog(event.raw);
    if (log === null) return void this.strays++;
    const owed =
      this.#isOwed() && holds(track.view, log.blockNumber, log.blockHash)
        ? this.#unsureBelow(track, log.blockNumber)
        : [];
    if (owed.length > 0) {
      this.#waiting.unshift(event);
      this.#waitingBytes += event.raw.length;
      return this.#pause(() => this.#link(source, track, { path: [], asked: owed, pushed: null }));
    }
    const { book } = track;
    if (book !== null && !log.removed && wasTakenBack(book, log))
      return this.#lookUp(source, track, log);
    if (this.#deliver(track, log)) return;
    if (track.held.length > MAX_HELD_LOGS) return this.#eventSink.failed("backlog");
    this.#watchHeld();
  }

  /**
   * A head whose parent is unknown, since the provider has left out some or has changed to another
   * branch, or whose logs may have been left out.
   */
  async #trace(source: Source, track: DeliveryState, head: Head): Promise<Found> {
    const caught = await backfillTo(this.#chase(source, track), head);
    if (caught.kind !== "path") return caught.kind;
    return this.#link(source, track, {
      ...caught,
      asked: [...this.#unsureBelow(track, caught.path[0]?.number ?? 0), ...caught.path],
      pushed: head,
    });
  }

  /**
   * Tells of blocks that link to what is known, and of the logs of those in `asked`: some of the
   * path, and before them some that are known.
   */
  async #link(
    source: Source,
    track: DeliveryState,
    found: {
      readonly path: readonly Head[];
      readonly asked: readonly Block[];
      readonly pushed: Head | null;
    },
  ): Promise<Found> {
    const { path, asked, pushed } = found;
    const logs = await logsOf(this.#chase(source, track), asked);
    if (this.#source !== source) return null;
    if (logs === null) return "unanswered";
    if ("kind" in logs) return logs.kind;
    // What is told may show that the source left logs out, so that it is gone in the middle of
    // this.
    for (const it of asked)
      if (this.#source === source && holds(track.view, it.number, it.hash))
        this.#given(source, it, logs.get(it.hash) ?? []);
    for (const head of path) {
      if (this.#source !== source) return null;
      const own = logs.get(head.hash) ?? null;
      if (own === null) this.#pushed(head, track);
      this.#adopt(source, track, head, { pushed: head === pushed, logs: own });
    }
    this.filledBlocks += path.length - (pushed === null ? 0 : 1);
    return null;
  }

  /** Logs of a block that were asked for, and so are all that the source has. */
  #given(source: Source, { number, hash, parentHash }: Block, logs: readonly Log[]): void {
    settle(this.#doubt, hash);
    this.#pending?.begin({ number, hash, parentHash }, source.provider, logs);
  }

  /** Tells of a log whose block is known, or will. False = its block is not known yet. */
  #deliver(track: DeliveryState, log: Log): boolean {
    if (log.removed && this.#pending?.takeBack(log) === true) return true;
    if (!log.removed && holds(track.view, log.blockNumber, log.blockHash)) {
      if (this.#pending?.take(log) === true) return true;
      if (comesLate(track, log)) this.#pending?.gather();
      this.#insert([log]);
      return true;
    }
    const told = takeLog(track, log);
    if (told !== null) this.#tell(told);
    return told !== null;
  }

  /** Tells of logs in their place in the chain. */
  #insert(logs: readonly Log[]): void {
    if (this.#track !== null && logs.length > 0) this.#tell(insertLogs(this.#track, logs));
  }

  /**
   * A log that was taken back comes again: it is true if its block is on the source's chain, and
   * late otherwise.
   */
  #lookUp(source: Source, track: DeliveryState, { blockNumber, blockHash }: Log): void {
    const block = track.view.blocks.find((it) => it.hash === blockHash);
    if (block === undefined || this.#lookedUp.has(blockHash)) return;
    this.#lookedUp.add(blockHash);
    this.#pause(async () => {
      const there = await blockAt(source, blockNumber);
      if (there?.hash !== blockHash) return null;
      return this.#link(source, track, { path: [], asked: [block], pushed: null });
    });
  }

  /**
   * A head whose logs nobody pushes, or may have been pushed before this source was listened to, or
   * are in doubt, or would come before those that an earlier source owes.
   */
  #isDoubtful(
    { pushesLogs }: Source,
    { book }: DeliveryState,
    { hash }: Head,
    heardAtMs: number,
  ): boolean {
    return (
      book !== null &&
      (!pushesLogs ||
        this.#doubt.suspects.has(hash) ||
        this.#isOwed() ||
        heardAtMs - this.#attachedAtMs < APART_MS)
    );
  }

  #isOwed(): boolean {
    return isOwed(this.#doubt, this.#attachedAtMs);
  }

  #unsureBelow({ view }: DeliveryState, number: number): readonly Block[] {
    return unsureBelow(this.#doubt, view.blocks, number);
  }

  /** A block that an earlier source has told of, whose logs this one has yet to push. */
  #pushedAgain(source: Source, track: DeliveryState, head: Head): void {
    this.#pushed(head, track);
    if (source.pushesLogs)
      this.#pending?.begin(
        { number: head.number, hash: head.hash, parentHash: head.parentHash },
        source.provider,
        null,
      );
  }

  /** A block whose logs have yet to come. */
  #pushed({ hash }: Head, { book, view }: DeliveryState): void {
    if (book !== null)
      notePushed(this.#doubt, hash, {
        nowMs: this.#parts.runtime.now(),
        attachedAtMs: this.#attachedAtMs,
        window: view.window,
      });
  }

  #watchHeld(): void {
    if (this.#watchingHeld) return;
    this.#watchingHeld = true;
    this.#parts.timerWheel.set(HELD_MS, () => {
      this.#watchingHeld = false;
      const [source, track] = [this.#source, this.#track];
      const [first] = track?.held ?? [];
      if (source === null || track === null || first === undefined) return;
      if (this.#level)
        this.#pause(() =>
          this.#findBlock(source, track, { number: first.blockNumber, hash: first.blockHash }),
        );
      this.#watchHeld();
    });
  }

  /**
   * The block of a log that came without it: on the provider's chain it is taken as told, otherwise
   * its logs are no longer true.
   */
  async #findBlock(
    source: Source,
    track: DeliveryState,
    { number, hash }: { readonly number: number; readonly hash: string },
  ): Promise<Found> {
    const head = await blockAt(source, number);
    if (head?.hash === hash) {
      const caught = await backfillTo(this.#chase(source, track), head);
      if (caught.kind !== "path") return caught.kind;
      const { path } = caught;
      return this.#link(source, track, {
        path,
        asked: [...this.#unsureBelow(track, path[0]?.number ?? 0), ...path],
        pushed: null,
      });
    }
    if (this.#source !== source) return null;
    dropHeld(track, hash);
    suspect(this.#doubt, hash);
    return null;
  }

  /**
   * Takes a head into the chain. `logs` = all of its logs that the source has; null = they are
   * pushed.
   */
  #adopt(
    source: Source,
    track: DeliveryState,
    head: Head,
    { pushed, logs }: { readonly pushed: boolean; readonly logs: readonly Log[] | null },
  ): void {
    const leaves =
      track.book === null || (this.height ?? 0) < head.number
        ? []
        : track.view.blocks.filter((it) => it.number >= head.number);
    for (const { hash } of leaves) {
      suspect(this.#doubt, hash);
      this.#pending?.drop(hash);
    }
    this.#lookedUp.clear();
    const early = track.book === null ? [] : track.held.filter((it) => it.blockHash === head.hash);
    if (early.length > 0) dropHeld(track, head.hash);
    this.#tell(takeHead(track, head, pushed));
    if (this.#pending === null || this.#source !== source) return;
    if (this.#parts.set().logVerification !== "off")
      this.#parts.checks.see(source.provider, head.hash, head.raw);
    if (logs !== null) return this.#given(source, head, logs);
    this.#pending.begin(
      { number: head.number, hash: head.hash, parentHash: head.parentHash },
      source.provider,
      null,
    );
    for (const log of early) this.#deliver(track, log);
  }

  /** Lets events wait until something has been found out. */
  #pause(work: () => Promise<Found>): void {
    const source = this.#source;
    this.#level = false;
    void this.#patiently(0, work).then((trouble) => {
      if (this.#source !== source) return;
      // The provider has changed its mind, and tells of the blocks that it has instead.
      if (trouble !== null && trouble !== "moved") return this.#eventSink.failed(trouble);
      this.release();
    });
  }

  #tell(results: readonly Buffer[] | null): void {
    if (results === null) this.#eventSink.failed("forgotten");
    else if (results.length > 0) this.#eventSink.emit(results);
  }

  #chase(source: Source, track: DeliveryState): Backfill {
    const { runtime, subscription } = this.#parts;
    return {
      runtime,
      ask: (method, params) => source.ask(method, params),
      track,
      subscription,
      reach: this.#reach(),
      progress: () => this.#progress(),
    };
  }

  #reach(): number {
    return this.#parts.set().maxBackfillBlocks;
  }
}

function nothing(): void {}
