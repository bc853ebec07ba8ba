// The layer of kept answers: what is known is not asked again. Looks a call up, and keeps the
// answer of a provider if it may be kept. Decisions are in `core/routing/cache-terms.ts`.
import {
  type BlocksNow,
  type CacheableAnswer,
  isStillTrue,
  keepTerms,
} from "../../core/routing/cache-terms.ts";
import { MISS } from "../../core/routing/cache-use.ts";
import { type CacheSubject, cacheSubjectOf } from "../../core/rpc/cache-subject.ts";
import { isEmptyResult, isNullResult, resultBlock } from "../../core/rpc/result-block.ts";
import type { Runtime } from "../../runtime.ts";
import type { BlocksSnapshot, KnownBlocks } from "../health/known-blocks.ts";
import type { Answer } from "./answer.ts";
import { type KeptAnswer, keptValue, valueBytes } from "./answer-cache.ts";
import type { CacheScope } from "./cache-scope.ts";
import type { CachedAnswers } from "./cached-answers.ts";
import type { Job } from "./job.ts";
import { type JobListener, NOTHING_SENT, type PolicyLayer } from "./stage.ts";

/** What the layer works with. */
export interface CacheParts {
  readonly runtime: Runtime;
  /** Null = nothing is kept. */
  readonly cache: CachedAnswers | null;
}

/** Longer parameters are not looked up. */
const MAX_PARAMS_BYTES = 16_384;
const ENDED = { cancel: () => NOTHING_SENT };

/** The layer of kept answers. */
export function cache({ runtime, cache: answers }: CacheParts): PolicyLayer {
  return {
    appliesTo: (policy) => policy.cache,
    layer: (next) => (job, listener) => {
      const query = answers === null ? null : queryOf(job, answers);
      if (answers === null || query === null) return next(job, listener);
      const nowMs = runtime.now();
      const kept = lookUp(answers, query, job, nowMs);
      if (kept === null) {
        job.cacheUse = MISS;
        return next(job, new KeepingListener({ answers, query, job, listener, runtime }));
      }
      job.cacheUse = {
        result: "hit",
        ageMs: Math.max(0, nowMs - kept.askedAtMs),
        class: kept.terms.class,
      };
      listener.ended(answerOf(kept));
      return ENDED;
    },
  };
}

/** A call, as it is looked up. */
interface CacheQuery {
  readonly scope: CacheScope;
  readonly subject: CacheSubject;
  /** Everything that decides the answer, in full. */
  readonly key: string;
  /** The key without its scope. */
  readonly text: string;
}

function queryOf({ request }: Job, answers: CachedAnswers): CacheQuery | null {
  const { call, tracker, caller } = request;
  const { body, params, method } = call;
  if (params === undefined || params.start < 0 || params.end - params.start > MAX_PARAMS_BYTES)
    return null;
  const subject = cacheSubjectOf(body, params, method);
  if (subject === null) return null;
  const scope = answers.scopeOf(tracker);
  const asker = answers.settings?.byAccount === true ? `${caller.key}\n` : "";
  const text = `${asker}${method.name} ${body.toString("latin1", params.start, params.end)}`;
  return { scope, subject, text, key: scope.prefix + text };
}

/** What is kept and still true; null = nothing is. */
function lookUp(
  answers: CachedAnswers,
  { scope, key, text, subject }: CacheQuery,
  { request }: Job,
  nowMs: number,
): KeptAnswer | null {
  const { set } = request.tracker;
  const look = { answers, nowMs };
  const own = checked(look, scope, key);
  const shareWith = set.cache?.shareWith;
  if (own !== null || shareWith === undefined || shareWith.length === 0) return own;
  if (subject.kind === "head" || subject.kind === "tag") return null;
  for (const profile of shareWith) {
    const other = answers.sharedWith(profile, set.chain.chainName);
    if (other === null || other === scope) continue;
    const kept = checked(look, other, other.prefix + text);
    if (kept !== null && (kept.terms.class === "immutable" || kept.terms.class === "hash"))
      return kept;
  }
  return null;
}

/** When and for whom a kept answer is looked up. */
interface LookUp {
  readonly answers: CachedAnswers;
  readonly nowMs: number;
}

