// The chains that this process serves: those of the configuration, those that were opened on
// demand, and the block times that were learned. Every change of them is one replacement in the
// registry.
import type { Logger } from "pino";
import type { Config } from "../config/config.ts";
import { ChainIds } from "../config/reload.ts";
import { isOtherPace, middleOf } from "../core/provider/blocks/block-time.ts";
import { type Chain, isDevelopmentChain } from "../core/provider/chain.ts";
import type { ProviderSet } from "../core/provider/profile.ts";
import type { Runtime } from "../runtime.ts";
import type { ProfileRegistry } from "../upstream/registry/profile-registry.ts";

/** A chain that is not configured, with its providers by the slug of their profile. */
export interface OpenedChain {
  readonly chain: Chain;
  readonly sets: ReadonlyMap<string, ProviderSet>;
}

export interface ServedChainsParts {
  readonly runtime: Pick<Runtime, "after">;
  readonly log: Logger;
  readonly registry: ProfileRegistry;
  /** The configuration of now. */
  readonly config: () => Pick<Config, "chains" | "profiles">;
}

/** How often it is looked whether a chain has another block time than was thought. */
const LEARN_MS = 5_000;

/** The chains of one process. */
export class ServedChains {
  readonly #parts: ServedChainsParts;
  readonly #ids: ChainIds;
  readonly #opened = new Map<string, OpenedChain>();
  /** Learned block times (ms), by the name of the chain. */
  readonly #blockTimes = new Map<string, number>();
  #cancelLearning: () => void;

  constructor(parts: ServedChainsParts) {
    this.#parts = parts;
    this.#ids = new ChainIds(parts.config().chains);
    this.#cancelLearning = parts.runtime.after(LEARN_MS, () => this.#learn());
  }

  /** Why these chains cannot be served; null = they can. */
  problemOf(chains: readonly Chain[]): string | null {
    return this.#ids.problemOf(chains);
  }

  /** Serves what the configuration says now, and of the others these chains. */
  configured(opened: readonly OpenedChain[]): void {
    this.#ids.add(this.#parts.config().chains);
    this.#opened.clear();
    for (const each of opened) this.#opened.set(each.chain.chainName, each);
    this.#apply();
  }

  /** Serves one more chain, in place of some others. False = its name stands for another chain. */
  open(opened: OpenedChain, closing: readonly string[]): boolean {
    if (this.#ids.problemOf([opened.chain]) !== null) return false;
    this.#ids.add([opened.chain]);
    for (const name of closing) this.#opened.delete(name);
    this.#opened.set(opened.chain.chainName, opened);
    this.#apply();
    return true;
  }

  /** Serves chains no more that were opened. */
  close(names: readonly string[]): void {
    for (const name of names) this.#opened.delete(name);
    this.#apply();
  }

  /** Ends learning. */
  end(): void {
    this.#cancelLearning();
  }

  #apply(): void {
    const { config, registry } = this.#parts;
    const { chains, profiles } = config();
    const opened = [...this.#opened.values()];
    const all = [...chains, ...opened.map(({ chain }) => chain)].map((chain) => this.#paced(chain));
    const byName = new Map(all.map((chain) => [chain.chainName, chain]));
    for (const name of this.#blockTimes.keys())
      if (!byName.has(name)) this.#blockTimes.delete(name);
    const served = profiles.map((profile) => {
      const more = opened.flatMap(({ chain: { chainName }, sets }) => {
        const set = sets.get(profile.slug);
        return set === undefined ? [] : [[chainName, set] as const];
      });
      const sets = [...profile.chains, ...more].map(
        ([name, set]) => [name, { ...set, chain: byName.get(name) ?? set.chain }] as const,
      );
      return { ...profile, chains: new Map(sets) };
    });
    registry.replace(all, served, new Set(this.#opened.keys()));
  }

  /** The chain with the block time that was learned. */
  #paced(chain: Chain): Chain {
    const blockTimeMs = this.#blockTimes.get(chain.chainName);
    const isLearned = blockTimeMs !== undefined && chain.learnsBlockTime === true;
    return isLearned ? { ...chain, blockTimeMs } : chain;
  }

  /** Follows the block times that heads tell. */
  #learn(): void {
    const { runtime, log, registry } = this.#parts;
    this.#cancelLearning = runtime.after(LEARN_MS, () => this.#learn());
    let isChanged = false;
    for (const { chainName: chain, blockTimeMs: before, ...kind } of registry.chains) {
      if (kind.learnsBlockTime !== true || isDevelopmentChain(kind)) continue;
      const heard = registry.profiles.flatMap(
        ({ trackers }) => trackers.get(chain)?.learnedBlockTimeMs() ?? [],
      );
      const blockTimeMs = middleOf(heard);
      if (blockTimeMs === null || !isOtherPace(before, blockTimeMs)) continue;
      this.#blockTimes.set(chain, blockTimeMs);
      isChanged = true;
      log.info({ chain, block_time_ms: blockTimeMs, before }, "learned the block time of a chain");
    }
    if (isChanged) this.#apply();
  }
}
