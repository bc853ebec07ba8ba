// The layer of kept answers: what is known is not asked again. Looks a call up, and keeps the
// answer of a provider if it may be kept. Decisions are in `core/routing/cache-terms.ts`.
import type { Abandoned } from "../../../core/billing/charging.ts";
import { DEFAULT_FINALITY_DEPTH } from "../../../core/provider/blocks/finality.ts";
import type { Provider } from "../../../core/provider/profile.ts";
import type { AnswerSource } from "../../../core/routing/answer-source.ts";
import {
  type CacheableAnswer,
  type CacheTerms,
  type CacheTier,
  isFinal,
  isStillTrue,
  keepTerms,
  MISS,
} from "../../../core/routing/cache-terms.ts";
import { readError } from "../../../core/rpc/answer.ts";
import { type CacheSubject, cacheSubjectOf } from "../../../core/rpc/cache-subject.ts";
import type { Call } from "../../../core/rpc/call.ts";
import { CLOSE_OBJECT } from "../../../core/rpc/json.ts";
import { isEmptyResult, isNullResult, resultBlock } from "../../../core/rpc/result-block.ts";
import { WIRE_ID_BYTES } from "../../../core/rpc/wire-request.ts";
import type { Runtime } from "../../../runtime.ts";
import type { BlocksSnapshot } from "../../health/known-blocks.ts";
import {
  type SecondTier,
  TIER_LIMIT_MS,
  type TierFinding,
  type TierKey,
  tierKey,
} from "../../second-tier/second-tier.ts";
import type { StoredAnswer } from "../../second-tier/stored-answer.ts";
import type { Answer, Outcome } from "../answer.ts";
import {
  type CallContext,
  type Layer,
  NOTHING_SENT,
  OVER,
  type RunningCall,
  type Stage,
  type StageListener,
} from "../call-context.ts";
import type { KeptAnswer } from "./answer-cache.ts";
import { type AnswerKey, answerKeyOf, type KeptFacts } from "./answer-slots.ts";
import type { CachedAnswers, CacheScope } from "./cached-answers.ts";

/** What the layer works with. */
export interface CacheParts {
  readonly runtime: Runtime;
  /** Null = nothing is kept. */
  readonly cache: CachedAnswers | null;
}

/** Longer parameters are not looked up. */
const MAX_PARAMS_BYTES = 16_384;

/** The layer of kept answers. */
export function cache({ runtime, cache: answers }: CacheParts): Layer {
  return (next) => (context, listener) => {
    const place = answers === null ? null : placeOf(context, answers);
    if (answers === null || place === null) return next(context, listener);
    const nowMs = runtime.now();
    const look = { answers, nowMs };
    const own = atItsBlock(checked(look, place.scope, place.key), context);
    // What an answer depends on is read only where none is kept under the same parameters.
    const subject = own === null ? subjectOf(context) : null;
    const kept =
      own ?? (subject === null ? null : sharedAnswer(look, { ...place, subject }, context));
    if (kept !== null) {
      hit(context, kept.facts, nowMs, "memory");
      listener.ended({ outcome: outcomeOf(kept, context, answers), source: sourceOf(kept.facts) });
      return OVER;
    }
    if (subject === null) return next(context, listener);
    const parts = { answers, query: { ...place, subject }, context, listener, runtime };
    const tier = tierKeyOf(parts);
    if (tier !== null) return new TierLookUp({ ...parts, ...tier, next });
    context.cacheUse = MISS;
    return next(context, new KeepingListener(parts, null, nowMs));
  };
}

/** A call is answered with what is kept. */
function hit(context: CallContext, facts: KeptFacts, nowMs: number, tier: CacheTier): void {
  const ageMs = Math.max(0, nowMs - facts.askedAtMs);
  context.cacheUse = { result: "hit", ageMs, class: facts.class, tier };
}

/** What is kept, unless it is of another block of the same number than the one of the call. */
function atItsBlock(
  kept: KeptAnswer | null,
  { request: { call } }: CallContext,
): KeptAnswer | null {
  return kept !== null && isOfBlock(kept.facts, call) ? kept : null;
}

/** Whether an answer may be of the block to which the tag of a call was resolved. */
function isOfBlock({ guard }: Pick<CacheTerms, "guard">, { resolution }: Call): boolean {
  const hash = resolution?.hash ?? null;
  return hash === null || guard === null || guard.hash === hash;
}

/** What comes before the result in an answer of ours, under an id that the caller's replaces. */
const ENVELOPE = Buffer.from(`{"jsonrpc":"2.0","id":${"0".repeat(WIRE_ID_BYTES)},"result":`);
const ID_AT = ENVELOPE.indexOf("0".repeat(WIRE_ID_BYTES));

