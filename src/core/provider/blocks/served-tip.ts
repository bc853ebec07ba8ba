// The served tip: the newest block that all callers of one provider set are shown. Two operators
// have to report it; it goes back only when they report another branch. Decided from what the
// providers have told of their heads; asks nobody, and knows no caller.
import type { SeenBlock } from "../../rpc/seen.ts";
import { type BranchView, hashAt } from "./branch-view.ts";
import { stillMs } from "./head.ts";

/** What one provider has told of its head. */
export interface TipReport {
  /** Who runs the provider: two providers of one operator are one witness. */
  readonly operator: string;
  readonly height: number;
  /** The blocks that it has pushed; without any, only its height is known. */
  readonly branch: BranchView;
  /** When its height last grew (monotonic ms). */
  readonly roseAtMs: number;
  /** When it last reported its height. */
  readonly atMs: number;
  /** It pushes its heads: its reported height counts as its head until it pushes a head. */
  readonly isPushed: boolean;
}

/** The tip that follows from reports. */
export interface FoundTip extends SeenBlock {
  /** One operator alone has defined it. */
  readonly isAlone: boolean;
  /** The branch on which it lies; null = only heights are known. */
  readonly branch: BranchView | null;
}

/** How one tip follows another. */
export type TipMove =
  | { readonly kind: "stays" }
  | { readonly kind: "forward" }
  /** A reorganisation: `ancestor` is the highest block that still holds, null = unknown. */
  | { readonly kind: "reorganised"; readonly ancestor: number | null };

/** A tip is in force for at most so long after its last confirmation. */
const CONFIRMED_MS = 2_000;
/** Most blocks by which branches are followed back to where they agree. */
const MAX_DEPTH = 128;

/** How long (ms) a polled height confirms a tip. */
export function confirmedMs(blockTimeMs: number): number {
  return Math.min(blockTimeMs, CONFIRMED_MS);
}

/**
 * The highest block that two operators report; with one operator left, its own. Null = nobody
 * reports a height.
 */
export function findTip(
  reports: readonly TipReport[],
  blockTimeMs: number,
  nowMs: number,
): FoundTip | null {
  const recent = reports.filter(
    ({ isPushed, atMs }) => isPushed || nowMs - atMs <= Math.max(blockTimeMs, CONFIRMED_MS),
  );
  const counting = goingOn(recent.length === 0 ? reports : recent, blockTimeMs, nowMs);
  let found: FoundTip | null = null;
  for (const [at, left] of counting.entries())
    for (const right of counting.slice(at + 1)) {
      const shared = left.operator === right.operator ? null : lastShared(left, right);
      if (shared !== null && isBetter(shared, found)) found = shared;
    }
  if (found !== null) return found;
  // Several operators that agree on no block say nothing together.
  const operators = new Set(counting.map(({ operator }) => operator));
  return operators.size === 1 ? highestOf(counting) : null;
}

function isBetter(shared: FoundTip, found: FoundTip | null): boolean {
  if (found === null || shared.number > found.number) return true;
  return shared.number === found.number && shared.hash !== null && found.hash === null;
}

/** The reports without heights that stand still below others. */
function goingOn(
  reports: readonly TipReport[],
  blockTimeMs: number,
  nowMs: number,
): readonly TipReport[] {
  const best = Math.max(...reports.map(({ height }) => height));
  const isGoingOn = ({ height, roseAtMs }: TipReport): boolean =>
    height === best || nowMs - roseAtMs <= stillMs(blockTimeMs);
  return reports.every(isGoingOn) ? reports : reports.filter(isGoingOn);
}

function highestOf(reports: readonly TipReport[]): FoundTip | null {
  let best: TipReport | null = null;
  for (const report of reports) if (best === null || report.height > best.height) best = report;
  return best === null ? null : tipOf(best, best.height, true);
}

function tipOf({ branch }: TipReport, number: number, isAlone: boolean): FoundTip {
  const hash = hashAt(branch, number);
  return { number, hash, isAlone, branch: hash === null ? null : branch };
}

/**
 * The highest block that two providers have. The tip has no hash if one of these providers tells
 * heights alone. A provider that pushes its heads does not vouch for a block that it has not
 * pushed.
 */
function lastShared(left: TipReport, right: TipReport): FoundTip | null {
  const top = Math.min(left.height, right.height);
  for (let number = top; number >= 0 && number > top - MAX_DEPTH; number--) {
    const [ofLeft, ofRight] = [hashAt(left.branch, number), hashAt(right.branch, number)];
    if (ofLeft === null || ofRight === null)
      return left.isPushed && right.isPushed
        ? null
        : { number, hash: null, isAlone: false, branch: null };
    if (ofLeft === ofRight) return tipOf(left, number, false);
  }
  return null;
}

/**
 * How the tip moves from the blocks served so far to one that was found. A lower block is no
 * reason to go back: its reporters may only be slow.
 */
export function tipMove(served: BranchView, tip: SeenBlock, found: FoundTip): TipMove {
  const { branch } = found;
  const common = Math.min(tip.number, found.number);
  const theirs = branch === null ? null : hashAt(branch, common);
  const ours = common === tip.number ? tip.hash : hashAt(served, common);
  if (theirs !== null && ours !== null && theirs !== ours && branch !== null)
    return { kind: "reorganised", ancestor: ancestorOf(served, branch, common) };
  if (found.number > tip.number) return { kind: "forward" };
  const isNamed = found.number === tip.number && tip.hash === null && found.hash !== null;
  return { kind: isNamed ? "forward" : "stays" };
}

function ancestorOf(served: BranchView, branch: BranchView, below: number): number | null {
  for (let number = below - 1; number >= 0 && number >= below - MAX_DEPTH; number--) {
    const [ours, theirs] = [hashAt(served, number), hashAt(branch, number)];
    if (ours === null || theirs === null) return null;
    if (ours === theirs) return number;
  }
  return null;
}

/** Whether a report confirms that a block is, or was, the head of its provider. */
export function confirms(
  { height, branch, isPushed, atMs }: TipReport,
  tip: SeenBlock,
  blockTimeMs: number,
  nowMs: number,
): boolean {
  if (height < tip.number) return false;
  if (!isPushed && nowMs - atMs > confirmedMs(blockTimeMs)) return false;
  const hash = hashAt(branch, tip.number);
  return hash === null || tip.hash === null || hash === tip.hash;
}
