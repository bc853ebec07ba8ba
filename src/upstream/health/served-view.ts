// The view of the chain that all callers of a provider set share: the served tip, the blocks of
// `safe` and `finalized`, and the providers that have the tip. Follows what the providers tell of
// their heads; sends nothing.
import {
  BRANCH_BLOCKS,
  BranchView,
  clearBranch,
  hashAt,
} from "../../core/provider/blocks/branch-view.ts";
import type { FinalitySample } from "../../core/provider/blocks/finality.ts";
import { HEAD_FRESH_MS, stillMs } from "../../core/provider/blocks/head.ts";
import {
  confirmedMs,
  confirms,
  type FoundTip,
  findTip,
  type TipReport,
  tipMove,
} from "../../core/provider/blocks/served-tip.ts";
import { tipOperatorOf } from "../../core/provider/operator.ts";
import type { ProviderSet } from "../../core/provider/profile.ts";
import type { View } from "../../core/rpc/call.ts";
import type { Method } from "../../core/rpc/method.ts";
import type { SeenBlock } from "../../core/rpc/seen.ts";
import type { Runtime } from "../../runtime.ts";
import type { BlockForm, ProviderState } from "./provider-state.ts";

/** Hears that the tip has moved. `ancestor` null = unknown; absent = no reorganisation. */
export type TipListener = (
  tip: SeenBlock,
  reorganised?: { readonly ancestor: number | null },
) => void;

/** Almost always: then the time is not read. */
const NEVER_NEEDED = Number.NEGATIVE_INFINITY;
/** For how long a provider that refused a block's number is asked by tag alone. */
const NEEDS_TAG_MS = 600_000;
/** How often the time of `stillMs` a tip of one operator is believed against two others. */
const PATIENCES = 4;
/** Reports of named blocks that are older say nothing. */
const NAMED_FRESH_MS = 300_000;

/** The view of one provider set. */
export class ServedView {
  readonly #set: ProviderSet;
  readonly #runtime: Runtime;
  readonly #providers: readonly ProviderState[];
  readonly #listeners = new Set<TipListener>();
  /** The blocks that were tips, or lie below one. */
  readonly #served: BranchView = new BranchView();
  #tip: SeenBlock | null = null;
  #isAlone = false;
  /** The lowest block above the tip that would have been told of, and since when. */
  #above: { readonly number: number; readonly sinceMs: number } | null = null;
  /** When some provider was last known to have the tip. */
  #heldAtMs = Number.NEGATIVE_INFINITY;
  /** Since when two operators have been below a tip that one alone defined; null = they are not. */
  #contradictedAtMs: number | null = null;
  /** Until when a tip that was heard of elsewhere counts as confirmed. */
  #heardUntilMs = Number.NEGATIVE_INFINITY;
  #view: View | null = null;
  /** The highest blocks that tags have named: they do not go back. */
  #safe: number | null = null;
  #finalized: number | null = null;
  /** Until when `#view` holds if nothing is heard. */
  #untilMs = Number.NEGATIVE_INFINITY;

  constructor(set: ProviderSet, runtime: Runtime, providers: readonly ProviderState[]) {
    this.#set = set;
    this.#runtime = runtime;
    this.#providers = providers;
  }

