// Decides whether an answer may be kept and under which terms it may be given again, from the block
// that it depends on and the blocks of the providers. Keeps nothing itself.
import type { CacheSubject } from "../rpc/cache-subject.ts";
import type { ResultBlock } from "../rpc/result-block.ts";

/**
 * Classes of kept answers. `immutable`: of a finalized block. `block`: of a younger block, as long
 * as it has the hash that it had. `head`: of the newest block. `tag`: of the block of a tag.
 * `hash`: of a block by its hash, before that is final.
 */
export type CacheClass = "immutable" | "block" | "head" | "tag" | "hash";

/** The blocks of a chain as they are known now. */
export interface BlocksNow {
  /** The newest block that callers are told of; null = unknown. */
  servedTip(): number | null;
  finalized(): number | null;
  /** Counts reorganisations. */
  readonly epoch: number;
  /** The hash on which the providers agree; null = unknown or disputed. */
  agreedHash(number: number): string | null;
  /** Whether providers have different blocks at this height. */
  isDisputed(number: number): boolean;
  /** For how long (ms) this hash has been the only one that was heard of at its height. */
  agreedMs(number: number, hash: string): number;
  /** Whether no reorganisation has reached this height since the count was `epoch`. */
  isUntouched(number: number, epoch: number): boolean;
}

/** The newest block when a call was sent, and how far each provider had come. */
export interface BlocksBefore {
  readonly epoch: number;
  readonly servedTip: number | null;
  /** The hash of the served tip; null = unknown or disputed. */
  readonly servedHash: string | null;
}

/** The provider that answered. */
export interface Answering {
  /** The highest block it was known to have when the call was sent; -1 = none. */
  readonly highestBefore: number;
  /** The newest block it had pushed when the call was sent; null = it pushes none. */
  readonly tipBefore: number | null;
  /** The same when the answer came. */
  readonly tipNow: number | null;
  /** The hash that it has at a recent height; null = unknown. */
  readonly hashAt: (number: number) => string | null;
}

/** What came. */
export interface CacheableAnswer {
  /** `revert`: a deterministic revert with its data. */
  readonly kind: "result" | "revert";
  readonly isNull: boolean;
  readonly isEmpty: boolean;
  readonly block: ResultBlock;
}

/** A block that must still be in the chain. */
export interface KeptBlock {
  readonly number: number;
  readonly hash: string;
  /** Reorganisations counted when this was found. */
  readonly epoch: number;
  /** What is kept of it never changes once the block is final; otherwise it is asked for anew. */
  readonly settles: boolean;
}

/** The terms on which an answer is kept. */
export interface CacheTerms {
  readonly class: CacheClass;
  /** Null = it depends on no block that could still be abandoned. */
  readonly guard: KeptBlock | null;
  /** How long after it was asked for (ms); null = as long as there is room. */
  readonly lifeMs: number | null;
}

/** What the terms are found from. */
export interface KeepFacts {
  readonly subject: CacheSubject;
  readonly answer: CacheableAnswer;
  /** The result of this method names its block. */
  readonly named: boolean;
  readonly now: BlocksNow;
  readonly before: BlocksBefore;
  readonly provider: Answering;
  readonly blockTimeMs: number;
  /** Blocks below a provider's head that it has for good, whatever its machines differ by. */
  readonly finalityDepth: number;
}

/** An empty answer of any block is given no longer than this. */
const EMPTY_MS = 60_000;
/** An answer by the hash of a block that is not final is given no longer than this. */
const HASH_MS = 60_000;
/** An answer of the newest block is given no longer than this. */
const HEAD_MS = 2_000;

/** The terms on which an answer is kept; null = it is not. */
export function keepTerms(facts: KeepFacts): CacheTerms | null {
  const { answer, subject } = facts;
  if (answer.isNull || (answer.kind === "revert" && subject.kind !== "number")) return null;
  const terms = termsOf(facts);
  if (terms === null || !answer.isEmpty) return terms;
  return { ...terms, lifeMs: Math.min(terms.lifeMs ?? EMPTY_MS, EMPTY_MS) };
}

/** Whether what is kept on these terms may be given now, if its time is not over. */
export function isStillTrue(
  { class: kept, guard }: Pick<CacheTerms, "class" | "guard">,
  now: BlocksNow,
): boolean {
  if (guard === null) return true;
  const { number, hash, epoch } = guard;
  if (kept === "head" && now.servedTip() !== number) return false;
  return now.agreedHash(number) === hash && now.isUntouched(number, epoch);
}

function termsOf(facts: KeepFacts): CacheTerms | null {
  const { subject, blockTimeMs } = facts;
  switch (subject.kind) {
    case "head":
      return headTerms(facts);
    case "tag":
      return { class: "tag", guard: null, lifeMs: blockTimeMs };
    case "number":
      return numberTerms(facts, subject.number);
    case "hash":
      return hashTerms(facts);
    case "transaction":
      return transactionTerms(facts);
  }
}

