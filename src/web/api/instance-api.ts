// The HTTP API of every instance, hosted or not: what its operator reads and does.
import type { OpenAddressLimit } from "../../core/workers/shared-address-limits.ts";
import { OPERATIONS } from "../contract/contract.ts";
import { handled } from "./action-log.ts";
import { ANYONE, instanceCallerOf, type OperatorCredentials } from "./authenticate.ts";
import { SESSION_HANDLERS } from "./handlers/console-session.ts";
import { HISTORY_HANDLERS } from "./handlers/history.ts";
import { INCIDENT_HANDLERS } from "./handlers/incidents.ts";
import { LIVE_HANDLERS } from "./handlers/live.ts";
import { OPERATOR_PROVIDER_HANDLERS, QUERIES_PER_MINUTE } from "./handlers/operator-providers.ts";
import { type AnyResult, type OperationRequest, parseHandlers } from "./operation.ts";
import {
  type Api,
  createOperationServer,
  type OperationServerParts,
  type ServerBounds,
} from "./operation-server.ts";
import type { InstanceHandlers, InstanceParts } from "./parts.ts";

export interface InstanceApiParts
  extends Omit<InstanceParts, "tests" | "comparisons">,
    OperatorCredentials,
    Pick<OperationServerParts, "log"> {
  /** Opens the limits of calls that operators send to providers. */
  readonly openLimit: OpenAddressLimit;
  /** Absent = the defaults; tests tighten them. */
  readonly limits?: ServerBounds;
}

/** The defaults. */
const LIMITS: ServerBounds = { maxReading: 256, maxUnderWay: 128 };

const HANDLERS: InstanceHandlers = {
  ...SESSION_HANDLERS,
  ...OPERATOR_PROVIDER_HANDLERS,
  ...HISTORY_HANDLERS,
  ...INCIDENT_HANDLERS,
  ...LIVE_HANDLERS,
};

/** Creates the API. */
export function createInstanceApi(parts: InstanceApiParts): Api {
  const { openLimit, limits = LIMITS } = parts;
  const size = { perSecond: QUERIES_PER_MINUTE / MINUTE_S, burst: QUERIES_PER_MINUTE };
  return createOperationServer({
    ...parts,
    limits,
    operations: OPERATIONS.filter((operation) => operation.servedBy === "instance"),
    claims: () => false,
    serve: createServing({
      ...parts,
      tests: openLimit("tests", size),
      comparisons: openLimit("comparisons", size),
    }),
  });
}

const MINUTE_S = 60;

type ServingParts = InstanceParts & OperatorCredentials;

/** Creates the function that serves these operations; it throws if the store fails. */
function createServing(parts: ServingParts): (asked: OperationRequest) => Promise<AnyResult> {
  const handlerOf = parseHandlers<ServingParts>(HANDLERS);
  return async (asked) => {
    const { operation } = asked;
    const handler = handlerOf(operation);
    if (typeof handler !== "function") throw new Error(`${operation.id} is not for sale`);
    const callerNow = async () => (await instanceCallerOf(parts, operation.auth, asked)) ?? ANYONE;
    const caller = await callerNow();
    if (caller.kind === "api_fault") return caller;
    const result = await handled(parts, handler, asked, caller);
    if (result.kind !== "answer" || result.stream === undefined) return result;
    const { stream } = result;
    const isStillAllowed = async (): Promise<boolean> => (await callerNow()).kind === caller.kind;
    return { ...result, stream: (response) => stream(response, isStillAllowed) };
  };
}
