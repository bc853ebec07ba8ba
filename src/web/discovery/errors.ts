// The error catalogue for documents: the error tables of JSON-RPC and of the management API as one
// list, with the meaning of each JSON-RPC error added here.
import { API_FAULTS, type ApiFaultCode } from "../../core/faults/api-fault.ts";
import { FAULTS, type FaultCode } from "../../core/faults/rpc-fault.ts";
import type { DocumentFacts } from "./facts.ts";
import { prose } from "./schema-text.ts";

/** One error code of JSON-RPC or of the management API. */
export interface ErrorEntry {
  readonly code: string;
  readonly surface: "json_rpc" | "management";
  /** HTTP status of a single request; 200 = the error is in the body of a JSON-RPC answer. */
  readonly status: number;
  /** Null for errors of the management API. */
  readonly rpcCode: number | null;
  readonly retryable: boolean;
  readonly meaning: string;
  readonly nextAction: string;
}

/**
 * The HTTP statuses of an error as text. Example: a chain without an available provider is answered
 * 200.
 */
export function statusText({ code, surface, status }: ErrorEntry): string {
  return surface === "json_rpc" && code === "unavailable" ? `200 or ${status}` : String(status);
}

/** URL of the explanation of a code. */
export function errorUrl(baseUrl: string, code: string): string {
  return `${baseUrl}/docs/errors#${code}`;
}

/** Every error of an instance: JSON-RPC first, then the management API if it has one. */
export function errorEntries(hosted: boolean): readonly ErrorEntry[] {
  const rpc = Object.entries(FAULTS).map(
    ([code, { status, rpcCode, retryable, nextAction }]): ErrorEntry => {
      return {
        code,
        surface: "json_rpc",
        status,
        rpcCode,
        retryable,
        meaning: MEANINGS[parseCode(code)],
        nextAction,
      };
    },
  );
  return [
    ...rpc.filter((entry) => hosted || !HOSTED_ONLY.has(entry.code)),
    ...(hosted ? MANAGEMENT : []),
  ];
}

/** One error of the management API. */
export function managementError(code: ApiFaultCode): ErrorEntry {
  const { status, retryable, meaning, nextAction } = API_FAULTS[code];
  return { code, surface: "management", status, rpcCode: null, retryable, meaning, nextAction };
}

/** Errors grouped by HTTP status, in ascending order. */
export function byStatus(
  entries: readonly ErrorEntry[],
): readonly (readonly [number, readonly ErrorEntry[]])[] {
  const statuses = [...new Set(entries.map((entry) => entry.status))].sort((a, b) => a - b);
  return statuses.map((status) => [status, entries.filter((entry) => entry.status === status)]);
}

const MANAGEMENT: readonly ErrorEntry[] = Object.keys(API_FAULTS).map((code) =>
  managementError(parseApiCode(code)),
);

/** Codes that only occur where keys exist. */
const HOSTED_ONLY: ReadonlySet<string> = new Set<FaultCode>([
  "gone",
  "unauthorized",
  "key_revoked",
  "forbidden",
  "balance_exhausted",
  "payment_required",
  "payment_invalid",
  "payment_conflict",
  "payment_failed",
  "beneficiary_conflict",
  "payment_pending",
  "not_prepared",
  "profile_config_unavailable",
  "request_loop",
]);

