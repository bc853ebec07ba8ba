// Holds back results of blocks above the served tip: a stream hears of a block as soon as its one
// provider pushes it, when a call may still be answered at the block before. What is held is let
// through in order when the tip has reached its block, or makes that block the tip after one block
// time. Knows no subscriber.
import type { SeenBlock } from "../../core/rpc/seen.ts";
import type { StreamMark } from "../../core/stream/stream-mark.ts";
import type { Runtime } from "../../runtime.ts";
import type { ServedView } from "../health/served-view.ts";
import type { Timer, TimerWheel } from "../timer-wheel.ts";

/** A block by number and hash. */
export interface EventBlock extends SeenBlock {
  readonly hash: string;
}

/** Results that have waited, or have to. */
export interface HeldResults {
  readonly results: readonly Buffer[];
  /** When their provider sent them. */
  readonly heardAtMs: number;
}

/** Results that a stream is about to deliver. */
interface EventBatch extends HeldResults {
  /** The block of the events; null = they only take back delivered ones. */
  readonly block: EventBlock | null;
}

/** What a buffer works with. */
export interface TipBufferParts {
  readonly runtime: Pick<Runtime, "now">;
  readonly timerWheel: TimerWheel;
  /** The view whose tip counts; null = nothing is held. */
  readonly view: () => ServedView | null;
  readonly blockTimeMs: () => number;
  /** Each result is a head: one that its provider replaces while it is held is told to nobody. */
  readonly areHeads: boolean;
  /** Where the stream stands: everything up to there was delivered, or is held here. */
  readonly mark: () => StreamMark | null;
  readonly deliver: (held: HeldResults) => void;
}

/** Results that wait for one block, with whatever came after them. */
interface Held {
  /** The block that they wait for: the highest of the results. */
  readonly block: EventBlock;
  /** Number of the lowest. */
  lowest: number;
  readonly dueAtMs: number;
  readonly heardAtMs: number;
  /** Where the stream stood before them. */
  readonly before: StreamMark | null;
  readonly results: Buffer[];
}

/** More than that is not held: a provider could make the service keep any amount. */
const MAX_RESULTS = 10_000;
const MAX_BYTES = 33_554_432;

/** The buffer of one stream. */
export class TipBuffer {
  readonly #parts: TipBufferParts;
  #held: Held[] = [];
  #count = 0;
  #bytes = 0;
  /** Where the stream stood before the results that are taken next. */
  #before: StreamMark | null = null;
  #timer: Timer | null = null;
  #leave: (() => void) | null = null;

  constructor(parts: TipBufferParts) {
    this.#parts = parts;
  }

  get isHolding(): boolean {
    return this.#held.length > 0;
  }

