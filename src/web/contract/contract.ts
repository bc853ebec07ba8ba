// The contract of the HTTP API beside JSON-RPC, one row per operation. Validation, handler types,
// OpenAPI and documents derive from it. The key of a row is the operation's id, and it never
// changes.
import { ACCOUNT_OPERATIONS } from "./accounts.ts";
import { AGENT_OPERATIONS } from "./agent.ts";
import { CLAIM_OPERATIONS } from "./claims.ts";
import { CONSOLE_OPERATIONS } from "./console.ts";
import { FEEDBACK_OPERATIONS } from "./feedback.ts";
import { HISTORY_OPERATIONS } from "./history.ts";
import { INSTANCE_OPERATIONS } from "./instance.ts";
import { KEY_OPERATIONS } from "./keys.ts";
import { LIVE_OPERATIONS } from "./live.ts";
import type { ApiHandlers, Operation } from "./operation.ts";
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
  ...CONSOLE_OPERATIONS,
  ...OPERATOR_OPERATIONS,
  ...HISTORY_OPERATIONS,
  ...LIVE_OPERATIONS,
} as const;

/** The ids of all operations. */
export type OperationId = keyof typeof CONTRACT;

/** All operations with their ids. */
export const OPERATIONS: readonly (Operation & { readonly id: OperationId })[] = Object.entries(
  CONTRACT,
).map(([id, operation]) => ({ ...operation, id: parseId(id) }));

/** `Object.entries` widens keys to strings; this restores the type. */
function parseId(id: string): OperationId {
  return id as OperationId;
}

type Served = ApiHandlers<typeof CONTRACT, "api" | "instance">;

/** The handlers of these operations. */
export type Handlers<Id extends keyof Served> = Pick<Served, Id>;
