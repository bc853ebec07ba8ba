// The checker: judges a history by what the providers held. Pure, so that its rules can be tested
// by histories of two operations. A session is one connection, one caller with a mark, or one key;
// what it must not undercut is what its operations had shown before the judged one began.
import type { ChainBlock } from "../../fakes/chain.ts";
import type { Observation, Operation, SessionKind } from "./history.ts";
import type { Oracle, Span } from "./oracle.ts";

/** A promise that can be broken. */
export const RULES = [
  "went back",
  "two blocks in a batch",
  "own write lost by hash",
  "own receipt lost",
  "nonce served twice",
  "nonce with a gap",
] as const;

/** The name of a promise. */
export type Rule = (typeof RULES)[number];

/** A broken promise. */
export interface Anomaly {
  readonly rule: Rule;
  readonly kind: SessionKind;
  readonly text: string;
}

/** How a session is judged. */
export interface Terms {
  /** What was shown counts this long after its operation ended. */
  readonly settleMs: number;
  /** Nodes hear of blocks this much later than providers have them. */
  readonly slackMs: number;
}

/** The verdict on a history. */
export interface Verdict {
  /** By session kind and rule. */
  readonly counts: ReadonlyMap<SessionKind, ReadonlyMap<Rule, number>>;
  /** Judged operations by session kind. */
  readonly operations: ReadonlyMap<SessionKind, number>;
  /** The first of them, with their histories. */
  readonly examples: readonly Anomaly[];
}

/** Of each rule, for each kind of session. */
const MAX_EXAMPLES = 1;

/** Judges a history; `termsOf` = the terms of each kind of session. */
export function checkHistory(
  history: readonly Operation[],
  oracle: Oracle,
  termsOf: (kind: SessionKind) => Terms,
): Verdict {
  const counts = new Map<SessionKind, Map<Rule, number>>();
  const operations = new Map<SessionKind, number>();
  const examples: Anomaly[] = [];
  const sends = sendsIn(history);
  for (const session of sessionsOf(history)) {
    const [first] = session;
    if (first === undefined) continue;
    const { kind } = first;
    const own = counts.get(kind) ?? new Map<Rule, number>();
    counts.set(kind, own);
    operations.set(kind, (operations.get(kind) ?? 0) + session.length);
    for (const anomaly of checkSession(session, { oracle, terms: termsOf(kind), sends })) {
      const before = own.get(anomaly.rule) ?? 0;
      own.set(anomaly.rule, before + 1);
      if (before < MAX_EXAMPLES) examples.push({ rule: anomaly.rule, kind, text: anomaly.text() });
    }
  }
  return { counts, operations, examples };
}

function sessionsOf(history: readonly Operation[]): Iterable<readonly Operation[]> {
  const sessions = new Map<string, Operation[]>();
  for (const operation of history) {
    const name = `${operation.kind} ${operation.session}`;
    const own = sessions.get(name);
    if (own === undefined) sessions.set(name, [operation]);
    else own.push(operation);
  }
  return sessions.values();
}

/** An anomaly whose text is made where it is shown. */
interface Found {
  readonly rule: Rule;
  readonly text: () => string;
}

/** Where something was seen. */
interface Sighting {
  readonly operation: Operation;
}

interface BlockMark extends Sighting {
  readonly block: ChainBlock;
}

interface HeightMark extends Sighting {
  readonly number: number;
}

interface Write extends Sighting {
  readonly nonce: number;
}

/** What a session has been shown. */
interface Shown {
  block: BlockMark | null;
  height: HeightMark | null;
  /** Accepted transactions by hash. */
  readonly writes: Map<string, Write>;
  /** The highest nonce that was accepted, by account. */
  readonly nonces: Map<string, Write>;
}

interface Judge {
  readonly oracle: Oracle;
  readonly terms: Terms;
  readonly shown: Shown;
  readonly sends: Sends;
}

/** Everything that was sent from each account, by any session, accepted or not. */
type Sends = ReadonlyMap<string, readonly Write[]>;

/** The anomalies of one session. */
function* checkSession(session: readonly Operation[], by: Omit<Judge, "shown">): Iterable<Found> {
  const byStart = [...session].sort((a, b) => a.startMs - b.startMs);
  const byEnd = [...session].sort((a, b) => a.endMs - b.endMs);
  const shown: Shown = { block: null, height: null, writes: new Map(), nonces: new Map() };
  const judge: Judge = { ...by, shown };
  let taken = 0;
  for (const operation of byStart) {
    for (let next = byEnd[taken]; next !== undefined; next = byEnd[++taken]) {
      if (next.endMs + by.terms.settleMs > operation.startMs) break;
      for (const seen of next.seen) show(judge, next, seen);
    }
    yield* judged(judge, operation);
  }
}