  /**
   * Where the stream stood before all that is held. By then the continuity may have had all logs of
   * a block and be about to emit them: without them the block is not complete.
   */
  get mark(): StreamMark | null {
    const before = this.#held[0]?.before ?? null;
    if (before === null || before.logs === null) return before;
    const lowest = Math.min(...this.#held.map((held) => held.lowest));
    const lacking = before.blocks.find(({ number }) => number >= lowest)?.number ?? null;
    if (lacking === null) return before;
    return { ...before, unsureFrom: Math.min(before.unsureFrom ?? lacking, lacking) };
  }

  /** The number of the tip above which blocks are held; null = none are. */
  get tip(): number | null {
    return this.#parts.view()?.current()?.number ?? null;
  }

  /**
   * Results of a block may be taken next, and the stream does not stand behind them yet. The mark
   * is read once per held block, not once per log.
   */
  expect(number: number): void {
    const { tip } = this;
    const held = this.#held.at(-1)?.block.number ?? tip;
    if (tip !== null && held !== null && number > held) this.#before = this.#parts.mark();
  }

  /** Takes results that have to wait. False = they may be delivered. */
  take(batch: EventBatch): boolean {
    const { tip } = this;
    if (tip === null) {
      this.#releaseAll();
      return false;
    }
    this.#reached(tip);
    const number = batch.block?.number ?? -1;
    const replaced = this.#parts.areHeads ? this.#dropFrom(number) : null;
    const last = this.#held.at(-1);
    if (last === undefined && number <= tip) return false;
    if (last !== undefined && number <= last.block.number) this.#append(last, batch);
    else this.#hold(batch, replaced);
    while (this.#count > MAX_RESULTS || this.#bytes > MAX_BYTES) this.#due();
    return true;
  }

  /** The stream has another view now. */
  rebind(): void {
    if (!this.isHolding) return;
    this.#leave?.();
    this.#leave = null;
    const { tip } = this;
    if (tip === null) return this.#releaseAll();
    this.#attend();
    this.#reached(tip);
  }

  /** Drops what is held. */
  close(): void {
    this.#held = [];
    this.#rest();
  }

  /** `replaced`: the first of the heads in whose place it is held. */
  #hold({ results, block, heardAtMs }: EventBatch, replaced: Held | null): void {
    if (block === null) return;
    const { runtime, blockTimeMs } = this.#parts;
    const dueAtMs = replaced?.dueAtMs ?? runtime.now() + blockTimeMs();
    const held: Held = {
      block,
      lowest: block.number,
      dueAtMs,
      heardAtMs,
      before: replaced === null ? this.#before : replaced.before,
      results: [],
    };
    this.#held.push(held);
    this.#append(held, { results, block, heardAtMs });
    if (this.#held.length > 1) return;
    this.#attend();
    this.#watch();
  }

  #append(held: Held, { results, block }: EventBatch): void {
    held.results.push(...results);
    if (block !== null) held.lowest = Math.min(held.lowest, block.number);
    this.#count += results.length;
    for (const { length } of results) this.#bytes += length;
  }

  #attend(): void {
    this.#leave = this.#parts.view()?.attend(({ number }) => this.#reached(number)) ?? null;
  }

  /** Lets through what the tip has. */
  #reached(tip: number): void {
    for (let [first] = this.#held; first !== undefined; [first] = this.#held) {
      if (first.block.number > tip || this.#isContradicted(first)) return;
      this.#releaseFirst();
    }
  }

  /** Whether a head that is held is not the block that is served at its height. */
  #isContradicted({ block }: Held): boolean {
    if (!this.#parts.areHeads) return false;
    const served = this.#parts.view()?.hashAt(block.number) ?? null;
    return served !== null && served !== block.hash;
  }

  /**
   * Drops held heads from a number on: their provider has another block there now, and nobody was
   * told of them. Returns the first; null = there is none.
   */
  #dropFrom(number: number): Held | null {
    const at = this.#held.findIndex(({ block }) => block.number >= number);
    const dropped = at === -1 ? [] : this.#held.splice(at);
    for (const { results } of dropped) this.#discount(results);
    if (dropped.length > 0) this.#watch();
    return dropped[0] ?? null;
  }

  #watch(): void {
    this.#timer?.clear();
    const [first] = this.#held;
    if (first === undefined) return this.#rest();
    const restMs = Math.max(0, first.dueAtMs - this.#parts.runtime.now());
    this.#timer = this.#parts.timerWheel.set(restMs, () => this.#due());
  }

  /** The first has waited for a block time: its block becomes the tip. */
  #due(): void {
    const [first] = this.#held;
    if (first === undefined || this.tip === null) return this.#releaseAll();
    this.#parts.view()?.raise(this.#presentBlock(first.block));
    if (this.#held[0] === first) this.#releaseFirst();
  }

  /** The block in its place after what was held since: a reorganisation may have abandoned it. */
  #presentBlock(block: EventBlock): SeenBlock {
    const blocks = this.#parts.mark()?.blocks ?? [];
    const { number, hash } = blocks.findLast((other) => other.number <= block.number) ?? block;
    return { number, hash };
  }

  #releaseAll(): void {
    while (this.isHolding) this.#releaseFirst();
  }

  #releaseFirst(): void {
    const first = this.#held.shift();
    if (first === undefined) return;
    this.#discount(first.results);
    this.#watch();
    this.#parts.deliver(first);
  }

  #discount(results: readonly Buffer[]): void {
    this.#count -= results.length;
    for (const { length } of results) this.#bytes -= length;
  }

  #rest(): void {
    this.#timer?.clear();
    this.#timer = null;
    this.#leave?.();
    this.#leave = null;
    this.#count = 0;
    this.#bytes = 0;
  }
}
