// The operations that an instance serves, and the URL forms of JSON-RPC as documents name them. The
// operations themselves are rows of the contract.
import { CONTRACT, OPERATIONS, type OperationId } from "../contract/contract.ts";
import type { Operation } from "../contract/operation.ts";
import { CURRENT_FORMS } from "../rpc/target.ts";
import type { DocumentFacts } from "./facts.ts";

/** A row of the contract with its id. */
export type ServedOperation = Operation & { readonly id: OperationId };

/**
 * The operations of an instance. Where nobody can authenticate as the operator, those that take
 * nothing else are left out.
 */
export function servedOperations({ hosted, operator }: DocumentFacts): readonly ServedOperation[] {
  return OPERATIONS.filter(({ servedBy }) => servedBy !== "api" || hosted !== null)
    .map((row) => ({ ...row, auth: row.auth.filter((way) => operator || way !== "operator") }))
    .filter(({ auth }) => auth.length > 0);
}

/** Path of one operation. */
export function pathOf(id: OperationId): string {
  return CONTRACT[id].path;
}

/** An operation as one line: method and path. */
export function lineOf({ method, path }: Pick<Operation, "method" | "path">): string {
  return `${method} ${path}`;
}

/** The URL form of pay-per-call: HTTP only, without a key. */
export const SESSION_FORM = "/rpc/session/{strategy}/{chain}";

/** The other current URL forms of JSON-RPC over HTTP without a key. */
export const PLAIN_FORMS: readonly string[] = CURRENT_FORMS.filter((form) => form !== SESSION_FORM);

/** The URL forms of JSON-RPC over HTTP with a key in the path. */
export const KEYED_FORMS: readonly string[] = PLAIN_FORMS.map((form) =>
  form.replace("/rpc/", "/rpc/k/{key}/"),
);

/**
 * The URL forms that work on this instance; forms without a key come first if callers without a key
 * are served.
 */
export function rpcForms({ hosted }: DocumentFacts): readonly string[] {
  if (hosted === null) return PLAIN_FORMS;
  return [...KEYED_FORMS, ...PLAIN_FORMS];
}

/** Paths of the documents. */
export const DOCUMENT_PATHS = {
  openapi: "/openapi.json",
  agent: "/agent.json",
  llms: "/llms.txt",
  skill: "/SKILL.md",
  docs: "/docs",
  errors: "/docs/errors",
  api: "/docs/api",
} as const;
