// The newest headers below a pinned block, linked by parent hashes: which of them are needed to
// place a block on the chain of that end, and what their hashes are. Asks nobody.
import type { Block } from "../stream/chain-event.ts";

/** Most headers that are linked: blocks below are compared with those of another provider. */
export const MAX_LINKED_HEADERS = 256;

/** What a header was to the chain. */
export type Linking = "linked" | "known" | "foreign" | "early";

/** Headers from a pinned block downwards. */
export class HeaderChain {
  readonly end: Block;
  /** From the end downwards, each the parent of the one before. */
  readonly #linked: Block[];

  constructor(end: Block) {
    this.end = end;
    this.#linked = [end];
  }

  /** The lowest block whose hash is known. */
  get lowest(): number {
    return this.#oldest.number;
  }

  /** The next one below, as its child names it. */
  get next(): { readonly number: number; readonly hash: string } {
    const { number, parentHash } = this.#oldest;
    return { number: number - 1, hash: parentHash };
  }

  /** The hash of a block on the chain; null = it is not linked. */
  hashAt(number: number): string | null {
    return this.#linked[this.end.number - number]?.hash ?? null;
  }

  /** Whether a block is so near the end that it has to be linked. */
  mustLink(number: number): boolean {
    return this.end.number - number < MAX_LINKED_HEADERS;
  }

  /** Adds a header. `early`: one between it and the chain is missing. */
  add(header: Block): Linking {
    const { number, hash } = this.next;
    if (header.number > number)
      return this.hashAt(header.number) === header.hash ? "known" : "foreign";
    if (header.number < number) return "early";
    if (header.hash !== hash) return "foreign";
    this.#linked.push(header);
    return "linked";
  }

  get #oldest(): Block {
    return this.#linked.at(-1) ?? this.end;
  }
}