/** The provider was at the served head when it was asked and when it answered. */
function headTerms({ answer, named, now, before, provider, blockTimeMs }: KeepFacts) {
  const { servedTip: number, servedHash: hash, epoch } = before;
  if (number === null || hash === null || now.epoch !== epoch || now.servedTip() !== number)
    return null;
  if (provider.tipBefore !== number || provider.tipNow !== number) return null;
  if (provider.hashAt(number) !== hash || now.agreedHash(number) !== hash) return null;
  if (named && answer.block.hash !== null && answer.block.hash !== hash) return null;
  const lifeMs = Math.min(blockTimeMs, HEAD_MS);
  return { class: "head", guard: { number, hash, epoch, settles: false }, lifeMs } as const;
}

function numberTerms(facts: KeepFacts, number: number): CacheTerms | null {
  const { answer, named, now, before, provider } = facts;
  if (!isHeld(number, provider, now)) return null;
  const agreed = now.agreedHash(number);
  const ownHash = named ? answer.block.hash : null;
  if (ownHash !== null && agreed !== null && ownHash !== agreed) return null;
  if (isFinal(number, now)) return IMMUTABLE;
  if (agreed === null || now.epoch !== before.epoch) return null;
  if (ownHash === null) return unnamedTerms(facts, number, agreed);
  const guard = { number, hash: agreed, epoch: now.epoch, settles: true };
  return { class: "block", guard, lifeMs: null };
}

/**
 * What does not name its block rests on the word of a socket, while another machine of the provider
 * may have answered. An answer of the newest block is kept while that block is the newest; an
 * answer of an older block once the block has stood for a block time.
 */
function unnamedTerms(facts: KeepFacts, number: number, agreed: string): CacheTerms | null {
  const { now, provider, blockTimeMs, finalityDepth } = facts;
  if (number === now.servedTip()) return headTerms(facts);
  if (provider.tipBefore === null || provider.tipBefore < number) return null;
  if (provider.hashAt(number) !== agreed || now.agreedMs(number, agreed) < blockTimeMs) return null;
  const settles = provider.highestBefore >= number + finalityDepth;
  const guard = { number, hash: agreed, epoch: now.epoch, settles };
  return { class: "block", guard, lifeMs: null };
}

function hashTerms({ answer, now, provider }: KeepFacts): CacheTerms | null {
  const { number, hash } = answer.block;
  // An empty answer that names no block may be that of a provider without the block.
  if (number === null) return answer.isEmpty ? null : BY_HASH;
  if (!isHeld(number, provider, now)) return null;
  const agreed = now.agreedHash(number);
  if (agreed !== null && hash !== null && agreed !== hash) return null;
  return isFinal(number, now) ? IMMUTABLE : BY_HASH;
}

/**
 * The answer is as final as the block that it names. Without a block its subject is pending, or
 * missing.
 */
function transactionTerms({ answer, now, provider }: KeepFacts): CacheTerms | null {
  const { number, hash } = answer.block;
  if (number === null || hash === null || !isHeld(number, provider, now)) return null;
  const agreed = now.agreedHash(number);
  if (isFinal(number, now)) return agreed === null || agreed === hash ? IMMUTABLE : null;
  if (agreed !== hash) return null;
  const guard = { number, hash, epoch: now.epoch, settles: true };
  return { class: "block", guard, lifeMs: null };
}

/**
 * Whether the answering provider had the block when it was asked and, if it pushes heads, is on the
 * common branch. Callers are told of the block.
 */
function isHeld(number: number, provider: Answering, now: BlocksNow): boolean {
  const tip = now.servedTip();
  // A block above the served tip may be a single provider's.
  if (tip === null || number > tip || provider.highestBefore < number || now.isDisputed(number))
    return false;
  const own = provider.hashAt(number);
  return own === null || own === now.agreedHash(number);
}

/** Whether the block at this height does not change any more. */
export function isFinal(number: number, now: Pick<BlocksNow, "finalized">): boolean {
  const finalized = now.finalized();
  return finalized !== null && number <= finalized;
}

const IMMUTABLE: CacheTerms = { class: "immutable", guard: null, lifeMs: null };
const BY_HASH: CacheTerms = { class: "hash", guard: null, lifeMs: HASH_MS };

// How answers are kept, as a configuration says it.

/** Settings of the cache. */
export interface CacheSettings {
  /** Of all kept answers. */
  readonly maxBytes: number;
  /** Of the answers kept for one account with Custom profiles; 0 = none are. */
  readonly accountMaxBytes: number;
  /** True = no account is given what another one has asked for. */
  readonly byAccount: boolean;
  /** The longest life (ms) of answers to a method, by name; 0 = they are not kept. */
  readonly methods: ReadonlyMap<string, number>;
}

// How a call met the cache: what evidence, headers and metrics tell of it.

/** How a call met the cache. `bypass`: its caller wanted it asked, or pinned its provider. */
export type CacheUse =
  | { readonly result: "miss" | "bypass" }
  | {
      readonly result: "hit";
      readonly ageMs: number;
      readonly class: CacheClass;
      readonly tier: CacheTier;
    };

/** Where an answer was kept: in this process, or on the server that several nodes share. */
export type CacheTier = "memory" | "redis";

export const BYPASS: CacheUse = { result: "bypass" };
export const MISS: CacheUse = { result: "miss" };
