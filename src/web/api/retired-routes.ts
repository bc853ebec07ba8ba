// Routes of the earlier management API: each answers 410 with the route that replaced it, for every
// method and regardless of credentials.
import { type ApiFault, apiFault } from "../../core/faults/api-fault.ts";

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
  [
    "/api/v1/management/keys/{id}/credit",
    "POST /api/v1/accounts/{id}/credit, with the id of the account (GET /api/v1/accounts/current)",
  ],
  [
    "/api/v1/management/keys/{id}/custom-access",
    "POST /api/v1/accounts/{id}/custom-access, with the id of the account (GET " +
      "/api/v1/accounts/current)",
  ],
  ["/api/v1/management/keys/{id}/claim-link", "POST /api/v1/accounts/current/claim-link"],
  [
    "/api/v1/management/credit",
    "POST /api/v1/accounts/{id}/credit, with the id of the account (GET /api/v1/accounts/current)",
  ],
  [
    "/api/v1/management/custom-access",
    "POST /api/v1/accounts/{id}/custom-access, with the id of the account (GET " +
      "/api/v1/accounts/current)",
  ],
  ["/api/v1/management/claim-link", "POST /api/v1/accounts/current/claim-link"],
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
