// The layer of kept answers: providers are not asked for a known answer. Looks a call up, and keeps
// the answer of a provider if it may be kept. Decisions are in `core/routing/cache-terms.ts`.
import { DEFAULT_FINALITY_DEPTH } from "../../../core/provider/blocks/finality.ts";
import type { Provider } from "../../../core/provider/profile.ts";
import type { AnswerSource } from "../../../core/routing/answer-source.ts";
import {
  type CacheTerms,
  type CacheTier,
  isFinal,
  keepTerms,
  MISS,
} from "../../../core/routing/cache-terms.ts";
import { readError } from "../../../core/rpc/answer.ts";
import { type CacheSubject, cacheSubjectOf } from "../../../core/rpc/cache-subject.ts";
import type { Call } from "../../../core/rpc/call.ts";
import { CLOSE_OBJECT, type Span } from "../../../core/rpc/json.ts";
import { isEmptyResult, isNullResult, resultBlock } from "../../../core/rpc/result-block.ts";
import { WIRE_ID_BYTES } from "../../../core/rpc/wire-request.ts";
import type { Runtime } from "../../../runtime.ts";
import type { BlocksSnapshot } from "../../health/known-blocks.ts";
import {
  type SecondTier,
  TIER_LIMIT_MS,
  type TierFinding,
  tierKey,
} from "../../second-tier/second-tier.ts";
import type { StoredAnswer, TierKey } from "../../second-tier/stored-answer.ts";
import { type Answer, type Outcome, wholeResult } from "../answer.ts";
import {
  type CallContext,
  type Layer,
  type LayerParts,
  LayerRun,
  NOTHING_SENT,
  OVER,
  type RunningCall,
} from "../call-context.ts";
import type { KeptAnswer } from "./answer-cache.ts";
import { type AnswerKey, answerKeyOf, type KeptFacts } from "./answer-segment.ts";
import type { CachedAnswers, CacheScope } from "./cached-answers.ts";

/** Longer parameters are not looked up. */
const MAX_PARAMS_BYTES = 16_384;

/** The layer of kept answers. */
export function cache(runtime: Runtime, answers: CachedAnswers): Layer {
  return (next) => {
    const parts = { runtime, answers, next };
    return (context, listener) => {
      const place = placeOf(context, answers);
      if (place === null) return next(context, listener);
      const { call } = context.request;
      const nowMs = runtime.now();
      const found = answers.find(place.scope, place.key, nowMs);
      // It may belong to a different block of the same number.
      const own = found !== null && isOfBlock(found.facts, call) ? found : null;
      // The subject of a call is read only if no answer is kept under the same parameters.
      const { body, method } = call;
      const subject = own === null ? cacheSubjectOf(body, place.params, method) : null;
      const query = subject === null ? null : { ...place, subject };
      const kept = own ?? (query === null ? null : sharedAnswer(answers, query, context, nowMs));
      if (kept !== null) {
        hit(context, kept.facts, nowMs, "memory");
        const outcome = outcomeOf(kept, context, answers);
        listener.ended({ outcome, source: sourceOf(kept.facts) });
        return OVER;
      }
      if (query === null) return next(context, listener);
      return new CacheMiss({ ...parts, ...query }, context, listener).start();
    };
  };
}

/** A call is answered with what is kept. */
function hit(context: CallContext, facts: KeptFacts, nowMs: number, tier: CacheTier): void {
  const ageMs = Math.max(0, nowMs - facts.askedAtMs);
  context.cacheUse = { result: "hit", ageMs, class: facts.class, tier };
}

/** Whether an answer may be of the block to which the tag of a call was resolved. */
function isOfBlock({ guard }: Pick<CacheTerms, "guard">, { resolution }: Call): boolean {
  const hash = resolution?.hash ?? null;
  return hash === null || guard === null || guard.hash === hash;
}

/** The text before the result in an answer of the service; the id is replaced by the caller's. */
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

/** The only errors that are kept are reverts. */
function bareOutcome({ isError }: KeptFacts, bytes: Buffer): Outcome {
  return isError ? { kind: "error", raw: bytes, category: "revert" } : wholeResult(bytes);
}

function sourceOf({ trust: { provider } }: KeptFacts): AnswerSource {
  return { kind: "cache", provider };
}

