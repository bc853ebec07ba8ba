// The error catalogue for documents: the error tables of JSON-RPC and of the management API as one
// list, with the meaning of each JSON-RPC error added here.
import { API_FAULTS, type ApiFaultCode } from "../../core/faults/api-fault.ts";
import { FAULTS, type FaultCode } from "../../core/faults/rpc-fault.ts";
import { BATCH_DEADLINE_MS } from "../rpc/pacer.ts";
import { type DocumentFacts, pathOf, type Site } from "./facts.ts";
import { DOCUMENT_PATHS } from "./paths.ts";
import { bullets, cell, markdownOf, prose, type Section, table } from "./sections.ts";

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

/** URL of the explanation of a code. */
export function errorUrl(baseUrl: string, code: string): string {
  return `${baseUrl}/docs/errors#${code}`;
}

/** Every error of an instance: JSON-RPC first, then the management API if it has one. */
export function errorEntries(hosted: boolean): readonly ErrorEntry[] {
  const rpc = Object.entries(FAULTS).map(([code, row]): ErrorEntry => {
    const { status, rpcCode, retryable, nextAction } = row;
    const meaning = MEANINGS[parseCode(code)];
    return { code, surface: "json_rpc", status, rpcCode, retryable, meaning, nextAction };
  });
  return [
    ...rpc.filter((entry) => hosted || !HOSTED_ONLY.has(entry.code)),
    ...(hosted ? MANAGEMENT : []),
  ];
}

/** One error of the management API. */
export function managementError(code: ApiFaultCode): ErrorEntry {
  return managementEntry(code, API_FAULTS[code]);
}

function managementEntry(code: string, row: (typeof API_FAULTS)[ApiFaultCode]): ErrorEntry {
  const { status, retryable, meaning, nextAction } = row;
  return { code, surface: "management", status, rpcCode: null, retryable, meaning, nextAction };
}

/** Errors grouped by HTTP status, in ascending order. */
export function byStatus(
  entries: readonly ErrorEntry[],
): readonly (readonly [number, readonly ErrorEntry[]])[] {
  const statuses = [...new Set(entries.map((entry) => entry.status))].sort((a, b) => a - b);
  return statuses.map((status) => [status, entries.filter((entry) => entry.status === status)]);
}

