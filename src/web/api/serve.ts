// Serves one request of an operation: authenticates the caller, validates the input and calls the
// handler. Knows rows of the contract and handlers, not what they do.
import { type ApiFault, apiFault } from "../../core/faults/api-fault.ts";
import type { CONTRACT } from "../contract/contract.ts";
import type { ApiCaller, ApiHandlers } from "../contract/operation.ts";
import type { PurchasePaywall } from "../payment/purchase-paywall.ts";
import { recordChange } from "./action-log.ts";
import { type ApiAuthenticationParts, callerOf } from "./authenticate.ts";
import { accountHandlers } from "./handlers/accounts.ts";
import { agentHandlers } from "./handlers/agent.ts";
import { claimHandlers } from "./handlers/claims.ts";
import { connectionHandlers } from "./handlers/connections.ts";
import { feedbackHandlers } from "./handlers/feedback.ts";
import { keyHandlers } from "./handlers/keys.ts";
import { operatorHandlers } from "./handlers/operator.ts";
import { operatorAccountHandlers } from "./handlers/operator-accounts.ts";
import { operatorMoneyHandlers } from "./handlers/operator-money.ts";
import { profileHandlers } from "./handlers/profiles.ts";
import { purchaseHandlers } from "./handlers/purchases.ts";
import { usageHandlers } from "./handlers/usage.ts";
import type { AnyResult, OperationRequest } from "./operation.ts";
import { inputOf, parseHandlers } from "./operation-input.ts";
import type { HandlerParts } from "./parts.ts";
import { createPaidServing } from "./serve-paid.ts";

interface ServingParts extends HandlerParts {
  /** Null = nothing can be bought. */
  readonly paywall: PurchasePaywall | null;
}

/** Creates the function that serves operations; it throws if the store fails. */
export function createServing(
  parts: ServingParts,
  credentials: ApiAuthenticationParts,
): (asked: OperationRequest) => Promise<AnyResult> {
  const handlers = parseHandlers(handlersOf(parts));
  const servePaid = createPaidServing({
    paywall: parts.paywall,
    callerOf: (asked, paid) => changerOf(credentials, asked, paid),
    inputOf,
  });
  return async (asked) => {
    const { operation, request, address, cookie } = asked;
    const handler = handlers.get(operation.id);
    if (handler === undefined) throw new Error(`no handler serves ${operation.id}`);
    if (typeof handler !== "function") return servePaid(asked, handler);
    const sender = { request, address, cookie, pathKey: asked.params?.["key"] ?? null };
    let caller =
      operation.method === "GET"
        ? await callerOf(credentials, operation.auth, sender)
        : await changerOf(credentials, asked, false);
    // Pending usage is written before reads, so that a balance includes the calls made before. The
    // record of a key holds the balance, so it is read again.
    if (operation.method === "GET" && (await settle(parts, caller)))
      caller = await callerOf(credentials, operation.auth, sender);
    if (caller.kind === "api_fault") return caller;
    const limited = operation.method === "GET" ? null : writeLimit(parts, caller);
    if (limited !== null) return limited;
    const input = inputOf(asked);
    if (input.kind === "api_fault") return input;
    const call = { ...input, caller };
    const result = await handler(call);
    await recordChange(parts.recordAction, operation, call, result);
    return result;
  };
}

/** Authenticates the caller of a change and applies the limit on changes. */
async function changerOf(
  credentials: ApiAuthenticationParts,
  asked: OperationRequest,
  paid: boolean,
): Promise<ApiCaller | ApiFault> {
  const { operation, request, address, cookie, params } = asked;
  const caller = await callerOf(credentials, operation.auth, {
    request,
    address,
    cookie,
    pathKey: params?.["key"] ?? null,
    paid,
  });
  if (caller.kind === "agent" && caller.agent.readOnly)
    return apiFault("forbidden", "the management token may only read");
  return caller;
}

async function settle({ settle }: HandlerParts, caller: ApiCaller | ApiFault): Promise<boolean> {
  switch (caller.kind) {
    case "key":
      return settle(caller.key.accountId);
    case "agent":
      return settle(caller.agent.accountId);
    case "operator":
      return settle(null);
    case "anyone":
    case "connection":
    case "api_fault":
      return false;
  }
}

/** Why an account may not make another change now. Null = it may, and the change is counted. */
function writeLimit({ writes, runtime }: HandlerParts, caller: ApiCaller): ApiFault | null {
  const accountId = accountOf(caller);
  const retryAfterMs = accountId === null ? 0 : writes.take(accountId, runtime.now());
  return retryAfterMs === 0
    ? null
    : apiFault("rate_limited", "the account has been changed too often in the last minute", {
        retryAfterMs,
      });
}

/** The account of the caller; null = none. */
function accountOf(caller: ApiCaller): string | null {
  if (caller.kind === "agent") return caller.agent.accountId;
  return caller.kind === "key" ? caller.key.accountId : null;
}

function handlersOf(parts: HandlerParts): ApiHandlers<typeof CONTRACT> {
  return {
    ...agentHandlers(parts),
    ...keyHandlers(parts),
    ...accountHandlers(parts),
    ...claimHandlers(parts),
    ...connectionHandlers(parts),
    ...profileHandlers(parts),
    ...purchaseHandlers(parts),
    ...usageHandlers(parts),
    ...operatorAccountHandlers(parts),
    ...operatorHandlers(parts),
    ...operatorMoneyHandlers(parts),
    ...feedbackHandlers(parts),
  };
}
