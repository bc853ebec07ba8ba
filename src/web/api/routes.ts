// Finds the operation of a path and method. Fixed segments win over parameters. Knows nothing of
// what operations do.

import { type ApiFault, apiFault } from "../../core/faults/api-fault.ts";
import type { NamedOperation } from "../contract/contract.ts";
import type { OperationMethod } from "../contract/operation.ts";

/** The operations of a matched path. */
export interface OperationRoute {
  /** Decoded path parameters; null = malformed percent-encoding. */
  readonly params: Readonly<Record<string, string>> | null;
  readonly operations: ReadonlyMap<OperationMethod, NamedOperation>;
}

/**
 * The form of paths: `{name}` stands for one segment, a final `*` for any number of them. A
 * trailing slash is ignored.
 */
function formOf(path: string): RegExp {
  const source = path.replace(/\{(\w+)\}/g, "(?<$1>[^/]+)").replace(/\/\*$/, "(?:/.*)?");
  return new RegExp(`^${source}/?$`);
}

/**
 * Compiles a route table; the returned function finds the route of a path (without query),
 * undefined = none.
 */
export function createRoutes(
  operations: readonly NamedOperation[],
): (path: string) => OperationRoute | undefined {
  const parameters = (path: string): number => path.split("{").length;
  const forms = Array.from(
    Map.groupBy(operations, ({ path }) => path),
    ([path, same]) => ({ path, operations: new Map(same.map((row) => [row.method, row])) }),
  )
    .sort((a, b) => parameters(a.path) - parameters(b.path))
    .map(({ path, operations }) => ({ form: formOf(path), operations }));
  return (path) => {
    for (const { form, operations } of forms) {
      const found = form.exec(path);
      if (found !== null) return { params: decoded(found.groups ?? {}), operations };
    }
    return undefined;
  };
}

function decoded(params: Readonly<Record<string, string>>): OperationRoute["params"] {
  try {
    return Object.fromEntries(
      Object.entries(params).map(([name, text]) => [name, decodeURIComponent(text)]),
    );
  } catch {
    return null;
  }
}

const WITH_ID = ", with the id of the account (GET /api/v1/accounts/current)";

/** Removed paths and their replacements; the first match wins. */
export const RETIRED: readonly (readonly [path: string, instead: string])[] = [
  ["/api/v1/me", "GET /api/v1/agents/current"],
  [
    "/api/v1/account/management-credentials/*",
    "POST /api/v1/connections for another management token, GET /api/v1/agents/current for " +
      "what yours may do",
  ],
  ["/api/v1/management/me", "GET /api/v1/agents/current"],
  ["/api/v1/management/keys", "/api/v1/keys"],
  ["/api/v1/management/keys/{id}", "/api/v1/keys/{id}"],
  ["/api/v1/management/keys/{id}/rotate", "POST /api/v1/keys/{id}/rotate"],
  ...["/api/v1/management/keys/{id}", "/api/v1/management"].flatMap((before) => [
    [`${before}/credit`, `POST /api/v1/accounts/{id}/credit${WITH_ID}`] as const,
    [`${before}/custom-access`, `POST /api/v1/accounts/{id}/custom-access${WITH_ID}`] as const,
    [`${before}/claim-link`, "POST /api/v1/accounts/current/claim-link"] as const,
  ]),
  ["/api/v1/management/connections", "/api/v1/connections"],
  ["/api/v1/management/connections/*", "/api/v1/connections/{id}"],
  ["/api/v1/management/profiles", "/api/v1/profiles"],
  ["/api/v1/management/profiles/*", "/api/v1/profiles/{slug}"],
  ["/api/v1/management/configuration-schema", "GET /api/v1/configuration-schema"],
  ["/api/v1/management/purchases/*", "GET /api/v1/purchases/{id}"],
  ["/api/v1/management/*", "the account API: GET /openapi.json lists its operations"],
];

const RETIRED_FORMS = RETIRED.map(([path, instead]) => ({ form: formOf(path), instead }));

/** The 410 refusal of a removed path; null = the path was never served. */
export function retiredAt(path: string): ApiFault<"gone"> | null {
  const found = RETIRED_FORMS.find(({ form }) => form.test(path));
  if (found === undefined) return null;
  return apiFault("gone", "this route of the earlier management API is retired", {
    nextAction: `use ${found.instead}; keys and management tokens keep working`,
  });
}