/** When each JSON-RPC error occurs. */
const MEANINGS: Readonly<Record<FaultCode, string>> = {
  parse_error: "The body, or a message on a WebSocket, is not one JSON document in UTF-8.",
  invalid_request: "The request is not a JSON-RPC 2.0 request, or not valid HTTP.",
  body_too_large: "The body or the batch is larger than the instance reads.",
  method_not_allowed: "The path does not serve this HTTP method.",
  unsupported_media_type: "The body is encoded in a way that is not read.",
  request_loop:
    "A provider of a Custom profile has led the request back to a service that had sent it, or " +
    "through too many services like this one.",
  upgrade_required: "The path is for WebSockets, and the request is none.",
  request_timeout: "The request did not arrive in time.",
  not_found: "Nothing is served at this path.",
  gone: "The request has an older form that is not served any more.",
  method_blocked:
    "The method would use keys that a node holds, is for operators of nodes, or is for " +
    "development chains.",
  websocket_only: "The method needs a WebSocket.",
  unknown_chain: "No chain has this name or id, or the profile does not have it.",
  unknown_profile: "No profile has this slug.",
  invalid_field:
    "A part of the URL, a header or a parameter has a value that is not allowed: a strategy, a " +
    "pinned provider, include_meta, consistency, a subscription.",
  unauthorized: "The request has no RPC key, or one that does not exist.",
  key_revoked: "The key was deleted, or replaced when it was rotated.",
  forbidden: "The key may not use this profile.",
  unavailable:
    "Every provider that could serve the call is failing or excluded (HTTP 200, as of every " +
    "error that arises while a call is routed), or the service itself has no room for the " +
    "request or is stopping (HTTP 503). Where waiting cannot help, `error.data.retryable` is " +
    "false and the answer names no time to wait.",
  behind: "No provider has the newest block that the caller has seen.",
  not_prepared: "The Custom profile is being loaded.",
  profile_config_unavailable:
    "The Custom profile cannot be read: it was sealed with a secret that the service does not have.",
  balance_exhausted:
    "Nothing is left that pays for the call. Version 0.1.0 had -32003 for it, which clients take for " +
    "a rejected transaction.",
  payment_required: "The call costs money, and the request carries no payment.",
  payment_invalid: "The payment that came with the call is not right, and nothing was taken.",
  payment_conflict:
    "The payment that came with the call was sent before: with another request, or it is used up.",
  payment_failed:
    "The chain did not carry out the payment that came with the call; nothing was taken.",
  beneficiary_conflict:
    "The money of the payment has arrived, and the key that it was for cannot be credited.",
  payment_pending:
    "The payment that came with the call is recorded and its chain has not settled it yet.",
  rate_limit_exceeded:
    "Too many requests in a short time, or one that waited too long for others on its connection.",
  log_range_limit:
    "Every provider refuses the block range of eth_getLogs as too large, and it comes to more parts " +
    "than one call may have; data.max_blocks is a range that is served, where that is known.",
  subscription_not_found: "No subscription of this connection has this id.",
  filter_not_found:
    "No filter of this caller has this id, or it has ended: after five minutes without a poll, " +
    "or since too much of it was unread.",
  filter_unsupported: "No provider of the chain announces pending transactions.",
  outcome_unknown:
    "The call was sent and its answer was lost. It may have been executed, so it was not sent " +
    "again. A raw transaction is handed to other providers first: its bytes run once.",
  internal: "A fault of the service.",
};

/** A key of `FAULTS`: `Object.entries` widens it to a string. */
function parseCode(code: string): FaultCode {
  return code as FaultCode;
}

/** A key of `API_FAULTS`: `Object.entries` widens it to a string. */
function parseApiCode(code: string): ApiFaultCode {
  return code as ApiFaultCode;
}

/** The document. */
export function errorsText({ hosted }: DocumentFacts): string {
  const entries = errorEntries(hosted !== null);
  const codes = [...new Set(entries.map((entry) => entry.code))];
  const sections = codes.map((code) =>
    section(
      code,
      entries.filter((entry) => entry.code === code),
    ),
  );
  return [
    hosted === null ? INTRODUCTION : `${INTRODUCTION}\n${MANAGEMENT_INTRODUCTION}`,
    ...sections,
  ].join("\n");
}

const INTRODUCTION = `# Errors

Errors of JSON-RPC calls are JSON-RPC errors. Those of the service carry \`error.data.code\`, \`error.data.next_action\` and \`error.data.retryable\`. An error of a
provider passes unchanged, without these members and with HTTP status 200. What is retryable may be sent again unchanged after the seconds in \`Retry-After\`; in a
batch and on a WebSocket \`error.data.retry_after_ms\` tells the time.
`;

const MANAGEMENT_INTRODUCTION = `The management API (\`/api/v1/…\`) answers \`{"error":{"code","message","next_action","docs_url"}}\`, with \`details\` where single fields are wrong.
`;

function section(code: string, entries: readonly ErrorEntry[]): string {
  return [`<a id="${code}"></a>\n\n## ${code}\n`, ...entries.map(paragraph)].join("\n");
}

function paragraph(entry: ErrorEntry): string {
  const { surface, status, rpcCode, retryable, meaning, nextAction } = entry;
  const where =
    surface === "json_rpc"
      ? `JSON-RPC (HTTP ${statusText(entry)}, error ${rpcCode})`
      : `Management API (HTTP ${status})`;
  return `**${where}.** ${prose(meaning)}

- Next action: ${prose(nextAction)}
- Retryable: ${retryable ? "yes, after `Retry-After`" : "no"}
`;
}
