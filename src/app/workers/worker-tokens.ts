// The book of rate limits of a service of several workers: the supervisor has it, and the workers
// ask it over the bus.

import { ADDRESS_SCOPE } from "../../cluster/booked-address-limits.ts";
import type { RequestTokens, TokenGrant, TokenRequest } from "../../core/billing/shared-limit.ts";
import { TokenBook } from "../../core/billing/token-book.ts";
import { type Bus, type QuestionTopic, SUPERVISOR } from "../../core/workers/bus.ts";
import type { Runtime } from "../../runtime.ts";

const ANSWER_MS = 1_000;

const TOKENS: QuestionTopic<readonly TokenRequest[], readonly TokenGrant[]> = {
  name: "rate-limit.tokens",
};

/** Keeps the book, and answers workers. */
export function serveTokens(bus: Bus, runtime: Pick<Runtime, "now">): void {
  const accounts = new TokenBook();
  const addresses = new TokenBook();
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