/**
 * A kept answer in the form of a provider's answer, in lent memory like those, so that it is
 * written to the caller in one piece.
 */
function outcomeOf(
  kept: KeptAnswer,
  { request }: CallContext,
  { buffers }: CachedAnswers,
): Outcome {
  const { facts, length } = kept;
  if (facts.isError || !request.mayStream || buffers === null)
    return bareOutcome(facts, kept.copy());
  const start = ENVELOPE.length;
  const end = start + length;
  const body = buffers.takeFor(end + 1);
  if (body === null) return bareOutcome(facts, kept.copy());
  ENVELOPE.copy(body);
  kept.copyTo(body, start);
  body[end] = CLOSE_OBJECT;
  return { kind: "result", body, start, end, idAt: ID_AT, pool: buffers };
}

function bareOutcome({ isError }: KeptFacts, bytes: Buffer): Outcome {
  if (isError) return { kind: "error", raw: bytes };
  return { kind: "result", body: bytes, start: 0, end: bytes.length, idAt: null };
}

function sourceOf({ trust: { provider } }: KeptFacts): AnswerSource {
  return { kind: "cache", provider };
}

/** Where the answer to a call is looked up. */
interface CachePlace {
  readonly scope: CacheScope;
  readonly key: AnswerKey;
}

/** A call, as it is looked up. */
interface CacheQuery extends CachePlace {
  readonly subject: CacheSubject;
}

function placeOf({ request }: CallContext, answers: CachedAnswers): CachePlace | null {
  const { call, tracker, caller } = request;
  const { body, params, method } = call;
  if (params === undefined || params.start < 0 || params.end - params.start > MAX_PARAMS_BYTES)
    return null;
  const scope = answers.scopeOf(tracker);
  const space = scope.spaceOf(method.name);
  if (answers.settings()?.byAccount !== true)
    return { scope, key: answerKeyOf(space, body, params.start, params.end) };
  const own = Buffer.concat([
    Buffer.from(`${caller.key}\n`),
    body.subarray(params.start, params.end),
  ]);
  return { scope, key: answerKeyOf(space, own, 0, own.length) };
}

/** What the answer depends on; null = it must not be kept. */
function subjectOf({ request: { call } }: CallContext): CacheSubject | null {
  const { body, params, method } = call;
  return params === undefined ? null : cacheSubjectOf(body, params, method);
}

/** What another profile of the operator has kept, and is still true. */
function sharedAnswer(
  look: LookUp,
  { scope, key, subject }: CacheQuery,
  { request }: CallContext,
): KeptAnswer | null {
  const { set } = request.tracker;
  const shareWith = set.cache?.shareWith;
  if (shareWith === undefined || shareWith.length === 0) return null;
  if (subject.kind === "head" || subject.kind === "tag") return null;
  for (const profile of shareWith) {
    const other = look.answers.sharedWith(profile, set.chain.chainName);
    if (other === null || other === scope) continue;
    const space = other.spaceOf(request.call.method.name);
    const kept = checked(look, other, { ...key, space });
    const kind = kept?.facts.class;
    if (kind === "immutable" || kind === "hash") return kept;
  }
  return null;
}

/** When and for whom a kept answer is looked up. */
interface LookUp {
  readonly answers: CachedAnswers;
  readonly nowMs: number;
}

/** What a scope has kept and is still true, by what it knows of blocks. */
function checked(
  { answers, nowMs }: LookUp,
  { cache: entries, blocks }: CacheScope,
  key: AnswerKey,
): KeptAnswer | null {
  const kept = entries.get(key);
  if (kept === null) return null;
  const { facts } = kept;
  if (!facts.trust.trusted || nowMs >= facts.endsAtMs || nowMs < facts.askedAtMs) {
    entries.withdraw(kept);
    return null;
  }
  if (facts.guard === null) return kept;
  if (!isStillTrue(facts, blocks)) {
    entries.withdraw(kept);
    if (facts.class !== "head") answers.countAbandoned();
    return null;
  }
  if (facts.class !== "block" || !isFinal(facts.guard.number, blocks)) return kept;
  if (facts.guard.settles)
    return entries.describe(kept, { ...facts, class: "immutable", guard: null });
  entries.withdraw(kept);
  return null;
}

/** A call that is looked up in the second tier, and asked of providers if that has no answer. */
class TierLookUp implements RunningCall {
  readonly #parts: TierLookUpParts;
  readonly #cancelLookUp: () => void;
  #running: RunningCall | null = null;
  #isOver = false;

  constructor(parts: TierLookUpParts) {
    this.#parts = parts;
    this.#cancelLookUp = parts.tier.lookUp(parts.tierKey, (finding) => this.#found(finding));
  }

