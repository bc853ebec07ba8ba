// The HTTP API of every instance, hosted or not: what its operator reads and does.
import { type InstanceHandlers, OPERATIONS } from "../contract/contract.ts";
import { handled } from "./action-log.ts";
import { ANYONE, instanceCallerOf, type OperatorCredentials } from "./authenticate.ts";
import { sessionHandlers } from "./handlers/console-session.ts";
import { historyHandlers } from "./handlers/history.ts";
import { liveHandlers } from "./handlers/live.ts";
import {
  cacheHandlers,
  callHandlers,
  cordonHandlers,
  serviceHandlers,
} from "./handlers/operator-providers.ts";
import { type AnyResult, type OperationRequest, parseHandlers } from "./operation.ts";
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
  const handlerOf = parseHandlers(handlersOf(parts));
  return async (asked) => {
    const { operation } = asked;
    const handler = handlerOf(operation);
    if (typeof handler !== "function") throw new Error(`${operation.id} is not for sale`);
    const callerNow = async () =>
      (await instanceCallerOf(credentials, operation.auth, asked)) ?? ANYONE;
    const caller = await callerNow();
    if (caller.kind === "api_fault") return caller;
    const result = await handled(handler, asked, caller, parts.recordAction);
    if (result.kind !== "answer" || result.stream === undefined) return result;
    const { stream } = result;
    const isStillAllowed = async (): Promise<boolean> => (await callerNow()).kind === caller.kind;
    return { ...result, stream: (response) => stream(response, isStillAllowed) };
  };
}

function handlersOf(parts: InstanceParts): InstanceHandlers {
  const { live } = parts;
  return {
    ...sessionHandlers(parts),
    ...cordonHandlers(parts),
    ...callHandlers(parts),
    ...serviceHandlers(parts),
    ...cacheHandlers(parts),
    ...historyHandlers({ ...live, summary: parts.summary }),
    ...liveHandlers(live),
  };
}
