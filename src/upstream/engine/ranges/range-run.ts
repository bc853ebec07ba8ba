// One call over a range, asked for in parts: several at a time, each of any provider, joined in
// order. A part that fails is asked for again, one that is refused is cut. Parts of final blocks
// are passed on as they come; younger ones only when they lie on the chain of one pinned block.
import type { Abandoned } from "../../../core/billing/charging.ts";
import { type Fault, fault } from "../../../core/faults/rpc-fault.ts";
import type { Provider } from "../../../core/provider/profile.ts";
import { providerOf } from "../../../core/routing/answer-source.ts";
import type { FailedAttempt } from "../../../core/routing/failover.ts";
import {
  advisedBlocks,
  type BlockRange,
  blocksIn,
  cutHead,
  cutRange,
  cutRefused,
  PartSize,
  sizeOf,
} from "../../../core/routing/range-parts.ts";
import type { Span } from "../../../core/rpc/json.ts";
import {
  blocksNamed,
  elementsSpan,
  hexOf,
  partCall,
  type RangeCall,
} from "../../../core/rpc/range-call.ts";
import type { Block } from "../../../core/stream/chain-event.ts";
import type { BlocksSnapshot } from "../../health/known-blocks.ts";
import { type Answer, faultAnswer, type Result, refusedAnswer, wholeResult } from "../answer.ts";
import {
  type CallContext,
  type FurtherCall,
  type LayerParts,
  LayerRun,
  NOTHING_SENT,
  type RunningCall,
  type StageListener,
  together,
  whyUnanswered,
} from "../call-context.ts";
import { noRoom, rangeRefused } from "../refusal.ts";
import { JoinedList } from "./joined-list.ts";
import { type PartResult, PinnedChain } from "./pinned-chain.ts";

/** Bounds of split calls. */
export interface SplitLimits {
  /** False = no call is split. */
  readonly split: boolean;
  /** Most blocks of one call. */
  readonly maxBlocks: number;
  /** Most parts planned at the start of a call whose request names no number of its own. */
  readonly maxParts: number;
  /** Most bytes of an answer that is gathered before it is delivered. */
  readonly maxBytes: number;
}

/** Counts since the start. */
export class SplitCounts {
  /** Split calls by how they ended. */
  answered = 0;
  failed = 0;
  /** Broken off after the first byte. */
  cut = 0;
  left = 0;
  /** Parts that were asked for. */
  parts = 0;
  /** Parts that were refused as too large. */
  refused = 0;
  /** Parts that failed and were asked for again. */
  again = 0;
  /** Parts of another fork, or false. */
  foreign = 0;
}

/** What the layer of ranges works with. */
export interface SplitParts {
  readonly splitLimits: () => SplitLimits;
  readonly counts: SplitCounts;
}

/** What is split, and how. */
interface RangeParts extends SplitParts, LayerParts {
  readonly range: RangeCall;
  /** Parts that may be planned; as many times more may come of refusals. */
  readonly maxParts: number;
  /** The largest range that somebody accepts; null = not known. */
  readonly limit: number | null;
  /** Blocks that results of this filter were found to allow lately; null = not known. */
  readonly size: number | null;
  /** Hears how many blocks its results allow, once fewer than were asked for. */
  readonly found: (blocks: number) => void;
}

/** Parts that are asked for at one time. */
const PARTS_AT_ONCE = 4;
/** Attempts that may be sent for one part: a call in parts has many of them. */
const ATTEMPTS_OF_PART = 3;
/** Bytes of parts that wait for earlier parts; beyond this only the next part is asked for. */
const LEAD_BYTES = 8_388_608;
/** Answers and refusals that a call may come to: so many for each part that is planned then. */
const CALLS_PER_PART = 2;
const FURTHER_CALLS = 8;
/** How often one part is asked for, each time of several providers, and the pauses between. */
const PAUSES_MS = [100, 300, 900] as const;
/** A split call may take this many times as long as the same call to one provider. */
const LONG_FACTOR = 10;

