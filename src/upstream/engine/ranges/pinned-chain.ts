// The chain of the block at which a split call ends: fetches the headers below it, and checks that
// a part of the call lies on it. One that does not comes from another fork, or is false. What lies
// too far below the end to be linked counts as two providers have it.

import type { Provider } from "../../../core/provider/profile.ts";
import type { NoAnswer } from "../../../core/routing/failover.ts";
import { type BlockRange, HeaderChain } from "../../../core/routing/range-parts.ts";
import type { Span } from "../../../core/rpc/json.ts";
import { type BlockPlace, blocksNamed, hexOf } from "../../../core/rpc/range-call.ts";
import type { Block, Head } from "../../../core/stream/chain-event.ts";
import type { KnownBlocks } from "../../health/known-blocks.ts";
import type { HeaderQuery } from "../call-context.ts";

/** The result of a part, and who gave it. */
export interface PartResult {
  readonly range: BlockRange;
  readonly provider: Provider;
  readonly body: Buffer;
  /** The list within `body`, with its brackets. */
  readonly span: Span;
  /** Asks for the blocks that the same part names elsewhere. */
  readonly readAgain: Query<readonly BlockPlace[]>;
}

/** Whom to ask. */
type Whom = Pick<HeaderQuery, "pin" | "avoid">;

/** Asks for something once more; null = nobody gave it, and why. */
type Query<Said> = (whom: Whom, done: (said: Said | null, why: NoAnswer) => void) => void;

/** What a provider said, which others are to confirm. */
interface Claim<Said> {
  readonly provider: Provider;
  readonly query: Query<Said>;
  readonly isSame: (said: Said) => boolean;
  /** Further providers are asked after one who says something else. */
  readonly asksOn: boolean;
}

/**
 * What a check found. `foreign`: the part is not of this chain. `lost`: the headers of the chain
 * cannot be had any more. `unconfirmed`: a second provider could tell, and does not for now.
 */
export type PartVerdict = "agrees" | "foreign" | "lost" | "unconfirmed";

/** Asks for a block. */
type QueryHeader = (query: HeaderQuery, done: Parameters<Query<Head>>[1]) => void;

/** Headers that are asked for at once. */
const HEADERS_AT_ONCE = 8;
/** How often a header is asked for by its hash. */
const HEADER_TRIES = 3;

/** The chain of one pinned block. */
export class PinnedChain {
  readonly #chain: HeaderChain;
  readonly #queryHeader: QueryHeader;
  readonly #known: Pick<KnownBlocks, "agreedHash">;
  /** Hashes of blocks too deep to be linked that two providers agree on. */
  readonly #deep = new Map<number, string>();
  #waiting: { readonly number: number; readonly done: (linked: boolean) => void }[] = [];
  #isFetching = false;

  /** `known`: the hashes that providers have pushed, each linked to the one before. */
  constructor(end: Block, queryHeader: QueryHeader, known: Pick<KnownBlocks, "agreedHash">) {
    this.#chain = new HeaderChain(end);
    this.#queryHeader = queryHeader;
    this.#known = known;
  }

  get end(): Block {
    return this.#chain.end;
  }

  /** The hash of a block that was linked to the end; null = it was not. */
  hashAt(number: number): string | null {
    return this.#chain.hashAt(number);
  }

