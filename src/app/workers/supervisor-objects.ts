// What the supervisor of a service has for its workers: the embedded file, whole transactions of
// credit, so that a busy worker never keeps one open, and the book of rate limits.

import type { RequestTokens } from "../../core/billing/shared-limit.ts";
import { TokenBook } from "../../core/billing/token-book.ts";
import type { Bus } from "../../core/workers/bus.ts";
import { type CreditStore, creditOn } from "../../hosted/credit/credit-store.ts";
import type { Runtime } from "../../runtime.ts";
import { ADDRESS_SCOPE } from "../../shared/leases/booked-address-limits.ts";
import { type RemoteObject, serveCalls } from "../../shared/processes/remote-calls.ts";
import type { SendStatement } from "../../shared/store/statement.ts";
import type { StatementServer } from "../../shared/store/statement-server.ts";
import type { Store } from "../../shared/store/store.ts";

/** Longer than a transaction may take, and another one before it. */
const STORE_MS = 12_000;

/** The file, in the process that has it open. */
export const STATEMENTS: RemoteObject<{ readonly run: SendStatement }> = {
  name: "the store",
  methods: ["run"],
  timeoutMs: STORE_MS,
};

/** Transactions of credit, in the same process. */
export const CREDIT: RemoteObject<CreditStore> = {
  name: "credit in the store",
  methods: ["flush", "refill", "returnParts", "close"],
  timeoutMs: STORE_MS,
};

/** The book of rate limits. */
export const TOKENS: RemoteObject<{ readonly request: RequestTokens }> = {
  name: "the rate limits of the service",
  methods: ["request"],
  timeoutMs: 1_000,
};

/** Runs the statements of workers. */
export function serveStatements(bus: Bus, statements: StatementServer): void {
  serveCalls(bus, STATEMENTS, (worker) => ({ run: (request) => statements.run(request, worker) }));
}

/** Runs the transactions of workers. */
export function serveCredit(bus: Bus, store: Store): void {
  const credit = creditOn(store);
  serveCalls(bus, CREDIT, () => credit);
}

/** Keeps the book of rate limits. */
export function serveTokens(bus: Bus, { now }: Pick<Runtime, "now">): void {
  const [accounts, addresses] = [new TokenBook(), new TokenBook()];
  serveCalls(bus, TOKENS, (worker) => ({
    request: async (requests) =>
      requests.map((request) => {
        const book = request.scope.startsWith(ADDRESS_SCOPE) ? addresses : accounts;
        return book.grant(worker, request, now());
      }),
  }));
}