/** A part of the range. */
class Part {
  readonly range: BlockRange;
  /** `gone`: it was replaced. */
  state: "waiting" | "out" | "ready" | "gone" = "waiting";
  tries = 0;
  /** When it is not asked for again; null = it has not been asked for. */
  endsAtMs: number | null = null;
  /** Providers that refused the part, or answered with blocks of another branch. */
  avoid: ReadonlySet<string> | null = null;
  /** The last refusal of the range as too large; null = nobody refused it. */
  refusal: FailedAttempt["failure"] | null = null;
  /** Somebody gave it of another fork. */
  isForeign = false;
  /** Who was found to have its last block, and is asked next; null = anybody is. */
  holder: Provider | null = null;
  body: Buffer = NO_BYTES;
  elements: Span = { start: 0, end: 0 };

  constructor(range: BlockRange) {
    this.range = range;
  }
}

const NO_BYTES = Buffer.alloc(0);

/** What was known of the last block of a part when it was asked for. */
interface EndBefore {
  readonly blocks: BlocksSnapshot;
  /** The hash on which those agree that push their heads; null = unknown. */
  readonly hash: string | null;
  readonly holder: Provider | null;
}

/** A split call under way. */
export class RangeRun extends LayerRun<RangeParts> {
  readonly #list: JoinedList;
  readonly #providers = new Set<Provider>();
  readonly #partSize = new PartSize();
  /** Answers to parts, and refusals for range or results; of the whole call as well. */
  #calls = 0;
  /** Most blocks of a part that was answered. */
  #widest = 0;
  /** In order; those before `#next` were passed on. */
  #queue: Part[] = [];
  #next = 0;
  #out = 0;
  /** Null = every block is final. */
  #chain: PinnedChain | null = null;
  #finalized: number | null = null;
  /** How often the end was pinned again. */
  #repins = 0;
  #isPinning = false;
  #isPumping = false;
  #isStreaming = false;

