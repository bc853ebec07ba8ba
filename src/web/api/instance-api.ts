// The HTTP API of every instance, hosted or not: what its operator reads and does.
import { type CONTRACT, OPERATIONS } from "../contract/contract.ts";
import type { ApiHandlers } from "../contract/operation.ts";
import { recordChange } from "./action-log.ts";
import { instanceCallerOf, type OperatorCredentials } from "./authenticate.ts";
import { sessionHandlers } from "./handlers/console-session.ts";
import { historyHandlers } from "./handlers/history.ts";
import { liveHandlers } from "./handlers/live.ts";
import { cacheHandlers, providerHandlers } from "./handlers/operator-providers.ts";
import { type AnyResult, inputOf, type OperationRequest, parseHandlers } from "./operation.ts";
import {
  type Api,
  createOperationServer,
  type OperationServerParts,
  type ServerBounds,
} from "./operation-server.ts";
import type { InstanceParts } from "./parts.ts";

export interface InstanceApiParts
  extends InstanceParts,
    OperatorCredentials,
    Pick<OperationServerParts, "log" | "publicUrl" | "trustedProxies"> {
  /** Absent = the defaults; tests tighten them. */
  readonly limits?: ServerBounds;
}

/** The defaults. */
const LIMITS: ServerBounds = { maxReading: 256, maxUnderWay: 128 };

/** Creates the API. */
export function createInstanceApi(parts: InstanceApiParts): Api {
  return createOperationServer({
    ...parts,
    limits: parts.limits ?? LIMITS,
    operations: OPERATIONS.filter((operation) => operation.servedBy === "instance"),
    claims: () => false,
    serve: createInstanceServing(parts, parts),
  });
}

/** Creates the function that serves these operations; it throws if the store fails. */
function createInstanceServing(
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
