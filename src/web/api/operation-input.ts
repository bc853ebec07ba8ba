// The validated input of an operation: path, query, body and headers of one request. Knows rows of
// the contract and no handler.
import type { z } from "zod";
import { type ApiFault, apiFault } from "../../core/faults/api-fault.ts";
import type { Operation } from "../contract/operation.ts";
import { parseBody } from "../http/body.ts";
import { checkDocument } from "./check-document.ts";
import { checkFields, queryOf } from "./check-fields.ts";
import type {
  AnyHandler,
  AnyInput,
  AnyPaidHandler,
  NamedOperation,
  OperationRequest,
} from "./operation.ts";

/**
 * Handlers by operation id. Their types were checked against the contract where they were defined.
 */
export function parseHandlers(handlers: object): ReadonlyMap<string, AnyHandler | AnyPaidHandler> {
  return new Map(Object.entries(handlers) as [string, AnyHandler | AnyPaidHandler][]);
}

/** The validated input of an operation, or its faults. */
export function inputOf({
  operation,
  request,
  params,
  bytes,
  address,
  baseUrl,
  isLocal,
  cookie,
}: OperationRequest): AnyInput | ApiFault {
  const given =
    operation.params === undefined ? NOTHING : checkFields(operation.params, params ?? {});
  if (given.kind === "api_fault") return wrongPath(operation, given);
  const query =
    operation.query === undefined
      ? NOTHING
      : checkFields(operation.query, queryOf(request.url ?? "/"));
  if (query.kind === "api_fault") return query;
  const object = operation.body === undefined ? NO_FIELDS : parseBody(bytes, request);
  if (object.kind === "api_fault") return object;
  const body =
    operation.body === undefined ? NOTHING : checkBody(operation, operation.body, object.value);
  if (body.kind === "api_fault") return body;
  const ifMatch = request.headers["if-match"] ?? null;
  const lastId = request.headers["last-event-id"];
  const lastEventId = typeof lastId === "string" ? lastId : null;
  return {
    kind: "input",
    params: given.value,
    query: query.value,
    body: body.value,
    ifMatch,
    lastEventId,
    address,
    baseUrl,
    isLocal,
    cookie,
  };
}

const NOTHING = { kind: "checked", value: null } as const;
const NO_FIELDS = { kind: "object", value: {} } as const;

function wrongPath(operation: Operation, { details }: ApiFault): ApiFault<"invalid_field"> {
  const names = Object.keys(operation.params?.shape ?? {}).map((name) => `{${name}}`);
  return apiFault("invalid_field", `${names.join(", ")} in the path is no id`, {
    details,
    nextAction: `replace ${names.join(", ")} with an id that the API returned`,
  });
}

function checkBody({ wrongBody }: NamedOperation, schema: z.ZodObject, given: object) {
  return wrongBody === undefined ? checkFields(schema, given) : checkDocument(schema, given);
}
