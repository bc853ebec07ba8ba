// What the providers of one set told of their chain: how far it is final, its newest block, and the
// branch of each provider. Sends nothing.

import {
  AgreedSince,
  agreedHash,
  BranchChanges,
  type BranchView,
  clearBranch,
  hashAt,
  isDisputed,
  pushBlock,
} from "../../core/provider/blocks/branch-view.ts";
import { DEFAULT_FINALITY_DEPTH, finalizedHeightOf } from "../../core/provider/blocks/finality.ts";
import { HEAD_FRESH_MS } from "../../core/provider/blocks/head.ts";
import type { Provider, ProviderSet } from "../../core/provider/profile.ts";
import type { View } from "../../core/rpc/call.ts";
import type { Method } from "../../core/rpc/method.ts";
import type { Block } from "../../core/stream/chain-event.ts";
import type { Runtime } from "../../runtime.ts";
import type { BlockForm, ProviderState } from "./provider-state.ts";
import { ServedView } from "./served-view.ts";

/** The newest blocks at one moment. */
export interface BlocksSnapshot {
  /** Reorganisations counted. */
  readonly epoch: number;
  readonly servedTip: number | null;
  /** Null = unknown or disputed. */
  readonly servedHash: string | null;
  /** The newest block that each provider has pushed, by its index; null = it pushes none. */
  readonly tips: readonly (number | null)[];
  /** The highest block that each provider was ever known to have, by its index; -1 = none. */
  readonly highest: readonly number[];
}

/** What follows from the blocks of the providers, which is the same until one is heard of. */
interface Newest extends BlocksSnapshot {
  /** The branches of the providers that push their heads. */
  readonly pushing: readonly BranchView[];
  readonly fromMs: number;
  /** From then on one of them has been silent for too long; exclusive. */
  readonly untilMs: number;
}

/** The known blocks of one chain, by the providers of one set. */
export class KnownBlocks {
  readonly #set: ProviderSet;
  readonly #runtime: Runtime;
  readonly #providers: readonly ProviderState[];
  /** The one view that callers share. */
  readonly view: ServedView;
  readonly #changes = new BranchChanges();
  readonly #agreed = new AgreedSince();
  /** As last found: it never goes back. */
  #finalized: number | null;
  /** Null = something was heard since it was found. */
  #newest: Newest | null = null;

  constructor(
    set: ProviderSet,
    runtime: Runtime,
    providers: readonly ProviderState[],
    finalized: number | null,
  ) {
    this.#set = set;
    this.#runtime = runtime;
    this.#providers = providers;
    this.#finalized = finalized;
    this.view = new ServedView(set, runtime, providers);
  }

  /** Counts the reorganisations that any of the providers has told of. */
  get epoch(): number {
    return this.#changes.epoch;
  }

  /** Whether no reorganisation has reached this height since the count was `epoch`. */
  isUntouched(number: number, epoch: number): boolean {
    return this.#changes.isUntouched(number, epoch);
  }

  /** The newest block that callers are told of; null = unknown. */
  servedTip(): number | null {
    return this.view.tip?.number ?? null;
  }