/** Where the answer to a call is looked up. */
interface CachePlace {
  readonly params: Span;
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
    return { params, scope, key: answerKeyOf(space, body, params.start, params.end) };
  const own = Buffer.concat([
    Buffer.from(`${caller.key}\n`),
    body.subarray(params.start, params.end),
  ]);
  return { params, scope, key: answerKeyOf(space, own, 0, own.length) };
}

/** The valid answer that another profile of the operator has kept. */
function sharedAnswer(
  answers: CachedAnswers,
  { scope, key, subject }: CacheQuery,
  { request }: CallContext,
  nowMs: number,
): KeptAnswer | null {
  const { set } = request.tracker;
  const shareWith = set.cache?.shareWith;
  if (shareWith === undefined || shareWith.length === 0) return null;
  if (subject.kind === "head" || subject.kind === "tag") return null;
  for (const profile of shareWith) {
    const other = answers.sharedWith(profile, set.chain.chainName);
    if (other === null || other === scope) continue;
    const space = other.spaceOf(request.call.method.name);
    const kept = answers.find(other, { ...key, space }, nowMs);
    const kind = kept?.facts.class;
    if (kind === "immutable" || kind === "hash") return kept;
  }
  return null;
}

/** Where an answer is stored in the second tier, if it is one to be stored. */
interface TierPlace {
  readonly tier: SecondTier;
  readonly tierKey: TierKey;
  readonly generation: Buffer;
}

/** An answer of a provider. */
interface ProviderAnswer extends Span {
  readonly bytes: Buffer;
  readonly isError: boolean;
  readonly provider: Provider;
  readonly askedAtMs: number;
}

/** The finding for a call that memory does not answer. */
interface MissParts extends LayerParts, CacheQuery {
  readonly runtime: Runtime;
  readonly answers: CachedAnswers;
}

/**
 * A call that is looked up in the second tier, and asked of providers if that has no answer. Keeps
 * their answer on its way to the caller.
 */
class CacheMiss extends LayerRun<MissParts> {
  /** Null = its answer is kept in memory alone. */
  #place: TierPlace | null = null;
  #before: BlocksSnapshot = this.context.request.tracker.blocks.snapshot();
  #askedAtMs = this.parts.runtime.now();
  /** Removals counted when it was asked for. */
  #purges = this.parts.scope.purges;

  override start(): RunningCall {
    const { secondTier: tier } = this.parts.answers;
    const tierKey = tier === null ? null : this.#tierKeyIn(tier);
    if (tier === null || tierKey === null) return this.#askProviders();
    const cancel = tier.lookUp(tierKey, (finding) => this.#found(tier, tierKey, finding));
    this.running = {
      cancel() {
        cancel();
        return NOTHING_SENT;
      },
    };
    return this;
  }

  #askProviders(): RunningCall {
    this.context.cacheUse = MISS;
    return super.start();
  }

