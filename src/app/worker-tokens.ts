// The book of rate limits of a service of several workers: the supervisor has it, and the workers
// ask it over the bus.

import { ADDRESS_SCOPE } from "../cluster/booked-address-limits.ts";
import type { RateLimitSize } from "../core/billing/gcra.ts";
import type { RequestTokens, TokenGrant, TokenRequest } from "../core/billing/shared-limit.ts";
import { createTokenBook } from "../core/billing/token-book.ts";
import { isRecord } from "../core/fields.ts";
import { type Bus, type QuestionTopic, SUPERVISOR } from "../core/workers/bus.ts";
import type { Runtime } from "../runtime.ts";

const MAX_REQUESTS = 1_000;
const MAX_CHARS = 100;
const ANSWER_MS = 1_000;

const TOKENS: QuestionTopic<readonly TokenRequest[], readonly TokenGrant[]> = {
  name: "rate-limit.tokens",
  parse: (value) => parseAll(value, parseRequest),
  parseAnswer: (value) => parseAll(value, parseGrant),
};

/** Keeps the book, and answers workers. */
export function serveTokens(bus: Bus, runtime: Pick<Runtime, "now">): void {
  const accounts = createTokenBook();
  const addresses = createTokenBook();
  bus.serve(TOKENS, (requests, from) =>
    requests.map((request) =>
      (request.scope.startsWith(ADDRESS_SCOPE) ? addresses : accounts).grant(
        from,
        request,
        runtime.now(),
      ),
    ),
  );
}

/** Asks the book of the service. */
export function tokensOver(bus: Bus): RequestTokens {
  return async (message) => {
    const reply = await bus.request(SUPERVISOR, { topic: TOKENS, message, timeoutMs: ANSWER_MS });
    if (reply.ok) return reply.value;
    throw new Error(`the rate limits of the service cannot be asked: ${reply.reason}`);
  };
}

function parseAll<T>(value: unknown, parse: (item: unknown) => T | null): readonly T[] | null {
  if (!Array.isArray(value) || value.length > MAX_REQUESTS) return null;
  const all = value.map(parse).filter((item) => item !== null);
  return all.length === value.length ? all : null;
}

function parseRequest(value: unknown): TokenRequest | null {
  if (!isRecord(value)) return null;
  const { scope, wanted, owed } = value;
  const size = parseSize(value["size"]);
  if (typeof scope !== "string" || scope.length > MAX_CHARS || size === null) return null;
  return isCount(wanted) && Number.isInteger(owed) && typeof owed === "number"
    ? { scope, size, wanted, owed }
    : null;
}

function parseSize(value: unknown): RateLimitSize | null {
  if (!isRecord(value)) return null;
  const { perSecond, burst } = value;
  return typeof perSecond === "number" && perSecond > 0 && isCount(burst)
    ? { perSecond, burst }
    : null;
}

function parseGrant(value: unknown): TokenGrant | null {
  if (!isRecord(value)) return null;
  const { granted, waitMs, debt } = value;
  return isCount(granted) && typeof waitMs === "number" && typeof debt === "number"
    ? { granted, waitMs, debt }
    : null;
}

function isCount(value: unknown): value is number {
  return typeof value === "number" && Number.isInteger(value) && value >= 0;
}