  /** The view that is in force; null = the tip has not been confirmed lately. */
  current(): View | null {
    const nowMs = this.#runtime.now();
    if (nowMs >= this.#untilMs) this.#find(nowMs);
    return this.#view;
  }

  /** The newest block that was served, whether or not it is still confirmed; null = none was. */
  get tip(): SeenBlock | null {
    this.current();
    return this.#tip;
  }

  /** The hash of a recent block on the served branch; null = unknown. */
  hashAt(number: number): string | null {
    return this.#tip?.number === number ? this.#tip.hash : hashAt(this.#served, number);
  }

  /** A provider was heard of. */
  heard(): void {
    this.#find(this.#runtime.now());
  }

  /**
   * A block becomes the tip although it was not reported by enough operators: callers were shown
   * the block, or another process of the service has it as its tip.
   */
  raise({ number, hash }: SeenBlock): void {
    const tip = this.tip;
    const isKnown = tip?.number === number && (tip.hash !== null || hash === null);
    if (isKnown || (tip !== null && number < tip.number)) return;
    const nowMs = this.#runtime.now();
    this.#heldAtMs = nowMs;
    this.#heardUntilMs = nowMs + confirmedMs(this.#set.chain.blockTimeMs);
    this.#move({ number, hash }, null);
    this.#find(nowMs);
  }

  /** Whether a provider certainly lacks the tip of a view. */
  lacks(blocks: ProviderState, { number, hash }: View, nowMs: number): boolean {
    const { sample, missing, highest } = blocks;
    if (missing !== null && missing <= number) return true;
    const isPushing = blocks.branch.tip !== -1 && this.#isPushing(blocks, nowMs);
    const own = isPushing ? hashAt(blocks.branch, number) : null;
    if (own !== null && hash !== null) return own !== hash;
    if (
      blocks.neededTagAtMs !== NEVER_NEEDED &&
      this.#needsTag(blocks) &&
      sample?.height !== number
    )
      return true;
    if (sample === null || Math.max(sample.height, highest) >= number) return false;
    if (isPushing) return true;
    const { blockTimeMs } = this.#set.chain;
    const due = Math.floor((nowMs - sample.atMs) / Math.max(1, blockTimeMs));
    return sample.height + due < number;
  }

  /** How a provider is asked for the block of a view by a method. */
  formFor(blocks: ProviderState, { byHashName }: Method): BlockForm {
    if (blocks.neededTagAtMs !== NEVER_NEEDED && this.#needsTag(blocks)) return "tag";
    return byHashName !== null || blocks.takesHash ? "hash" : "number";
  }

  /**
   * Whether a block above the tip has been known for a block time without becoming the tip. Asked
   * whenever a caller would be told of such a block.
   */
  isDue(number: number): boolean {
    const nowMs = this.#runtime.now();
    if (
      this.#above === null ||
      this.#above.number > number ||
      this.#above.number <= (this.tip?.number ?? -1)
    )
      this.#above = { number, sinceMs: nowMs };
    return nowMs - this.#above.sinceMs >= this.#set.chain.blockTimeMs;
  }

  attend(listener: TipListener): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  #needsTag({ neededTagAtMs }: ProviderState): boolean {
    return this.#runtime.now() - neededTagAtMs < NEEDS_TAG_MS;
  }

  #isPushing({ branch, pushedAtMs }: ProviderState, nowMs: number): boolean {
    return branch.tip !== -1 && nowMs - pushedAtMs < this.#pushedMs();
  }

  /** A provider that has been silent for longer may have lost its subscription. */
  #pushedMs(): number {
    return Math.max(HEAD_FRESH_MS, stillMs(this.#set.chain.blockTimeMs));
  }

  #find(nowMs: number): void {
    const { blockTimeMs } = this.#set.chain;
    const reports = this.#reports(nowMs);
    const found = findTip(reports, blockTimeMs, nowMs);
    if (found !== null) this.#follow(found, reports, nowMs);
    const tip = this.#tip;
    const isConfirmed =
      tip !== null &&
      (nowMs < this.#heardUntilMs ||
        reports.some((report) => confirms(report, tip, blockTimeMs, nowMs)));
    this.#view = tip === null || !isConfirmed ? null : this.#viewOf(tip);
    this.#untilMs = this.#nextChangeMs(reports, nowMs);
  }