  constructor(parts: RangeParts, context: CallContext, listener: StageListener) {
    super(parts, context, listener);
    // Whoever was asked for the whole of it has refused: that was its first part.
    context.partsSent = context.failed.some(isRange) ? 1 : 0;
    this.#list = new JoinedList({
      room: context.request.room,
      drained: () => this.#pump(),
      left: () => void this.cancel(),
    });
  }

  protected override get endsAtMs(): number {
    return this.context.startedAtMs + LONG_FACTOR * this.context.request.deadlineMs;
  }

  /** Pins the end where it is not final, and begins. */
  override start(): RunningCall {
    const { range, size, maxParts, runtime } = this.parts;
    const { from, to } = range;
    this.after(Math.max(0, this.endsAtMs - runtime.now()), () =>
      this.finish(unavailable("deadline_exceeded")),
    );
    this.#finalized = this.context.request.tracker.blocks.finalized();
    if (size !== null && this.#knownBlocks() > size * maxParts) this.#refuse(null, size);
    else if (typeof to === "number" && this.#finalized !== null && to <= this.#finalized)
      this.#begin({ from, to });
    else this.#pin(typeof to === "number" ? hexOf(to) : to);
    return this;
  }

  /** Nothing is asked for as a whole. */
  protected judge(): void {}

  /** Blocks of the range that are known to exist before anybody is asked for its end. */
  #knownBlocks(): number {
    const { from, to } = this.parts.range;
    const head = this.context.request.tracker.head();
    if (head === null || (typeof to === "string" && to !== "latest")) return 0;
    return (typeof to === "number" ? Math.min(to, head) : head) - from + 1;
  }

  override cancel(): Abandoned {
    if (this.isOver) return NOTHING_SENT;
    this.parts.counts.left++;
    this.hasAnswer = this.#next > 0 || this.#providers.size > 0;
    this.#list.release();
    return super.cancel();
  }

  /**
   * Fetches the block at the end, of those who have it. One above the head is nobody's: the newest
   * one then.
   */
  #pin(block: string, avoid: ReadonlySet<string> | null = null): void {
    this.queryHeader({ block, avoid }, (head, { unable }) => {
      const { from, to } = this.parts.range;
      if (head !== null && (typeof to === "string" || head.number <= to)) {
        this.#pinTo(head);
        this.#begin({ from, to: head.number });
      } else if (head !== null || typeof to === "string" || block === "latest") this.#endUnpinned();
      else if ((this.context.request.tracker.head() ?? 0) < to) this.#pin("latest");
      else if (unable.some((id) => avoid?.has(id) !== true))
        this.#pin(block, together(avoid, new Set(unable)));
      else this.#endUnpinned();
    });
  }

  #pinTo(end: Block): void {
    const { blocks } = this.context.request.tracker;
    this.#chain = new PinnedChain(end, (query, done) => this.queryHeader(query, done), blocks);
  }

  /** Nobody tells the end: those who refused the whole range have answered the call. */
  #endUnpinned(): void {
    if (this.context.failed.some(isRange)) this.#refuse(null, null);
    else this.finish(unavailable("head_unknown"));
  }

  #begin(range: BlockRange): void {
    const { limit, size: found } = this.parts;
    const blocks = blocksIn(range);
    const size = Math.min(limit === null ? Math.max(1, blocks) : sizeOf(limit), found ?? blocks);
    const refusals = this.context.failed.filter(isRange);
    this.#calls = refusals.length;
    if (limit === null && found === null)
      this.#partSize.refused(range, advisedBlocks(refusals.at(-1)?.failure.message, range));
    this.#queue = cutRange(range, Math.max(1, size), this.#finalized).map((each) => new Part(each));
    const next = Math.min(size, this.#partSize.blocks ?? size);
    if (!this.#isWithinBounds(next)) return this.#refuse(null, next);
    this.#pump();
  }

  /**
   * Whether the call may go on in parts of this size: the remaining parts stay within its bound,
   * and the requests made so far are in proportion to all parts.
   */
  #isWithinBounds(size: number): boolean {
    const left = this.#queue.reduce(
      (sum, { range, state }) =>
        state === "waiting" || state === "out" ? sum + Math.ceil(blocksIn(range) / size) : sum,
      0,
    );
    const planned = left + this.#queue.filter(({ state }) => state === "ready").length;
    return left <= this.parts.maxParts && this.#calls <= CALLS_PER_PART * planned + FURTHER_CALLS;
  }

  /** Asks for as many parts as may be out, and passes on what is ready. */
  #pump(): void {
    if (this.#isPumping) return;
    this.#isPumping = true;
    while (!this.isOver && (this.#passOn() || this.#askNext()));
    this.#isPumping = false;
  }

  /** Passes on the next part, if it is ready. */
  #passOn(): boolean {
    const part = this.#queue[this.#next];
    if (part === undefined) {
      if (!this.#isPinning) this.#complete();
      return false;
    }
    if (part.state !== "ready" || this.#list.isPaused || this.#isTooYoung(part)) return false;
    this.#next++;
    const { body, elements } = part;
    part.body = NO_BYTES;
    this.#list.add(body.subarray(elements.start, elements.end), body.length);
    if (this.#list.isLong && this.context.request.mayStream) this.#stream();
    return true;
  }

  /**
   * Whether a part waits for the other young ones: as long as none of them was passed on, the end
   * can be pinned again when its chain is given up.
   */
  #isTooYoung(part: Part): boolean {
    if (!this.#isYoung(part) || this.#list.heldBytes >= LEAD_BYTES) return false;
    return this.#queue.some((other, at) => at > this.#next && other.state !== "ready");
  }

  #isYoung({ range }: Part): boolean {
    return this.#chain !== null && (this.#finalized === null || range.to > this.#finalized);
  }

  /**
   * The chain of the end was given up: pins the block that has its number now, and asks again for
   * all young parts. False = some were passed on, or that was done often enough.
   */
  #pinAgain(): boolean {
    const end = this.#chain?.end.number ?? null;
    const first = this.#queue.findIndex((part) => this.#isYoung(part));
    if (end === null || first < this.#next || this.#repins >= MAX_REPINS) return false;
    this.#repins++;
    const young = this.#queue.splice(first);
    for (const part of young) {
      if (part.state === "ready") this.#list.giveUp(part.body.length);
      part.state = "gone";
    }
    const from = young[0]?.range.from ?? end;
    this.#isPinning = true;
    this.queryHeader({ block: hexOf(end) }, (head) => {
      this.#isPinning = false;
      if (head === null || head.number !== end) return this.finish(unavailable("chain_changed"));
      this.#pinTo(head);
      const size = Math.max(1, ...young.map(({ range }) => blocksIn(range)));
      this.#queue.push(...cutRange({ from, to: end }, size).map((each) => new Part(each)));
      this.#pump();
    });
    return true;
  }

  /** Asks for the first part that waits; false = none may be asked for now. */
  #askNext(): boolean {
    if (this.#out >= PARTS_AT_ONCE || this.#list.isPaused) return false;
    const mayLead = this.#list.heldBytes < LEAD_BYTES || !this.context.request.mayStream;
    const lastAt = mayLead ? this.#queue.length - 1 : this.#next;
    for (let at = this.#next; at <= lastAt; at++) {
      const part = this.#queue[at];
      if (part?.state !== "waiting") continue;
      if (!this.#isCut(part)) this.#send(part);
      return true;
    }
    return false;
  }

  /** Cuts a part that nobody accepts any more by what was learned since. */
  #isCut(part: Part): boolean {
    const { range } = part;
    const limit = this.#limitOf(part);
    const size = this.#partSize.blocks ?? Number.POSITIVE_INFINITY;
    if (range.to - range.from > limit) this.#replace(part, cutRange(range, sizeOf(limit)));
    else if (blocksIn(range) > size) this.#replace(part, cutHead(range, size));
    else return false;
    return true;
  }

  /** The largest range that somebody accepts who could serve the part. */
  #limitOf({ range }: Part): number {
    const { request } = this.context;
    const call = { ...request.call, block: { kind: "range", ...range } } as const;
    return request.tracker.rangeLimits(call)[0] ?? Number.POSITIVE_INFINITY;
  }

  #replace(part: Part, ranges: readonly BlockRange[]): void {
    const at = this.#queue.indexOf(part);
    this.#queue.splice(at, 1, ...ranges.map((each) => new Part(each)));
    const size = Math.max(1, ...ranges.map(blocksIn));
    if (!this.#isWithinBounds(Math.min(size, this.#partSize.blocks ?? size)))
      this.#refuse(null, size);
  }

  #send(part: Part): void {
    const { runtime, counts } = this.parts;
    const { request } = this.context;
    part.state = "out";
    if (part.tries++ === 0) this.context.partsSent = (this.context.partsSent ?? 0) + 1;
    part.endsAtMs ??= Math.min(this.endsAtMs, runtime.now() + request.deadlineMs);
    this.#out++;
    counts.parts++;
    const { holder, avoid } = part;
    part.holder = null;
    const { blocks } = request.tracker;
    const before = { blocks: blocks.snapshot(), hash: blocks.agreedHash(part.range.to), holder };
    this.#callPart(part, { pin: holder, avoid }, (answer, { failed }) =>
      this.#answered(part, answer, failed, before),
    );
  }

  #callPart(
    { range, endsAtMs }: Part,
    whom: Pick<FurtherCall, "pin" | "avoid">,
    done: (answer: Answer, further: CallContext) => void,
  ): void {
    const { policy, request } = this.context;
    const call = partCall(request.call, this.parts.range, range);
    const deadlineMs = Math.max(1, (endsAtMs ?? this.endsAtMs) - this.parts.runtime.now());
    const maxAttempts = Math.min(policy.maxAttempts, ATTEMPTS_OF_PART);
    const ofPart = { ...policy, split: false, coalesce: false, isPart: true, maxAttempts };
    this.callFurther({ call, policy: ofPart, ...whom, deadlineMs }, done);
  }

  #answered(part: Part, answer: Answer, failed: readonly FailedAttempt[], before: EndBefore): void {
    const { outcome, source } = answer;
    this.#out--;
    this.#calls += failed.filter(isRange).length + (outcome.kind === "result" ? 1 : 0);
    if (part.state === "gone") return this.#pump();
    const provider = providerOf(source);
    if (outcome.kind === "result" && provider !== null)
      return this.#received(part, outcome, provider, before);
    const last = failed.at(-1);
    if (last?.verdict.step === "range") this.#refused(part, last);
    else if (outcome.kind === "error" && last?.verdict.step === "return") this.finish(answer);
    else if (last === undefined && part.refusal !== null) this.#halve(part, part.refusal);
    else this.#again(part, answer);
    this.#pump();
  }

  #received(part: Part, { body, start, end }: Result, provider: Provider, before: EndBefore): void {
    const elements = elementsSpan(body, { start, end });
    if (elements === null) this.#foreign(part, provider);
    else if (!this.#list.hold(body.length)) this.finish(faultAnswer(noRoom()));
    else if (!this.#isStreaming && this.#list.heldBytes > this.parts.splitLimits().maxBytes)
      this.finish(this.#refusedAnswer(TOO_LONG));
    else {
      part.body = body;
      part.elements = elements;
      const { range } = part;
      this.#partSize.answered(range, body.length);
      this.#widest = Math.max(this.#widest, blocksIn(range));
      const readAgain = this.#readingAgain(part);
      const result = { range, provider, body, span: { start, end }, readAgain };
      if (this.#isYoung(part)) this.#check(part, result, before);
      else this.#accept(part, provider);
    }
    this.#pump();
  }

  /**
   * Asks others for a part that somebody has given, to compare what both say. Those who gave it
   * differently before are asked too: their word stands against it.
   */
  #readingAgain(part: Part): PartResult["readAgain"] {
    return (whom, done) =>
      this.#callPart(part, whom, (answer, further) => {
        const { outcome, source } = answer;
        const isGiven = outcome.kind === "result" && providerOf(source) !== null;
        const named = isGiven ? (blocksNamed(outcome.body, outcome) ?? []) : null;
        done(named, whyUnanswered(answer, further));
      });
  }

  /**
   * Holds a young part until it is found to be of the pinned chain. If the provider was not known
   * to have the last block when it was asked, the block may have arrived, or replaced another one,
   * after the logs were read. The logs are read again now that the provider is known to have the
   * block.
   */
  #check(part: Part, result: PartResult, before: EndBefore): void {
    this.#out++;
    const chain = this.#chain;
    chain?.check(result, (verdict) => {
      this.#out--;
      const isSure = verdict === "agrees" && hadEnd(result, before, chain);
      if (isSure && part.state !== "gone") this.#accept(part, result.provider);
      else {
        part.body = NO_BYTES;
        this.#list.giveUp(result.body.length);
        if (part.state === "gone") return this.#pump();
        if (verdict === "agrees" && part.tries <= PAUSES_MS.length) {
          part.holder = result.provider;
          part.state = "waiting";
        } else if (verdict === "agrees") this.finish(unavailable("head_unknown"));
        else if (verdict === "foreign") this.#foreign(part, result.provider);
        else if (verdict === "unconfirmed")
          this.#again(part, unavailable("unconfirmed", "compared with a second provider"));
        else if (!this.#pinAgain()) this.finish(unavailable("chain_changed"));
      }
      this.#pump();
    });
  }

  #accept(part: Part, provider: Provider): void {
    part.state = "ready";
    this.#providers.add(provider);
  }

  /** What the provider gave is not of this chain: others are asked. */
  #foreign(part: Part, provider: Provider): void {
    this.parts.counts.foreign++;
    part.isForeign = true;
    part.avoid = together(part.avoid, new Set([provider.id]));
    this.#again(part, unavailable("chain_changed"));
  }

  /** A part was refused as too large: asks providers that may accept it, else cuts the part. */
  #refused(part: Part, { attempt, verdict, failure }: FailedAttempt): void {
    this.parts.counts.refused++;
    const { range } = part;
    const limit = this.#limitOf(part);
    const isLimit = verdict.effect.kind === "learn";
    if (isLimit && range.to - range.from <= limit && part.tries <= MAX_REFUSALS) {
      part.avoid = together(part.avoid, new Set([attempt.provider.id]));
      part.refusal = failure;
      part.state = "waiting";
      return;
    }
    if (isLimit && range.to - range.from > limit && blocksIn(range) > 1)
      return this.#replace(part, cutRefused(range, limit));
    this.#halve(part, failure);
  }

  /** No provider accepts a part, and only a refusal may say which range would be accepted. */
  #halve(part: Part, failure: FailedAttempt["failure"]): void {
    const { range } = part;
    if (blocksIn(range) <= 1) return this.#refuse(failure, null);
    const advised = advisedBlocks(failure.message, range);
    this.#partSize.refused(range, advised);
    if (this.#partSize.blocks !== null) this.parts.found(this.#partSize.blocks);
    this.#replace(part, cutHead(range, advised ?? Math.ceil(blocksIn(range) / 2)));
  }

  /** A part failed: it is asked for again after a pause, or in pieces that more accept. */
  #again(part: Part, answer: Answer): void {
    const pauseMs = PAUSES_MS[part.tries - 1];
    const endsAtMs = part.endsAtMs ?? this.endsAtMs;
    if (pauseMs === undefined || this.parts.runtime.now() + pauseMs >= endsAtMs) {
      if (part.isForeign && this.#pinAgain()) return;
      return this.finish(answer);
    }
    this.parts.counts.again++;
    this.after(pauseMs, () => {
      if (part.state === "gone") return;
      part.state = "waiting";
      const smaller = part.tries > 1 ? this.#smallerLimit(part) : null;
      if (smaller !== null) this.#replace(part, cutRange(part.range, sizeOf(smaller)));
      this.#pump();
    });
  }

  /** The largest limit below a part, of providers that cannot take it whole. */
  #smallerLimit({ range }: Part): number | null {
    const { request } = this.context;
    const blocks = range.to - range.from;
    return request.tracker.rangeLimits(request.call).find((limit) => limit < blocks) ?? null;
  }

  /**
   * The call comes to more than its bounds allow. `size`: blocks of the parts that it would need;
   * null = one block is too much.
   */
  #refuse(failure: FailedAttempt["failure"] | null, size: number | null): void {
    const known = failure ?? this.context.failed.findLast(isRange)?.failure ?? null;
    const { code, message, details } = known === null ? TOO_LARGE : rangeRefused(known);
    const { limit, size: found } = this.parts;
    const isByResults = limit === null || found !== null || this.#partSize.blocks !== null;
    const most = isByResults ? Math.max(this.#widest, size ?? 0) : 0;
    const withMost = most > 0 ? { ...details, max_blocks: most } : details;
    this.finish(this.#refusedAnswer(fault(code, message, { details: withMost })));
  }

  /** The caller asked for too much: what was sent for it is charged. */
  #refusedAnswer(why: Fault): Answer {
    return this.context.partsSent === 0 ? faultAnswer(why) : refusedAnswer(why);
  }

  /** Hands a long answer over while the rest arrives. */
  #stream(): void {
    if (this.#isStreaming) return;
    this.#isStreaming = true;
    const outcome = { kind: "stream", stream: this.#list } as const;
    this.listener.ended({ outcome, source: this.#source() });
  }

  /** All parts were passed on. */
  #complete(): void {
    if (this.isOver) return;
    this.parts.counts.answered++;
    if (this.#isStreaming) {
      this.close();
      return this.#list.complete();
    }
    super.finish({ outcome: wholeResult(this.#list.whole()), source: this.#source() });
  }

  /** It cannot be completed: refused before its first byte, broken off after. */
  protected override finish(answer: Answer): void {
    if (this.isOver) return;
    if (this.#isStreaming) {
      this.close();
      this.parts.counts.cut++;
      const by = answer.source.kind === "refused" ? "range" : undefined;
      return this.#list.break("a part of the range could not be had", by);
    }
    this.parts.counts.failed++;
    this.#list.release();
    super.finish(answer);
  }

  protected override close(): Abandoned {
    const left = super.close();
    this.#queue = [];
    return left;
  }

  #source(): Answer["source"] {
    return { kind: "merged", providers: [...this.#providers] };
  }
}

const MAX_REFUSALS = 8;
const MAX_REPINS = 2;

const TOO_LARGE = fault(
  "log_range_limit",
  "the blocks or results of this call come to more parts than one call may have",
);

const TOO_LONG = fault(
  "log_range_limit",
  "the answer to this call, gathered from parts, is longer than is allowed",
  { nextAction: "ask for fewer blocks" },
);

/** Whether the provider of a part was known to have its last block when it was asked. */
function hadEnd(
  { range, provider }: PartResult,
  { blocks, hash, holder }: EndBefore,
  chain: PinnedChain,
): boolean {
  if (provider.id === holder?.id) return true;
  if ((blocks.highest[provider.index] ?? -1) < range.to) return false;
  const linked = chain.hashAt(range.to);
  // Too deep to be linked, and to be replaced.
  if (linked === null) return true;
  return hash === linked && (blocks.tips[provider.index] ?? -1) >= range.to;
}

function isRange({ verdict }: FailedAttempt): boolean {
  return verdict.step === "range";
}

function unavailable(reason: string, what = "had from any provider"): Answer {
  const message = `a part of the range could not be ${what}`;
  return faultAnswer(fault("unavailable", message, { status: 200, details: { reason } }));
}
