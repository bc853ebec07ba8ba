// How many calls go to a provider in one request: the setting of the operator, and limits learned
// from refusals. Values only.
import { isFresh } from "../../fresh.ts";
import type { Failure } from "../../rpc/failure.ts";

/** How calls to a provider are put together. */
export interface BatchLimits {
  /** Most calls in one request. */
  readonly max: number;
  /** How long the first of them waits for others; 0 = until the end of its turn. */
  readonly waitMs: number;
}

/** What the latest refusal taught. */
export interface LearnedBatch {
  readonly most: number;
  readonly atMs: number;
}

/** Why a provider did not take a batch; `most`: the number that it names, null = none. */
export type BatchRefusal =
  | { readonly kind: "unsupported" }
  | { readonly kind: "too_large"; readonly most: number | null };

/** How long a refusal is remembered. */
export const LEARNED_BATCH_MS = 3_600_000;
/** Fewer calls than this are no batch. */
export const LEAST_BATCH = 2;

/**
 * Whether a failure says that the provider did not take a batch at all; null = it says something
 * else. `isWhole`: it answers the whole batch, and not one call of it.
 */
export function batchRefusalOf(failure: Failure, isWhole: boolean): BatchRefusal | null {
  const { httpStatus, code, message } = failure;
  if (httpStatus === TOO_MANY_REQUESTS) return null;
  // A contract may revert with any words.
  if (!isWhole && code !== INVALID_REQUEST && code !== LIMIT_EXCEEDED) return null;
  const named = BATCH.test(message) && !RATE.test(message) ? namedRefusal(message) : null;
  if (named !== null || !isWhole) return named;
  if (httpStatus === CONTENT_TOO_LARGE) return { kind: "too_large", most: null };
  const isUnread = code === PARSE_ERROR || code === INVALID_REQUEST;
  return isUnread || UNREAD_STATUSES.has(httpStatus) ? { kind: "unsupported" } : null;
}

/** Whether a node left a call out because the answers before it in the batch were too long. */
export function isCutShort({ code, message }: Failure): boolean {
  return code === RESPONSE_TOO_LARGE && /response too large/i.test(message);
}

/** What is known after a batch of `sent` calls was refused. */
export function learnedFrom(refusal: BatchRefusal, sent: number, nowMs: number): LearnedBatch {
  if (refusal.kind === "unsupported") return { most: 1, atMs: nowMs };
  const named = refusal.most !== null && refusal.most < sent ? refusal.most : null;
  return { most: Math.max(1, named ?? Math.floor(sent / 2)), atMs: nowMs };
}

/** Most calls that one request to a provider may carry now. */
export function mostAtOnce(
  { max }: BatchLimits,
  learned: LearnedBatch | null,
  nowMs: number,
): number {
  if (learned === null) return max;
  return isFresh(learned.atMs, LEARNED_BATCH_MS, nowMs) ? Math.min(max, learned.most) : max;
}

const TOO_MANY_REQUESTS = 429;
const CONTENT_TOO_LARGE = 413;
/** Statuses that mean that the body was not understood, or not accepted in this form. */
const UNREAD_STATUSES: ReadonlySet<number> = new Set([400, 405, 415, 422, 501]);
const PARSE_ERROR = -32_700;
const INVALID_REQUEST = -32_600;
const LIMIT_EXCEEDED = -32_005;
const RESPONSE_TOO_LARGE = -32_003;
const BATCH = /batch|\barrays?\b|multiple requests/i;
const RATE = /rate.?limit|per (?:second|minute)|quota/i;
const UNSUPPORTED =
  /not (?:be )?(?:support|allow|enabl|permit|accept|implement|available)|unsupported|disabled|disallow|forbidden|no batch/i;
const TOO_LARGE = /too (?:large|big|long|many)|exceed|limit|max|more than|at most|up to|greater/i;

function namedRefusal(message: string): BatchRefusal | null {
  const most = smallestNumberIn(message);
  const isTooLarge = TOO_LARGE.test(message);
  if (isTooLarge && most !== null) return { kind: "too_large", most };
  if (UNSUPPORTED.test(message)) return { kind: "unsupported" };
  return isTooLarge ? { kind: "too_large", most: null } : null;
}

/** The smallest number in a text that may be a number of calls; null = there is none. */
function smallestNumberIn(message: string): number | null {
  const numbers = (message.match(/\b\d{1,5}\b/g) ?? []).map(Number).filter((n) => n > 0);
  return numbers.length === 0 ? null : Math.min(...numbers);
}
