// Handlers of feedback: accepted from everyone within a limit, listed for the operator.

import { apiFault, limited } from "../../../core/faults/api-fault.ts";
import { addFeedback, readFeedback } from "../../../hosted/feedback.ts";
import { OPERATIONS } from "../../contract/contract.ts";
import { categoryOf, type FEEDBACK_OPERATIONS } from "../../contract/feedback.ts";
import type { ApiCaller } from "../../contract/operation.ts";
import { RPC_OPERATIONS } from "../../discovery/openapi-rpc.ts";
import type { StoreHandlers } from "../parts.ts";
import { instant, ok } from "./views.ts";

/** The ids of all documented operations. */
const KNOWN: ReadonlySet<string> = new Set<string>([
  ...OPERATIONS.map((operation) => operation.id),
  ...RPC_OPERATIONS,
]);

/** Reports that one account or address may send. */
export const REPORTS_PER_HOUR = 10;

/** The handlers of feedback. */
export const FEEDBACK_HANDLERS: StoreHandlers<keyof typeof FEEDBACK_OPERATIONS> = {
  async submitFeedback({ body, caller, address }, { store, runtime, reports }) {
    const { message, category = null, request_id = null, operation = null } = body;
    if (operation !== null && !KNOWN.has(operation))
      return apiFault("invalid_field", "no operation has this id", {
        details: ["operation"],
        nextAction: "use an operationId of /openapi.json, or leave it out",
      });
    const { who, accountId } = senderOf(caller, address);
    const waitMs = reports.take(who, runtime.now());
    const refusal = limited(waitMs, `more than ${REPORTS_PER_HOUR} reports came in an hour`);
    if (refusal !== null) return refusal;
    const report = { message, category, requestId: request_id, operation, accountId };
    const id = await addFeedback(store, report, runtime.wallMs());
    return { kind: "answer", status: 202, body: { id } };
  },
  async listFeedback({ query }, { store }) {
    const { reports, next } = await readFeedback(store, query);
    const feedback = reports.map(({ created_at, category, ...report }) => ({
      ...report,
      created_at: instant(Number(created_at)),
      category: categoryOf(category),
    }));
    return ok({ feedback, next });
  },
};

/** The identity that is limited, and the account, if there is one. */
function senderOf(
  caller: Exclude<ApiCaller, { readonly kind: "operator" }>,
  address: string,
): { readonly who: string; readonly accountId: string | null } {
  switch (caller.kind) {
    case "agent":
      return { who: caller.agent.id, accountId: caller.agent.accountId };
    case "key":
      return { who: caller.key.id, accountId: caller.key.accountId };
    default:
      return { who: address, accountId: null };
  }
}
