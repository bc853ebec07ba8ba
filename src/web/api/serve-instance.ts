// Serves one request of an operation that every instance has: recognises the operator, validates
// the input and calls the handler.
import type { CONTRACT } from "../contract/contract.ts";
import type { ApiHandlers } from "../contract/operation.ts";
import { recordChange } from "./action-log.ts";
import { instanceCallerOf, type OperatorCredentials } from "./authenticate.ts";
import { cacheHandlers } from "./handlers/cache.ts";
import { sessionHandlers } from "./handlers/console-session.ts";
import { historyHandlers } from "./handlers/history.ts";
import { liveHandlers } from "./handlers/live.ts";
import { providerHandlers } from "./handlers/operator-providers.ts";
import type { InstanceParts } from "./instance-parts.ts";
import type { AnyResult, OperationRequest } from "./operation.ts";
import { inputOf, parseHandlers } from "./operation-input.ts";

/** Creates the function that serves these operations; it throws if the store fails. */
export function createInstanceServing(
  parts: InstanceParts,
  credentials: OperatorCredentials,
): (asked: OperationRequest) => Promise<AnyResult> {
  const handlers = parseHandlers(handlersOf(parts));
  return async (asked) => {
    const { operation, request, cookie, address } = asked;
    const sender = { request, cookie, address };
    const handler = handlers.get(operation.id);
    if (typeof handler !== "function") throw new Error(`no handler serves ${operation.id}`);
    const caller = await instanceCallerOf(credentials, operation.auth, sender);
    if (caller.kind === "api_fault") return caller;
    const input = inputOf(asked);
    if (input.kind === "api_fault") return input;
    const call = { ...input, caller };
    const result = await handler(call);
    await recordChange(parts.recordAction, operation, call, result);
    if (result.kind !== "answer" || result.stream === undefined) return result;
    const { stream } = result;
    const isStillAllowed = async (): Promise<boolean> => {
      const now = await instanceCallerOf(credentials, operation.auth, sender);
      return now.kind === caller.kind;
    };
    return { ...result, stream: (response) => stream(response, isStillAllowed) };
  };
}

function handlersOf(parts: InstanceParts): ApiHandlers<typeof CONTRACT, "instance"> {
  const { live } = parts;
  return {
    ...sessionHandlers(parts),
    ...providerHandlers(parts),
    ...cacheHandlers(parts),
    ...historyHandlers({ ...live, summary: parts.summary }),
    ...liveHandlers(live),
  };
}
