// Since when a recent block has been the only one that any provider told of at its height.
import { BRANCH_BLOCKS, type PushedBlock } from "./branch-view.ts";

interface Heard {
  readonly hash: string;
  readonly atMs: number;
}

/** The blocks that the providers of one set have told of, by height. */
export class AgreedSince {
  /** By number modulo `BRANCH_BLOCKS`; hashes tell one turn from another. */
  readonly #heard: Heard[] = [];

  /** Since when (ms); Infinity = it was not heard of, or another one was heard of later. */
  since(number: number, hash: string): number {
    const heard = this.#heard[number % BRANCH_BLOCKS];
    return heard?.hash === hash ? heard.atMs : Number.POSITIVE_INFINITY;
  }

  /** A provider has told of a block. `abandoned`: the lowest one that it has left; null = none. */
  hear({ number, hash, parentHash }: PushedBlock, abandoned: number | null, nowMs: number): void {
    // There was more than one block at these heights until now.
    const lowest = Math.max(abandoned ?? number, number - BRANCH_BLOCKS + 1);
    for (let at = lowest; at < number; at++) {
      const heard = this.#heard[at % BRANCH_BLOCKS];
      if (heard !== undefined) this.#heard[at % BRANCH_BLOCKS] = { hash: heard.hash, atMs: nowMs };
    }
    if (number > 0) this.#hear(number - 1, parentHash, nowMs);
    if (abandoned !== null && abandoned <= number) delete this.#heard[number % BRANCH_BLOCKS];
    this.#hear(number, hash, nowMs);
  }

  #hear(number: number, hash: string, atMs: number): void {
    const at = number % BRANCH_BLOCKS;
    if (this.#heard[at]?.hash !== hash) this.#heard[at] = { hash, atMs };
  }
}