  /**
   * Checks a part after its provider gave it: the same provider's hash of the last block, and the
   * block of every element, must be on the chain.
   */
  check(part: PartResult, done: (verdict: PartVerdict) => void): void {
    const { range, provider, body, span } = part;
    const named = blocksNamed(body, span);
    if (named === null || named.some(({ number }) => number < range.from || number > range.to))
      return done("foreign");
    this.#queryHeader({ block: hexOf(range.to), pin: provider }, (last) => {
      if (last === null || last.number !== range.to) return done("foreign");
      this.#place([...named, last], (verdict) => {
        if (verdict !== "agrees") return done(verdict);
        this.#settle(last, provider, (settled) => {
          const deep = named.filter(({ number }) => !this.#chain.mustLink(number));
          if (settled !== "agrees" || deep.length === 0) return done(settled);
          const hashes = new Map(deep.map(({ number, hash }) => [number, hash]));
          const isSame = (other: readonly BlockPlace[]): boolean => this.#namesAll(other, hashes);
          this.#confirm({ provider, query: part.readAgain, isSame, asksOn: true }, done);
        });
      });
    });
  }

  /** Whether those of these blocks that are near the end are on the chain. */
  #place(blocks: readonly BlockPlace[], done: (verdict: PartVerdict) => void): void {
    const near = blocks.filter(({ number }) => this.#chain.mustLink(number));
    const lowest = near.reduce((low, { number }) => Math.min(low, number), this.end.number);
    this.#link(lowest, (linked) => {
      if (!linked) return done("lost");
      const isForeign = near.some(({ number, hash }) => this.#chain.hashAt(number) !== hash);
      done(isForeign ? "foreign" : "agrees");
    });
  }

  /**
   * Looks for another provider that says the same. If no other provider can tell, the same provider
   * is asked once more: there is nobody to contradict it.
   */
  #confirm<Said>(
    claim: Claim<Said>,
    done: (verdict: PartVerdict) => void,
    asked: ReadonlySet<string> = new Set([claim.provider.id]),
    differs = false,
  ): void {
    const { provider, query, isSame, asksOn } = claim;
    query({ avoid: asked }, (other, { unable, isForNow }) => {
      if (other !== null && isSame(other)) return done("agrees");
      const isOther = differs || other !== null;
      const isNew = unable.some((id) => !asked.has(id));
      if (isNew && (asksOn || other === null))
        return this.#confirm(claim, done, asked.union(new Set(unable)), isOther);
      if (isOther) return done("foreign");
      if (isForNow) return done("unconfirmed");
      query({ pin: provider }, (again) => {
        if (again === null) return done("lost");
        done(isSame(again) ? "agrees" : "foreign");
      });
    });
  }

  /** Whether the deep blocks of a list are these and no others. */
  #namesAll(named: readonly BlockPlace[], deep: ReadonlyMap<number, string>): boolean {
    const found = named.filter(({ number }) => !this.#chain.mustLink(number));
    return (
      found.length === deep.size && found.every(({ number, hash }) => deep.get(number) === hash)
    );
  }

  /** Compares a block too deep to be linked with what another provider has there. */
  #settle(
    { number, hash }: BlockPlace,
    provider: Provider,
    done: (verdict: PartVerdict) => void,
  ): void {
    if (this.#chain.mustLink(number) || this.#deep.get(number) === hash) return done("agrees");
    const query: Query<Head> = (whom, heard) =>
      this.#queryHeader({ block: hexOf(number), ...whom }, heard);
    const isSame = (head: Head): boolean => head.hash === hash;
    this.#confirm({ provider, query, isSame, asksOn: false }, (verdict) => {
      if (verdict === "agrees") this.#deep.set(number, hash);
      done(verdict);
    });
  }

  /** Links the headers down to a number. */
  #link(number: number, done: (linked: boolean) => void): void {
    if (this.#chain.lowest <= number) return done(true);
    this.#waiting.push({ number, done });
    if (!this.#isFetching) this.#fetch();
  }

  #fetch(): void {
    const target = this.#waiting.reduce(
      (low, { number }) => Math.min(low, number),
      this.end.number,
    );
    this.#linkKnown(target);
    if (this.#chain.lowest <= target) return this.#goOn();
    const first = this.#chain.next.number;
    const last = Math.max(target, first - HEADERS_AT_ONCE + 1, 0);
    if (first < last) return this.#goOn(true);
    this.#isFetching = true;
    const heads: Head[] = [];
    let out = first - last + 1;
    for (let number = first; number >= last; number--) {
      this.#queryHeader({ block: hexOf(number) }, (head) => {
        if (head !== null) heads.push(head);
        if (--out === 0) this.#add(heads, last);
      });
    }
  }

  /** Links what the providers' pushed heads tell, without a call. */
  #linkKnown(target: number): void {
    while (this.#chain.lowest > target) {
      const { number, hash } = this.#chain.next;
      const parentHash = this.#known.agreedHash(number - 1);
      if (this.#known.agreedHash(number) !== hash || parentHash === null) return;
      this.#chain.add({ number, hash, parentHash });
    }
  }

  /** Adds what came, and asks by hash for what is missing or of another fork. */
  #add(heads: readonly Head[], last: number, tries = 0): void {
    for (const head of [...heads].sort((left, right) => right.number - left.number))
      if (this.#chain.add(head)) tries = 0;
    if (this.#chain.lowest <= last) return this.#goOn();
    if (tries === HEADER_TRIES) return this.#goOn(true);
    this.#queryHeader({ block: this.#chain.next.hash }, (head) =>
      this.#add(head === null ? heads : [...heads, head], last, tries + 1),
    );
  }

  /** Tells those whose block is linked, and goes on for the others, or gives up. */
  #goOn(isGivenUp = false): void {
    this.#isFetching = false;
    const { lowest } = this.#chain;
    const ended = this.#waiting.filter(({ number }) => isGivenUp || lowest <= number);
    this.#waiting = this.#waiting.filter((each) => !ended.includes(each));
    for (const { number, done } of ended) done(lowest <= number);
    if (this.#waiting.length > 0 && !this.#isFetching) this.#fetch();
  }
}
