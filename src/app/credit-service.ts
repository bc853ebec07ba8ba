// Leased credit of workers with the embedded store: the supervisor, which has the file open, runs
// each of its transactions in one go. A worker that is busy or stands still holds nobody else up.
import type { Epoch } from "../cluster/node-rows.ts";
import { type Bus, type QuestionTopic, SUPERVISOR } from "../core/workers/bus.ts";
import { type CreditStore, creditOn, type RefillInput } from "../hosted/credit/credit-store.ts";
import type { LeaseGrant } from "../hosted/credit/lease.ts";
import type { FlushInput, FlushOutcome } from "../hosted/credit/node.ts";
import { errorFrom, type StatementError, statementErrorOf } from "../store/statement.ts";
import type { Store } from "../store/store.ts";

/** A transaction that a worker asks for. */
type CreditRequest =
  | { readonly kind: "flush"; readonly epoch: Epoch; readonly input: FlushInput }
  | { readonly kind: "refill"; readonly epoch: Epoch; readonly input: RefillInput };

type CreditResult =
  | { readonly kind: "flushed"; readonly outcome: FlushOutcome }
  | { readonly kind: "refilled"; readonly grants: readonly LeaseGrant[] | null }
  | { readonly kind: "failed"; readonly error: StatementError };

const CREDIT: QuestionTopic<CreditRequest, CreditResult> = {
  name: "credit",
  parse: parseCreditRequest,
  parseAnswer: parseCreditResult,
};
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
  if (request.kind === "flush")
    return { kind: "flushed", outcome: await credit.flush(request.epoch, request.input) };
  return { kind: "refilled", grants: await credit.refill(request.epoch, request.input) };
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
  };
}

/** Checks the frame: what is in it was made by the same version of this program. */
function parseCreditRequest(value: unknown): CreditRequest | null {
  if (!isRecord(value) || !isRecord(value["epoch"]) || !isRecord(value["input"])) return null;
  const { nodeId, epoch } = value["epoch"];
  if (typeof nodeId !== "string" || typeof epoch !== "bigint") return null;
  const { kind, input } = value;
  const isFlush = kind === "flush" && isRecord(input["batch"]);
  const isRefill = kind === "refill" && Array.isArray(input["requests"]);
  return isFlush || isRefill ? (value as unknown as CreditRequest) : null;
}

function parseCreditResult(value: unknown): CreditResult | null {
  if (!isRecord(value)) return null;
  const { kind, outcome, grants, error } = value;
  const isWhole =
    (kind === "flushed" && typeof outcome === "string") ||
    (kind === "refilled" && (grants === null || Array.isArray(grants))) ||
    (kind === "failed" && isRecord(error));
  return isWhole ? (value as unknown as CreditResult) : null;
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null;
}