function sendsIn(history: readonly Operation[]): Sends {
  const sends = new Map<string, Write[]>();
  for (const operation of history)
    for (const it of operation.seen) {
      if (it.kind !== "sent") continue;
      const own = sends.get(it.account) ?? [];
      sends.set(it.account, own);
      own.push({ operation, nonce: it.nonce });
    }
  return sends;
}

/** Notes what an operation showed. A mark moves back only where a reorganisation took it there. */
function show({ oracle, shown, terms }: Judge, operation: Operation, seen: Observation): void {
  switch (seen.kind) {
    case "block":
    case "receipt":
      if (seen.block !== null) showBlock(seen.block);
      return;
    case "height":
      showHeight(seen.number);
      return;
    case "sent": {
      if (!seen.isAccepted) return;
      const write = { operation, nonce: seen.nonce };
      shown.writes.set(seen.hash, write);
      if (seen.nonce >= (shown.nonces.get(seen.account)?.nonce ?? 0))
        shown.nonces.set(seen.account, write);
      return;
    }
    case "transaction":
    case "nonce":
    case "failed":
      return;
  }

  function showBlock(block: ChainBlock): void {
    const mark = shown.block;
    if (
      mark === null ||
      oracle.standsOn(block, mark.block) ||
      mayStandOn(oracle, block, blockRetreats(oracle, mark, spanOf(mark, operation, terms)))
    )
      shown.block = { operation, block };
  }

  function showHeight(number: number): void {
    const mark = shown.height;
    if (
      mark === null ||
      number >= mark.number ||
      heightRetreats(oracle, mark, spanOf(mark, operation, terms)).some((it) => it.number <= number)
    )
      shown.height = { operation, number };
  }
}

/** What is wrong with an operation. */
function* judged(judge: Judge, operation: Operation): Iterable<Found> {
  const wrongBlocks = wentBack(judge, operation);
  if (wrongBlocks !== null) yield wrongBlocks;
  if (operation.isBatch && hasTwoBlocks(operation))
    yield {
      rule: "two blocks in a batch",
      text: () => textOf(operation),
    };
  for (const seen of operation.seen) {
    const wrong = wrongWrite(judge, operation, seen);
    if (wrong !== null) yield wrong;
  }
}

/** At most one anomaly an operation. */
function wentBack(judge: Judge, operation: Operation): Found | null {
  const { shown, oracle } = judge;
  for (const seen of operation.seen) {
    const mark = undercut(judge, operation, seen);
    if (mark !== null)
      return { rule: "went back", text: () => pairText(oracle, mark.operation, operation) };
    if (seen.kind !== "nonce" || seen.tag !== "latest" || shown.block === null) continue;
    if (seen.value >= oracle.chain.nonceAt(shown.block.block, seen.account)) continue;
    const { block } = shown;
    if (blockRetreats(oracle, block, spanOf(block, operation, judge.terms)).length === 0)
      return { rule: "went back", text: () => pairText(oracle, block.operation, operation) };
  }
  return null;
}

/** The mark that an observation undercuts; null = none. */
function undercut(judge: Judge, operation: Operation, seen: Observation): Sighting | null {
  if (seen.kind !== "block" && seen.kind !== "height") return null;
  const { oracle, shown, terms } = judge;
  const { block, height } = shown;
  if (block !== null && !mayFollow(oracle, seen, block, spanOf(block, operation, terms)))
    return block;
  const number = seen.kind === "block" ? seen.block.number : seen.number;
  if (height === null || number >= height.number) return null;
  const retreats = heightRetreats(oracle, height, spanOf(height, operation, terms));
  return retreats.some((it) => it.number <= number) ? null : height;
}

function mayFollow(
  oracle: Oracle,
  seen: Observation & { readonly kind: "block" | "height" },
  mark: BlockMark,
  span: Span,
): boolean {
  if (seen.kind === "height")
    return (
      seen.number >= mark.block.number ||
      blockRetreats(oracle, mark, span).some((it) => it.number <= seen.number)
    );
  return (
    oracle.standsOn(seen.block, mark.block) ||
    mayStandOn(oracle, seen.block, blockRetreats(oracle, mark, span))
  );
}

function mayStandOn(oracle: Oracle, block: ChainBlock, retreats: readonly ChainBlock[]): boolean {
  return retreats.some((it) => oracle.standsOn(block, it));
}

function blockRetreats(oracle: Oracle, { block }: BlockMark, span: Span): readonly ChainBlock[] {
  return oracle.retreats(block, span);
}

function heightRetreats(oracle: Oracle, { number }: HeightMark, span: Span): readonly ChainBlock[] {
  return oracle.heldAt(number, span).flatMap((block) => oracle.retreats(block, span));
}