  cancel(): Abandoned {
    if (this.#running !== null) return this.#running.cancel();
    if (!this.#isOver) this.#cancelLookUp();
    this.#isOver = true;
    return NOTHING_SENT;
  }

  #found({ answer, generation }: TierFinding): void {
    const { tier, tierKey, next, ...parts } = this.#parts;
    const { context, runtime } = parts;
    const kept = answer === null ? null : keptFromTier(parts, answer);
    this.#isOver = true;
    const nowMs = runtime.now();
    if (kept !== null) {
      hit(context, kept.facts, nowMs, "redis");
      const outcome = bareOutcome(kept.facts, kept.bytes);
      return parts.listener.ended({ outcome, source: sourceOf(kept.facts) });
    }
    if (answer !== null) tier.countUnusable();
    context.cacheUse = MISS;
    const place = generation === null ? null : { tier, tierKey, generation };
    this.#running = next(context, new KeepingListener(parts, place, nowMs));
  }
}

interface TierLookUpParts extends KeepingParts {
  readonly tier: SecondTier;
  readonly tierKey: TierKey;
  readonly next: Stage;
}

/** What is looked up in the second tier; null = it has no answer to this call, or not in time. */
function tierKeyOf({ answers, query, context, runtime }: KeepingParts) {
  const { secondTier: tier } = answers;
  const { scope, subject } = query;
  if (tier === null || scope.tierScope === null || !tier.isUsable(scope.tierScope)) return null;
  if (context.endsAtMs - runtime.now() < 2 * TIER_LIMIT_MS) return null;
  if (subject.kind === "head" || subject.kind === "tag") return null;
  if (subject.kind === "number" && !isFinal(subject.number, scope.blocks)) return null;
  return { tier, tierKey: tierKey(scope.tierScope, textOf(query, context)) };
}

/** Everything that decides the answer, in full. */
function textOf({ key }: CacheQuery, { request }: CallContext): string {
  const asked = key.bytes.toString("latin1", key.start, key.end);
  return `${request.call.method.name} ${asked}`;
}

/**
 * What was found in the second tier, kept here as well; null = it may not be given. It is judged as
 * if the provider that it names had answered just now.
 */
function keptFromTier(
  parts: KeepingParts,
  found: StoredAnswer,
): { readonly facts: KeptFacts; readonly bytes: Buffer } | null {
  const { query, context, runtime } = parts;
  const { value, isError } = found;
  const provider = context.request.tracker.set.providers.find(({ id }) => id === found.provider);
  if (provider === undefined || (isError && !isStoredRevert(value))) return null;
  const answer = { bytes: value, start: 0, end: value.length, isError };
  const before = context.request.tracker.blocks.snapshot();
  const terms = termsOf(parts, { ...answer, provider, before });
  if (terms === null || !isForGood(terms)) return null;
  const ageMs = Math.max(0, runtime.wallMs() - found.askedAtWallMs);
  const facts = factsOf(parts, { ...answer, provider, askedAtMs: runtime.now() - ageMs, terms });
  if (runtime.now() >= facts.endsAtMs) return null;
  const { cache: entries } = query.scope;
  if (entries.hasRoomFor(value.length)) entries.set(query.key, facts, value, answer);
  return { facts, bytes: value };
}

/** Whether an answer is worth a place in the second tier: it never changes. */
function isForGood({ class: kind, lifeMs }: CacheTerms): boolean {
  return kind === "immutable" && lifeMs === null;
}

/** Where an answer is stored in the second tier, if it is one to be stored. */
interface TierPlace {
  readonly tier: SecondTier;
  readonly tierKey: TierKey;
  readonly generation: Buffer;
}

/** Keeps an answer on its way to the caller. */
class KeepingListener implements StageListener {
  readonly #parts: KeepingParts;
  /** Null = it is kept in memory alone. */
  readonly #place: TierPlace | null;
  readonly #before: BlocksSnapshot;
  readonly #askedAtMs: number;
  /** Removals counted when it was asked for. */
  readonly #purges: number;

  constructor(parts: KeepingParts, place: TierPlace | null, nowMs: number) {
    this.#parts = parts;
    this.#place = place;
    this.#before = parts.context.request.tracker.blocks.snapshot();
    this.#askedAtMs = nowMs;
    this.#purges = parts.query.scope.purges;
  }

  /** Before the caller hears of it: what is borrowed goes back then. */
  ended(answer: Answer): void {
    this.#keep(answer);
    this.#parts.listener.ended(answer);
  }

