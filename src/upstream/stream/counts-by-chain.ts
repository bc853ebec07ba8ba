// Counts since the start by profile and chain, for display. Profiles of accounts count as one.
import { publicLabel } from "../../core/provider/profile.ts";
import type { Tracker } from "../health/tracker.ts";

/** Whose counts they are. */
export interface CountedChain {
  readonly profile: string;
  readonly chain: string;
}

/** Counts of one kind. */
export class CountsByChain<C> {
  readonly #byKey = new Map<string, C & CountedChain>();
  readonly #zero: () => C;

  /** `zero`: the counts of a profile and chain at the start. */
  constructor(zero: () => C) {
    this.#zero = zero;
  }

  /** The counts of a `profileId` on the chain of a tracker, to be changed in place. */
  of(profileId: string, { set }: Tracker): C & CountedChain {
    const profile = publicLabel(profileId);
    const chain = set.chain.chainName;
    const key = `${profile} ${chain}`;
    const counts = this.#byKey.get(key) ?? { ...this.#zero(), profile, chain };
    this.#byKey.set(key, counts);
    return counts;
  }

  /** Forgets the counts of chains that are served no more. */
  forgetChains(names: ReadonlySet<string>): void {
    for (const [key, { chain }] of this.#byKey) if (names.has(chain)) this.#byKey.delete(key);
  }

  all(): readonly (C & CountedChain)[] {
    return [...this.#byKey.values()];
  }
}

/** A zero for each name. */
export function zeros<Name extends string>(names: readonly Name[]): Record<Name, number> {
  return Object.fromEntries(names.map((name) => [name, 0])) as Record<Name, number>;
}