  #follow(found: FoundTip, reports: readonly TipReport[], nowMs: number): void {
    const tip = this.#tip;
    if (tip === null) {
      this.#heldAtMs = nowMs;
      this.#isAlone = found.isAlone;
      return this.#move(found, found.branch);
    }
    if (reports.some(({ height }) => height >= tip.number)) this.#heldAtMs = nowMs;
    const move = tipMove(this.#served, tip, found);
    const isBelow = this.#isAlone && !found.isAlone && found.number < tip.number;
    if (!isBelow) this.#contradictedAtMs = null;
    else this.#contradictedAtMs ??= nowMs;
    if (move.kind === "stays") {
      if (found.number < tip.number && this.#isGivenUp(nowMs))
        this.#goBack(found, { ancestor: null });
      // A block belongs to one operator alone until a second operator has it as well.
      else if (found.number === tip.number) this.#isAlone = found.isAlone;
      return;
    }
    this.#isAlone = found.isAlone;
    if (move.kind === "forward") return this.#move(found, found.branch);
    this.#goBack(found, { ancestor: move.ancestor });
  }

  /**
   * Whether the tip is given up: no provider has the block, or a single operator defined the tip
   * and two others have not come near it since.
   */
  #isGivenUp(nowMs: number): boolean {
    const patienceMs = stillMs(this.#set.chain.blockTimeMs);
    const contradictedMs = nowMs - (this.#contradictedAtMs ?? nowMs);
    return nowMs - this.#heldAtMs > patienceMs || contradictedMs > PATIENCES * patienceMs;
  }

  #goBack(found: FoundTip, reorganised: { readonly ancestor: number | null }): void {
    clearBranch(this.#served);
    this.#isAlone = found.isAlone;
    this.#contradictedAtMs = null;
    this.#move(found, found.branch, reorganised);
  }

  /** Makes a block the tip, and notes the hashes below it that its branch tells. */
  #move(
    { number, hash }: SeenBlock,
    branch: BranchView | null,
    reorganised?: { readonly ancestor: number | null },
  ): void {
    const served = this.#served;
    const isNext = served.tip !== -1 && number <= served.tip + BRANCH_BLOCKS;
    const first = isNext ? served.tip + 1 : number;
    for (let at = Math.min(first, number); at <= number; at++)
      served.hashes[at % BRANCH_BLOCKS] = branch === null ? null : hashAt(branch, at);
    served.hashes[number % BRANCH_BLOCKS] = hash;
    if (!isNext) served.lowest = number;
    served.lowest = Math.max(served.lowest, number - BRANCH_BLOCKS + 1);
    served.tip = number;
    this.#tip = { number, hash };
    this.#view = null;
    this.#untilMs = Number.NEGATIVE_INFINITY;
    for (const listener of [...this.#listeners]) listener(this.#tip, reorganised);
  }

  #reports(nowMs: number): readonly TipReport[] {
    const reports: TipReport[] = [];
    for (const blocks of this.#providers) {
      const { provider, sample, branch, roseAtMs } = blocks;
      const isPushed = this.#isPushing(blocks, nowMs);
      if (sample === null || (!isPushed && nowMs - sample.atMs >= HEAD_FRESH_MS)) continue;
      // A polled height may be that of another machine than the one that pushes.
      const height = isPushed ? branch.tip : sample.height;
      const { atMs } = sample;
      const operator = tipOperatorOf(provider);
      reports.push({ operator, height, branch, roseAtMs, atMs, isPushed });
    }
    return reports;
  }

  /** The same object until the view changes, so that values derived from it can be kept. */
  #viewOf({ number, hash }: SeenBlock): View {
    this.#safe = this.#named(({ safe }) => safe, this.#safe, number);
    this.#finalized = this.#named(({ finalized }) => finalized, this.#finalized, number);
    const [safe, finalized] = [this.#safe, this.#finalized];
    const isAlone = this.#isAlone && this.#hasOthers();
    const known = this.#view;
    if (
      known !== null &&
      known.number === number &&
      known.hash === hash &&
      known.safe === safe &&
      known.finalized === finalized &&
      known.isAlone === isAlone
    )
      return known;
    return { number, hash, safe, finalized, isAlone };
  }

  #hasOthers(): boolean {
    return new Set(this.#providers.map(({ provider }) => tipOperatorOf(provider))).size > 1;
  }

  /** The second highest of the fresh reports of a named block, or the only one; never lower. */
  #named(
    reportOf: (blocks: ProviderState) => FinalitySample | null,
    before: number | null,
    most: number,
  ): number | null {
    const nowMs = this.#runtime.now();
    const heights = this.#providers
      .map(reportOf)
      .flatMap((report) =>
        report !== null && nowMs - report.atMs < NAMED_FRESH_MS ? [report.height] : [],
      )
      .sort((left, right) => right - left);
    const height = heights[1] ?? heights[0] ?? before;
    return height === null ? null : Math.min(Math.max(height, before ?? 0), most);
  }

  /** When what follows from the reports may change although nothing is heard. */
  #nextChangeMs(reports: readonly TipReport[], nowMs: number): number {
    const { blockTimeMs } = this.#set.chain;
    let next = this.#heardUntilMs > nowMs ? this.#heardUntilMs : nowMs + HEAD_FRESH_MS;
    for (const { pushedAtMs } of this.#providers) {
      const silentAtMs = pushedAtMs + this.#pushedMs();
      if (silentAtMs > nowMs) next = Math.min(next, silentAtMs);
    }
    for (const { roseAtMs, atMs, isPushed } of reports) {
      const ends = isPushed ? [] : [atMs + confirmedMs(blockTimeMs)];
      for (const atEnd of [...ends, roseAtMs + stillMs(blockTimeMs)])
        if (atEnd >= nowMs) next = Math.min(next, atEnd + 1);
    }
    return next;
  }
}