const MANAGEMENT: readonly ErrorEntry[] = Object.entries(API_FAULTS).map(([code, row]) =>
  managementEntry(code, row),
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
  not_prepared: "The Custom profile is being loaded, or the chain is being opened.",
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

/** `/docs/errors`: every code of an instance, below a heading of its own. */
export function errorsText({ hosted }: DocumentFacts): string {
  const byCode = Map.groupBy(errorEntries(hosted !== null), ({ code }) => code);
  const sections = Array.from(byCode, ([code, entries]) => [
    `<a id="${code}"></a>`,
    `## ${code}`,
    ...entries.flatMap(explained),
  ]);
  const introduction = ["# Errors", CALL_ERRORS, ...(hosted === null ? [] : [API_ERRORS])];
  return markdownOf([...introduction, ...sections.flat()], []);
}

const CALL_ERRORS =
  "Errors of JSON-RPC calls are JSON-RPC errors. Those of the service carry `error.data.code`, " +
  "`error.data.next_action` and `error.data.retryable`. An error of a provider passes unchanged, " +
  "without these members and with HTTP status 200. What is retryable may be sent again unchanged " +
  "after the seconds in `Retry-After`; in a batch and on a WebSocket `error.data.retry_after_ms` " +
  "tells the time.";

const API_ERRORS =
  'The management API (`/api/v1/…`) answers `{"error":{"code","message","next_action",' +
  '"docs_url"}}`, with `details` where single fields are wrong.';

function explained(entry: ErrorEntry): readonly string[] {
  const { rpcCode, retryable, meaning, nextAction } = entry;
  const status = statusText(entry);
  const where =
    rpcCode === null
      ? `Management API (HTTP ${status})`
      : `JSON-RPC (HTTP ${status}, error ${rpcCode})`;
  return [
    `**${where}.** ${prose(meaning)}`,
    bullets([
      `Next action: ${prose(nextAction)}`,
      `Retryable: ${retryable ? "yes, after `Retry-After`" : "no"}`,
    ]),
  ];
}

/** The HTTP statuses of an error: a chain without an available provider is answered 200. */
function statusText({ code, surface, status }: ErrorEntry): string {
  return surface === "json_rpc" && code === "unavailable" ? `200 or ${status}` : String(status);
}

/** The sections on errors in documents that tell more than errors. */
export function errorSections(facts: DocumentFacts, { baseUrl }: Site): readonly Section[] {
  const rows = errorEntries(facts.hosted !== null).map((entry) => [
    `\`${entry.code}\``,
    entry.surface === "json_rpc" ? "RPC" : "API",
    statusText(entry),
    entry.retryable ? "yes" : "no",
    cell(prose(entry.nextAction)),
  ]);
  const all =
    "RPC errors of the service carry `error.data.code`, `next_action` and `retryable`; API errors " +
    "`error.code` and `error.next_action`. A provider's error passes unchanged, with HTTP status " +
    `200. All codes: ${baseUrl}${DOCUMENT_PATHS.errors}`;
  return [
    { title: "Refusals", text: [bullets([...refusalNotes(facts), all])], isBrief: true },
    { title: "Errors", text: [table(["Code", "Where", "HTTP", "Retry", "Next action"], rows)] },
  ];
}

/** How to handle refusals that callers with a key may get; empty for an instance without keys. */
function refusalNotes({ hosted }: DocumentFacts): readonly string[] {
  if (hosted === null) return [];
  const { freeCuPerMonth, buckets, payments } = hosted;
  const paying =
    payments === null
      ? "Payments are not open on this instance."
      : "The answer carries offers to fund the key: sign one and send the same request again " +
        "with it. A batch answers 200 with this error in each item and carries no offer: send " +
        "one call, or fund the key. WebSockets take no payment: fund the key over HTTP.";
  const allowance =
    freeCuPerMonth === 0
      ? ""
      : ` An account made with \`POST ${pathOf("createKey")}\` may use ${freeCuPerMonth} CU a ` +
        `month on public providers, at load-balanced; \`included_usage.resets_at\` of \`GET ` +
        `${pathOf("getCurrentAccount")}\` tells when it begins anew. Anonymous keys have no such ` +
        "allowance.";
  return [
    `**402 \`balance_exhausted\`**: nothing is left that pays for the call. Repeating it does ` +
      `not help.${allowance} ${paying}`,
    `**429 \`rate_limit_exceeded\`**: wait the seconds that \`Retry-After\` names, then send ` +
      `the same request. An account has ${buckets.managed.perSecond} requests a second ` +
      `(${buckets.managed.burst} at once) with premium access, ${buckets.reduced.perSecond} ` +
      `(${buckets.reduced.burst}) where public providers stand in for it, and ` +
      `${buckets.public.perSecond} (${buckets.public.burst}) on profile \`public\`. Each item of ` +
      "a batch counts; items of a batch and requests on a WebSocket wait for the rate, up to " +
      `${BATCH_DEADLINE_MS / 1_000} seconds, and are then refused one by one. Two batches or ` +
      `WebSockets of an account may wait at once, a third gets 429. \`RateLimit\` tells what is left.`,
    "**401 `unauthorized` or `key_revoked`**: the key does not exist, is mistyped, or was " +
      "deleted or replaced. Use the current key or create another one.",
    "**`unavailable`** (-32002; HTTP 200 where no provider of the chain could be asked, 503 " +
      "where the service itself is busy or stopping): wait for `Retry-After`, then send the same " +
      "request. Where `error.data.retryable` is false, waiting does not help.",
  ];
}
