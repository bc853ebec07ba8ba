// The HTTP API of every instance, hosted or not: what its operator reads and does.
import { OPERATIONS } from "../contract/contract.ts";
import type { OperatorCredentials } from "./authenticate.ts";
import type { InstanceParts } from "./instance-parts.ts";
import {
  type Api,
  createOperationServer,
  type OperationServerParts,
  type ServerBounds,
} from "./operation-server.ts";
import { createInstanceServing } from "./serve-instance.ts";

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