/** From when a mark was seen until an operation ended. */
function spanOf(mark: Sighting, operation: Operation, { slackMs }: Terms): Span {
  return { fromMs: mark.operation.startMs - slackMs, toMs: operation.endMs };
}

function hasTwoBlocks({ seen }: Operation): boolean {
  const numbers = new Set<number>();
  const hashes = new Set<string>();
  for (const it of seen) {
    if (it.kind === "height") numbers.add(it.number);
    if (it.kind !== "block") continue;
    numbers.add(it.block.number);
    hashes.add(it.block.hash);
  }
  return numbers.size > 1 || hashes.size > 1;
}

function wrongWrite(judge: Judge, operation: Operation, seen: Observation): Found | null {
  switch (seen.kind) {
    case "transaction": {
      const write = judge.shown.writes.get(seen.hash);
      if (seen.isFound || write === undefined) return null;
      return lost("own write lost by hash", judge, write, operation);
    }
    case "receipt": {
      const write = judge.shown.writes.get(seen.hash);
      if (seen.block !== null || write === undefined) return null;
      const due = receiptDue(judge, operation, seen.hash);
      return due === null ? null : lost("own receipt lost", judge, due, operation);
    }
    case "nonce":
      return seen.tag === "pending" ? wrongNonce(judge, operation, seen) : null;
    case "block":
    case "height":
    case "sent":
    case "failed":
      return null;
  }
}

/** The mark at or above the block of a transaction, which has stayed in the chain; null = none. */
function receiptDue(
  { oracle, shown, terms }: Judge,
  operation: Operation,
  hash: string,
): Sighting | null {
  const { block: mark } = shown;
  if (mark === null) return null;
  const block = oracle.chain.inclusionOf(mark.block, hash);
  if (block === undefined) return null;
  return oracle.retreats(block, spanOf(mark, operation, terms)).length === 0 ? mark : null;
}

function wrongNonce(
  judge: Judge,
  operation: Operation,
  { account, value }: Observation & { readonly kind: "nonce" },
): Found | null {
  const last = judge.shown.nonces.get(account);
  if (last !== undefined && value <= last.nonce)
    return lost("nonce served twice", judge, last, operation);
  const sends = judge.sends.get(account) ?? [];
  const begun = sends.filter((it) => it.operation.startMs <= operation.endMs);
  const most = begun.reduce((top, { nonce }) => Math.max(top, nonce + 1), 0);
  return value <= most
    ? null
    : { rule: "nonce with a gap", text: () => `${textOf(operation)}; ${most} was next` };
}

function lost(rule: Rule, { oracle }: Judge, since: Sighting, operation: Operation): Found {
  return { rule, text: () => pairText(oracle, since.operation, operation) };
}

/** Two operations, and what the providers did meanwhile. */
function pairText(oracle: Oracle, earlier: Operation, later: Operation): string {
  const moves = oracle.moves({ fromMs: earlier.startMs, toMs: later.endMs });
  const shown = moves
    .slice(-SHOWN_MOVES)
    .map(({ provider, tip, atMs }) => `p${provider + 1} → ${blockName(tip)} at ${ms(atMs)}`);
  const between = shown.length === 0 ? "no provider moved" : shown.join(", ");
  return `${textOf(earlier)}; ${between}; ${textOf(later)}`;
}

/** The last moves; more would hide the two operations. */
const SHOWN_MOVES = 6;

function textOf({ session, node, startMs, endMs, seen }: Operation): string {
  const what = seen.map(seenText).join(" + ");
  return `${session} at n${node + 1}, ${ms(startMs)} to ${ms(endMs)}: ${what}`;
}

function seenText(seen: Observation): string {
  switch (seen.kind) {
    case "block":
      return `${seen.method} ${blockName(seen.block)}`;
    case "height":
      return `${seen.method} ${seen.number}`;
    case "sent":
      return `sent ${end(seen.hash)} with nonce ${seen.nonce}${seen.isAccepted ? "" : ", refused"}`;
    case "transaction":
      return `${end(seen.hash)} ${seen.isFound ? "found" : "not found"}`;
    case "receipt":
      return `receipt of ${end(seen.hash)} ${seen.block === null ? "null" : blockName(seen.block)}`;
    case "nonce":
      return `${seen.tag} nonce ${seen.value}`;
    case "failed":
      return `${seen.method} failed: ${seen.code}`;
  }
}

function blockName({ number, hash }: ChainBlock): string {
  return `${number} …${end(hash)}`;
}

const HASH_END = 4;

function end(hash: string): string {
  return hash.slice(-HASH_END);
}

function ms(time: number): string {
  return `${time.toFixed(1)} ms`;
}
