// What the providers of a run held, and when: the judge of whether a reader who saw an older block
// went back, or was taken along by a reorganisation. Pure but for what it is told.
import type { ChainBlock } from "../../fakes/chain.ts";
import type { ViewChain } from "./chain.ts";

/** From when on a provider had this newest block. */
export interface Move {
  readonly provider: number;
  readonly tip: ChainBlock;
  readonly atMs: number;
}

/** A time from which to which. */
export interface Span {
  readonly fromMs: number;
  readonly toMs: number;
}

/** Knows every provider's branch at every time. */
export interface Oracle {
  readonly chain: ViewChain;
  /** Notes a move; moves come in the order of their times. */
  note(move: Move): void;
  /** Whether `newer` is `older`, or stands on it. */
  standsOn(newer: ChainBlock, older: ChainBlock): boolean;
  /**
   * The blocks to which a reorganisation took readers of `block` back at some time of the span:
   * two providers had another block at its height, or the same block of another branch below it,
   * or the only one that still had one of that height did. Empty = nobody had to leave the block.
   */
  retreats(block: ChainBlock, span: Span): readonly ChainBlock[];
  /** Blocks of this height that two providers held at some time of the span; else those of one. */
  heldAt(number: number, span: Span): readonly ChainBlock[];
  /** Moves of the span, for people. */
  moves(span: Span): readonly Move[];
}

/** Providers that must agree. */
const QUORUM = 2;

/** An oracle of so many providers. */
export function createOracle(chain: ViewChain, providers: number): Oracle {
  const { blocks } = chain;
  const moves: Move[] = [];
  /** The tips of all providers after the move of the same index. */
  const tips: (readonly ChainBlock[])[] = [];
  const first = Array.from({ length: providers }, () => blocks.tip());

  /** The tips in force at some time of the span: those at its start, and after each move. */
  const tipsDuring = ({ fromMs, toMs }: Span): readonly (readonly ChainBlock[])[] => {
    const from = countUpTo(moves, fromMs);
    const to = countUpTo(moves, toMs);
    return [tips[from - 1] ?? first, ...tips.slice(from, to)];
  };

  return {
    chain,
    note(move) {
      const before = tips.at(-1) ?? first;
      moves.push(move);
      tips.push(before.map((tip, provider) => (provider === move.provider ? move.tip : tip)));
    },
    standsOn: (newer, older) => blocks.at(newer, older.number) === older,
    retreats(block, span) {
      const found = new Set<ChainBlock>();
      for (const at of tipsDuring(span)) {
        const same = at.map((tip) => blocks.at(tip, block.number));
        const others = same.filter((it) => it !== undefined && it !== block);
        const isAgreed = others.length >= QUORUM;
        const isLost = others.length > 0 && !same.includes(block);
        if (isAgreed || isLost)
          for (const other of others)
            if (other !== undefined) found.add(commonAncestor(chain, block, other));
        for (const other of agreedBelow(chain, block, at)) found.add(other);
      }
      return [...found];
    },
    heldAt(number, span) {
      const most = new Map<ChainBlock, number>();
      for (const at of tipsDuring(span)) {
        const holders = new Map<ChainBlock, number>();
        for (const tip of at) {
          const block = blocks.at(tip, number);
          if (block !== undefined) holders.set(block, (holders.get(block) ?? 0) + 1);
        }
        for (const [block, n] of holders) most.set(block, Math.max(n, most.get(block) ?? 0));
      }
      const agreed = [...most].filter(([, n]) => n >= QUORUM);
      return (agreed.length > 0 ? agreed : [...most]).map(([block]) => block);
    },
    moves: ({ fromMs, toMs }) => moves.slice(countUpTo(moves, fromMs), countUpTo(moves, toMs)),
  };
}

/** How many moves had happened at a time. */
function countUpTo(moves: readonly Move[], atMs: number): number {
  let [low, high] = [0, moves.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((moves[middle]?.atMs ?? 0) <= atMs) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Where the branches leave that of a block, of which two providers have the same next block. */
function agreedBelow(
  chain: ViewChain,
  block: ChainBlock,
  tips: readonly ChainBlock[],
): readonly ChainBlock[] {
  const next = new Map<ChainBlock, number>();
  const agreed: ChainBlock[] = [];
  for (const tip of tips) {
    const ancestor = commonAncestor(chain, block, tip);
    if (ancestor === block || ancestor === tip) continue;
    const first = chain.blocks.at(tip, ancestor.number + 1);
    if (first === undefined) continue;
    const count = (next.get(first) ?? 0) + 1;
    next.set(first, count);
    if (count === QUORUM) agreed.push(ancestor);
  }
  return agreed;
}

function commonAncestor({ blocks }: ViewChain, one: ChainBlock, other: ChainBlock): ChainBlock {
  const [oldest] = blocks.walk(one, other).left.slice(-1);
  return blocks.byHash(oldest?.parentHash ?? "") ?? one;
}
