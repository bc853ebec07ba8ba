// What the caller of one filter was told, compared with the chain: nothing may be missing, and what
// comes twice has to have a reason. Knows no node and no socket.
import { type ChainBlock, type ChainFilter, type FakeChain, wanted } from "../../fakes/chain.ts";

/** What a filter is of. */
export type FilterKind = "blocks" | "logs";

/** An item that an answer told: a hash, or a log. */
export interface ToldLog {
  readonly blockHash: string;
  readonly logIndex: string;
  readonly removed: boolean;
}

/** Which answer told something. */
export interface Telling {
  readonly node: string;
  readonly sentMs: number;
  readonly atMs: number;
}

/** What was told of one filter. */
export interface FilterView {
  /** Notes the items of an answer; returns what is wrong with them. */
  hear(items: readonly unknown[], telling: Telling): readonly string[];
  /** Whether it was told the newest block, or has been told all of its logs. */
  isComplete(): boolean;
  /** What is missing, or was never taken back, once nothing more comes. */
  missing(): readonly string[];
  readonly counts: FilterCounts;
}

/** How much was told. */
export interface FilterCounts {
  blocks: number;
  logs: number;
  removed: number;
  /** Told again, and never taken back, for a reason. */
  again: number;
  left: number;
}

/** How a view is made. */
export interface ViewPlan {
  readonly name: string;
  readonly kind: FilterKind;
  readonly chain: FakeChain;
  readonly filter: ChainFilter;
  /** The height of the chain when the answer about the new filter had come. */
  readonly fromHeight: number;
  /** Whether something may be told again by `later` after `earlier` told it. */
  readonly mayRepeat: (earlier: Telling, later: Telling) => boolean;
  /** Whether a node that goes on may not know what an answer told. */
  readonly mayForget: (telling: Telling) => boolean;
}

/** A view to which nothing was told. */
export function createFilterView(plan: ViewPlan): FilterView {
  const counts: FilterCounts = { blocks: 0, logs: 0, removed: 0, again: 0, left: 0 };
  /** By key: told or taken back, and by which answer. */
  const told = new Map<string, { readonly isThere: boolean; readonly by: Telling }>();
  const { chain, kind, fromHeight } = plan;

  const hearOne = (item: unknown, by: Telling): string | null => {
    const { key, block, isThere } = itemOf(plan, item);
    if (block === undefined) return `was told of ${key}, which is not on any branch`;
    const before = told.get(key);
    told.set(key, { isThere, by });
    count(counts, kind, isThere);
    if (before === undefined && !isThere && block.number > fromHeight)
      return `${key} of block ${block.number} is taken back and was never told`;
    if (before === undefined || before.isThere !== isThere) return null;
    counts.again++;
    if (plan.mayRepeat(before.by, by)) return null;
    const [first, second] = [before.by, by].map(
      ({ node, sentMs, atMs }) => `${node} (${Math.round(sentMs)} to ${Math.round(atMs)} ms)`,
    );
    return `${key} of block ${block.number} is told by ${first} and again by ${second}`;
  };
  const missing = (): readonly string[] => {
    const found: string[] = [];
    const tip = chain.tip();
    for (let number = fromHeight + 1; number <= tip.number; number++)
      for (const key of keysOf(plan, chain.at(tip, number)))
        if (told.get(key)?.isThere !== true) found.push(`${key} of block ${number} was never told`);
    const left =
      kind === "logs"
        ? [...told].filter(([key, { isThere }]) => isThere && !isCanonical(chain, key))
        : [];
    counts.left = left.filter(([, { by }]) => plan.mayForget(by)).length;
    for (const [key, { by }] of left)
      if (!plan.mayForget(by)) found.push(`${key} was told by ${by.node} and never taken back`);
    return found.map((text) => `${plan.name}: ${text}`);
  };
  return {
    counts,
    hear: (items, telling) =>
      items.flatMap((item) => {
        const text = hearOne(item, telling);
        return text === null ? [] : [`${plan.name}: ${text}`];
      }),
    isComplete: () => missing().length === 0,
    missing,
  };
}

function itemOf(
  { chain, kind }: ViewPlan,
  item: unknown,
): { readonly key: string; readonly block: ChainBlock | undefined; readonly isThere: boolean } {
  if (kind === "blocks") {
    const key = String(item);
    return { key, block: chain.byHash(key), isThere: true };
  }
  const { blockHash, logIndex, removed } = parseLog(item);
  const key = `${blockHash} ${Number(logIndex)}`;
  return { key, block: chain.byHash(blockHash), isThere: !removed };
}

/** The keys of what a filter tells of a block. */
function keysOf({ kind, filter }: ViewPlan, block: ChainBlock | undefined): readonly string[] {
  if (block === undefined) throw new Error("the chain has a hole");
  return kind === "blocks"
    ? [block.hash]
    : wanted(block, filter).map(({ index }) => `${block.hash} ${index}`);
}

function isCanonical(chain: FakeChain, key: string): boolean {
  const block = chain.byHash(key.split(" ")[0] ?? "");
  return block !== undefined && chain.at(chain.tip(), block.number) === block;
}

function count(counts: FilterCounts, kind: FilterKind, isThere: boolean): void {
  if (kind === "blocks") counts.blocks++;
  else if (isThere) counts.logs++;
  else counts.removed++;
}

function parseLog(item: unknown): ToldLog {
  return item as ToldLog;
}