  /** What is looked up in the second tier; null = it has no answer to this call, or not in time. */
  #tierKeyIn(tier: SecondTier): TierKey | null {
    const { scope, subject, key } = this.parts;
    const { request, endsAtMs } = this.context;
    if (scope.tierScope === null || !tier.isUsable(scope.tierScope)) return null;
    if (endsAtMs - this.parts.runtime.now() < 2 * TIER_LIMIT_MS) return null;
    if (subject.kind === "head" || subject.kind === "tag") return null;
    if (subject.kind === "number" && !isFinal(subject.number, scope.blocks)) return null;
    // All facts that decide the answer, unabridged.
    const asked = key.bytes.toString("latin1", key.start, key.end);
    return tierKey(scope.tierScope, `${request.call.method.name} ${asked}`);
  }

  #found(tier: SecondTier, tierKey: TierKey, { answer, generation }: TierFinding): void {
    const { runtime, scope } = this.parts;
    const kept = answer === null ? null : this.#keepStored(answer);
    if (kept !== null) {
      this.running = null;
      hit(this.context, kept.facts, runtime.now(), "redis");
      const outcome = bareOutcome(kept.facts, kept.bytes);
      return this.finish({ outcome, source: sourceOf(kept.facts) });
    }
    if (answer !== null) tier.countUnusable();
    this.#place = generation === null ? null : { tier, tierKey, generation };
    this.#before = this.context.request.tracker.blocks.snapshot();
    this.#askedAtMs = runtime.now();
    this.#purges = scope.purges;
    this.#askProviders();
  }

  /**
   * What was found in the second tier, kept here as well; null = it may not be given. It is judged
   * as if the provider that it names had answered just now.
   */
  #keepStored(found: StoredAnswer): { readonly facts: KeptFacts; readonly bytes: Buffer } | null {
    const { scope, key, runtime } = this.parts;
    const { value: bytes, isError } = found;
    const { set, blocks } = this.context.request.tracker;
    const provider = set.providers.find(({ id }) => id === found.provider);
    if (provider === undefined || (isError && !isStoredRevert(bytes))) return null;
    const askedAtMs = runtime.now() - Math.max(0, runtime.wallMs() - found.askedAtWallMs);
    const answer = { bytes, start: 0, end: bytes.length, isError, provider, askedAtMs };
    const terms = this.#termsOf(answer, blocks.snapshot());
    if (terms === null || !isForGood(terms)) return null;
    const facts = this.#factsOf(answer, terms);
    if (runtime.now() >= facts.endsAtMs) return null;
    if (scope.cache.hasRoomFor(bytes.length)) scope.cache.set(key, facts, bytes, answer);
    return { facts, bytes };
  }

  /** Keep the answer before the caller gets it: borrowed memory goes back after that. */
  protected judge(answer: Answer): void {
    this.#keep(answer);
    this.finish(answer);
  }

  #keep({ outcome, source }: Answer): void {
    const { context } = this;
    const { scope, key } = this.parts;
    const { call, tracker } = context.request;
    if (context.isContradicted) return;
    // An answer that was asked for before this call may be older than what is known of the blocks.
    if (source.kind !== "provider" || context.sharedSinceMs < this.#askedAtMs) return;
    const { provider } = source;
    // A tag that was sent as it was written need not have named the block that stands in the key.
    if (call.resolution !== undefined && tracker.blocks.formFor(provider, call.method) === "tag")
      return;
    const isError = outcome.kind === "error";
    if (outcome.kind !== "result" && !(isError && isRevertWithData(context))) return;
    const [bytes, start, end] = isError
      ? [outcome.raw, 0, outcome.raw.length]
      : [outcome.body, outcome.start, outcome.end];
    if (scope.purges !== this.#purges || !scope.cache.hasRoomFor(end - start)) return;
    const answer = { bytes, start, end, isError, provider, askedAtMs: this.#askedAtMs };
    const terms = this.#termsOf(answer, this.#before);
    if (terms === null || !isOfBlock(terms, call)) return;
    const facts = this.#factsOf(answer, terms);
    scope.cache.set(key, facts, bytes, answer);
    if (this.#place !== null && isForGood(terms))
      this.#store(this.#place, facts, Buffer.from(bytes.subarray(start, end)));
  }

  #store({ tier, tierKey, generation }: TierPlace, facts: KeptFacts, value: Buffer): void {
    const { runtime } = this.parts;
    tier.store(tierKey, generation, {
      provider: facts.trust.provider.id,
      isError: facts.isError,
      askedAtWallMs: runtime.wallMs() - (runtime.now() - facts.askedAtMs),
      value,
    });
  }

  /** The terms on which an answer is kept; null = it is not. */
  #termsOf(
    { bytes, isError, provider, ...span }: ProviderAnswer,
    before: BlocksSnapshot,
  ): CacheTerms | null {
    const { subject } = this.parts;
    const { tracker, call } = this.context.request;
    const { blocks, set } = tracker;
    const { cache: rule } = call.method;
    return keepTerms({
      subject,
      answer: {
        kind: isError ? "revert" : "result",
        isNull: isNullResult(bytes, span),
        isEmpty: isEmptyResult(bytes, span),
        block: isError || subject.kind === "tag" ? NO_BLOCK : resultBlock(bytes, span),
      },
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
  #factsOf({ isError, provider, askedAtMs }: ProviderAnswer, terms: CacheTerms): KeptFacts {
    const { answers, scope } = this.parts;
    const { name } = this.context.request.call.method;
    const most = answers.settings()?.methods.get(name) ?? Number.POSITIVE_INFINITY;
    return {
      trust: scope.trustOf(provider, name),
      isError,
      askedAtMs,
      endsAtMs: askedAtMs + Math.min(most, terms.lifeMs ?? Number.POSITIVE_INFINITY),
      class: terms.class,
      guard: terms.guard,
    };
  }
}

/** Whether an answer is worth a place in the second tier: it never changes. */
function isForGood({ class: kind, lifeMs }: CacheTerms): boolean {
  return kind === "immutable" && lifeMs === null;
}

const NO_BLOCK = { number: null, hash: null };

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
