// The table of legacy request forms that are still served. Knows neither URL syntax nor headers,
// which are in `web`.
import { type Fault, fault } from "./rpc-fault.ts";

/** A legacy form of request. */
export interface LegacyFormRow {
  /** The legacy part of a request. */
  readonly was: string;
  /** What to send in its place. */
  readonly instead: string;
}

const ROWS = {
  "round-robin": {
    was: "strategy segment `round-robin` in the path",
    instead: "/rpc/load-balanced/{chain}",
  },
  "chain-provider": {
    was: "`/rpc/{chain}/{provider}` and `/rpc/profile/{profile}/{chain}/{provider}`",
    instead:
      "/rpc/provider/{provider}/{chain} or /rpc/profile/{profile}/provider/{provider}/{chain}",
  },
  "profile-prefix": { was: "`/profile/{profile}/…`", instead: "/rpc/profile/{profile}/…" },
  "key-query": {
    was: "`?key=` with the RPC key",
    instead: "the key in the path, /rpc/k/{key}/…, or as Authorization: Bearer",
  },
  "version-header": {
    was: "`X-Svc-Version: 2`, which asks for the headers and errors of version 2",
    instead: "the request without X-Svc-Version",
  },
} as const satisfies Record<string, LegacyFormRow>;

/** Name of a legacy form. */
export type LegacyFormName = keyof typeof ROWS;

/** The table. */
export const LEGACY_FORMS: Readonly<Record<LegacyFormName, LegacyFormRow>> = ROWS;

/** The names of all legacy forms. */
export const LEGACY_FORM_NAMES: readonly LegacyFormName[] = Object.keys(ROWS).map(parseName);

/** The refusal of a legacy form that is switched off. */
export function legacyFormGone(name: LegacyFormName): Fault {
  return fault("gone", `this form of request is not served any more: ${name}`, {
    nextAction: `use ${ROWS[name].instead}`,
    details: { form: name },
  });
}

/** A refusal in the format of version 2: with `error_type` beside the code. */
export function withErrorType(refusal: Fault): Fault {
  return { ...refusal, details: { ...refusal.details, error_type: errorTypeOf(refusal) } };
}

function errorTypeOf({ rpcCode, code }: Fault): string {
  return code === "forbidden" ? "permission_error" : (ERROR_TYPES.get(rpcCode) ?? "server_error");
}

const ERROR_TYPES: ReadonlyMap<number, string> = new Map([
  [-32700, "parse_error"],
  [-32600, "invalid_request_error"],
  [-32601, "method_error"],
  [-32602, "invalid_params_error"],
  [-32001, "authentication_error"],
  [-32002, "unavailable_error"],
  [-32040, "payment_error"],
  [-32005, "rate_limit_error"],
]);

function parseName(name: string): LegacyFormName {
  return name as LegacyFormName;
}