  /** Whether a provider certainly lacks the newest block of a view. */
  lacks(provider: Provider, view: View): boolean {
    const blocks = this.#of(provider);
    return blocks !== null && this.view.lacks(blocks, view, this.#runtime.now());
  }

  /** How the provider is asked for a block of a view by a method. */
  formFor(provider: Provider, method: Method): BlockForm {
    const blocks = this.#of(provider);
    return blocks === null ? "number" : this.view.formFor(blocks, method);
  }

  /** At or below this height the chain does not change any more; null = unknown. */
  finalized(): number | null {
    return this.#finalized;
  }

  /**
   * The hash of a recent block on which all providers that push their heads agree; null = unknown
   * or disputed.
   */
  agreedHash(number: number): string | null {
    return agreedHash(this.snapshot().pushing, number);
  }

  /** Whether providers that push their heads have different blocks at this height. */
  isDisputed(number: number): boolean {
    return isDisputed(this.snapshot().pushing, number);
  }

  /** For how long (ms) this hash has been the only one that was heard of at its height. */
  agreedMs(number: number, hash: string): number {
    return this.#runtime.now() - this.#agreed.since(number, hash);
  }

  /** The hash that the provider has at a recent height; null = unknown. */
  pushedHash(provider: Provider, number: number): string | null {
    const blocks = this.#of(provider);
    return blocks === null || !this.#pushes(blocks) ? null : hashAt(blocks.branch, number);
  }

  /** The newest block that the provider has pushed; null = it does not push its heads. */
  pushedTip(provider: Provider): number | null {
    const blocks = this.#of(provider);
    if (blocks === null || blocks.branch.tip === -1 || !this.#pushes(blocks)) return null;
    return blocks.branch.tip;
  }

  /** The newest height of a provider is another one. */
  heightChanged(): void {
    this.#newest = null;
    this.view.heard();
  }

  /** A provider is known to have a higher block. */
  highestChanged(): void {
    this.#newest = null;
  }

  /** A provider does not push its blocks any more. */
  clear({ branch }: ProviderState): void {
    clearBranch(branch);
    this.#newest = null;
    this.view.heard();
  }

  /** A provider has pushed a block; null = only its height is known. */
  pushed(blocks: ProviderState, block: Block | null): void {
    if (block === null) return this.clear(blocks);
    this.#newest = null;
    const abandoned = pushBlock(blocks.branch, block);
    this.#agreed.hear(block, abandoned, this.#runtime.now());
    if (abandoned !== null) {
      this.#changes.abandon(abandoned);
      // Its higher blocks were of the branch that it left.
      blocks.highest = block.number;
    }
    this.view.heard();
  }

  /** A provider has reported the height of the block that a tag names. */
  reported(blocks: ProviderState, tag: "safe" | "finalized", height: number): void {
    const nowMs = this.#runtime.now();
    blocks[tag] = { height, atMs: nowMs };
    this.view.heard();
    if (tag === "safe") return;
    this.#finalized = finalizedHeightOf({
      reports: this.#providers.map(({ finalized }) => finalized),
      servedTip: this.servedTip(),
      finalityDepth: this.#set.chain.finalityDepth ?? DEFAULT_FINALITY_DEPTH,
      previous: this.#finalized,
      nowMs,
    });
  }

  #of({ index, id }: Provider): ProviderState | null {
    const blocks = this.#providers[index];
    if (blocks?.provider.id === id) return blocks;
    return this.#providers.find(({ provider }) => provider.id === id) ?? null;
  }

  /**
   * The newest blocks, to be compared with those when an answer comes. Found anew only when
   * something was heard, or has become too old: every call asks for it.
   */
  snapshot(): Newest {
    const nowMs = this.#runtime.now();
    const known = this.#newest;
    if (known !== null && nowMs >= known.fromMs && nowMs < known.untilMs) return known;
    const found = this.#find(nowMs);
    this.#newest = found;
    return found;
  }

  #find(nowMs: number): Newest {
    const servedTip = this.servedTip();
    const pushing: BranchView[] = [];
    const tips: (number | null)[] = [];
    const highest = this.#providers.map((blocks) => blocks.highest);
    let untilMs = Number.POSITIVE_INFINITY;
    for (const { sample, branch, pushedAtMs } of this.#providers) {
      const silentAtMs = pushedAtMs + this.#freshMs();
      const isPushing = nowMs < silentAtMs;
      if (isPushing) pushing.push(branch);
      tips.push(isPushing && branch.tip !== -1 ? branch.tip : null);
      // A sample of a clock that has gone back counts from its time on.
      const sampledAtMs = sample === null ? nowMs : sample.atMs;
      for (const atMs of [silentAtMs, sampledAtMs, sampledAtMs + HEAD_FRESH_MS])
        if (atMs > nowMs) untilMs = Math.min(untilMs, atMs);
    }
    const servedHash = servedTip === null ? null : agreedHash(pushing, servedTip);
    const { epoch } = this;
    return { epoch, servedTip, servedHash, tips, highest, pushing, fromMs: nowMs, untilMs };
  }

  #pushes({ pushedAtMs }: ProviderState): boolean {
    return this.#runtime.now() - pushedAtMs < this.#freshMs();
  }

  /** A provider that has been silent for longer may be on a branch that nobody is on any more. */
  #freshMs(): number {
    return Math.max(HEAD_FRESH_MS, QUIET_BLOCKS * this.#set.chain.blockTimeMs);
  }
}

/** After so many block times without a head a provider does not push its heads. */
const QUIET_BLOCKS = 3;