/** Removes what is true no more, by what the scope knows of blocks. */
function checked(
  { answers, nowMs }: LookUp,
  { cache: entries, blocks }: CacheScope,
  key: string,
): KeptAnswer | null {
  const kept = entries.get(key);
  if (kept === null) return null;
  if (!kept.trust.trusted || nowMs >= kept.endsAtMs || nowMs < kept.askedAtMs) {
    entries.delete(key);
    return null;
  }
  const { terms } = kept;
  if (terms.guard === null) return kept;
  const now = blocksNow(blocks);
  const isUntouched = (number: number, epoch: number) => blocks.isUntouched(number, epoch);
  if (!isStillTrue(terms, now, isUntouched)) {
    entries.delete(key);
    if (terms.class !== "head") answers.countAbandoned();
    return null;
  }
  if (terms.class === "block" && now.finalized !== null && terms.guard.number <= now.finalized)
    kept.terms = { class: "immutable", guard: null, lifeMs: terms.lifeMs };
  return kept;
}

function blocksNow(blocks: KnownBlocks): BlocksNow {
  return {
    servedTip: blocks.servedTip(),
    finalized: blocks.finalized(),
    epoch: blocks.epoch,
    agreedHash: (number) => blocks.agreedHash(number),
  };
}

function answerOf({ value, isError, provider }: KeptAnswer): Answer {
  const bytes = valueBytes(value);
  const outcome = isError
    ? ({ kind: "error", raw: bytes } as const)
    : ({ kind: "result", body: bytes, start: 0, end: bytes.length, idAt: null } as const);
  return { outcome, source: { kind: "cache", provider } };
}

/** Keeps an answer on its way to the caller. */
class KeepingListener implements JobListener {
  readonly #parts: KeepingParts;
  /** Null = the answer does not depend on a block that could still be abandoned. */
  readonly #before: BlocksSnapshot | null;
  readonly #askedAtMs: number;

  constructor(parts: KeepingParts) {
    this.#parts = parts;
    this.#before = mayBeAbandoned(parts) ? parts.job.request.tracker.blocks.snapshot() : null;
    this.#askedAtMs = parts.runtime.now();
  }

  /** Before the caller hears of it: what is borrowed goes back then. */
  ended(answer: Answer): void {
    this.#keep(answer);
    this.#parts.listener.ended(answer);
  }

  #keep({ outcome, source }: Answer): void {
    const { answers, query, job } = this.#parts;
    // An answer that was asked for before this call may be older than what is known of the blocks.
    if (source.kind !== "provider" || job.sharedSinceMs < this.#askedAtMs) return;
    const isError = outcome.kind === "error";
    if (outcome.kind !== "result" && !(isError && isRevertWithData(job))) return;
    const [bytes, start, end] = isError
      ? [outcome.raw, 0, outcome.raw.length]
      : [outcome.body, outcome.start, outcome.end];
    const { scope, subject, key } = query;
    if (!scope.cache.hasRoomFor(end - start)) return;
    const { provider } = source;
    const { tracker, call } = job.request;
    const { blocks, set } = tracker;
    const { cache: rule } = call.method;
    const before = this.#before ?? NOTHING_BEFORE;
    const terms = keepTerms({
      subject,
      answer: isError ? REVERT : resultIn(bytes, start, end, subject),
      named: rule?.kind === "block" && rule.named === true,
      now: blocksNow(blocks),
      before,
      provider: {
        tipBefore: before.tips[provider.index] ?? null,
        tipNow: blocks.pushedTip(provider),
        hashAt: (number) => blocks.pushedHash(provider, number),
      },
      blockTimeMs: set.chain.blockTimeMs,
    });
    if (terms === null) return;
    const most = answers.settings?.methods.get(call.method.name) ?? Number.POSITIVE_INFINITY;
    scope.cache.set(key, {
      provider,
      trust: scope.trustOf(provider),
      isError,
      value: keptValue(bytes, start, end),
      askedAtMs: this.#askedAtMs,
      endsAtMs: this.#askedAtMs + Math.min(most, terms.lifeMs ?? Number.POSITIVE_INFINITY),
      terms,
    });
  }
}

interface KeepingParts {
  readonly answers: CachedAnswers;
  readonly query: CacheQuery;
  readonly job: Job;
  readonly listener: JobListener;
  readonly runtime: Runtime;
}

/** Nothing known of the blocks when the call was sent: enough for what is final. */
const NOTHING_BEFORE: BlocksSnapshot = { epoch: -1, servedTip: null, servedHash: null, tips: [] };

/** Whether an answer could be kept only as long as a block stays in the chain. */
function mayBeAbandoned({ query, job }: KeepingParts): boolean {
  const { subject } = query;
  if (subject.kind === "head") return true;
  const finalized = job.request.tracker.blocks.finalized();
  return subject.kind === "number" && (finalized === null || subject.number > finalized);
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
function isRevertWithData({ failed }: Job): boolean {
  const last = failed.at(-1);
  return (
    last?.verdict.category === "revert" &&
    typeof last.failure.data === "string" &&
    /^0x[0-9a-fA-F]+$/.test(last.failure.data)
  );
}
