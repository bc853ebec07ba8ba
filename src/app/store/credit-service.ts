// Leased credit of workers with the embedded store: the supervisor, which has the file open, runs
// each of its transactions in one go. A worker that is busy or stands still holds nobody else up.

import type { Epoch } from "../../cluster/node-rows.ts";
import { type Bus, type QuestionTopic, SUPERVISOR } from "../../core/workers/bus.ts";
import { type CreditStore, creditOn, type RefillInput } from "../../hosted/credit/credit-store.ts";
import type { LeaseClosing, LeaseGrant } from "../../hosted/credit/lease.ts";
import type { FlushInput, FlushOutcome } from "../../hosted/credit/node.ts";
import type { ReturnedCredits } from "../../hosted/credit/recall.ts";
import { errorFrom, type StatementError, statementErrorOf } from "../../store/statement.ts";
import type { Store } from "../../store/store.ts";

/** A transaction that a worker asks for. */
type CreditRequest =
  | { readonly kind: "flush"; readonly epoch: Epoch; readonly input: FlushInput }
  | { readonly kind: "refill"; readonly epoch: Epoch; readonly input: RefillInput }
  | { readonly kind: "return"; readonly epoch: Epoch; readonly input: ReturnedCredits }
  | { readonly kind: "close"; readonly closing: LeaseClosing; readonly atMs: number };

type CreditResult =
  | { readonly kind: "flushed"; readonly outcome: FlushOutcome }
  | { readonly kind: "refilled"; readonly grants: readonly LeaseGrant[] | null }
  | { readonly kind: "returned"; readonly accountIds: readonly string[] }
  | { readonly kind: "closed"; readonly count: number }
  | { readonly kind: "failed"; readonly error: StatementError };

const CREDIT: QuestionTopic<CreditRequest, CreditResult> = { name: "credit" };
/** As long as a statement may take. */
const ANSWER_MS = 12_000;

/** Runs the transactions of workers, in the process that has the file open. */
export function serveCredit(bus: Bus, store: Store): void {
  const credit = creditOn(store);
  bus.serve(CREDIT, async (request): Promise<CreditResult> => {
    try {
      return await run(credit, request);
    } catch (error) {
      return { kind: "failed", error: statementErrorOf(error) };
    }
  });
}

async function run(credit: CreditStore, request: CreditRequest): Promise<CreditResult> {
  switch (request.kind) {
    case "flush":
      return { kind: "flushed", outcome: await credit.flush(request.epoch, request.input) };
    case "refill":
      return { kind: "refilled", grants: await credit.refill(request.epoch, request.input) };
    case "return": {
      const accountIds = await credit.returnParts(request.epoch, request.input);
      return { kind: "returned", accountIds };
    }
    case "close":
      return { kind: "closed", count: await credit.close(request.closing, request.atMs) };
  }
}

/** Has the process that has the file open run the transactions of this worker. */
export function creditOver(bus: Bus): CreditStore {
  async function send(message: CreditRequest): Promise<CreditResult> {
    const reply = await bus.request(SUPERVISOR, { topic: CREDIT, message, timeoutMs: ANSWER_MS });
    if (!reply.ok)
      throw Object.assign(new Error(`the store cannot be asked: ${reply.reason}`), {
        code: "ETIMEDOUT",
      });
    if (reply.value.kind === "failed") throw errorFrom(reply.value.error);
    return reply.value;
  }

  return {
    async flush(epoch, input) {
      const result = await send({ kind: "flush", epoch, input });
      if (result.kind !== "flushed") throw new Error("bug: another transaction was answered");
      return result.outcome;
    },
    async refill(epoch, input) {
      const result = await send({ kind: "refill", epoch, input });
      if (result.kind !== "refilled") throw new Error("bug: another transaction was answered");
      return result.grants;
    },
    async returnParts(epoch, input) {
      const result = await send({ kind: "return", epoch, input });
      if (result.kind !== "returned") throw new Error("bug: another transaction was answered");
      return result.accountIds;
    },
    async close(closing, atMs) {
      const result = await send({ kind: "close", closing, atMs });
      if (result.kind !== "closed") throw new Error("bug: another transaction was answered");
      return result.count;
    },
  };
}
