// The contract of the HTTP API beside JSON-RPC, one row per operation. Validation, handler types,
// OpenAPI and documents derive from it. The key of a row is the operation's id, and it never
// changes.
import type { ApiFaultCode } from "../../core/faults/api-fault.ts";
import { ACCOUNT_OPERATIONS } from "./accounts.ts";
import { AGENT_OPERATIONS } from "./agent.ts";
import { CLAIM_OPERATIONS } from "./claims.ts";
import { CONSOLE_OPERATIONS, SESSION_OPERATIONS } from "./console.ts";
import { FEEDBACK_OPERATIONS } from "./feedback.ts";
import { HISTORY_OPERATIONS } from "./history.ts";
import { INCIDENT_OPERATIONS } from "./incidents.ts";
import { INSTANCE_OPERATIONS } from "./instance.ts";
import { KEY_OPERATIONS } from "./keys.ts";
import { LIVE_OPERATIONS } from "./live.ts";
import { faultsOf, type HandlersOf, type Operation, type OperationMethod } from "./operation.ts";
import { OPERATOR_OPERATIONS } from "./operator.ts";
import { PAYMENT_OPERATIONS } from "./payments.ts";
import { PROFILE_OPERATIONS } from "./profiles.ts";

/** All operations. */
export const CONTRACT = {
  ...INSTANCE_OPERATIONS,
  ...AGENT_OPERATIONS,
  ...KEY_OPERATIONS,
  ...ACCOUNT_OPERATIONS,
  ...PAYMENT_OPERATIONS,
  ...CLAIM_OPERATIONS,
  ...PROFILE_OPERATIONS,
  ...FEEDBACK_OPERATIONS,
  ...SESSION_OPERATIONS,
  ...CONSOLE_OPERATIONS,
  ...OPERATOR_OPERATIONS,
  ...HISTORY_OPERATIONS,
  ...INCIDENT_OPERATIONS,
  ...LIVE_OPERATIONS,
} as const;

/** Documented here, and answered by `pages/routes.ts`. */
const BY_PAGES = INSTANCE_OPERATIONS;
/** Served by every instance; only the operator can authenticate. */
const BY_INSTANCE = {
  ...SESSION_OPERATIONS,
  ...CONSOLE_OPERATIONS,
  ...HISTORY_OPERATIONS,
  ...INCIDENT_OPERATIONS,
  ...LIVE_OPERATIONS,
} as const;

type Contract = typeof CONTRACT;

/** The ids of all operations. */
export type OperationId = keyof Contract;

/** An operation with its id, and its endpoint taken apart. */
export interface NamedOperation extends Operation {
  readonly id: OperationId;
  readonly method: OperationMethod;
  readonly path: string;
  /** All codes that it may answer with. */
  readonly faults: readonly ApiFaultCode[];
  /** `api`: over the store of a hosted service. */
  readonly servedBy: "api" | "instance" | "pages";
}

/** All operations. */
export const OPERATIONS: readonly NamedOperation[] = Object.entries(CONTRACT).map(([id, row]) => {
  const [method, path] = parseEndpoint(row.endpoint);
  const ofInstance = Object.hasOwn(BY_INSTANCE, id) ? "instance" : "api";
  const servedBy = Object.hasOwn(BY_PAGES, id) ? "pages" : ofInstance;
  const faults = servedBy === "pages" ? [] : faultsOf(row);
  return { ...row, id: parseId(id), method, path, faults, servedBy };
});

/** `Object.entries` widens keys to strings; this restores the type. */
function parseId(id: string): OperationId {
  return id as OperationId;
}

function parseEndpoint(endpoint: Operation["endpoint"]): readonly [OperationMethod, string] {
  return endpoint.split(" ", 2) as [OperationMethod, string];
}

/** The ids of the operations that every instance has. */
export type InstanceId = keyof typeof BY_INSTANCE;
/** The ids of those over the store. */
export type StoreId = Exclude<OperationId, InstanceId | keyof typeof BY_PAGES>;

/** The handlers of these operations. */
export type Handlers<Id extends OperationId, Parts> = HandlersOf<Pick<Contract, Id>, Parts>;
