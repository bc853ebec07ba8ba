// Serves one request of an operation that was found: who sent it, whether what it carries is right, and what its handler says.
// Knows rows and handlers, and nothing of what they are about.
import type { IncomingMessage } from "node:http";
import type { z } from "zod";
import { type ApiFault, apiFault } from "../../core/api-fault.ts";
import type { CONTRACT, OperationId } from "../contract.ts";
import type { ApiCaller, ApiHandlers, Operation } from "../contract-types.ts";
import { accountHandlers } from "../handlers/accounts.ts";
import { agentHandlers } from "../handlers/agent.ts";
import { claimHandlers } from "../handlers/claims.ts";
import { connectionHandlers } from "../handlers/connections.ts";
import { feedbackHandlers } from "../handlers/feedback.ts";
import { keyHandlers } from "../handlers/keys.ts";
import { operatorHandlers } from "../handlers/operator.ts";
import { operatorAccountHandlers } from "../handlers/operator-accounts.ts";
import { profileHandlers } from "../handlers/profiles.ts";
import { parseBody } from "./body.ts";
import { type CredentialParts, callerOf } from "./credentials.ts";
import { checkDocument } from "./document.ts";
import { checkFields, queryOf } from "./fields.ts";
import type { HandlerParts } from "./parts.ts";

/** What a request is answered, for whoever does not know its operation. */
export type AnyResult = { readonly kind: "answer"; readonly status: number; readonly body: unknown } | ApiFault;

/** An operation with its id. */
export type NamedOperation = Operation & { readonly id: OperationId };

/** A request of an operation. */
export interface OperationRequest {
  readonly operation: NamedOperation;
  readonly request: IncomingMessage;
  /** Decoded path parameters; null = one cannot be decoded. */
  readonly params: Readonly<Record<string, string>> | null;
  readonly bytes: Buffer;
  readonly address: string;
  readonly baseUrl: string;
}

/** Answers requests of operations; throws where the store does. */
export function createServing(parts: HandlerParts, credentials: CredentialParts): (asked: OperationRequest) => Promise<AnyResult> {
  const handlers = parseHandlers(handlersOf(parts));
  return async (asked) => {
    const { operation, request, address, baseUrl } = asked;
    const presented = { request, address, pathKey: asked.params?.["key"] ?? null };
    let caller = await callerOf(credentials, operation.auth, presented);
    // Whoever reads a balance after a call is to see what it cost; with a key, the balance has been read already.
    if (operation.method === "GET" && (await settle(parts, caller))) caller = await callerOf(credentials, operation.auth, presented);
    if (caller.kind === "api_fault") return caller;
    const limited = operation.method === "GET" ? null : writeLimit(parts, caller);
    if (limited !== null) return limited;
    if (caller.kind === "agent" && caller.agent.readOnly && operation.method !== "GET") return apiFault("forbidden", "the management token may only read");
    const input = inputOf(asked);
    if (input.kind === "api_fault") return input;
    const handler = handlers.get(operation.id);
    if (handler === undefined) throw new Error(`no handler serves ${operation.id}`);
    return handler({ ...input, caller, ifMatch: request.headers["if-match"] ?? null, address, baseUrl });
  };
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

/** Why an account may not change something now; null = it may, and one is counted. */
function writeLimit({ writes, world }: HandlerParts, caller: ApiCaller): ApiFault | null {
  const accountId = caller.kind === "agent" ? caller.agent.accountId : caller.kind === "key" ? caller.key.accountId : null;
  const retryAfterMs = accountId === null ? 0 : writes.take(accountId, world.now());
  return retryAfterMs === 0 ? null : apiFault("rate_limited", "the account has been changed too often in the last minute", { retryAfterMs });
}

interface AnyInput {
  readonly params: unknown;
  readonly query: unknown;
  readonly body: unknown;
  readonly caller: ApiCaller;
  readonly ifMatch: string | null;
  readonly address: string;
  readonly baseUrl: string;
}

type AnyHandler = (input: AnyInput) => AnyResult | Promise<AnyResult>;

function handlersOf(parts: HandlerParts): ApiHandlers<typeof CONTRACT> {
  return {
    ...agentHandlers(parts),
    ...keyHandlers(parts),
    ...accountHandlers(parts),
    ...claimHandlers(parts),
    ...connectionHandlers(parts),
    ...profileHandlers(parts),
    ...operatorAccountHandlers(parts),
    ...operatorHandlers(parts),
    ...feedbackHandlers(parts),
  };
}

/** Handlers by the id of their operation. What each is given and returns was checked where it was written, against its row. */
function parseHandlers(handlers: object): ReadonlyMap<string, AnyHandler> {
  return new Map(Object.entries(handlers) as [string, AnyHandler][]);
}

/** What an operation reads of a request, checked; or what is wrong with it. */
function inputOf({ operation, request, params, bytes }: OperationRequest) {
  const given = operation.params === null ? NOTHING : checkFields(operation.params, params ?? {});
  if (given.kind === "api_fault") return wrongPath(operation, given);
  const query = operation.query === null ? NOTHING : checkFields(operation.query, queryOf(request.url ?? "/", operation.query));
  if (query.kind === "api_fault") return query;
  const object = operation.body === null ? NO_FIELDS : parseBody(bytes, request);
  if (object.kind === "api_fault") return object;
  const body = operation.body === null ? NOTHING : checkBody(operation, operation.body, object.value);
  return body.kind === "api_fault" ? body : ({ kind: "input", params: given.value, query: query.value, body: body.value } as const);
}

const NOTHING = { kind: "checked", value: null } as const;
const NO_FIELDS = { kind: "object", value: {} } as const;

function wrongPath(operation: Operation, { details }: ApiFault): ApiFault<"invalid_field"> {
  const names = Object.keys(operation.params?.shape ?? {}).map((it) => `{${it}}`);
  return apiFault("invalid_field", `${names.join(", ")} in the path is no id`, {
    details,
    nextAction: `replace ${names.join(", ")} with an id that the API returned`,
  });
}

function checkBody({ wrongBody }: NamedOperation, schema: z.ZodObject, given: object) {
  return wrongBody === undefined ? checkFields(schema, given) : checkDocument(schema, given);
}