  #keep({ outcome, source }: Answer): void {
    const { query, context } = this.#parts;
    const { call, tracker } = context.request;
    // A tag that was sent as it was written need not have named the block that stands in the key.
    if (
      call.resolution !== undefined &&
      source.kind === "provider" &&
      tracker.blocks.formFor(source.provider, call.method) === "tag"
    )
      return;
    if (context.isContradicted) return;
    // An answer that was asked for before this call may be older than what is known of the blocks.
    if (source.kind !== "provider" || context.sharedSinceMs < this.#askedAtMs) return;
    const isError = outcome.kind === "error";
    if (outcome.kind !== "result" && !(isError && isRevertWithData(context))) return;
    const [bytes, start, end] = isError
      ? [outcome.raw, 0, outcome.raw.length]
      : [outcome.body, outcome.start, outcome.end];
    const { scope, key } = query;
    if (scope.purges !== this.#purges || !scope.cache.hasRoomFor(end - start)) return;
    const { provider } = source;
    const answer = { bytes, start, end, isError, provider, before: this.#before };
    const terms = termsOf(this.#parts, answer);
    if (terms === null || !isOfBlock(terms, call)) return;
    const facts = factsOf(this.#parts, { ...answer, askedAtMs: this.#askedAtMs, terms });
    scope.cache.set(key, facts, bytes, answer);
    if (this.#place !== null && isForGood(terms))
      this.#store(this.#place, facts, Buffer.from(bytes.subarray(start, end)));
  }

  #store({ tier, tierKey, generation }: TierPlace, facts: KeptFacts, value: Buffer): void {
    const { runtime } = this.#parts;
    tier.store(tierKey, generation, {
      provider: facts.trust.provider.id,
      isError: facts.isError,
      askedAtWallMs: runtime.wallMs() - (runtime.now() - facts.askedAtMs),
      value,
    });
  }
}

interface KeepingParts {
  readonly answers: CachedAnswers;
  readonly query: CacheQuery;
  readonly context: CallContext;
  readonly listener: StageListener;
  readonly runtime: Runtime;
}

/** An answer of a provider. */
interface ProviderAnswer {
  readonly bytes: Buffer;
  readonly start: number;
  readonly end: number;
  readonly isError: boolean;
  readonly provider: Provider;
}

/** The terms on which an answer is kept; null = it is not. */
function termsOf(
  { query, context }: KeepingParts,
  {
    bytes,
    start,
    end,
    isError,
    provider,
    before,
  }: ProviderAnswer & { readonly before: BlocksSnapshot },
): CacheTerms | null {
  const { subject } = query;
  const { tracker, call } = context.request;
  const { blocks, set } = tracker;
  const { cache: rule } = call.method;
  return keepTerms({
    subject,
    answer: isError ? REVERT : resultIn(bytes, start, end, subject),
    named: rule?.kind === "block" && rule.named === true,
    now: blocks,
    before,
    provider: {
      highestBefore: before.highest[provider.index] ?? -1,
      tipBefore: before.tips[provider.index] ?? null,
      tipNow: blocks.pushedTip(provider),
      hashAt: (number) => blocks.pushedHash(provider, number),
    },
    blockTimeMs: set.chain.blockTimeMs,
    finalityDepth: set.chain.finalityDepth ?? DEFAULT_FINALITY_DEPTH,
  });
}

/** A kept answer's description, and the time until which it may be given. */
function factsOf(
  { answers, query, context }: KeepingParts,
  answer: ProviderAnswer & { readonly askedAtMs: number; readonly terms: CacheTerms },
): KeptFacts {
  const { isError, provider, askedAtMs, terms } = answer;
  const { name } = context.request.call.method;
  const most = answers.settings()?.methods.get(name) ?? Number.POSITIVE_INFINITY;
  return {
    trust: query.scope.trustOf(provider, name),
    isError,
    askedAtMs,
    endsAtMs: askedAtMs + Math.min(most, terms.lifeMs ?? Number.POSITIVE_INFINITY),
    class: terms.class,
    guard: terms.guard,
  };
}

const NO_BLOCK = { number: null, hash: null };
const REVERT: CacheableAnswer = {
  kind: "revert",
  isNull: false,
  isEmpty: false,
  block: NO_BLOCK,
};

function resultIn(
  bytes: Buffer,
  start: number,
  end: number,
  subject: CacheSubject,
): CacheableAnswer {
  const span = { start, end };
  return {
    kind: "result",
    isNull: isNullResult(bytes, span),
    isEmpty: isEmptyResult(bytes, span),
    block: subject.kind === "tag" ? NO_BLOCK : resultBlock(bytes, span),
  };
}

/** A revert is the same at every node; running out of gas or time is not. */
function isRevertWithData({ failed }: CallContext): boolean {
  const last = failed.at(-1);
  return last?.verdict.category === "revert" && isRevertData(last.failure.data);
}

/** Whether a stored error has the form of such a revert. */
function isStoredRevert(raw: Buffer): boolean {
  const { code, data } = readError(raw);
  return code !== null && isRevertData(data);
}

function isRevertData(data: unknown): boolean {
  return typeof data === "string" && /^0x[0-9a-fA-F]+$/.test(data);
}
