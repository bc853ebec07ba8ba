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

interface PathForm {
  readonly segments: readonly string[];
  readonly operations: Map<OperationMethod, NamedOperation>;
}

/**
 * Compiles a route table; the returned function finds the route of a path (without query),
 * undefined = none.
 */
export function createRoutes(
  operations: readonly NamedOperation[],
): (path: string) => OperationRoute | undefined {
  const forms = new Map<string, PathForm>();
  for (const operation of operations) {
    const form = forms.get(operation.path) ?? {
      segments: segmentsOf(operation.path),
      operations: new Map(),
    };
    form.operations.set(operation.method, operation);
    forms.set(operation.path, form);
  }
  const ordered = [...forms.values()].sort(
    (a, b) => parameters(a.segments) - parameters(b.segments),
  );
  return (path) => {
    const segments = segmentsOf(path);
    const form = ordered.find((candidate) => fits(candidate.segments, segments));
    return form === undefined
      ? undefined
      : { params: paramsOf(form.segments, segments), operations: form.operations };
  };
}

/** A trailing slash is ignored. */
function segmentsOf(path: string): readonly string[] {
  return path.replace(/^\//, "").replace(/\/$/, "").split("/");
}

function isParameter(segment: string): boolean {
  return segment.startsWith("{");
}

function parameters(segments: readonly string[]): number {
  return segments.filter(isParameter).length;
}

function fits(form: readonly string[], segments: readonly string[]): boolean {
  return (
    form.length === segments.length &&
    form.every((segment, i) =>
      isParameter(segment) ? segments[i] !== "" : segment === segments[i],
    )
  );
}

function paramsOf(
  form: readonly string[],
  segments: readonly string[],
): Readonly<Record<string, string>> | null {
  try {
    return Object.fromEntries(
      form.flatMap((segment, i) =>
        isParameter(segment) ? [[segment.slice(1, -1), decodeURIComponent(segments[i] ?? "")]] : [],
      ),
    );
  } catch {
    return null;
  }
}

const WITH_ID = ", with the id of the account (GET /api/v1/accounts/current)";

/**
 * Removed paths and their replacements; the first match wins. `{name}` matches one segment, a final
 * `*` any number.
 */
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

const PATTERNS = RETIRED.map(([path, instead]) => {
  const source = path.replace(/\{\w+\}/g, "[^/]+").replace(/\/\*$/, "(?:/.*)?");
  return { pattern: new RegExp(`^${source}/?$`), instead };
});

/** The 410 refusal of a removed path; null = the path was never served. */
export function retiredAt(path: string): ApiFault<"gone"> | null {
  const found = PATTERNS.find(({ pattern }) => pattern.test(path));
  if (found === undefined) return null;
  return apiFault("gone", "this route of the earlier management API is retired", {
    nextAction: `use ${found.instead}; keys and management tokens keep working`,
  });
}
